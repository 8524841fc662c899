//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Mixtures of experts: verifiers, costs and sharding rules.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

//===----------------------------------------------------------------------===//
// nn.router
//===----------------------------------------------------------------------===//

LogicalResult RouterOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto logits = dyn_cast<RankedTensorType>(adaptor.getLogits().getType());
  if (!logits || logits.getRank() != 3)
    return emitOptionalError(location, "expects logits of rank 3, got ",
                             adaptor.getLogits().getType());
  auto top = static_cast<int64_t>(adaptor.getTop());
  if (top < 1 || top > logits.getDimSize(2))
    return emitOptionalError(location, "'nn.router' op expects 'top' in [1, ", logits.getDimSize(2),
                             "], got ", top, " [nn.router_c1]");
  int64_t groups = logits.getDimSize(0), tokens = logits.getDimSize(1);
  Type integer = IntegerType::get(context, 32);
  auto chosen = RankedTensorType::get({groups, tokens, top}, integer);
  types.append({RankedTensorType::get(chosen.getShape(), logits.getElementType()), chosen, chosen,
                RankedTensorType::get({groups, logits.getDimSize(2)}, integer)});
  return success();
}

LogicalResult RouterOp::verify() {
  if (auto capacity = static_cast<int64_t>(getCapacity()); capacity < 1)
    return emitOpError("expects 'capacity' to be at least 1, got ")
           << capacity << " [nn.router_c2]";
  return success();
}

ShardingRule RouterOp::getShardingRule() {
  ShardingRule rule;
  ArrayRef<int64_t> shape = shapeOf(getLogits());
  int64_t group = rule.addFactor("group", shape[0]);
  // A token's slot depends on the tokens before it, and its experts on the logits of all experts.
  int64_t token = rule.addFactor("token", shape[1], FactorKind::Replicated);
  int64_t expert = rule.addFactor("expert", shape[2], FactorKind::Replicated);
  int64_t choice = rule.addFactor("choice", static_cast<int64_t>(getTop()), FactorKind::Replicated);
  TensorFactors chosen{{group}, {token}, {choice}};
  rule.operands = {{{group}, {token}, {expert}}};
  rule.results = {chosen, chosen, chosen, {{group}, {expert}}};
  return rule;
}

OpCost RouterOp::getCost() {
  OpCost cost;
  // Softmax: five operations per logit (see nn.softmax); a comparison per logit and choice; per
  // normalized weight a sum and a division.
  SaturatingCount logits = elements(getLogits());
  cost.vectorFlops = (logits * (5 + static_cast<int64_t>(getTop())) +
                      (getNormalized() ? 2 * elements(getWeights()) : 0))
                         .getValue();
  cost.bytesRead = bytes(getLogits());
  cost.bytesWritten =
      bytes(getWeights()) + bytes(getExperts()) + bytes(getSlots()) + bytes(getCounts());
  cost.bytesSaved = bytes(getLogits()) + bytes(getExperts());
  return cost;
}

//===----------------------------------------------------------------------===//
// nn.dispatch
//===----------------------------------------------------------------------===//

LogicalResult DispatchOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), experts = shapeOf(getExperts()),
                    result = shapeOf(getResult());
  if (failed(verifyShape(*this, "experts and slots", {input[0], input[1], experts[2]}, experts,
                         "nn.dispatch_c1")) ||
      failed(verifyShape(*this, "a result", {input[0], result[1], result[2], input[2]}, result,
                         "nn.dispatch_c2")))
    return failure();
  return verifySameElementType(*this, {getInput(), getResult()}, "nn.dispatch_c3");
}

/// The factors of operations that move rows between tokens and blocks.
namespace {
struct RowFactors {
  TensorFactors tokens, chosen, blocks;
};
} // namespace

static RowFactors addRowFactors(ShardingRule &rule, Value tokens, Value experts, Value blocks,
                                FactorKind tokenKind) {
  ArrayRef<int64_t> shape = shapeOf(blocks);
  int64_t group = rule.addFactor("group", shape[0]);
  int64_t token = rule.addFactor("token", shapeOf(tokens)[1], tokenKind);
  int64_t choice = rule.addFactor("choice", shapeOf(experts)[2], FactorKind::Replicated);
  // Experts and slots index the unpartitioned block.
  int64_t expert = rule.addFactor("expert", shape[1], FactorKind::Replicated);
  int64_t slot = rule.addFactor("slot", shape[2], FactorKind::Replicated);
  int64_t hidden = rule.addFactor("hidden", shape[3]);
  return {{{group}, {token}, {hidden}},
          {{group}, {token}, {choice}},
          {{group}, {expert}, {slot}, {hidden}}};
}

ShardingRule DispatchOp::getShardingRule() {
  ShardingRule rule;
  // With sharded tokens every rank would have a partial sum of all blocks. Blocks are larger than
  // the tokens, so the tokens are gathered before.
  RowFactors rows =
      addRowFactors(rule, getInput(), getExperts(), getResult(), FactorKind::Replicated);
  rule.operands = {rows.tokens, rows.chosen, rows.chosen};
  rule.results = {rows.blocks};
  rule.linear = true;
  rule.partialOperands = {0};
  return rule;
}

OpCost DispatchOp::getCost() {
  OpCost cost;
  cost.bytesRead = bytes(getInput()) + bytes(getExperts()) + bytes(getSlots());
  cost.bytesWritten = bytes(getResult());
  cost.bytesSaved = bytes(getExperts()) + bytes(getSlots());
  return cost;
}

//===----------------------------------------------------------------------===//
// nn.combine
//===----------------------------------------------------------------------===//

LogicalResult CombineOp::verify() {
  ArrayRef<int64_t> blocks = shapeOf(getBlocks()), weights = shapeOf(getWeights());
  if (failed(verifyShape(*this, "weights", {blocks[0], weights[1], weights[2]}, weights,
                         "nn.combine_c1")) ||
      failed(verifyShape(*this, "experts and slots", weights, shapeOf(getExperts()),
                         "nn.combine_c1")) ||
      failed(verifyShape(*this, "a result", {blocks[0], weights[1], blocks[3]},
                         shapeOf(getResult()), "nn.combine_c2")))
    return failure();
  return verifySameElementType(*this, {getBlocks(), getWeights(), getResult()}, "nn.combine_c3");
}

ShardingRule CombineOp::getShardingRule() {
  ShardingRule rule;
  RowFactors rows =
      addRowFactors(rule, getResult(), getExperts(), getBlocks(), FactorKind::Parallel);
  rule.operands = {rows.blocks, rows.chosen, rows.chosen, rows.chosen};
  rule.results = {rows.tokens};
  rule.linearIn = {0, 1};
  rule.linear = true;
  rule.partialOperands = {0};
  return rule;
}

OpCost CombineOp::getCost() {
  OpCost cost;
  // A multiplication and an addition per choice and element.
  SaturatingCount choices = shapeOf(getWeights())[2];
  cost.vectorFlops = (choices * 2 * elements(getResult())).getValue();
  // Only the chosen rows of the blocks are read.
  SaturatingCount rows = choices * bytes(getResult());
  cost.bytesRead =
      (rows + bytes(getWeights()) + bytes(getExperts()) + bytes(getSlots())).getValue();
  cost.bytesWritten = bytes(getResult());
  cost.bytesSaved =
      bytes(getBlocks()) + bytes(getWeights()) + bytes(getExperts()) + bytes(getSlots());
  return cost;
}
