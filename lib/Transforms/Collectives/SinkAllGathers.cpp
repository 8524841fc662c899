//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "GatherMoves.h"
#include "SliceWise.h"

#include "braid/Transforms/Passes.h"

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

class Sinker : public GatherMover {
public:
  using GatherMover::GatherMover;
  LogicalResult run();

private:
  FailureOr<Move> matchSlices(AllGatherOp gather);
  FailureOr<Move> matchUse(AllGatherOp gather, OpOperand &use);
  FailureOr<Move> matchPast(AllGatherOp gather, OpOperand &use);
  FailureOr<Move> matchIntoCallers(AllGatherOp gather, OpOperand &returned);
  FailureOr<Move> matchIntoCallee(AllGatherOp gather, OpOperand &argument);
  LogicalResult movePast(AllGatherOp gather, Operation *op, const SliceDims &dims,
                         ArrayRef<AllGatherOp> passed);
  void moveIntoCallers(AllGatherOp gather, OpOperand &returned, ArrayRef<func::CallOp> calls);
  void moveIntoCallee(AllGatherOp gather, func::FuncOp func, unsigned index,
                      ArrayRef<func::CallOp> calls);
  /// Gathers `part` for all its uses except this one.
  void gatherAgain(Value part, Type whole, AllGatherOp gather);
  void explainAll();
  void eraseIfUnused(Operation *op) {
    if (op->use_empty())
      rewriter.eraseOp(op);
  }
};

/// Slices of the gathered value that take the rank's own shard again.
FailureOr<Move> Sinker::matchSlices(AllGatherOp gather) {
  SmallVector<Operation *> slices;
  for (Operation *user : gather->getUsers())
    if (isOwnSlice(user, gather.getDim(), gather.getGroup()))
      slices.push_back(user);
  if (slices.empty())
    return failure();
  return Move([=] {
    for (Operation *slice : slices)
      rewriter.replaceOp(slice, AllGatherOp(gather).getInputs()[0]);
    eraseIfUnused(gather);
    return success();
  });
}

FailureOr<Move> Sinker::matchPast(AllGatherOp gather, OpOperand &use) {
  Operation *op = use.getOwner();
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  if (op->getBlock() != gather->getBlock())
    return rewriter.notifyMatchFailure(op, name + " is in another block");
  FailureOr<SliceDims> dims = matchSliceDims(rewriter, use, gather.getDim(), n);
  if (failed(dims))
    return failure();
  // Ranks then compute different slices of a result that must have been the same on all.
  for (Value operand : op->getOperands())
    if (!gatherOf(operand) || gatherOf(operand).getGroup() != group)
      if (!replication.isReplicated(operand, group))
        return rewriter.notifyMatchFailure(op,
                                           name + " has an operand that differs between the ranks");
  if (!replication.capturesReplicated(op, group))
    return rewriter.notifyMatchFailure(op,
                                       name + " captures a value that differs between the ranks");

  // A move must not increase the bytes exchanged.
  SaturatingCount before = 0, after = 0;
  llvm::SetVector<AllGatherOp> passed;
  for (auto [operand, cut] : llvm::zip_equal(op->getOperands(), dims->operands)) {
    AllGatherOp other = gatherOf(operand);
    if (cut && gathers(other, *cut, group) && other->getBlock() == op->getBlock() &&
        llvm::all_of(other->getUsers(), [&](Operation *user) { return user == op; }) &&
        passed.insert(other))
      before += other.getBytesSent(n);
  }
  for (auto [result, cut] : llvm::zip_equal(op->getResults(), dims->results))
    if (!llvm::all_of(result.getUsers(),
                      [&, cut = cut](Operation *user) { return isOwnSlice(user, *cut, group); }))
      after += gatherBytes(partType(result.getType(), *cut, n), n);
  if (after > before)
    return rewriter.notifyMatchFailure(op, name + " would need " + Twine(after.getValue()) +
                                               " bytes sent in place of " +
                                               Twine(before.getValue()));
  return Move([=, dims = *dims, passed = passed.takeVector()] {
    return movePast(gather, op, dims, passed);
  });
}

LogicalResult Sinker::movePast(AllGatherOp gather, Operation *op, const SliceDims &dims,
                               ArrayRef<AllGatherOp> passed) {
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> parts(op->getOperands());
  for (auto [part, cut] : llvm::zip_equal(parts, dims.operands))
    if (cut)
      part = takePart(rewriter, op->getLoc(), part, *cut, group);
  SmallVector<Type> types;
  for (auto [result, cut] : llvm::zip_equal(op->getResults(), dims.results))
    types.push_back(partType(result.getType(), *cut, n));
  FailureOr<SmallVector<Value>> locals = rebuild(op, rewriter, parts, types);
  if (failed(locals))
    return failure();
  remarkDone(gather, "SinkAllGathers", "moved past '" + op->getName().getStringRef() + "'");
  ++counts.past;
  SmallVector<Value> results;
  for (auto [result, local, cut] : llvm::zip_equal(op->getResults(), *locals, dims.results))
    results.push_back(AllGatherOp::create(rewriter, gather.getLoc(), TypeRange{result.getType()},
                                          ValueRange{local}, *cut, group, gather.getRoleAttr())
                          .getOutputs()[0]);
  rewriter.replaceOp(op, results);
  for (Value result : results)
    eraseIfUnused(result.getDefiningOp());
  for (AllGatherOp other : passed)
    eraseIfUnused(other);
  return success();
}

void Sinker::gatherAgain(Value part, Type whole, AllGatherOp gather) {
  auto moved = AllGatherOp::create(rewriter, gather.getLoc(), TypeRange{whole}, ValueRange{part},
                                   gather.getDim(), gather.getGroup(), gather.getRoleAttr());
  rewriter.replaceAllUsesExcept(part, moved.getOutputs()[0], moved);
  eraseIfUnused(moved);
}

FailureOr<Move> Sinker::matchIntoCallers(AllGatherOp gather, OpOperand &returned) {
  auto func = cast<func::FuncOp>(returned.getOwner()->getParentOp());
  FailureOr<SmallVector<func::CallOp>> calls = matchCalls(func);
  if (failed(calls))
    return failure();
  if (!gather->hasOneUse())
    return rewriter.notifyMatchFailure(gather, "the value that '@" + func.getSymName() +
                                                   "' returns is used in it too");
  return Move([=, &returned, calls = *calls] {
    moveIntoCallers(gather, returned, calls);
    return success();
  });
}

void Sinker::moveIntoCallers(AllGatherOp gather, OpOperand &returned,
                             ArrayRef<func::CallOp> calls) {
  auto func = cast<func::FuncOp>(returned.getOwner()->getParentOp());
  remarkDone(gather, "SinkAllGathers", "moved to the callers of '@" + func.getSymName() + "'");
  ++counts.outOfCalls;
  for (func::CallOp call : calls) {
    Value result = call.getResult(returned.getOperandNumber());
    Type whole = result.getType();
    result.setType(gather.getInputs()[0].getType());
    replication.becomesPart(result, gather.getGroup());
    rewriter.setInsertionPointAfter(call);
    gatherAgain(result, whole, gather);
  }
  rewriter.modifyOpInPlace(returned.getOwner(), [&] { returned.set(gather.getInputs()[0]); });
  rewriter.eraseOp(gather);
  updateType(func);
}

FailureOr<Move> Sinker::matchIntoCallee(AllGatherOp gather, OpOperand &argument) {
  auto func = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      argument.getOwner(), cast<func::CallOp>(argument.getOwner()).getCalleeAttr());
  unsigned index = argument.getOperandNumber();
  FailureOr<SmallVector<func::CallOp>> calls = matchCalls(func);
  if (failed(calls))
    return failure();
  std::string callee = ("'@" + func.getSymName() + "'").str();
  // All calls of a layer keep one form, so operands that were not gathered, such as the first
  // layer's, are sliced as well. Most calls must have gathered ones.
  size_t moving = 0;
  for (func::CallOp call : *calls) {
    Value operand = call.getOperand(index);
    AllGatherOp other = gatherOf(operand);
    if (gathers(other, gather.getDim(), gather.getGroup()))
      moving += other->hasOneUse();
    else if (other || !replication.isReplicated(operand, gather.getGroup()))
      return rewriter.notifyMatchFailure(call, "the callers of " + callee +
                                                   " do not agree on argument " + Twine(index));
  }
  if (2 * moving < calls->size())
    return rewriter.notifyMatchFailure(func, Twine(calls->size() - moving) + " of " +
                                                 Twine(calls->size()) + " callers of " + callee +
                                                 " would gather more than before");
  return Move([=, calls = *calls] {
    moveIntoCallee(gather, func, index, calls);
    return success();
  });
}

void Sinker::moveIntoCallee(AllGatherOp gather, func::FuncOp func, unsigned index,
                            ArrayRef<func::CallOp> calls) {
  remarkDone(gather, "SinkAllGathers", "moved into '@" + func.getSymName() + "'");
  ++counts.intoCalls;
  BlockArgument argument = func.getArgument(index);
  Type whole = argument.getType();
  argument.setType(gather.getInputs()[0].getType());
  replication.becomesPart(argument, gather.getGroup());
  rewriter.setInsertionPointToStart(&func.getBody().front());
  gatherAgain(argument, whole, gather);
  updateType(func);
  // Callers' gathers are read before they are erased, this one last.
  SmallVector<AllGatherOp> others;
  for (func::CallOp call : calls) {
    Value operand = call.getOperand(index);
    if (AllGatherOp other = gatherOf(operand); other && !llvm::is_contained(others, other))
      others.push_back(other);
    rewriter.setInsertionPoint(call);
    Value part = takePart(rewriter, call.getLoc(), operand, gather.getDim(), gather.getGroup());
    rewriter.modifyOpInPlace(call, [&] { call->setOperand(index, part); });
  }
  for (AllGatherOp other : others)
    eraseIfUnused(other);
}

FailureOr<Move> Sinker::matchUse(AllGatherOp gather, OpOperand &use) {
  Operation *user = use.getOwner();
  if (!isa<func::CallOp, func::ReturnOp>(user))
    return matchPast(gather, use);
  if (!acrossCalls)
    return rewriter.notifyMatchFailure(user, "it is not to cross calls");
  return isa<func::CallOp>(user) ? matchIntoCallee(gather, use) : matchIntoCallers(gather, use);
}

LogicalResult Sinker::run() {
  // Every move brings a gather closer to the results, and gathers pass through no recursive
  // function, so this terminates.
  auto matchUses = [&](auto &&isOne) {
    return moveAll(
        [&](AllGatherOp gather) -> FailureOr<Move> {
          if (gather.getInputs().size() != 1)
            return failure();
          if (FailureOr<Move> move = matchSlices(gather); succeeded(move))
            return move;
          for (OpOperand &use : gather->getUses())
            if (isOne(use.getOwner()))
              if (FailureOr<Move> move = matchUse(gather, use); succeeded(move))
                return move;
          return failure();
        },
        /*firstFirst=*/true);
  };
  // First all moves within a function, then its signature.
  auto isCall = [](Operation *user) { return isa<func::CallOp>(user); };
  auto isReturn = [](Operation *user) { return isa<func::ReturnOp>(user); };
  auto isOther = [&](Operation *user) { return !isCall(user) && !isReturn(user); };
  for (bool changed = true; changed;) {
    FailureOr<bool> moved = matchUses(isOther);
    if (succeeded(moved) && !*moved)
      moved = matchUses(isReturn);
    if (succeeded(moved) && !*moved)
      moved = matchUses(isCall);
    if (failed(moved))
      return failure();
    changed = *moved;
  }
  explainAll();
  return success();
}

void Sinker::explainAll() {
  for (AllGatherOp gather : collectivesIn<AllGatherOp>(module)) {
    if (gather.getInputs().size() != 1) {
      remarkMissed(gather, "SinkAllGathers", "stays, it gathers several values");
      continue;
    }
    std::string why = explain([&] {
      for (OpOperand &use : gather->getUses())
        (void)matchUse(gather, use);
    });
    remarkMissed(gather, "SinkAllGathers", "stays: " + why);
  }
}

struct SinkAllGathers : impl::SinkAllGathersBase<SinkAllGathers> {
  using SinkAllGathersBase::SinkAllGathersBase;

  void runOnOperation() override {
    FailureOr<GatherMover::Counts> counts =
        GatherMover::moveIn<Sinker>(getOperation(), acrossCalls);
    if (failed(counts))
      return signalPassFailure();
    numSunk += counts->past;
    numIntoCalls += counts->intoCalls;
    numOutOfCalls += counts->outOfCalls;
  }
};

} // namespace
} // namespace braid
