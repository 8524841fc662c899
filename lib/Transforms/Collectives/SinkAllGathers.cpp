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
#define GEN_PASS_DEF_SINKALLGATHERS
#include "braid/Transforms/Passes.h.inc"

namespace {

class Sinker : public GatherMover {
public:
  using GatherMover::GatherMover;
  LogicalResult moveAll();

private:
  FailureOr<Move> matchSlices(AllGatherOp gather);
  FailureOr<Move> matchUse(AllGatherOp gather, OpOperand &use);
  FailureOr<Move> matchPast(AllGatherOp gather, OpOperand &use);
  FailureOr<Move> matchIntoCallers(AllGatherOp gather, OpOperand &returned);
  FailureOr<Move> matchIntoCallee(AllGatherOp gather, OpOperand &argument);
  LogicalResult movePast(AllGatherOp gather, Operation *op, const SliceDims &dims,
                         ArrayRef<AllGatherOp> passed);
  /// This rank's shard of `value`: the input of the gather that made it, or a slice.
  Value takeShard(Value value, int64_t dim, GroupAttr group);
  /// Turns a call's result or a function's argument into its shard, which is gathered for all
  /// uses; `name` is the gather's.
  void makeSharded(Value value, AllGatherOp gather, StringRef name);
  void eraseIfUnused(Operation *op) {
    if (op->use_empty())
      rewriter.eraseOp(op);
  }
};

Value Sinker::takeShard(Value value, int64_t dim, GroupAttr group) {
  if (auto gather = value.getDefiningOp<AllGatherOp>();
      gather && !isStarted(gather) && gather.getDim() == static_cast<uint64_t>(dim) &&
      gather.getGroup() == group)
    return gather.getInputs()[cast<OpResult>(value).getResultNumber()];
  return createSlice(rewriter, rewriter.getInsertionPoint()->getLoc(), value, dim, group);
}

void Sinker::makeSharded(Value value, AllGatherOp gather, StringRef name) {
  value.setType(gather.getInputs()[0].getType());
  replication.becomesSharded(value, gather.getGroup());
  rewriter.setInsertionPointAfterValue(value);
  Value gathered = this->gather(value, gather.getDim(), gather, name);
  rewriter.replaceAllUsesExcept(value, gathered, gathered.getDefiningOp());
  eraseIfUnused(gathered.getDefiningOp());
}

/// Slices of the gathered value that take the rank's own shard again.
FailureOr<Move> Sinker::matchSlices(AllGatherOp gather) {
  SmallVector<Operation *> found;
  for (Operation *user : gather->getUsers())
    if (slices(user, gather.getDim(), gather.getGroup()))
      found.push_back(user);
  if (found.empty())
    return failure();
  return Move([=]() mutable {
    for (Operation *slice : found)
      rewriter.replaceOp(slice, gather.getInputs()[0]);
    eraseIfUnused(gather);
    return success();
  });
}

FailureOr<Move> Sinker::matchPast(AllGatherOp gather, OpOperand &use) {
  Operation *op = use.getOwner();
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  if (op->getBlock() != gather->getBlock())
    return rewriter.notifyMatchFailure(op, quoted(op) + " is in another block");
  FailureOr<SliceDims> dims = matchSliceDims(
      rewriter, op,
      [&](const ShardingRule &rule) -> auto & { return rule.operands[use.getOperandNumber()]; },
      gather.getDim(), n);
  if (failed(dims))
    return failure();
  // Ranks then compute different slices of a result that must have been the same on all.
  for (Value operand : op->getOperands())
    if (AllGatherOp other = gatherOf(operand); !other || other.getGroup() != group)
      if (!replication.isReplicated(operand, group))
        return rewriter.notifyMatchFailure(
            op, quoted(op) + " has an operand that differs between the ranks");
  if (!replication.capturesReplicated(op, group))
    return rewriter.notifyMatchFailure(op, quoted(op) +
                                               " captures a value that differs between the ranks");

  SaturatingCount before = 0, after = 0;
  llvm::SetVector<AllGatherOp> passed;
  for (auto [operand, dim] : llvm::zip_equal(op->getOperands(), dims->operands)) {
    AllGatherOp other = gatherOf(operand);
    if (dim && gathers(other, *dim, group) && other->getBlock() == op->getBlock() &&
        llvm::all_of(other->getUsers(), [&](Operation *user) { return user == op; }) &&
        passed.insert(other))
      before += other.getBytesSent(n);
  }
  for (auto [result, dim] : llvm::zip_equal(op->getResults(), dims->results))
    if (!llvm::all_of(result.getUsers(),
                      [&, dim = *dim](Operation *user) { return slices(user, dim, group); }))
      after += gatherBytes(shardType(result.getType(), *dim, n), n);
  if (failed(matchBytes(op, before, after)))
    return failure();
  return Move([=, dims = *dims, passed = passed.takeVector()] {
    return movePast(gather, op, dims, passed);
  });
}

LogicalResult Sinker::movePast(AllGatherOp gather, Operation *op, const SliceDims &dims,
                               ArrayRef<AllGatherOp> passed) {
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> operands(op->getOperands());
  for (auto [operand, dim] : llvm::zip_equal(operands, dims.operands))
    if (dim)
      operand = takeShard(operand, *dim, group);
  SmallVector<Type> types;
  for (auto [result, dim] : llvm::zip_equal(op->getResults(), dims.results))
    types.push_back(shardType(result.getType(), *dim, n));
  FailureOr<SmallVector<Value>> locals = rebuild(op, rewriter, operands, types);
  if (failed(locals))
    return failure();
  remarkDone(gather, "SinkAllGathers", "moved past " + quoted(op));
  ++counts.past;
  // One gather may take the place of several.
  SmallVector<Operation *> replaced(passed.begin(), passed.end());
  if (replaced.empty())
    replaced.push_back(gather);
  SmallVector<Value> results;
  for (auto [local, dim] : llvm::zip_equal(*locals, dims.results)) {
    results.push_back(this->gather(local, *dim, gather));
    nameWhole(results.back().getDefiningOp(), replaced);
  }
  rewriter.replaceOp(op, results);
  for (Value result : results)
    eraseIfUnused(result.getDefiningOp());
  for (AllGatherOp other : passed)
    eraseIfUnused(other);
  return success();
}

FailureOr<Move> Sinker::matchIntoCallers(AllGatherOp gather, OpOperand &returned) {
  auto func = cast<func::FuncOp>(returned.getOwner()->getParentOp());
  FailureOr<SmallVector<func::CallOp>> calls = matchCalls(func);
  if (failed(calls))
    return failure();
  if (!gather->hasOneUse())
    return rewriter.notifyMatchFailure(gather, "the value that '@" + func.getSymName() +
                                                   "' returns is used in it too");
  return Move([=, &returned, calls = *calls]() mutable {
    remarkDone(gather, "SinkAllGathers", "moved to the callers of '@" + func.getSymName() + "'");
    ++counts.outOfCalls;
    for (func::CallOp call : calls)
      makeSharded(call.getResult(returned.getOperandNumber()), gather, nameInCaller(gather, call));
    rewriter.modifyOpInPlace(returned.getOwner(), [&] { returned.set(gather.getInputs()[0]); });
    rewriter.eraseOp(gather);
    updateType(func);
    return success();
  });
}

FailureOr<Move> Sinker::matchIntoCallee(AllGatherOp gather, OpOperand &argument) {
  func::FuncOp func = calleeOf(cast<func::CallOp>(argument.getOwner()));
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
  return Move([=, calls = *calls]() mutable {
    remarkDone(gather, "SinkAllGathers", "moved into " + callee);
    ++counts.intoCalls;
    makeSharded(func.getArgument(index), gather, nameInCallee(gather));
    updateType(func);
    // The callers' gathers are read before they are erased, this one last.
    llvm::SetVector<Operation *> others;
    for (func::CallOp call : calls) {
      Value operand = call.getOperand(index);
      if (AllGatherOp other = gatherOf(operand))
        others.insert(other);
      rewriter.setInsertionPoint(call);
      Value shard = takeShard(operand, gather.getDim(), gather.getGroup());
      rewriter.modifyOpInPlace(call, [&] { call->setOperand(index, shard); });
    }
    llvm::for_each(others, [&](Operation *other) { eraseIfUnused(other); });
    return success();
  });
}

FailureOr<Move> Sinker::matchUse(AllGatherOp gather, OpOperand &use) {
  Operation *user = use.getOwner();
  if (!isa<func::CallOp, func::ReturnOp>(user))
    return matchPast(gather, use);
  if (!acrossCalls)
    return rewriter.notifyMatchFailure(user, "it is not to cross calls");
  return isa<func::CallOp>(user) ? matchIntoCallee(gather, use) : matchIntoCallers(gather, use);
}

LogicalResult Sinker::moveAll() {
  // Every move brings a gather closer to the results, and gathers pass through no recursive
  // function, so this terminates.
  // First all moves within a function, then across its return, then across calls.
  enum Kind { kOther, kReturn, kCall, kNone };
  auto kindOf = [](Operation *user) {
    return isa<func::CallOp>(user) ? kCall : isa<func::ReturnOp>(user) ? kReturn : kOther;
  };
  for (int kind = kOther; kind != kNone;) {
    auto match = [&](AllGatherOp gather) -> FailureOr<Move> {
      if (gather.getInputs().size() != 1)
        return failure();
      if (FailureOr<Move> move = matchSlices(gather); succeeded(move))
        return move;
      for (OpOperand &use : gather->getUses())
        if (kindOf(use.getOwner()) == kind)
          if (FailureOr<Move> move = matchUse(gather, use); succeeded(move))
            return move;
      return failure();
    };
    FailureOr<bool> moved = move(match, /*firstFirst=*/true);
    if (failed(moved))
      return failure();
    kind = *moved ? kOther : kind + 1;
  }
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
  return success();
}

struct SinkAllGathers : impl::SinkAllGathersBase<SinkAllGathers> {
  using SinkAllGathersBase::SinkAllGathersBase;

  void runOnOperation() override {
    if (failed(GatherMover::run<Sinker>(getOperation(), acrossCalls,
                                        {numSunk, numIntoCalls, numOutOfCalls})))
      signalPassFailure();
  }
};

} // namespace
} // namespace braid
