//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// nn.map: constraints, sharding rule, cost and decomposition.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/DecomposeBuilder.h"
#include "dialects/NN/IR/OpUtils.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace braid;
using namespace braid::nn;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

LogicalResult MapOp::verify() {
  if (getInputs().empty())
    return emitOpError("expects an input [nn.map_c1]");
  ArrayRef<int64_t> first = shapeOf(getInputs().front());
  if (failed(verifyShape(*this, "a result", first, shapeOf(getResult()), "nn.map_c1")))
    return failure();
  for (Value input : getInputs().drop_front()) {
    ArrayRef<int64_t> shape = shapeOf(input);
    if (shape.size() > first.size() || first.take_back(shape.size()) != shape)
      return emitOpError("expects an input's shape at the end of the first one's, got ")
             << text(shape) << " and " << text(first) << " [nn.map_c1]";
  }
  if (!getRows().empty() && first.empty())
    return emitOpError("expects a last dimension beside 'rows', got [] [nn.map_c2]");
  for (Value row : getRows())
    if (failed(
            verifyShape(*this, "an input in 'rows'", first.drop_back(), shapeOf(row), "nn.map_c2")))
      return failure();
  Block &body = getBody().front();
  auto isF32 = [](BlockArgument argument) { return argument.getType().isF32(); };
  if (body.getNumArguments() != getNumOperands() || !llvm::all_of(body.getArguments(), isF32) ||
      !isa<YieldOp>(body.back()))
    return emitOpError("expects a body with ")
           << getNumOperands() << " arguments of f32 that ends in nn.yield [nn.map_c3]";
  for (Operation &op : body.without_terminator()) {
    StringRef dialect = op.getName().getDialectNamespace();
    if ((dialect != "arith" && dialect != "math") || op.getNumResults() != 1 ||
        isa<ShapedType>(op.getResult(0).getType()))
      return op.emitOpError("expects to be an arith or math operation with one scalar result in "
                            "the body of nn.map [nn.map_c4]");
  }
  return success();
}

ShardingRule MapOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors all;
  for (auto [d, size] : llvm::enumerate(shapeOf(getResult())))
    all.push_back({rule.addFactor("dim" + std::to_string(d), size)});
  for (Value input : getInputs())
    rule.operands.emplace_back(ArrayRef(all).take_back(shapeOf(input).size()));
  for (size_t i = 0; i < getRows().size(); ++i)
    rule.operands.emplace_back(ArrayRef(all).drop_back());
  rule.results = {all};
  return rule;
}

FailureOr<SmallVector<Value>> MapOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                                TypeRange resultTypes, comm::GroupAttr) {
  const size_t numInputs = getInputs().size();
  auto local = MapOp::create(builder, getLoc(), resultTypes[0], operands.take_front(numInputs),
                             operands.drop_front(numInputs));
  IRMapping mapping;
  getBody().cloneInto(&local.getBody(), mapping);
  return SmallVector<Value>{local.getResult()};
}

OpCost MapOp::getCost() {
  OpCost cost;
  for (Value input : getOperands())
    cost.bytesRead += bytes(input);
  cost.bytesWritten = bytes(getResult());
  cost.bytesSaved = cost.bytesRead;
  int64_t operations = 0;
  for (Operation &op : getBody().front().without_terminator())
    operations += !op.hasTrait<OpTrait::ConstantLike>();
  cost.vectorFlops = (SaturatingCount(operations) * elements(getResult())).getValue();
  return cost;
}

bool MapOp::isRowValue(unsigned operand) { return operand >= getInputs().size(); }

FailureOr<SmallVector<Value>> MapOp::decompose(OpBuilder &builder, ValueRange operands) {
  const int64_t rank = typeOf(operands[0]).getRank();
  SmallVector<GenericBuilder::Input> inputs;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    GenericBuilder::Dims dims = firstDims(rank);
    if (isRowValue(i))
      dims.pop_back();
    else
      dims.erase(dims.begin(), dims.end() - typeOf(operand).getRank());
    inputs.push_back({operand, dims});
  }
  Block &body = getBody().front();
  return SmallVector<Value>{GenericBuilder(builder, getLoc())
                                .map("map", rank, inputs, typeOf(getResult()).getElementType(),
                                     [&](Scalars &scalars, ValueRange elements) {
                                       IRMapping mapping;
                                       mapping.map(body.getArguments(), elements);
                                       for (Operation &op : body.without_terminator())
                                         scalars.builder.clone(op, mapping);
                                       return mapping.lookup(cast<YieldOp>(body.back()).getValue());
                                     })};
}
