//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "GatherMoves.h"
#include "SliceWise.h"

#include "braid/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_SINKALLGATHERS
#include "braid/Transforms/Passes.h.inc"

namespace {

bool isOwnSlice(Operation *user, int64_t dim, GroupAttr group) {
  auto slice = dyn_cast<LocalSliceOp>(user);
  return slice && static_cast<int64_t>(slice.getDim()) == dim && slice.getGroup() == group;
}

class Sinker {
public:
  Sinker(ModuleOp module, MeshOp mesh, bool acrossCalls)
      : module(module), replication(module, mesh), acrossCalls(acrossCalls) {}
  /// One round over the module; true when anything changed.
  bool run();
  /// Says of every gather why it stays.
  void explain();
  GatherMoves moves;

private:
  /// Slices of a gathered value that take a rank's own part again; true when there were any.
  bool foldSlices(AllGatherOp gather);
  bool sinkPast(AllGatherOp gather, OpOperand &use, std::string &why);
  bool sinkIntoCallee(func::FuncOp func, unsigned index, std::string &why);
  bool sinkIntoCallers(func::FuncOp func, unsigned index, std::string &why);
  bool sinkAll(func::FuncOp func);
  std::string whyNot(AllGatherOp gather, OpOperand &use);
  void eraseIfUnused(AllGatherOp gather) {
    if (!gather->use_empty())
      return;
    replication.forget(gather.getOutputs()[0]);
    gather.erase();
  }

  ModuleOp module;
  Replication replication;
  bool acrossCalls;
  llvm::SetVector<Operation *> work;
};

bool Sinker::foldSlices(AllGatherOp gather) {
  bool any = false;
  for (Operation *user : llvm::make_early_inc_range(gather->getUsers()))
    if (isOwnSlice(user, gather.getDim(), gather.getGroup())) {
      replication.forget(user->getResult(0));
      user->getResult(0).replaceAllUsesWith(gather.getInputs()[0]);
      user->erase();
      any = true;
    }
  return any;
}

bool Sinker::sinkPast(AllGatherOp gather, OpOperand &use, std::string &why) {
  Operation *op = use.getOwner();
  int64_t dim = gather.getDim();
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  if (op->getBlock() != gather->getBlock()) {
    why = name + " is in another block";
    return false;
  }
  std::optional<SliceDims> dims = sliceDims(op, use, dim, n, why);
  if (!dims)
    return false;
  // Ranks compute different slices of what must have been the same on all.
  for (Value operand : op->getOperands())
    if (!gatherOf(operand) || gatherOf(operand).getGroup() != group)
      if (!replication.isReplicated(operand, group)) {
        why = name + " has an operand that differs between the ranks";
        return false;
      }

  // Moving must not make more to exchange.
  SaturatingCount before = 0, after = 0;
  llvm::SetVector<Operation *> passed;
  for (auto [operand, cut] : llvm::zip_equal(op->getOperands(), dims->operands)) {
    AllGatherOp other = gatherOf(operand);
    if (cut && gathers(other, *cut, group) && other->getBlock() == op->getBlock() &&
        llvm::all_of(other->getUsers(), [&](Operation *user) { return user == op; }) &&
        passed.insert(other))
      before += bytesOf(operand.getType());
  }
  for (auto [result, cut] : llvm::zip_equal(op->getResults(), dims->results))
    if (!llvm::all_of(result.getUsers(),
                      [&, cut = cut](Operation *user) { return isOwnSlice(user, *cut, group); }))
      after += bytesOf(result.getType());
  if (after > before) {
    why = name + " would need " + std::to_string(after.getValue()) +
          " bytes gathered in place of " + std::to_string(before.getValue());
    return false;
  }

  OpBuilder builder(op);
  SmallVector<Value> parts(op->getOperands());
  for (auto [part, cut] : llvm::zip_equal(parts, dims->operands))
    if (cut)
      part = takePart(builder, op->getLoc(), part, *cut, group);
  SmallVector<Type> types;
  for (auto [result, cut] : llvm::zip_equal(op->getResults(), dims->results))
    types.push_back(partType(result.getType(), *cut, n));
  FailureOr<SmallVector<Value>> locals = rebuild(op, builder, parts, types);
  if (failed(locals)) {
    why = name + " cannot be built on slices";
    return false;
  }
  remarkDone(gather, "SinkAllGathers", "moved past " + name);
  ++moves.past;
  for (auto [result, local, cut] : llvm::zip_equal(op->getResults(), *locals, dims->results)) {
    if (!result.use_empty()) {
      auto moved = AllGatherOp::create(builder, gather.getLoc(), TypeRange{result.getType()},
                                       ValueRange{local}, *cut, group, gather.getRoleAttr());
      replication.setLike(moved.getOutputs()[0], result);
      result.replaceAllUsesWith(moved.getOutputs()[0]);
      foldSlices(moved);
      if (!moved->use_empty())
        work.insert(moved);
      eraseIfUnused(moved);
    }
    replication.forget(result);
  }
  op->erase();
  for (Operation *other : passed)
    if (other->use_empty()) {
      work.remove(other);
      eraseIfUnused(cast<AllGatherOp>(other));
    }
  return true;
}

/// All that one function allows by itself.
bool Sinker::sinkAll(func::FuncOp func) {
  for (AllGatherOp gather : collectivesIn<AllGatherOp>(func))
    if (gather.getInputs().size() == 1)
      work.insert(gather);
  bool changed = false;
  while (!work.empty()) {
    auto gather = cast<AllGatherOp>(work.front());
    work.erase(work.begin());
    changed |= foldSlices(gather);
    // Each success changes the uses, and may take the gather away.
    for (bool again = true; again;) {
      again = false;
      for (OpOperand &use : gather->getUses()) {
        std::string why;
        if (isa<func::CallOp, func::ReturnOp>(use.getOwner()))
          continue;
        bool last = gather->hasOneUse() || llvm::all_of(gather->getUsers(), [&](Operation *user) {
                      return user == use.getOwner();
                    });
        if (sinkPast(gather, use, why)) {
          changed = true;
          again = !last;
          break;
        }
      }
    }
  }
  return changed;
}

bool Sinker::sinkIntoCallers(func::FuncOp func, unsigned index, std::string &why) {
  Operation *ret = func.getBody().front().getTerminator();
  AllGatherOp gather = gatherOf(ret->getOperand(index));
  std::optional<SmallVector<func::CallOp>> calls = changeableCalls(func, why);
  if (!calls)
    return false;
  if (!gather || !gather->hasOneUse()) {
    why = "the value that '@" + func.getSymName().str() + "' returns is used in it too";
    return false;
  }
  for (func::CallOp call : *calls) {
    Value result = call.getResult(index);
    replication.forget(result);
    Type whole = result.getType();
    result.setType(gather.getInputs()[0].getType());
    if (result.use_empty())
      continue;
    OpBuilder builder(call);
    builder.setInsertionPointAfter(call);
    auto moved = AllGatherOp::create(builder, gather.getLoc(), TypeRange{whole}, ValueRange{result},
                                     gather.getDim(), gather.getGroup(), gather.getRoleAttr());
    result.replaceAllUsesExcept(moved.getOutputs()[0], moved);
    foldSlices(moved);
    eraseIfUnused(moved);
  }
  remarkDone(gather, "SinkAllGathers", "moved to the callers of '@" + func.getSymName() + "'");
  ret->setOperand(index, gather.getInputs()[0]);
  eraseIfUnused(gather);
  updateType(func);
  ++moves.outOfCalls;
  return true;
}

bool Sinker::sinkIntoCallee(func::FuncOp func, unsigned index, std::string &why) {
  std::string callee = ("'@" + func.getSymName() + "'").str();
  std::optional<SmallVector<func::CallOp>> calls = changeableCalls(func, why);
  if (!calls)
    return false;
  AllGatherOp first;
  for (func::CallOp call : *calls)
    if (!first)
      first = gatherOf(call.getOperand(index));
  if (!first) {
    why = "no caller of " + callee + " gathers argument " + std::to_string(index);
    return false;
  }
  int64_t dim = first.getDim();
  GroupAttr group = first.getGroup();
  // A layer called several times keeps one form, so the first one's operand, which nobody gathered,
  // is cut as well; that must not be what most calls have.
  size_t moving = 0;
  for (func::CallOp call : *calls) {
    Value operand = call.getOperand(index);
    AllGatherOp gather = gatherOf(operand);
    if (gathers(gather, dim, group)) {
      moving += gather->hasOneUse();
    } else if (gather || !replication.isReplicated(operand, group)) {
      why = "the callers of " + callee + " do not agree on argument " + std::to_string(index);
      return false;
    }
  }
  if (2 * moving < calls->size()) {
    why = std::to_string(calls->size() - moving) + " of " + std::to_string(calls->size()) +
          " callers of " + callee + " would gather more than before";
    return false;
  }
  remarkDone(first, "SinkAllGathers", "moved into " + callee);
  BlockArgument argument = func.getArgument(index);
  replication.forget(argument);
  Type whole = argument.getType();
  argument.setType(first.getInputs()[0].getType());
  if (!argument.use_empty()) {
    OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
    auto moved = AllGatherOp::create(builder, first.getLoc(), TypeRange{whole},
                                     ValueRange{argument}, dim, group, first.getRoleAttr());
    argument.replaceAllUsesExcept(moved.getOutputs()[0], moved);
    foldSlices(moved);
    eraseIfUnused(moved);
  }
  updateType(func);
  for (func::CallOp call : *calls) {
    OpBuilder builder(call);
    AllGatherOp gather = gatherOf(call.getOperand(index));
    call->setOperand(index, takePart(builder, call.getLoc(), call.getOperand(index), dim, group));
    if (gather)
      eraseIfUnused(gather);
  }
  ++moves.intoCalls;
  return true;
}

bool Sinker::run() {
  bool changed = false;
  for (auto func : module.getOps<func::FuncOp>())
    changed |= sinkAll(func);
  if (changed || !acrossCalls)
    return changed;
  std::string why;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal() || !func.getBody().hasOneBlock())
      continue;
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      if (gatherOf(func.getBody().front().getTerminator()->getOperand(i)))
        changed |= sinkIntoCallers(func, i, why);
  }
  for (auto func : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (isa<RankedTensorType>(func.getArgumentTypes()[i]))
        changed |= sinkIntoCallee(func, i, why);
  return changed;
}

std::string Sinker::whyNot(AllGatherOp gather, OpOperand &use) {
  std::string why;
  Operation *op = use.getOwner();
  if (isa<func::CallOp, func::ReturnOp>(op) && !acrossCalls)
    return "it is not to cross calls";
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    sinkIntoCallee(callee, use.getOperandNumber(), why);
  } else if (isa<func::ReturnOp>(op)) {
    sinkIntoCallers(cast<func::FuncOp>(op->getParentOp()), use.getOperandNumber(), why);
  } else {
    sinkPast(gather, use, why);
  }
  return why;
}

void Sinker::explain() {
  for (AllGatherOp gather : collectivesIn<AllGatherOp>(module)) {
    if (gather.getInputs().size() != 1) {
      remarkMissed(gather, "SinkAllGathers", "stays, it gathers several values");
      continue;
    }
    // Nothing moves any more, so each attempt gives its reason.
    SmallVector<std::string> reasons;
    for (OpOperand &use : gather->getUses())
      if (std::string why = whyNot(gather, use); !llvm::is_contained(reasons, why))
        reasons.push_back(why);
    remarkMissed(gather, "SinkAllGathers", "stays: " + llvm::join(reasons, "; "));
  }
}

struct SinkAllGathers : impl::SinkAllGathersBase<SinkAllGathers> {
  using SinkAllGathersBase::SinkAllGathersBase;

  void runOnOperation() override {
    // Every step moves a gather towards the results.
    FailureOr<GatherMoves> moves = moveGathers<Sinker>(getOperation(), acrossCalls);
    if (failed(moves))
      return signalPassFailure();
    numSunk += moves->past;
    numIntoCalls += moves->intoCalls;
    numOutOfCalls += moves->outOfCalls;
  }
};

} // namespace
} // namespace braid
