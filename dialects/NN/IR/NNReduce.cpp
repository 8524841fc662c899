//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// nn.reduce: constraints, sharding rule, cost and kernel.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::ReduceKind;
using braid::comm::ShardingRule;

LogicalResult ReduceOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), dims = getDims();
  auto rank = static_cast<int64_t>(input.size());
  bool ascending = !dims.empty();
  for (auto [i, dim] : llvm::enumerate(dims))
    ascending &= dim >= 0 && dim < rank && (i == 0 || dims[i - 1] < dim);
  if (!ascending)
    return emitOpError("expects ascending dimensions below ")
           << rank << ", at least one, got " << text(dims) << " [nn.reduce_c1]";
  SmallVector<int64_t> kept;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(dims, d))
      kept.push_back(input[d]);
  if (failed(verifyShape(*this, "a result", kept, shapeOf(getResult()), "nn.reduce_c2")))
    return failure();
  return verifySameElementType(*this, {getInput(), getResult()}, "nn.reduce_c3");
}

ShardingRule ReduceOp::getShardingRule() {
  ShardingRule rule;
  rule.operands.emplace_back();
  rule.results.emplace_back();
  for (auto [d, size] : llvm::enumerate(shapeOf(getInput()))) {
    const bool reduced = llvm::is_contained(getDims(), static_cast<int64_t>(d));
    const int64_t factor = rule.addFactor("dim" + std::to_string(d), size,
                                          reduced ? FactorKind::Reduction : FactorKind::Parallel);
    rule.factors[factor].reduce = getKind();
    rule.operands[0].push_back({factor});
    if (!reduced)
      rule.results[0].push_back({factor});
  }
  // The sum of partial sums is partial; a maximum of sums is not.
  rule.linear = getKind() == ReduceKind::Sum;
  if (rule.linear)
    rule.partialOperands = {0};
  return rule;
}

OpCost ReduceOp::getCost() {
  OpCost cost;
  cost.bytesRead = bytes(getInput());
  cost.bytesWritten = bytes(getResult());
  cost.vectorFlops = elements(getInput());
  // The gradient of a sum needs nothing; of a maximum, where it is.
  cost.bytesSaved = getKind() == ReduceKind::Sum ? 0 : bytes(getInput()) + bytes(getResult());
  return cost;
}

KernelCall ReduceOp::getKernelCall() {
  int64_t dims = 0;
  for (int64_t dim : getDims())
    dims |= int64_t(1) << dim;
  return {"reduce_dims", {getInput()}, {static_cast<int64_t>(getKind()), dims}};
}
