//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parts of values: verifiers, sharding rules, costs, folds and canonicalization.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

/// `type` with another size of one dimension.
static RankedTensorType resized(Type type, int64_t dim, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = size;
  return tensor.clone(shape);
}

static LogicalResult verifyDim(Operation *op, int64_t dim, Value value, StringRef id) {
  const int64_t rank = typeOf(value).getRank();
  if (dim >= 0 && dim < rank)
    return success();
  return op->emitOpError("expects 'dim' in [0, ") << rank << "), got " << dim << " [" << id << "]";
}

/// A factor for every dimension but `dim`.
static TensorFactors otherDims(ShardingRule &rule, Value value, int64_t dim) {
  TensorFactors factors;
  for (auto [d, size] : llvm::enumerate(shapeOf(value))) {
    factors.emplace_back();
    if (static_cast<int64_t>(d) != dim)
      factors.back() = {rule.addFactor(d == 0 ? "batch" : "dim" + std::to_string(d), size)};
  }
  return factors;
}

static TensorFactors withFactor(TensorFactors factors, int64_t dim, int64_t factor) {
  factors[dim] = {factor};
  return factors;
}

//===----------------------------------------------------------------------===//
// nn.slice
//===----------------------------------------------------------------------===//

void SliceOp::build(OpBuilder &builder, OperationState &state, Value input, int64_t dim,
                    int64_t from, int64_t size) {
  build(builder, state, resized(input.getType(), dim, size), input, dim, from, size);
}

LogicalResult SliceOp::verify() {
  const int64_t dim = getDim(), from = getFrom(), size = getSize();
  if (failed(verifyDim(*this, dim, getInput(), "nn.slice_c1")))
    return failure();
  const int64_t all = shapeOf(getInput())[dim];
  if (from < 0 || size < 1 || size > all || from > all - size)
    return emitOpError("expects a range inside of dimension ")
           << dim << " of size " << all << ", got " << size << " from " << from << " [nn.slice_c2]";
  if (RankedTensorType type = resized(getInput().getType(), dim, size); getType() != type)
    return emitOpError("expects a result of type ")
           << type << ", got " << getType() << " [nn.slice_c3]";
  return success();
}

ShardingRule SliceOp::getShardingRule() {
  ShardingRule rule;
  const int64_t dim = getDim();
  TensorFactors others = otherDims(rule, getInput(), dim);
  rule.operands = {withFactor(
      others, dim, rule.addFactor("sliced", shapeOf(getInput())[dim], FactorKind::Replicated))};
  rule.results = {
      withFactor(others, dim, rule.addFactor("slice", getSize(), FactorKind::Replicated))};
  rule.linear = true;
  rule.partialOperands = {0};
  // In a program written per rank, each rank may slice its own shard.
  for (auto &factor : rule.factors)
    factor.onShards = braid::comm::OnShards::Unknown;
  return rule;
}

/// Nothing moves.
OpCost SliceOp::getCost() { return {}; }

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto whole = getInput().getDefiningOp<SliceOp>();
  if (!whole || whole.getDim() != getDim())
    return {};
  setFrom(getFrom() + whole.getFrom());
  getInputMutable().assign(whole.getInput());
  return getResult();
}

namespace {

/// Takes a slice of a concatenation from the one input that it lies in.
struct SliceOfConcat : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto concat = op.getInput().getDefiningOp<ConcatOp>();
    if (!concat || concat.getDim() != op.getDim())
      return rewriter.notifyMatchFailure(op, "is of no concatenation along its dimension");
    int64_t from = op.getFrom();
    for (Value input : concat.getInputs()) {
      const int64_t own = shapeOf(input)[op.getDim()];
      if (from >= own) {
        from -= own;
        continue;
      }
      if (from + static_cast<int64_t>(op.getSize()) > own)
        break;
      rewriter.modifyOpInPlace(op, [&] {
        op.getInputMutable().assign(input);
        op.setFrom(from);
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "lies in several inputs");
  }
};

} // namespace

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SliceOfConcat>(context);
}

//===----------------------------------------------------------------------===//
// nn.append
//===----------------------------------------------------------------------===//

LogicalResult AppendOp::verify() {
  const int64_t dim = getDim(), rank = typeOf(getCache()).getRank();
  if (dim < 1 || dim >= rank)
    return emitOpError("expects 'dim' in [1, ") << rank << "), got " << dim << " [nn.append_c1]";
  RankedTensorType input = typeOf(getInput());
  const int64_t capacity = shapeOf(getCache())[dim],
                size = input.getRank() == rank ? input.getDimSize(dim) : 0;
  if (size < 1 || size > capacity || input != resized(getCache().getType(), dim, size))
    return emitOpError("expects an input of type ")
           << getCache().getType() << " with 1 to " << capacity << " in dimension " << dim
           << ", got " << input << " [nn.append_c2]";
  if (shapeOf(getPosition())[0] != shapeOf(getCache())[0])
    return emitOpError("expects ") << shapeOf(getCache())[0] << " positions, got "
                                   << shapeOf(getPosition())[0] << " [nn.append_c3]";
  return success();
}

ShardingRule AppendOp::getShardingRule() {
  ShardingRule rule;
  const int64_t dim = getDim();
  TensorFactors others = otherDims(rule, getCache(), dim);
  // Where the new elements belong depends on the position, which is known at run time.
  TensorFactors cache = withFactor(
      others, dim, rule.addFactor("capacity", shapeOf(getCache())[dim], FactorKind::Replicated));
  rule.operands = {
      withFactor(others, dim,
                 rule.addFactor("appended", shapeOf(getInput())[dim], FactorKind::Replicated)),
      cache,
      {others[0]}};
  rule.results = {cache};
  return rule;
}

/// The cache changes in place.
OpCost AppendOp::getCost() {
  OpCost cost;
  cost.bytesRead = bytes(getInput()) + bytes(getPosition());
  cost.bytesWritten = bytes(getInput());
  return cost;
}

KernelCall AppendOp::getKernelCall() {
  KernelCall call{"append", {getInput(), getPosition()}, {static_cast<int64_t>(getDim())}};
  call.accumulator = getCache();
  return call;
}

//===----------------------------------------------------------------------===//
// nn.concat
//===----------------------------------------------------------------------===//

void ConcatOp::build(OpBuilder &builder, OperationState &state, ValueRange inputs, int64_t dim) {
  int64_t size = 0;
  for (Value input : inputs)
    size += shapeOf(input)[dim];
  build(builder, state, resized(inputs.front().getType(), dim, size), inputs, dim);
}

SmallVector<int64_t> ConcatOp::getOffsets() {
  SmallVector<int64_t> offsets;
  int64_t next = 0;
  for (Value input : getInputs()) {
    offsets.push_back(next);
    next += shapeOf(input)[getDim()];
  }
  return offsets;
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("expects at least one input [nn.concat_c1]");
  Value first = getInputs().front();
  const int64_t dim = getDim();
  if (failed(verifyDim(*this, dim, first, "nn.concat_c2")))
    return failure();
  SaturatingCount size = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    RankedTensorType type = typeOf(input);
    const int64_t own = type.getRank() == typeOf(first).getRank() ? type.getDimSize(dim) : 0;
    if (own < 1 || type != resized(first.getType(), dim, own))
      return emitOpError("expects input ")
             << i << " of type " << first.getType() << " with any size of at least 1 in dimension "
             << dim << ", got " << type << " [nn.concat_c3]";
    size += own;
  }
  if (RankedTensorType type = resized(first.getType(), dim, size.getValue()); getType() != type)
    return emitOpError("expects a result of type ")
           << type << ", got " << getType() << " [nn.concat_c4]";
  return success();
}

ShardingRule ConcatOp::getShardingRule() {
  ShardingRule rule;
  const int64_t dim = getDim();
  TensorFactors others = otherDims(rule, getResult(), dim);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    rule.operands.push_back(withFactor(
        others, dim,
        rule.addFactor("part" + std::to_string(i), shapeOf(input)[dim], FactorKind::Replicated)));
    rule.partialOperands.push_back(i);
  }
  rule.results = {withFactor(
      others, dim, rule.addFactor("all", shapeOf(getResult())[dim], FactorKind::Replicated))};
  rule.linear = true;
  for (auto &factor : rule.factors)
    factor.onShards = braid::comm::OnShards::Unknown;
  return rule;
}

/// Nothing moves: inputs are computed where they are wanted.
OpCost ConcatOp::getCost() { return {}; }

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? getInputs().front() : Value();
}

namespace {

/// Takes the inputs of an inner concatenation, unless others need it as one value.
struct ConcatOfConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> inputs;
    for (Value input : op.getInputs()) {
      auto inner = input.getDefiningOp<ConcatOp>();
      if (inner && inner.getDim() == op.getDim() && inner->hasOneUse())
        llvm::append_range(inputs, inner.getInputs());
      else
        inputs.push_back(input);
    }
    if (inputs.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "has no concatenation of its own along its dimension");
    rewriter.modifyOpInPlace(op, [&] { op.getInputsMutable().assign(inputs); });
    return success();
  }
};

/// Slices of one value that follow each other are one slice.
struct JoinSlices : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> inputs;
    for (Value input : op.getInputs()) {
      if (SliceOp last = inputs.empty() ? SliceOp() : sliceOf(inputs.back(), op))
        if (SliceOp next = sliceOf(input, op); next && next.getInput() == last.getInput() &&
                                               next.getFrom() == last.getFrom() + last.getSize()) {
          inputs.back() = SliceOp::create(
              rewriter, rewriter.getFusedLoc({last.getLoc(), next.getLoc()}), last.getInput(),
              static_cast<int64_t>(op.getDim()), static_cast<int64_t>(last.getFrom()),
              static_cast<int64_t>(last.getSize() + next.getSize()));
          continue;
        }
      inputs.push_back(input);
    }
    if (inputs.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "has no slices that follow each other");
    rewriter.modifyOpInPlace(op, [&] { op.getInputsMutable().assign(inputs); });
    return success();
  }

private:
  static SliceOp sliceOf(Value value, ConcatOp op) {
    auto slice = value.getDefiningOp<SliceOp>();
    return slice && slice.getDim() == op.getDim() ? slice : SliceOp();
  }
};

} // namespace

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConcatOfConcat, JoinSlices>(context);
}
