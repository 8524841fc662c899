//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "dialects/Comm/IR/Schedule.h"

#include "mlir/Analysis/CallGraph.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SCCIterator.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_STARTCOLLECTIVES
#include "braid/Transforms/Passes.h.inc"

namespace {

/// The operations that start communication, calls included. Every rank must start collectives in
/// the same order, so no start moves across one of these.
class ChannelUsers {
public:
  explicit ChannelUsers(ModuleOp module) {
    CallGraph graph(module);
    // Callees come first. A recursive function may do anything.
    for (auto it = llvm::scc_begin<const CallGraph *>(&graph); !it.isAtEnd(); ++it)
      if (const CallGraphNode *node = it->front(); !it.hasCycle() && !node->isExternal())
        if (Operation *func = node->getCallableRegion()->getParentOp(); !anyWithin(func))
          silent.insert(func);
  }

  bool contains(Operation *op) {
    if (isa<StartOp, CollectiveOpInterface>(op))
      return true;
    if (isa<WaitOp>(op))
      return false; // A wait completes an earlier start; later starts do not depend on it.
    if (auto call = dyn_cast<func::CallOp>(op))
      return !silent.contains(calleeOf(call));
    if (op->getNumRegions() != 0 && anyWithin(op))
      return true;
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return false;
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (!effects)
      return !isPure(op);
    SmallVector<MemoryEffects::EffectInstance> list;
    effects.getEffects(list);
    return llvm::any_of(list, [](const MemoryEffects::EffectInstance &effect) {
      return effect.getResource()->getResourceID() == ChannelResource::getResourceID();
    });
  }

private:
  bool anyWithin(Operation *op) {
    return op
        ->walk([&](Operation *nested) {
          return nested != op && contains(nested) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  llvm::SmallPtrSet<Operation *, 4> silent; ///< functions that start no communication
};

/// Replaces a collective by a start and a wait at its place.
std::pair<StartOp, WaitOp> split(CollectiveOpInterface collective) {
  Operation *op = collective;
  OpBuilder builder(op);
  auto handle = HandleType::get(op->getContext(), llvm::to_vector(op->getResultTypes()));
  auto start = StartOp::create(builder, op->getLoc(), handle, op->getOperands());
  SmallVector<Location> locations(op->getNumOperands(), op->getLoc());
  Block *body = builder.createBlock(&start.getBody(), {}, op->getOperandTypes(), locations);
  builder.setInsertionPointAfter(start);
  auto wait = WaitOp::create(builder, op->getLoc(), op->getResultTypes(), start.getHandle(),
                             op->getOperands());
  op->replaceAllUsesWith(wait.getResults());
  op->moveBefore(body, body->end());
  op->setOperands(body->getArguments());
  builder.setInsertionPointToEnd(body);
  YieldOp::create(builder, op->getLoc(), op->getResults());
  return {start, wait};
}

/// The last operation of the block that `op` must stay behind; null when it may go to the block's
/// start.
Operation *earliestAfter(Operation *op, ChannelUsers &channel) {
  Operation *last = nullptr;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == op->getBlock())
      if (!last || last->isBeforeInBlock(def))
        last = def;
  for (Operation *before = op->getPrevNode(); before && before != last;
       before = before->getPrevNode())
    if (channel.contains(before))
      return before;
  return last;
}

struct StartCollectives : impl::StartCollectivesBase<StartCollectives> {
  void runOnOperation() override {
    ChannelUsers channel(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      auto pairs = llvm::map_to_vector(collectivesIn<CollectiveOpInterface>(func), split);
      numStarted += pairs.size();
      for (auto [start, wait] : pairs) {
        if (Operation *after = earliestAfter(start, channel))
          start->moveAfter(after);
        else
          start->moveBefore(&start->getBlock()->front());
      }
      // From the last to the first, so that a start is in place before the waits that it needs
      // move.
      for (auto [start, wait] : llvm::reverse(pairs))
        sinkWait(wait);
    }
  }
};

} // namespace
} // namespace braid
