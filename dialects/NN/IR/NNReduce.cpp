//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// nn.reduce: constraints, sharding rule, cost and kernel.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/DecomposeBuilder.h"
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
  if (failed(verifySameElementType(*this, {getInput(), getResult()}, "nn.reduce_c3")))
    return failure();
  if (!getExpSum())
    return success();
  if (getKind() != ReduceKind::Max)
    return emitOpError("expects a second result of a maximum only, got one of ")
           << stringifyReduceKind(getKind()) << " [nn.reduce_c4]";
  if (Type element = typeOf(getExpSum()).getElementType(); !element.isF32())
    return emitOpError("expects a second result of f32, got ") << element << " [nn.reduce_c4]";
  return verifyShape(*this, "a second result", kept, shapeOf(getExpSum()), "nn.reduce_c4");
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
  if (getExpSum()) {
    // buildLocal reduces the maximum, to which it rescales the sums.
    rule.results.push_back(rule.results[0]);
    for (comm::Factor &factor : rule.factors)
      factor.reduce = ReduceKind::Sum;
    rule.completeResults = {0};
  }
  // The sum of partial sums is partial; a maximum of sums is not.
  rule.linear = getKind() == ReduceKind::Sum;
  if (rule.linear)
    rule.partialOperands = {0};
  return rule;
}

/// sum * exp(own - common): the sum relative to the ranks' common maximum instead of this rank's
/// own. The difference of equal infinities would be no number.
static Value rescale(OpBuilder &builder, Location loc, Value sum, Value own, Value common) {
  auto map = MapOp::create(builder, loc, sum.getType(), ValueRange{sum, own, common}, ValueRange());
  Type f32 = builder.getF32Type();
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&map.getBody(), {}, {f32, f32, f32}, {loc, loc, loc});
  Scalars s(builder, loc);
  Value a = body->getArgument(0), x = body->getArgument(1), y = body->getArgument(2);
  Value scaled = s.mul(a, s.unary<math::ExpOp>(s.sub(x, y)));
  YieldOp::create(builder, loc, s.select(s.equal(x, y), a, scaled));
  return map.getResult();
}

FailureOr<SmallVector<Value>> ReduceOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                                   TypeRange resultTypes, comm::GroupAttr partial) {
  FailureOr<SmallVector<Value>> own =
      comm::cloneWithTypes(getOperation(), builder, operands, resultTypes);
  if (failed(own) || !getExpSum() || !partial)
    return own;
  Value maximum = own->front(), sum = own->back();
  auto reduced = comm::AllReduceOp::create(builder, getLoc(), TypeRange{maximum.getType()},
                                           ReduceKind::Max, maximum, partial, StringAttr());
  Value common = reduced.getResults().front();
  return SmallVector<Value>{common, rescale(builder, getLoc(), sum, maximum, common)};
}

OpCost ReduceOp::getCost() {
  OpCost cost;
  cost.bytesRead = bytes(getInput());
  cost.bytesWritten = bytes(getResult());
  cost.vectorFlops = elements(getInput());
  if (getExpSum()) {
    cost.bytesWritten += bytes(getExpSum());
    // Per element also: difference, exp, sum.
    cost.vectorFlops *= 4;
  }
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
