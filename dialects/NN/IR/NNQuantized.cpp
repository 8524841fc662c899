//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// nn.quantize_rows and nn.quantized_linear: constraints, sharding rules and costs.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

#include "braid/Base/RowQuantization.h"

using namespace mlir;
using namespace braid;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::OnShards;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

namespace {
/// Factors of the dimensions that count rows.
TensorFactors addRows(ShardingRule &rule, ArrayRef<int64_t> shape) {
  TensorFactors rows;
  for (auto [d, size] : llvm::enumerate(shape))
    rows.push_back({rule.addFactor(d == 0 ? "batch" : "dim" + std::to_string(d), size)});
  return rows;
}
} // namespace

//===----------------------------------------------------------------------===//
// nn.quantize_rows
//===----------------------------------------------------------------------===//

void QuantizeRowsOp::build(OpBuilder &builder, OperationState &state, Value input) {
  ArrayRef<int64_t> shape = shapeOf(input);
  build(builder, state, RankedTensorType::get(shape, builder.getI8Type()),
        RankedTensorType::get(shape.drop_back(), builder.getF32Type()), input);
}

LogicalResult QuantizeRowsOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getInput());
  if (shape.empty())
    return emitOpError("expects an input of at least one dimension [nn.quantize_rows_c1]");
  if (failed(verifyShape(*this, "values", shape, shapeOf(getValues()), "nn.quantize_rows_c1")))
    return failure();
  return verifyShape(*this, "scales", shape.drop_back(), shapeOf(getScales()),
                     "nn.quantize_rows_c2");
}

/// A program written per rank may quantize a part of a row, which then has a scale of its own.
ShardingRule QuantizeRowsOp::getShardingRule() {
  ShardingRule rule;
  const TensorFactors rows = addRows(rule, shapeOf(getInput()).drop_back());
  TensorFactors all = rows;
  all.push_back({rule.addFactor("row", shapeOf(getInput()).back(), FactorKind::Replicated)});
  rule.factors.back().onShards = OnShards::Unknown;
  rule.operands = {all};
  rule.results = {all, rows};
  return rule;
}

OpCost QuantizeRowsOp::getCost() {
  OpCost cost;
  cost.bytesRead = bytes(getInput());
  cost.bytesWritten = bytes(getValues()) + bytes(getScales());
  cost.vectorFlops = (SaturatingCount(elements(getInput())) * 3).getValue();
  return cost;
}

//===----------------------------------------------------------------------===//
// nn.quantized_linear
//===----------------------------------------------------------------------===//

LogicalResult QuantizedLinearOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), weight = shapeOf(getWeight());
  if (weight.size() != 2 || input.empty() || input.back() != weight.back())
    return emitOpError("expects a weight of two dimensions whose second one is the input's last, "
                       "got shapes ")
           << text(weight) << " and " << text(input) << " [nn.quantized_linear_c1]";
  SmallVector<int64_t> shape(input);
  shape.back() = weight.front();
  if (failed(
          verifyShape(*this, "a result", shape, shapeOf(getResult()), "nn.quantized_linear_c2")) ||
      failed(verifyShape(*this, "scales of the input", input.drop_back(), shapeOf(getInputScales()),
                         "nn.quantized_linear_c3")) ||
      failed(verifyShape(*this, "scales of the weight", weight.front(), shapeOf(getWeightScales()),
                         "nn.quantized_linear_c3")))
    return failure();
  if (Value bias = getBias())
    if (failed(verifyShape(*this, "a bias", weight.front(), shapeOf(bias),
                           "nn.quantized_linear_c4")) ||
        failed(verifySameElementType(*this, {getResult(), bias}, "nn.quantized_linear_c4")))
      return failure();
  if (weight.back() > runtime::kMaxInt8Products)
    return emitOpError("expects at most ")
           << runtime::kMaxInt8Products << " products, whose sum is within 32 bits, got "
           << weight.back() << " [nn.quantized_linear_c5]";
  return success();
}

/// As of nn.linear. A program written per rank multiplies parts of rows, each with its own scale,
/// to partial sums.
ShardingRule QuantizedLinearOp::getShardingRule() {
  ShardingRule rule;
  const TensorFactors rows = addRows(rule, shapeOf(getInput()).drop_back());
  const int64_t out = rule.addFactor("out", shapeOf(getWeight()).front());
  const int64_t in = rule.addFactor("in", shapeOf(getWeight()).back(), FactorKind::Reduction);
  TensorFactors input = rows, result = rows;
  input.push_back({in});
  result.push_back({out});
  rule.operands = {input, rows, {{out}, {in}}, {{out}}};
  if (getBias())
    rule.operands.push_back({{out}});
  rule.results = {result};
  return rule;
}

OpCost QuantizedLinearOp::getCost() {
  OpCost cost;
  for (Value operand : getOperands())
    cost.bytesRead += bytes(operand);
  cost.bytesWritten = bytes(getResult());
  cost.bytesSaved = bytes(getInput());
  const SaturatingCount products = SaturatingCount(shapeOf(getWeight()).back()) * 2 - 1;
  cost.matrixFlops = (products * elements(getResult())).getValue();
  cost.vectorFlops = (SaturatingCount(elements(getResult())) * (getBias() ? 3 : 2)).getValue();
  return cost;
}
