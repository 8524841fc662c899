//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/PresenceCheck.h"

#include "braid/Base/RankSet.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Transforms/RegionUtils.h"

#include <set>

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

using runtime::RankSet;

/// A function that is being followed, and the call that led there; null for an entry.
struct Frame {
  mutable func::FuncOp func; ///< accessors of operations are not const
  RankSet ranks;             ///< that run it
  Operation *call = nullptr;
  const Frame *caller = nullptr;
};

class Checker {
public:
  Checker(MeshOp mesh, SkippedRules skip) : mesh(toRuntime(mesh)), skip(skip) {}

  LogicalResult runEntry(func::FuncOp entry) {
    llvm::DenseMap<Value, RankSet> have;
    for (BlockArgument argument : entry.getArguments())
      have[argument] = toRuntime(
          entry.getArgAttrOfType<PlaceAttr>(argument.getArgNumber(), CommDialect::kOnAttrName));
    return failure(failed(checkStates(entry)) || failed(follow({entry, {}}, have)));
  }

private:
  /// `have`: who has a value, for the values that not all ranks have that run the function.
  LogicalResult follow(const Frame &frame, llvm::DenseMap<Value, RankSet> &have) {
    for (Operation &op : frame.func.getBody().front()) {
      LogicalResult result = success();
      if (auto call = dyn_cast<func::CallOp>(op)) {
        result = followCall(frame, call, have);
      } else if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
        if (PlaceAttr place = parameter.getPlaceAttr())
          have[parameter] = toRuntime(place);
      } else if (isa<nn::SliceOp, nn::ConcatOp>(op)) {
        result = followView(frame, &op, have);
      } else if (isa<func::ReturnOp>(op)) {
        result = checkResults(frame, &op, have);
      } else {
        result = checkOperation(frame, &op, have);
      }
      if (failed(result))
        return failure();
    }
    return success();
  }

  /// The ranks that have a value, of all or of those that run the function.
  static RankSet whoHas(const Frame &frame, Value value,
                        const llvm::DenseMap<Value, RankSet> &have) {
    auto found = have.find(value);
    return found == have.end() ? frame.ranks : found->second;
  }

  LogicalResult followCall(const Frame &frame, func::CallOp call,
                           llvm::DenseMap<Value, RankSet> &have) {
    const PlaceAttr place = placeOf(call);
    const RankSet asked = toRuntime(place);
    std::optional<RankSet> ranks = runtime::intersection(frame.ranks, asked);
    if (!ranks) {
      if (isSkipped(PlacementRule::Called))
        return success();
      InFlightDiagnostic diag = call.emitOpError("on ")
                                << runtime::rankSetString(asked) << " is never run: only "
                                << runtime::rankSetString(frame.ranks) << " run '"
                                << frame.func.getSymName() << "'";
      noteCallers(diag, frame);
      return diag;
    }
    for (Value operand : call.getOperands())
      if (failed(checkUse(frame, call, operand, *ranks, have)))
        return failure();
    if (place)
      for (Value result : call.getResults())
        have[result] = *ranks;
    auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable());
    if (!callee || callee.isExternal())
      return success();
    for (const Frame *outer = &frame; outer; outer = outer->caller)
      if (outer->func == callee)
        return success(); // recursion is refused elsewhere
    if (!done.emplace(callee, runtime::rankSetString(*ranks)).second)
      return success();
    llvm::DenseMap<Value, RankSet> inside;
    return follow({callee, *ranks, call, &frame}, inside);
  }

  /// A part of a value, and a value of parts, are where these are: nothing runs for them.
  LogicalResult followView(const Frame &frame, Operation *op,
                           llvm::DenseMap<Value, RankSet> &have) {
    std::optional<RankSet> ranks = frame.ranks;
    for (Value operand : op->getOperands()) {
      const RankSet owners = whoHas(frame, operand, have);
      std::optional<RankSet> both = runtime::intersection(*ranks, owners);
      // Of parts on different ranks, none has the whole.
      if (!both)
        return checkUse(frame, op, operand, *ranks, have);
      ranks = std::move(both);
    }
    have[op->getResult(0)] = *ranks;
    return success();
  }

  LogicalResult checkOperation(const Frame &frame, Operation *op,
                               const llvm::DenseMap<Value, RankSet> &have) {
    llvm::SetVector<Value> used(op->getOperands().begin(), op->getOperands().end());
    getUsedValuesDefinedAbove(op->getRegions(), used);
    for (Value value : used)
      if (failed(checkUse(frame, op, value, frame.ranks, have)))
        return failure();
    return failure(op->walk([&](CollectiveOpInterface collective) {
                       return WalkResult(checkCollective(frame, collective));
                     }).wasInterrupted());
  }

  LogicalResult checkCollective(const Frame &frame, CollectiveOpInterface op) {
    if (isa<SendOp, RecvOp>(*op))
      return success();
    const std::vector<runtime::AxisRef> axes = toRuntime(op.getGroup());
    const runtime::AxisRef *axis = runtime::incompleteAxis(mesh, frame.ranks, axes);
    if (!axis || isSkipped(PlacementRule::Complete))
      return success();
    InFlightDiagnostic diag = op->emitOpError("expects all ranks along axis '")
                              << axis->name << "', got " << runtime::rankSetString(frame.ranks)
                              << ", which run '" << frame.func.getSymName() << "'";
    noteCallers(diag, frame);
    return diag;
  }

  LogicalResult checkUse(const Frame &frame, Operation *user, Value value, const RankSet &users,
                         const llvm::DenseMap<Value, RankSet> &have) {
    const RankSet owners = whoHas(frame, value, have);
    if (isSkipped(PlacementRule::Present) || runtime::isInside(users, owners))
      return success();
    InFlightDiagnostic diag = user->emitOpError("on ")
                              << runtime::rankSetString(users) << " reads " << describe(value)
                              << ", which only " << runtime::rankSetString(owners) << " have";
    noteOrigin(diag, value);
    noteCallers(diag, frame);
    return diag;
  }

  LogicalResult checkStates(func::FuncOp entry) {
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      if (!entry.getArgAttr(i, nn::NNDialect::kStateAttrName))
        continue;
      const unsigned result = *nn::getStateResult(entry, i);
      const RankSet before =
          toRuntime(entry.getArgAttrOfType<PlaceAttr>(i, CommDialect::kOnAttrName));
      const RankSet after =
          toRuntime(entry.getResultAttrOfType<PlaceAttr>(result, CommDialect::kOnAttrName));
      if (isSkipped(PlacementRule::Stays) ||
          (runtime::isInside(before, after) && runtime::isInside(after, before)))
        continue;
      return entry.emitOpError("expects the new value of state '")
             << entry.getArgAttrOfType<StringAttr>(i, nn::NNDialect::kNameAttrName).getValue()
             << "' on " << runtime::rankSetString(before) << ", where the state is, got "
             << runtime::rankSetString(after);
    }
    return success();
  }

  LogicalResult checkResults(const Frame &frame, Operation *end,
                             const llvm::DenseMap<Value, RankSet> &have) {
    for (auto [i, value] : llvm::enumerate(end->getOperands())) {
      RankSet wanted = frame.ranks;
      if (!frame.call)
        wanted = toRuntime(frame.func.getResultAttrOfType<PlaceAttr>(i, CommDialect::kOnAttrName));
      const RankSet owners = whoHas(frame, value, have);
      if (isSkipped(PlacementRule::Returned) || runtime::isInside(wanted, owners))
        continue;
      InFlightDiagnostic diag = end->emitOpError("expects result ")
                                << i << " of '" << frame.func.getSymName() << "' on "
                                << runtime::rankSetString(wanted) << ", got " << describe(value)
                                << ", which only " << runtime::rankSetString(owners) << " have";
      noteOrigin(diag, value);
      noteCallers(diag, frame);
      return diag;
    }
    return success();
  }

  /// "parameter 'w'", "argument 0", "result 1 of the call of 'forward'"
  static std::string describe(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return "argument " + std::to_string(argument.getArgNumber());
    Operation *producer = value.getDefiningOp();
    if (auto parameter = dyn_cast<nn::ParameterOp>(producer))
      return "parameter '" + parameter.getName().str() + "'";
    const std::string number =
        "result " + std::to_string(cast<OpResult>(value).getResultNumber()) + " of ";
    if (auto call = dyn_cast<func::CallOp>(producer))
      return number + "the call of '" + call.getCallee().str() + "'";
    return number + "'" + producer->getName().getStringRef().str() + "'";
  }

  static void noteOrigin(InFlightDiagnostic &diag, Value value) {
    if (Operation *producer = value.getDefiningOp())
      diag.attachNote(producer->getLoc()) << "it is defined here";
  }

  static void noteCallers(InFlightDiagnostic &diag, const Frame &frame) {
    for (const Frame *at = &frame; at->call; at = at->caller)
      diag.attachNote(at->call->getLoc()) << "'" << at->func.getSymName() << "' is called here";
  }

  bool isSkipped(PlacementRule rule) const { return llvm::is_contained(skip, rule); }

  runtime::Mesh mesh;
  SkippedRules skip;
  std::set<std::pair<Operation *, std::string>> done; ///< functions, and the ranks that run them
};

} // namespace

LogicalResult checkPresence(MeshOp mesh, ArrayRef<func::FuncOp> entries, SkippedRules skip) {
  Checker checker(mesh, skip);
  return success(llvm::all_of(
      entries, [&](func::FuncOp entry) { return succeeded(checker.runEntry(entry)); }));
}

} // namespace braid
