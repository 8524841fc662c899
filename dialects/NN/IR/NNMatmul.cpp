//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// nn.matmul: constraints, sharding rule, cost and kernel.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

namespace {
/// The sizes of a matmul. Valid where nn.matmul_c1 and nn.matmul_c2 hold.
struct Sizes {
  explicit Sizes(MatmulOp op) : lhs(shapeOf(op.getLhs())), rhs(shapeOf(op.getRhs())) {
    m = op.getTransposeLhs() ? lhs.back() : lhs.size() > 1 ? lhs[lhs.size() - 2] : 1;
    k = op.getTransposeLhs() ? lhs[lhs.size() - 2] : lhs.back();
    rhsK = rhs[rhs.size() - (op.getTransposeRhs() ? 1 : 2)];
    n = rhs[rhs.size() - (op.getTransposeRhs() ? 2 : 1)];
  }
  ArrayRef<int64_t> lhs, rhs;
  int64_t m, n, k, rhsK;
};
} // namespace

LogicalResult MatmulOp::verify() {
  ArrayRef<int64_t> lhs = shapeOf(getLhs()), rhs = shapeOf(getRhs());
  const size_t least = getTransposeLhs() ? 2 : 1;
  if (lhs.size() < least)
    return emitOpError("expects a left operand of at least ")
           << least << " dimension" << (least == 1 ? "" : "s") << ", got shape " << text(lhs)
           << " [nn.matmul_c1]";
  const bool batched =
      rhs.size() == lhs.size() && lhs.size() > 2 && rhs.drop_back(2) == lhs.drop_back(2);
  if (rhs.size() != 2 && !batched)
    return emitOpError("expects a right operand of 2 dimensions, or with the leading ones of "
                       "shape ")
           << text(lhs) << ", got " << text(rhs) << " [nn.matmul_c2]";
  Sizes sizes(*this);
  if (sizes.k != sizes.rhsK)
    return emitOpError("expects operands with one number of products, got ")
           << sizes.k << " and " << sizes.rhsK << " [nn.matmul_c3]";
  SmallVector<int64_t> shape(lhs);
  if (getTransposeLhs())
    shape[lhs.size() - 2] = sizes.m;
  shape.back() = sizes.n;
  if (failed(verifyShape(*this, "a result", shape, shapeOf(getResult()), "nn.matmul_c4")) ||
      failed(verifySameElementType(*this, {getLhs(), getRhs(), getResult()}, "nn.matmul_c5")))
    return failure();
  if (getCounts()) {
    if (lhs.size() != 3 || !batched || getTransposeLhs() || getAccumulator())
      return emitOpError("expects counts with [groups, capacity, k] and a matrix for each group, "
                         "not transposed on the left, without an accumulator, got ")
             << text(lhs) << " and " << text(rhs) << " [nn.matmul_c6]";
    if (failed(verifyShape(*this, "counts", lhs[0], shapeOf(getCounts()), "nn.matmul_c6")))
      return failure();
  }
  if (getAccumulator() && getAccumulator().getType() != getResult().getType())
    return emitOpError("expects an accumulator of type ")
           << getResult().getType() << ", got " << getAccumulator().getType() << " [nn.matmul_c7]";
  return success();
}

ShardingRule MatmulOp::getShardingRule() {
  ShardingRule rule;
  Sizes sizes(*this);
  TensorFactors lhs, rhs, result, leading;
  const bool oneRhs = sizes.rhs.size() == 2;
  const size_t rank = sizes.lhs.size();
  for (size_t d = 0; d + 2 < rank; ++d)
    leading.push_back({rule.addFactor(
        d == 0 ? getCounts() ? "group" : "batch" : "dim" + std::to_string(d), sizes.lhs[d])});
  lhs = result = leading;
  if (!oneRhs)
    rhs = leading;
  // A count is of the first rows of a group, so that they stay together.
  const int64_t rows =
      rank > 1 ? rule.addFactor("rows", sizes.m,
                                getCounts() ? FactorKind::Replicated : FactorKind::Parallel)
               : -1;
  const int64_t out = rule.addFactor("out", sizes.n);
  // Partial sums would each hold the accumulator.
  const int64_t in = rule.addFactor(
      "in", sizes.k, getAccumulator() ? FactorKind::Replicated : FactorKind::Reduction);
  if (getTransposeLhs())
    lhs.append({{in}, {rows}});
  else if (rank > 1)
    lhs.append({{rows}, {in}});
  else
    lhs.push_back({in});
  if (getTransposeRhs())
    rhs.append({{out}, {in}});
  else
    rhs.append({{in}, {out}});
  if (rank > 1)
    result.push_back({rows});
  result.push_back({out});
  // A program written per rank may let partial sums accumulate.
  rule.factors[in].onShards = braid::comm::OnShards::Unknown;
  if (!getAccumulator())
    rule.linearIn = {0, 1};
  rule.operands = {lhs, rhs};
  if (getCounts())
    rule.operands.push_back({leading.front()});
  if (getAccumulator())
    rule.operands.push_back(result);
  rule.results = {result};
  return rule;
}

OpCost MatmulOp::getCost() {
  OpCost cost;
  for (Value operand : getOperands())
    cost.bytesRead += bytes(operand);
  cost.bytesWritten = bytes(getResult());
  cost.bytesSaved = bytes(getLhs());
  // The rows beyond the counts are zeros; how many there are is known only at run time.
  SaturatingCount products = SaturatingCount(Sizes(*this).k) * 2 - (getAccumulator() ? 0 : 1);
  cost.matrixFlops = (products * elements(getResult())).getValue();
  return cost;
}

KernelCall MatmulOp::getKernelCall() {
  KernelCall call{"matmul", {getLhs(), getRhs(), nullptr, getCounts()}};
  call.integers = {getTransposeLhs(), getTransposeRhs(), getAccumulator() != nullptr};
  call.accumulator = getAccumulator();
  return call;
}
