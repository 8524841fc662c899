//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The commands of a block, what they need, and which of them communicate.
//
//===----------------------------------------------------------------------===//
#include "braid/Schedule/Placement.h"
#include "braid/Transforms/ShardingUtils.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Analysis/CallGraph.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SCCIterator.h"

using namespace mlir;

namespace braid::schedule {

Communication::Communication(ModuleOp module) {
  CallGraph graph(module);
  // Callees come first. A recursive function may do anything.
  for (auto it = llvm::scc_begin<const CallGraph *>(&graph); !it.isAtEnd(); ++it)
    if (const CallGraphNode *node = it->front(); !it.hasCycle() && !node->isExternal())
      if (Operation *func = node->getCallableRegion()->getParentOp(); !isWithin(func))
        silent.insert(func);
}

bool Communication::contains(Operation *op) const {
  if (isa<comm::StartOp, comm::CollectiveOpInterface>(op))
    return true;
  // A wait completes an earlier start; later starts do not depend on it.
  if (isa<comm::WaitOp>(op))
    return false;
  if (auto call = dyn_cast<func::CallOp>(op))
    return !silent.contains(calleeOf(call));
  if (op->getNumRegions() != 0 && isWithin(op))
    return true;
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  // Effects of other kinds keep their order too.
  return !isMemoryEffectFree(op);
}

bool Communication::isWithin(Operation *op) const {
  return op
      ->walk([&](Operation *nested) {
        return nested != op && contains(nested) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

Commands commandsOf(Block &block, const Communication &communication, CommandCosts *costs) {
  Commands commands;
  DenseMap<Operation *, unsigned> indices;
  std::optional<unsigned> last, lastGather; // that communicate
  for (Operation &op : block) {
    if (indices.contains(&op))
      continue;
    Command command;
    command.ops.push_back(&op);
    if (auto matmul = dyn_cast<nn::LinearOp>(op))
      if (nn::AddOp bias = matmul.getBiasAddition())
        command.ops.push_back(bias);
    command.isCollective = isa<comm::CollectiveOpInterface>(op);
    command.isParameterGather =
        isa<comm::AllGatherOp>(op) && llvm::all_of(op.getOperands(), [](Value operand) {
          return isa_and_nonnull<nn::ParameterOp>(operand.getDefiningOp());
        });
    const auto index = static_cast<unsigned>(commands.size());
    for (Operation *own : command.ops) {
      indices[own] = index;
      if (costs)
        command.cost += costs->of(own);
      own->walk([&](Operation *nested) {
        for (Value operand : nested->getOperands())
          if (auto it = indices.find(operand.getDefiningOp());
              it != indices.end() && it->second != index)
            command.needs.push_back(it->second);
      });
      command.communicates |= communication.contains(own);
    }
    if (command.communicates) {
      std::optional<unsigned> &before = command.isParameterGather ? lastGather : last;
      command.after = std::exchange(before, index);
    }
    llvm::sort(command.needs);
    command.needs.erase(llvm::unique(command.needs), command.needs.end());
    commands.push_back(std::move(command));
  }
  return commands;
}

bool isLegal(const Commands &commands, const Placement &placement, std::string &error) {
  enum State { waiting, started, done };
  std::vector<State> states(commands.size(), waiting);
  llvm::raw_string_ostream os(error);
  auto refuse = [&](const Step &step, const Twine &what) {
    os << "command " << step.command << " ";
    if (step.command < commands.size())
      os << "(" << commands[step.command].ops.front()->getName() << ") ";
    os << what;
    return false;
  };
  for (const Step &step : placement) {
    if (step.command >= commands.size())
      return refuse(step, "is not one of " + Twine(commands.size()));
    const Command &command = commands[step.command];
    State &state = states[step.command];
    if (step.kind == Step::Kind::wait) {
      if (state != started)
        return refuse(step, "is waited for when it is not in flight");
      state = done;
      continue;
    }
    if (command.isCollective != (step.kind == Step::Kind::start))
      return refuse(step, command.isCollective ? "is run, but is a collective, which is started"
                                               : "is started, but is no collective");
    if (state != waiting)
      return refuse(step, "stands there twice");
    for (unsigned need : command.needs)
      if (states[need] != done)
        return refuse(step, "stands before command " + Twine(need) + ", whose result it needs");
    if (command.after && states[*command.after] == waiting)
      return refuse(step, "stands before command " + Twine(*command.after) +
                              ", behind which it communicates");
    if (step.queue < 0 || step.queue >= comm::StartOp::kMaxQueues)
      return refuse(step, "expects a communication queue below " +
                              Twine(comm::StartOp::kMaxQueues) + ", got " + Twine(step.queue));
    state = command.isCollective ? started : done;
  }
  for (auto [i, state] : llvm::enumerate(states))
    if (state != done)
      return refuse(Step::run(i),
                    state == started ? "is never waited for" : "does not stand there");
  if (!placement.empty() && placement.back().command + 1 != commands.size() &&
      commands.back().ops.front()->hasTrait<OpTrait::IsTerminator>())
    return refuse(placement.back(), "stands behind the block's terminator");
  return true;
}

} // namespace braid::schedule
