//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "GatherMoves.h"

#include "braid/Transforms/Identity.h"
#include "braid/Transforms/Passes.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_HOISTALLGATHERS
#include "braid/Transforms/Passes.h.inc"

namespace {

/// The value of which `shard` is this rank's shard, if it exists in the block of `before`; null
/// when it would have to be gathered.
Value findGathered(Value shard, int64_t dim, GroupAttr group, Operation *before) {
  if (Operation *op = shard.getDefiningOp(); slices(op, dim, group))
    return op->getOperand(0);
  for (Operation *user : shard.getUsers())
    if (gathers(user, dim, group) && user->getBlock() == before->getBlock())
      return user->getResult(0);
  return {};
}

class Hoister : public GatherMover {
public:
  using GatherMover::GatherMover;
  LogicalResult moveAll();

private:
  FailureOr<Move> match(AllGatherOp gather);
  FailureOr<Move> matchPast(AllGatherOp gather);
  FailureOr<Move> matchIntoCallee(AllGatherOp gather);
  FailureOr<Move> matchIntoCallers(AllGatherOp gather);
  LogicalResult movePast(AllGatherOp gather, const SliceDims &dims);

  /// Gathers `shard` like `like` but along `dim`, above `before`; a new gather gets `name`, if
  /// given.
  Value getGathered(Value shard, int64_t dim, AllGatherOp like, Operation *before,
                    StringRef name = "");
  /// Users of `slice` that gather it take its operand instead. Erases it when no user remains.
  void foldGathers(PartOp slice);
  /// Turns a call's result or a function's argument into the gathered value.
  void makeReplicated(Value value, AllGatherOp gather);
};

Value Hoister::getGathered(Value shard, int64_t dim, AllGatherOp like, Operation *before,
                           StringRef name) {
  if (Value known = findGathered(shard, dim, like.getGroup(), before)) {
    // The operand of a later gather is defined here, since `before` uses it.
    if (Operation *op = known.getDefiningOp();
        op && op->getBlock() == before->getBlock() && !op->isBeforeInBlock(before))
      rewriter.moveOpBefore(op, before);
    return known;
  }
  rewriter.setInsertionPoint(before);
  return gather(shard, dim, like, name);
}

void Hoister::foldGathers(PartOp slice) {
  for (Operation *user : llvm::make_early_inc_range(slice->getUsers()))
    if (gathers(user, slice.getDim(), slice.getGroup()))
      rewriter.replaceOp(user, slice.getInput());
  if (slice->use_empty())
    rewriter.eraseOp(slice);
}

void Hoister::makeReplicated(Value value, AllGatherOp gather) {
  // A slice of the value, whose type is still that of the shard, takes over the uses.
  rewriter.setInsertionPointAfterValue(value);
  Type shard = value.getType();
  auto slice = PartOp::create(rewriter, value.getLoc(), shard, value, gather.getDim(),
                              /*shift=*/0, gather.getGroup());
  rewriter.replaceAllUsesExcept(value, slice.getOutput(), slice);
  value.setType(gatheredType(shard, gather.getDim(), groupSize(gather, gather.getGroup())));
  replication.becomesReplicated(value, gather.getGroup());
  foldGathers(slice);
}

FailureOr<Move> Hoister::matchPast(AllGatherOp gather) {
  auto shard = cast<OpResult>(gather.getInputs()[0]);
  Operation *op = shard.getOwner();
  GroupAttr group = gather.getGroup();
  if (op->getBlock() != gather->getBlock())
    return rewriter.notifyMatchFailure(op, quoted(op) + " is in another block");
  FailureOr<SliceDims> dims = matchSliceDims(
      rewriter, op,
      [&](const ShardingRule &rule) -> auto & { return rule.results[shard.getResultNumber()]; },
      gather.getDim(), 1);
  if (failed(dims))
    return failure();
  if (!replication.capturesReplicated(op, group))
    return rewriter.notifyMatchFailure(op, quoted(op) +
                                               " captures a value that differs between the ranks");
  int64_t n = groupSize(gather, group);
  SaturatingCount after = 0;
  llvm::SmallDenseSet<Value> missing;
  for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), dims->operands)) {
    if (!dim && !replication.isReplicated(operand, group))
      return rewriter.notifyMatchFailure(op, quoted(op) +
                                                 " has an operand that differs between the ranks");
    if (dim && !findGathered(operand, *dim, group, op) && missing.insert(operand).second)
      after += gatherBytes(operand.getType(), n);
  }
  if (failed(matchBytes(op, gather.getBytesSent(n), after)))
    return failure();
  return Move([=, dims = *dims] { return movePast(gather, dims); });
}

LogicalResult Hoister::movePast(AllGatherOp gather, const SliceDims &dims) {
  Operation *op = gather.getInputs()[0].getDefiningOp();
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  SmallVector<Value> operands(op->getOperands());
  for (auto [operand, dim] : llvm::zip_equal(operands, dims.operands))
    if (dim)
      operand = getGathered(operand, *dim, gather, op);
  SmallVector<Type> types;
  for (auto [result, dim] : llvm::zip_equal(op->getResults(), dims.results))
    types.push_back(gatheredType(result.getType(), *dim, n));
  rewriter.setInsertionPoint(op);
  FailureOr<SmallVector<Value>> results = rebuild(op, rewriter, operands, types);
  if (failed(results))
    return failure();
  remarkDone(gather, "HoistAllGathers", "moved above " + quoted(op));
  ++counts.past;
  rewriter.setInsertionPoint(op);
  for (auto [shard, gathered, dim] : llvm::zip_equal(op->getResults(), *results, dims.results)) {
    PartOp slice = createSlice(rewriter, shard.getLoc(), gathered, *dim, group);
    rewriter.replaceAllUsesWith(shard, slice.getOutput());
    foldGathers(slice);
  }
  rewriter.eraseOp(op);
  return success();
}

/// Above a call: the callee returns the gathered value.
FailureOr<Move> Hoister::matchIntoCallee(AllGatherOp gather) {
  auto shard = cast<OpResult>(gather.getInputs()[0]);
  auto own = cast<func::CallOp>(shard.getOwner());
  unsigned index = shard.getResultNumber();
  func::FuncOp func = calleeOf(own);
  FailureOr<SmallVector<func::CallOp>> calls = matchCalls(func);
  if (failed(calls))
    return failure();
  for (func::CallOp call : *calls)
    if (llvm::none_of(call.getResult(index).getUsers(), [&](Operation *user) {
          return gathers(user, gather.getDim(), gather.getGroup());
        }))
      return rewriter.notifyMatchFailure(call, "not all callers of '@" + func.getSymName() +
                                                   "' gather its result");
  return Move([=, calls = *calls]() mutable {
    remarkDone(gather, "HoistAllGathers", "moved into '@" + func.getSymName() + "'");
    ++counts.intoCalls;
    Operation *ret = func.getBody().front().getTerminator();
    Value gathered =
        getGathered(ret->getOperand(index), gather.getDim(), gather, ret, nameInCallee(gather));
    rewriter.modifyOpInPlace(ret, [&] { ret->setOperand(index, gathered); });
    // The gather that the others are compared with is erased last.
    for (func::CallOp call : calls)
      if (call != own)
        makeReplicated(call.getResult(index), gather);
    makeReplicated(own.getResult(index), gather);
    updateType(func);
    return success();
  });
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
  return Move([=, calls = *calls]() mutable {
    remarkDone(gather, "HoistAllGathers", "moved to the callers of '@" + func.getSymName() + "'");
    ++counts.outOfCalls;
    unsigned index = argument.getArgNumber();
    for (func::CallOp call : calls) {
      Value gathered = getGathered(call.getOperand(index), gather.getDim(), gather, call,
                                   nameInCaller(gather, call));
      rewriter.modifyOpInPlace(call, [&] { call->setOperand(index, gathered); });
    }
    makeReplicated(argument, gather);
    updateType(func);
    return success();
  });
}

FailureOr<Move> Hoister::match(AllGatherOp gather) {
  if (gather.getInputs().size() != 1)
    return rewriter.notifyMatchFailure(gather, "it gathers several values");
  if (gather->use_empty())
    return rewriter.notifyMatchFailure(gather, "its result has no use");
  Value shard = gather.getInputs()[0];
  if (!isa<BlockArgument>(shard) && !shard.getDefiningOp<func::CallOp>())
    return matchPast(gather);
  if (!acrossCalls)
    return rewriter.notifyMatchFailure(gather, "it is not to cross calls");
  return isa<BlockArgument>(shard) ? matchIntoCallers(gather) : matchIntoCallee(gather);
}

LogicalResult Hoister::moveAll() {
  // Every move brings a gather further from the results, and gathers pass through no recursive
  // function, so this terminates.
  for (bool changed = true; changed;) {
    FailureOr<bool> moved = move([&](AllGatherOp gather) { return match(gather); });
    if (failed(moved))
      return failure();
    changed = *moved;
  }
  for (AllGatherOp gather : collectivesIn<AllGatherOp>(module))
    remarkMissed(gather, "HoistAllGathers", "stays: " + explain([&] { (void)match(gather); }));
  // Erases slices of a value that is now used itself.
  module.walk([](PartOp slice) {
    if (slice->use_empty())
      slice.erase();
  });
  return success();
}

struct HoistAllGathers : impl::HoistAllGathersBase<HoistAllGathers> {
  using HoistAllGathersBase::HoistAllGathersBase;

  void runOnOperation() override {
    if (failed(GatherMover::run<Hoister>(getOperation(), acrossCalls,
                                         {numHoisted, numIntoCalls, numOutOfCalls})))
      signalPassFailure();
  }
};

} // namespace
} // namespace braid
