//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "HandleUses.h"

#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/StringSwitch.h"

#include <set>

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

/// A value under the names that it has in a function: as an argument, it may be passed twice.
using Names = SmallVector<Value, 1>;

class HandleUses {
public:
  HandleUses(ModuleOp module, ArrayRef<HandleRule> skip)
      : module(module), users(symbols, module), skip(skip) {}

  LogicalResult run() {
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      for (BlockArgument argument : function.getArguments())
        if (failed(checkTaken(function, "argument", argument.getArgNumber(), argument)))
          return failure();
      WalkResult walked = function.walk([&](Operation *op) -> WalkResult {
        if (auto call = dyn_cast<func::CallOp>(op))
          for (OpResult result : call->getResults())
            if (failed(checkTaken(op, "result", result.getResultNumber(), result)))
              return failure();
        auto wait = dyn_cast<WaitOp>(op);
        if (!wait)
          return success();
        SmallVector<Names> kept;
        for (Value value : wait.getKept())
          kept.push_back({value});
        return checkKept(wait, wait.getHandle(), kept);
      });
      if (walked.wasInterrupted())
        return failure();
    }
    return success();
  }

private:
  bool isChecked(HandleRule rule) const { return !llvm::is_contained(skip, rule); }

  LogicalResult checkTaken(Operation *op, StringRef what, unsigned number, Value value) {
    if (!isChecked(HandleRule::Taken) || !isa<HandleType>(value.getType()) || value.hasOneUse())
      return success();
    InFlightDiagnostic diag = op->emitOpError("expects the handle in ")
                              << what << " " << number
                              << " to be taken once, by comm.wait, a call or a return, got "
                              << std::distance(value.use_begin(), value.use_end()) << " uses";
    for (Operation *user : value.getUsers())
      diag.attachNote(user->getLoc()) << "taken here";
    return diag;
  }

  /// Whether the operands of the start that `handle` comes from are among the names of what is
  /// kept.
  LogicalResult checkKept(WaitOp wait, Value handle, ArrayRef<Names> kept) {
    if (!isChecked(HandleRule::Kept) || !seen.insert(key(wait, handle, kept)).second)
      return success();
    if (auto start = handle.getDefiningOp<StartOp>()) {
      auto isKept = [](auto pair) {
        return llvm::is_contained(std::get<0>(pair), std::get<1>(pair));
      };
      if (kept.size() == start.getInputs().size() &&
          llvm::all_of(llvm::zip_equal(kept, start.getInputs()), isKept))
        return success();
      InFlightDiagnostic diag =
          wait.emitOpError("expects to keep the operands of its start [comm.wait_c2]");
      diag.attachNote(start.getLoc()) << "started here";
      return diag;
    }
    if (auto call = handle.getDefiningOp<func::CallOp>())
      return checkInCallee(wait, call, cast<OpResult>(handle).getResultNumber(), kept);
    auto argument = cast<BlockArgument>(handle);
    Operation *function = argument.getOwner()->getParentOp();
    for (Operation *user : users.getUsers(function)) {
      auto call = dyn_cast<func::CallOp>(user);
      if (!call)
        continue;
      SmallVector<Names> outside;
      for (const Names &names : kept) {
        outside.emplace_back();
        for (Value name : names)
          if (auto passed = dyn_cast<BlockArgument>(name))
            outside.back().push_back(call.getOperand(passed.getArgNumber()));
      }
      if (failed(checkKept(wait, call.getOperand(argument.getArgNumber()), outside)))
        return failure();
    }
    return success();
  }

  /// The same for a handle that a call gives: what is kept is its result too, or was passed to it.
  LogicalResult checkInCallee(WaitOp wait, func::CallOp call, unsigned result,
                              ArrayRef<Names> kept) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (!callee || callee.isExternal())
      return success();
    Operation *end = callee.getBody().front().getTerminator();
    SmallVector<Names> inside;
    for (const Names &names : kept) {
      inside.emplace_back();
      for (Value name : names)
        if (name.getDefiningOp() == call)
          inside.back().push_back(end->getOperand(cast<OpResult>(name).getResultNumber()));
        else
          for (auto [i, operand] : llvm::enumerate(call.getOperands()))
            if (operand == name)
              inside.back().push_back(callee.getArgument(i));
    }
    return checkKept(wait, end->getOperand(result), inside);
  }

  static std::vector<const void *> key(WaitOp wait, Value handle, ArrayRef<Names> kept) {
    std::vector<const void *> key{wait.getOperation(), handle.getAsOpaquePointer()};
    for (const Names &names : kept) {
      key.push_back(nullptr);
      for (Value name : names)
        key.push_back(name.getAsOpaquePointer());
    }
    return key;
  }

  ModuleOp module;
  SymbolTableCollection symbols;
  SymbolUserMap users;
  ArrayRef<HandleRule> skip;
  std::set<std::vector<const void *>> seen;
};

} // namespace

std::optional<HandleRule> symbolizeHandleRule(StringRef name) {
  return llvm::StringSwitch<std::optional<HandleRule>>(name)
      .Case("taken", HandleRule::Taken)
      .Case("kept", HandleRule::Kept)
      .Default(std::nullopt);
}

LogicalResult verifyHandles(ModuleOp module, ArrayRef<HandleRule> skip) {
  return HandleUses(module, skip).run();
}

} // namespace braid
