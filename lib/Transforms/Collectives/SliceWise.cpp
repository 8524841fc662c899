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

static std::string quoted(Operation *op) {
  return ("'" + op->getName().getStringRef() + "'").str();
}

static FailureOr<SliceDims> matchSliceDims(RewriterBase &rewriter, Operation *op,
                                           const ShardingRule &rule, const DimFactors &factors,
                                           int64_t n) {
  std::string name = quoted(op);
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

static FailureOr<ShardingRule> matchRule(RewriterBase &rewriter, Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || !isMemoryEffectFree(op))
    return rewriter.notifyMatchFailure(op, quoted(op) + " takes the unsliced value");
  return interface.getShardingRule();
}

FailureOr<SliceDims> matchSliceDims(RewriterBase &rewriter, OpOperand &tensor, int64_t dim,
                                    int64_t n) {
  Operation *op = tensor.getOwner();
  FailureOr<ShardingRule> rule = matchRule(rewriter, op);
  if (failed(rule))
    return failure();
  return matchSliceDims(rewriter, op, *rule, rule->operands[tensor.getOperandNumber()][dim], n);
}

FailureOr<SliceDims> matchSliceDims(RewriterBase &rewriter, OpResult tensor, int64_t dim,
                                    int64_t n) {
  Operation *op = tensor.getOwner();
  FailureOr<ShardingRule> rule = matchRule(rewriter, op);
  if (failed(rule))
    return failure();
  return matchSliceDims(rewriter, op, *rule, rule->results[tensor.getResultNumber()][dim], n);
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

bool gathers(AllGatherOp gather, int64_t dim, GroupAttr group) {
  return gather && static_cast<int64_t>(gather.getDim()) == dim && gather.getGroup() == group;
}

void updateType(func::FuncOp func) {
  Block &block = func.getBody().front();
  func.setType(FunctionType::get(func.getContext(), block.getArgumentTypes(),
                                 block.getTerminator()->getOperandTypes()));
}

} // namespace braid
