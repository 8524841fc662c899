//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomOverlap.h"

#include "braid/Schedule/Placement.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace braid::test {
namespace {

constexpr int64_t kQueues = 3;

/// Runs commands in a random legal order, each collective on a random queue.
class AnyOrder : public schedule::PlacementPolicy {
public:
  AnyOrder(Random &random, Tally &forms) : random(random), forms(forms) {}

  schedule::Placement place(const schedule::Commands &commands) const override {
    using schedule::Step;
    std::vector<bool> begun(commands.size()), done(commands.size());
    schedule::Placement steps;
    while (!done.back() || steps.size() < sizeOf(commands)) {
      std::vector<Step> ready;
      for (unsigned i = 0; i < commands.size(); ++i) {
        const schedule::Command &command = commands[i];
        const bool isLast = i + 1 == commands.size();
        if (begun[i]) {
          if (!done[i])
            ready.push_back(Step::wait(i));
          continue;
        }
        if (!llvm::all_of(command.needs, [&](unsigned need) { return done[need]; }) ||
            (command.after && !begun[*command.after]) ||
            (isLast && steps.size() + 1 < sizeOf(commands)))
          continue;
        ready.push_back(command.isCollective ? Step::start(i, queueOf(command)) : Step::run(i));
      }
      const Step step = ready[random() % ready.size()];
      begun[step.command] = true;
      done[step.command] = step.kind != Step::Kind::start;
      if (step.kind == Step::Kind::start)
        ++forms["started on queue " + std::to_string(step.queue)];
      steps.push_back(step);
    }
    return steps;
  }

private:
  static size_t sizeOf(const schedule::Commands &commands) {
    return commands.size() + static_cast<size_t>(llvm::count_if(commands, [](const auto &command) {
             return command.isCollective;
           }));
  }
  /// The messages from one rank to another stand on one queue, and so do their receives.
  int64_t queueOf(const schedule::Command &command) const {
    Operation *op = command.ops.front();
    return isa<comm::SendOp, comm::RecvOp>(op) ? isa<comm::RecvOp>(op)
                                               : static_cast<int64_t>(random() % kQueues);
  }

  Random &random;
  Tally &forms;
};

/// Moves operations of `function`, from `first` on, to a function of their own.
void outline(func::FuncOp function, Operation *first, size_t count, StringRef name, Tally &forms) {
  SmallVector<Operation *> moved;
  llvm::SmallPtrSet<Operation *, 16> inside;
  for (Operation *op = first; moved.size() < count && !op->hasTrait<OpTrait::IsTerminator>();
       op = op->getNextNode())
    if (!isa<nn::ParameterOp>(op)) { // the entry reads them
      moved.push_back(op);
      inside.insert(op);
    }
  if (moved.empty())
    return;
  auto isInside = [&](Operation *op) {
    return inside.contains(function.getBody().front().findAncestorOpInBlock(*op));
  };
  llvm::SetVector<Value> taken, given;
  for (Operation *op : moved) {
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        auto argument = dyn_cast<BlockArgument>(operand);
        const bool isOutside =
            producer ? !isInside(producer) : argument.getOwner() == &function.getBody().front();
        if (isOutside)
          taken.insert(operand);
      }
    });
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !isInside(user); }))
        given.insert(result);
  }
  for (Value value : taken)
    forms["taken in flight"] += isa<comm::HandleType>(value.getType());
  for (Value value : given)
    forms["handed out in flight"] += isa<comm::HandleType>(value.getType());
  ++forms["calls"];

  OpBuilder builder(function);
  auto callee = func::FuncOp::create(
      builder, function.getLoc(), name,
      builder.getFunctionType(llvm::to_vector(ValueRange(taken.getArrayRef()).getTypes()),
                              llvm::to_vector(ValueRange(given.getArrayRef()).getTypes())));
  callee.setPrivate();
  Block *body = callee.addEntryBlock();
  IRMapping mapping;
  mapping.map(taken.getArrayRef(), body->getArguments());
  builder.setInsertionPointToEnd(body);
  for (Operation *op : moved)
    builder.clone(*op, mapping);
  SmallVector<Value> results;
  for (Value value : given)
    results.push_back(mapping.lookup(value));
  func::ReturnOp::create(builder, function.getLoc(), results);

  builder.setInsertionPoint(moved.back());
  auto call = func::CallOp::create(builder, function.getLoc(), callee, taken.getArrayRef());
  for (auto [value, result] : llvm::zip_equal(given, call.getResults()))
    Value(value).replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(moved))
    op->erase();
}

} // namespace

bool overlap(ModuleOp module, Random &random, Tally &forms) {
  if (failed(schedule::placeCollectives(module, AnyOrder(random, forms))))
    return false;
  module.walk([&](comm::WaitOp wait) {
    // A communication queue waits, on which a collective reads the value, or which else holds it
    // up.
    if (random() % 4 == 0) {
      wait.setQueue(random() % kQueues);
      ++forms["waited for by a communication queue"];
    }
  });
  for (size_t n = random() % 4, i = 0; i < n; ++i) {
    // Of what was moved before, too. What calls on a place give does not leave a function.
    SmallVector<func::FuncOp> functions;
    llvm::copy_if(module.getOps<func::FuncOp>(), std::back_inserter(functions), [](func::FuncOp f) {
      return llvm::none_of(f.getOps<func::CallOp>(), [](func::CallOp call) {
        return call->hasAttr(comm::CommDialect::kOnAttrName);
      });
    });
    func::FuncOp from = functions[random() % functions.size()];
    Block &block = from.getBody().front();
    auto first = std::next(block.begin(),
                           static_cast<std::ptrdiff_t>(random() % block.getOperations().size()));
    outline(from, &*first, 1 + random() % 12, "part" + std::to_string(i), forms);
  }
  return true;
}

} // namespace braid::test
