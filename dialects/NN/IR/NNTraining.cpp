//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Operations for training: verifiers, sharding rules and costs.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

//===----------------------------------------------------------------------===//
// nn.iota
//===----------------------------------------------------------------------===//

ShardingRule IotaOp::getShardingRule() {
  ShardingRule rule;
  // The operation is built unpartitioned and then sliced, since a rank's shard does not begin at 0.
  rule.results = {{{rule.addFactor("position", elements(getResult()), FactorKind::Replicated)}}};
  return rule;
}

OpCost IotaOp::getCost() {
  OpCost cost;
  cost.bytesWritten = bytes(getResult());
  return cost;
}

//===----------------------------------------------------------------------===//
// nn.dropout
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getInput());
  if (shape.empty() || shape.size() > 3 || getPositions().size() != shape.size())
    return emitOpError("expects 1 to 3 dimensions with positions for each, got ")
           << shape.size() << " and " << getPositions().size() << " [nn.dropout_c1]";
  for (auto [d, positions] : llvm::enumerate(getPositions()))
    if (elements(positions) != shape[d])
      return emitOpError("expects ") << shape[d] << " positions for dimension " << d << ", got "
                                     << elements(positions) << " [nn.dropout_c2]";
  if (double rate = getRate().convertToDouble(); !(rate >= 0 && rate < 1)) {
    SmallString<16> got;
    getRate().toString(got);
    return emitOpError("expects 'rate' in [0, 1), got ") << got << " [nn.dropout_c3]";
  }
  return success();
}

ShardingRule DropoutOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input;
  rule.operands = {{}};
  for (auto [d, size] : llvm::enumerate(shapeOf(getInput()))) {
    input.push_back({rule.addFactor("dim" + std::to_string(d), size)});
    rule.operands.push_back({input.back()});
  }
  rule.operands.front() = input;
  rule.operands.push_back({}); // the seed
  rule.results = {input};
  // All ranks set the same elements of their partial sums to zero.
  rule.linear = true;
  rule.partialOperands = {0};
  return rule;
}

OpCost DropoutOp::getCost() {
  OpCost cost;
  // A comparison and a multiplication per element; the generator's integer operations are not
  // counted.
  cost.vectorFlops = 2 * elements(getInput());
  cost.bytesRead = bytes(getInput()) + bytes(getSeed());
  for (Value positions : getPositions())
    cost.bytesRead += bytes(positions);
  cost.bytesWritten = bytes(getResult());
  // The dropped elements are recomputed.
  cost.bytesSaved = bytes(getSeed());
  return cost;
}

//===----------------------------------------------------------------------===//
// nn.cross_entropy
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::verify() {
  ArrayRef<int64_t> logits = shapeOf(getLogits());
  if (logits.empty())
    return emitOpError("expects logits with a dimension of classes, got ")
           << getLogits().getType() << " [nn.cross_entropy_c1]";
  if (failed(verifyShape(*this, "labels", logits.drop_back(), shapeOf(getLabels()),
                         "nn.cross_entropy_c1")) ||
      failed(verifyShape(*this, "a result", shapeOf(getLabels()), shapeOf(getResult()),
                         "nn.cross_entropy_c2")))
    return failure();
  return verifySameElementType(*this, {getLogits(), getResult()}, "nn.cross_entropy_c2");
}

ShardingRule CrossEntropyOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors labels;
  for (auto [d, size] : llvm::enumerate(shapeOf(getLabels())))
    labels.push_back({rule.addFactor(d == 0 ? "batch" : "dim" + std::to_string(d), size)});
  TensorFactors logits = labels;
  logits.push_back({rule.addFactor("class", shapeOf(getLogits()).back(), FactorKind::Replicated)});
  rule.operands = {logits, labels};
  rule.results = {labels};
  return rule;
}

OpCost CrossEntropyOp::getCost() {
  OpCost cost;
  // Per logit: maximum, difference, exp, sum; per label: logarithm, the maximum added, the label's
  // logit subtracted.
  cost.vectorFlops = 4 * elements(getLogits()) + 3 * elements(getLabels());
  cost.bytesRead = bytes(getLogits()) + bytes(getLabels());
  cost.bytesWritten = bytes(getResult());
  // The probabilities are recomputed from the logits and the logarithm of the sum (f32).
  cost.bytesSaved = cost.bytesRead + 4 * elements(getLabels());
  return cost;
}
