//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SliceWise.h"

#include "CollectiveUtils.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {

/// The one dimension that begins with factor `f`; fails when the factor occurs otherwise.
static LogicalResult findFactor(const TensorFactors &tensor, int64_t f,
                                std::optional<int64_t> &dim) {
  for (auto [d, factors] : llvm::enumerate(tensor)) {
    if (!llvm::is_contained(factors, f))
      continue;
    // A minor factor is not split in contiguous blocks.
    if (dim || factors[0] != f)
      return failure();
    dim = d;
  }
  return success();
}

std::string quoted(Operation *op) { return ("'" + op->getName().getStringRef() + "'").str(); }

FailureOr<SliceDims>
matchSliceDims(RewriterBase &rewriter, Operation *op,
               function_ref<const TensorFactors &(const ShardingRule &)> tensor, int64_t dim,
               int64_t n) {
  std::string name = quoted(op);
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || !isMemoryEffectFree(op))
    return rewriter.notifyMatchFailure(op, name + " takes the unsliced value");
  ShardingRule rule = interface.getShardingRule();
  const DimFactors &factors = tensor(rule)[dim];
  if (factors.empty())
    return rewriter.notifyMatchFailure(op, name + " has no factor for the dimension");
  int64_t f = factors[0];
  const Factor &factor = rule.factors[f];
  if (factor.kind != FactorKind::Parallel)
    return rewriter.notifyMatchFailure(op, name + " needs all of '" + factor.name + "'");
  if (factor.size % n != 0)
    return rewriter.notifyMatchFailure(op, name + " has " + Twine(factor.size) + " of '" +
                                               factor.name + "', which does not divide over " +
                                               Twine(n) + " ranks");
  SliceDims dims;
  dims.operands.resize(op->getNumOperands());
  dims.results.resize(op->getNumResults());
  bool found = true;
  for (size_t i = 0; i < std::min(rule.operands.size(), dims.operands.size()); ++i)
    found &= succeeded(findFactor(rule.operands[i], f, dims.operands[i]));
  for (size_t i = 0; i < dims.results.size(); ++i)
    found &= i < rule.results.size() &&
             succeeded(findFactor(rule.results[i], f, dims.results[i])) && dims.results[i];
  if (!found)
    return rewriter.notifyMatchFailure(op, name + " does not split every result along '" +
                                               factor.name + "'");
  return dims;
}

FailureOr<SmallVector<Value>> rebuild(Operation *op, OpBuilder &builder, ValueRange operands,
                                      TypeRange types) {
  FailureOr<SmallVector<Value>> values = cast<ShardingRuleOpInterface>(op).buildLocal(
      builder, operands, types, /*partial=*/GroupAttr());
  if (failed(values))
    return emitNamedError(op) << "cannot be built on the operands that its sharding rule allows";
  return values;
}

AllGatherOp gatherOf(Value value) {
  auto gather = value.getDefiningOp<AllGatherOp>();
  return gather && !isStarted(gather) && gather.getInputs().size() == 1 ? gather : AllGatherOp();
}

bool gathers(Operation *op, int64_t dim, GroupAttr group) {
  auto gather = dyn_cast_or_null<AllGatherOp>(op);
  return gather && !isStarted(gather) && gather.getInputs().size() == 1 &&
         static_cast<int64_t>(gather.getDim()) == dim && gather.getGroup() == group;
}

bool slices(Operation *op, int64_t dim, GroupAttr group) {
  auto slice = dyn_cast_or_null<PartOp>(op);
  return slice && slice.getShift() == 0 && static_cast<int64_t>(slice.getDim()) == dim &&
         slice.getGroup() == group;
}

} // namespace braid
