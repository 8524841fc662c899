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
#define GEN_PASS_DEF_HOISTALLGATHERS
#include "braid/Transforms/Passes.h.inc"

namespace {

/// Whether `user` gathers only that value, along `dim` over `group`.
bool isSameGather(Operation *user, int64_t dim, GroupAttr group) {
  auto gather = dyn_cast<AllGatherOp>(user);
  return gather && !isStarted(gather) && gather.getInputs().size() == 1 &&
         gathers(gather, dim, group);
}

/// The value of which `part` is this rank's shard, if it exists in the block of `before`; null when
/// it would have to be gathered.
Value knownWhole(Value part, int64_t dim, GroupAttr group, Operation *before) {
  if (auto slice = part.getDefiningOp<LocalSliceOp>();
      slice && static_cast<int64_t>(slice.getDim()) == dim && slice.getGroup() == group)
    return slice.getInput();
  for (Operation *user : part.getUsers())
    if (isSameGather(user, dim, group) && user->getBlock() == before->getBlock())
      return user->getResult(0);
  return {};
}

class Hoister : public GatherMover {
public:
  using GatherMover::GatherMover;
  LogicalResult run();

private:
  FailureOr<Move> match(AllGatherOp gather);
  FailureOr<Move> matchPast(AllGatherOp gather);
  FailureOr<Move> matchIntoCallee(AllGatherOp gather);
  FailureOr<Move> matchIntoCallers(AllGatherOp gather);
  LogicalResult movePast(AllGatherOp gather, const SliceDims &dims);
  void moveIntoCallee(AllGatherOp gather, func::FuncOp func, ArrayRef<func::CallOp> calls);
  void moveIntoCallers(AllGatherOp gather, func::FuncOp func, ArrayRef<func::CallOp> calls);

  /// Gathers `part` like `like` but along `dim`, above `before`.
  Value getWhole(Value part, int64_t dim, AllGatherOp like, Operation *before);
  /// Users of `part` that gather it take `whole` instead; the others take a slice of it.
  void useWhole(Value part, Value whole, int64_t dim, GroupAttr group);
  /// Turns a call's result or a function's argument into the gathered value.
  void makeWhole(Value value, AllGatherOp gather);
};

Value Hoister::getWhole(Value part, int64_t dim, AllGatherOp like, Operation *before) {
  GroupAttr group = like.getGroup();
  if (Value known = knownWhole(part, dim, group, before)) {
    // The operand of a later gather is defined here, since `before` uses it.
    if (Operation *op = known.getDefiningOp();
        op && op->getBlock() == before->getBlock() && !op->isBeforeInBlock(before))
      rewriter.moveOpBefore(op, before);
    return known;
  }
  rewriter.setInsertionPoint(before);
  Type type = globalType(part.getType(), dim, groupSize(like, group));
  return AllGatherOp::create(rewriter, like.getLoc(), TypeRange{type}, ValueRange{part}, dim, group,
                             like.getRoleAttr())
      .getOutputs()[0];
}

void Hoister::useWhole(Value part, Value whole, int64_t dim, GroupAttr group) {
  for (Operation *user : llvm::make_early_inc_range(part.getUsers()))
    if (isSameGather(user, dim, group))
      rewriter.replaceOp(user, whole);
  if (part.use_empty())
    return;
  auto slice = LocalSliceOp::create(rewriter, part.getLoc(), part.getType(), whole, dim, group);
  rewriter.replaceAllUsesExcept(part, slice.getOutput(), slice);
}

void Hoister::makeWhole(Value value, AllGatherOp gather) {
  int64_t dim = gather.getDim();
  GroupAttr group = gather.getGroup();
  // A placeholder stands for the old shard until its users are updated, then the result replaces
  // it.
  rewriter.setInsertionPointAfterValue(value);
  Type whole = globalType(value.getType(), dim, groupSize(gather, group));
  auto slice = LocalSliceOp::create(rewriter, value.getLoc(), value.getType(), value, dim, group);
  rewriter.replaceAllUsesExcept(value, slice.getOutput(), slice);
  value.setType(whole);
  replication.becomesWhole(value, group);
  for (Operation *user : llvm::make_early_inc_range(slice->getUsers()))
    if (isSameGather(user, dim, group))
      rewriter.replaceOp(user, value);
  if (slice->use_empty())
    rewriter.eraseOp(slice);
}

FailureOr<Move> Hoister::matchPast(AllGatherOp gather) {
  auto part = cast<OpResult>(gather.getInputs()[0]);
  Operation *op = part.getOwner();
  GroupAttr group = gather.getGroup();
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  if (op->getBlock() != gather->getBlock())
    return rewriter.notifyMatchFailure(op, name + " is in another block");
  FailureOr<SliceDims> dims = matchSliceDims(rewriter, part, gather.getDim(), 1);
  if (failed(dims))
    return failure();
  if (!replication.capturesReplicated(op, group))
    return rewriter.notifyMatchFailure(op,
                                       name + " captures a value that differs between the ranks");
  int64_t n = groupSize(gather, group);
  SaturatingCount before = gather.getBytesSent(n), after = 0;
  llvm::SmallDenseSet<Value> missing;
  for (auto [operand, cut] : llvm::zip_equal(op->getOperands(), dims->operands)) {
    if (!cut && !replication.isReplicated(operand, group))
      return rewriter.notifyMatchFailure(op,
                                         name + " has an operand that differs between the ranks");
    if (cut && !knownWhole(operand, *cut, group, op) && missing.insert(operand).second)
      after += gatherBytes(operand.getType(), n);
  }
  if (after > before)
    return rewriter.notifyMatchFailure(op, name + " would need " + Twine(after.getValue()) +
                                               " bytes sent in place of " +
                                               Twine(before.getValue()));
  return Move([=, dims = *dims] { return movePast(gather, dims); });
}

LogicalResult Hoister::movePast(AllGatherOp gather, const SliceDims &dims) {
  Operation *op = gather.getInputs()[0].getDefiningOp();
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  SmallVector<Value> wholes(op->getOperands());
  for (auto [whole, cut] : llvm::zip_equal(wholes, dims.operands))
    if (cut)
      whole = getWhole(whole, *cut, gather, op);
  SmallVector<Type> types;
  for (auto [result, cut] : llvm::zip_equal(op->getResults(), dims.results))
    types.push_back(globalType(result.getType(), *cut, n));
  rewriter.setInsertionPoint(op);
  FailureOr<SmallVector<Value>> results = rebuild(op, rewriter, wholes, types);
  if (failed(results))
    return failure();
  remarkDone(gather, "HoistAllGathers", "moved above '" + op->getName().getStringRef() + "'");
  ++counts.past;
  rewriter.setInsertionPoint(op);
  for (auto [result, whole, cut] : llvm::zip_equal(op->getResults(), *results, dims.results))
    useWhole(result, whole, *cut, group);
  rewriter.eraseOp(op);
  return success();
}

/// Above a call: the callee returns the gathered value.
FailureOr<Move> Hoister::matchIntoCallee(AllGatherOp gather) {
  auto part = cast<OpResult>(gather.getInputs()[0]);
  auto func = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      part.getOwner(), cast<func::CallOp>(part.getOwner()).getCalleeAttr());
  FailureOr<SmallVector<func::CallOp>> calls = matchCalls(func);
  if (failed(calls))
    return failure();
  for (func::CallOp call : *calls)
    if (llvm::none_of(call.getResult(part.getResultNumber()).getUsers(), [&](Operation *user) {
          return isSameGather(user, gather.getDim(), gather.getGroup());
        }))
      return rewriter.notifyMatchFailure(call, "not all callers of '@" + func.getSymName() +
                                                   "' gather its result");
  return Move([=, calls = *calls] {
    moveIntoCallee(gather, func, calls);
    return success();
  });
}

void Hoister::moveIntoCallee(AllGatherOp gather, func::FuncOp func, ArrayRef<func::CallOp> calls) {
  remarkDone(gather, "HoistAllGathers", "moved into '@" + func.getSymName() + "'");
  ++counts.intoCalls;
  unsigned index = cast<OpResult>(gather.getInputs()[0]).getResultNumber();
  Operation *ret = func.getBody().front().getTerminator();
  Value whole = getWhole(ret->getOperand(index), gather.getDim(), gather, ret);
  rewriter.modifyOpInPlace(ret, [&] { ret->setOperand(index, whole); });
  // The gather that the others are compared with is erased last.
  auto own = cast<func::CallOp>(gather.getInputs()[0].getDefiningOp());
  for (func::CallOp call : calls)
    if (call != own)
      makeWhole(call.getResult(index), gather);
  makeWhole(own.getResult(index), gather);
  updateType(func);
}

/// Above the function: its callers pass the gathered value.
FailureOr<Move> Hoister::matchIntoCallers(AllGatherOp gather) {
  auto argument = cast<BlockArgument>(gather.getInputs()[0]);
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!func)
    return rewriter.notifyMatchFailure(gather, "its operand is the argument of a block");
  FailureOr<SmallVector<func::CallOp>> calls = matchCalls(func);
  if (failed(calls))
    return failure();
  return Move([=, calls = *calls] {
    moveIntoCallers(gather, func, calls);
    return success();
  });
}

void Hoister::moveIntoCallers(AllGatherOp gather, func::FuncOp func, ArrayRef<func::CallOp> calls) {
  remarkDone(gather, "HoistAllGathers", "moved to the callers of '@" + func.getSymName() + "'");
  ++counts.outOfCalls;
  auto argument = cast<BlockArgument>(gather.getInputs()[0]);
  unsigned index = argument.getArgNumber();
  for (func::CallOp call : calls) {
    Value whole = getWhole(call.getOperand(index), gather.getDim(), gather, call);
    rewriter.modifyOpInPlace(call, [&] { call->setOperand(index, whole); });
  }
  makeWhole(argument, gather);
  updateType(func);
}

FailureOr<Move> Hoister::match(AllGatherOp gather) {
  if (gather.getInputs().size() != 1)
    return rewriter.notifyMatchFailure(gather, "it gathers several values");
  if (gather->use_empty())
    return rewriter.notifyMatchFailure(gather, "its result has no use");
  Value part = gather.getInputs()[0];
  if (!isa<BlockArgument>(part) && !part.getDefiningOp<func::CallOp>())
    return matchPast(gather);
  if (!acrossCalls)
    return rewriter.notifyMatchFailure(gather, "it is not to cross calls");
  return isa<BlockArgument>(part) ? matchIntoCallers(gather) : matchIntoCallee(gather);
}

LogicalResult Hoister::run() {
  // Every move brings a gather further from the results, and gathers pass through no recursive
  // function, so this terminates.
  for (bool changed = true; changed;) {
    FailureOr<bool> moved = moveAll([&](AllGatherOp gather) { return match(gather); });
    if (failed(moved))
      return failure();
    changed = *moved;
  }
  for (AllGatherOp gather : collectivesIn<AllGatherOp>(module))
    remarkMissed(gather, "HoistAllGathers", "stays: " + explain([&] { (void)match(gather); }));
  // Erases slices of a value that is now used itself.
  module.walk([](LocalSliceOp slice) {
    if (slice->use_empty())
      slice.erase();
  });
  return success();
}

struct HoistAllGathers : impl::HoistAllGathersBase<HoistAllGathers> {
  using HoistAllGathersBase::HoistAllGathersBase;

  void runOnOperation() override {
    FailureOr<GatherMover::Counts> counts =
        GatherMover::moveIn<Hoister>(getOperation(), acrossCalls);
    if (failed(counts))
      return signalPassFailure();
    numHoisted += counts->past;
    numIntoCalls += counts->intoCalls;
    numOutOfCalls += counts->outOfCalls;
  }
};

} // namespace
} // namespace braid
