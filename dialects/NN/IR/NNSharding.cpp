//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The sharding rule of every operation: its dimensions as factors (ShardingRule.h).
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::GroupAttr;
using braid::comm::OnShards;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

/// Names of an activation's leading dimensions; the operation names the last one.
static std::string leadingName(size_t d, size_t count) {
  if (d == 0 && count > 0)
    return "batch";
  return count == 2 ? "seq" : "dim" + std::to_string(d);
}

/// One parallel factor per dimension of `shape`.
static TensorFactors addLeading(ShardingRule &rule, ArrayRef<int64_t> shape) {
  TensorFactors factors;
  for (auto [d, size] : llvm::enumerate(shape))
    factors.push_back({rule.addFactor(leadingName(d, shape.size()), size)});
  return factors;
}

static TensorFactors operator+(TensorFactors factors, int64_t last) {
  factors.push_back({last});
  return factors;
}

ShardingRule EmbeddingOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors ids = addLeading(rule, shapeOf(getIds()));
  // Exactly one rank has the row of an id; the others add zeros.
  int64_t vocabulary = rule.addFactor("vocab", shapeOf(getTable())[0],
                                      getGroup() ? FactorKind::Replicated : FactorKind::Reduction);
  int64_t hidden = rule.addFactor("hidden", shapeOf(getTable())[1]);
  rule.operands = {ids, {{vocabulary}, {hidden}}};
  rule.results = {ids + hidden};
  rule.linearIn = {1};
  return rule;
}

ShardingRule PositionIdsOp::getShardingRule() {
  ShardingRule rule;
  int64_t batch = rule.addFactor("batch", shapeOf(getIds())[0]);
  // Earlier tokens determine the position.
  int64_t seq = rule.addFactor("seq", shapeOf(getIds())[1], FactorKind::Replicated);
  rule.operands = rule.results = {{{batch}, {seq}}};
  return rule;
}

FailureOr<SmallVector<Value>> EmbeddingOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                                      TypeRange resultTypes, GroupAttr partial) {
  return SmallVector<Value>{EmbeddingOp::create(builder, getLoc(), resultTypes[0], operands[0],
                                                operands[1], getRowsAttr(),
                                                partial ? partial : getGroupAttr(), getRoleAttr())};
}

ShardingRule LinearOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors rows = addLeading(rule, shapeOf(getInput()).drop_back());
  int64_t out = rule.addFactor("out", shapeOf(getWeight())[0]);
  int64_t in = rule.addFactor("in", shapeOf(getWeight())[1], FactorKind::Reduction);
  rule.operands = {rows + in, {{out}, {in}}};
  rule.results = {rows + out};
  rule.linearIn = {0, 1};
  return rule;
}

/// [batch, seq, heads * head_dim] and [batch, seq, heads, head_dim]; either may be the operand.
static ShardingRule headsRule(ArrayRef<int64_t> split, TensorFactors &merged,
                              TensorFactors &heads) {
  ShardingRule rule;
  TensorFactors rows = addLeading(rule, split.take_front(2));
  int64_t head = rule.addFactor("head", split[2]);
  int64_t dim = rule.addFactor("head_dim", split[3]);
  merged = rows;
  merged.push_back({head, dim});
  heads = rows + head + dim;
  rule.linear = true;
  rule.partialOperands = {0};
  return rule;
}

ShardingRule SplitHeadsOp::getShardingRule() {
  TensorFactors merged, heads;
  ShardingRule rule = headsRule(shapeOf(getResult()), merged, heads);
  rule.operands = {merged};
  rule.results = {heads};
  return rule;
}

ShardingRule MergeHeadsOp::getShardingRule() {
  TensorFactors merged, heads;
  ShardingRule rule = headsRule(shapeOf(getInput()), merged, heads);
  rule.operands = {heads};
  rule.results = {merged};
  return rule;
}

ShardingRule AttentionOp::getShardingRule() {
  ShardingRule rule;
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey());
  int64_t batch = rule.addFactor("batch", query[0]);
  // A query's position decides which keys it may attend to, and softmax runs over all keys, so both
  // sequences stay replicated.
  int64_t q = rule.addFactor("seq_q", query[1], FactorKind::Replicated);
  int64_t k = rule.addFactor("seq_k", key[1], FactorKind::Replicated);
  if (!getCausal() || getPositionOffset())
    rule.factors[q].onShards = OnShards::Shard;
  int64_t head = rule.addFactor("kv_head", key[2]);
  // Ranks that split a group would share its key head, and a sharding cannot express that some
  // ranks share a head. Groups are therefore not split.
  int64_t group = rule.addFactor("group", query[2] / key[2], FactorKind::Replicated);
  int64_t dim = rule.addFactor("head_dim", query[3], FactorKind::Replicated);
  int64_t valueDim = rule.addFactor("value_dim", shapeOf(getValue())[3]);
  rule.operands = {{{batch}, {q}, {head, group}, {dim}},
                   {{batch}, {k}, {head}, {dim}},
                   {{batch}, {k}, {head}, {valueDim}}};
  if (getMask())
    rule.operands.push_back({{batch}, {k}});
  if (getValidLength())
    rule.operands.push_back({{batch}});
  if (getPositionOffset())
    rule.operands.push_back({{batch}});
  rule.results = {{{batch}, {q}, {head, group}, {valueDim}}};
  if (getLogSum())
    rule.results.push_back({{batch}, {q}, {head, group}});
  else // the sums do not depend on the values
    rule.linearIn = {2};
  return rule;
}

ShardingRule LayerNormOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors rows = addLeading(rule, shapeOf(getInput()).drop_back());
  int64_t hidden = rule.addFactor("hidden", shapeOf(getInput()).back(), FactorKind::Replicated);
  rule.operands = {rows + hidden, {{hidden}}, {{hidden}}};
  rule.results = {rows + hidden};
  return rule;
}

ShardingRule RmsNormOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors rows = addLeading(rule, shapeOf(getInput()).drop_back());
  int64_t hidden = rule.addFactor("hidden", shapeOf(getInput()).back(), FactorKind::Replicated);
  rule.operands = {rows + hidden, {{hidden}}};
  rule.results = {rows + hidden};
  return rule;
}

ShardingRule SoftmaxOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors rows = addLeading(rule, shapeOf(getInput()).drop_back());
  int64_t normalized =
      rule.addFactor("normalized", shapeOf(getInput()).back(), FactorKind::Replicated);
  rule.operands = {rows + normalized};
  rule.results = {rows + normalized};
  return rule;
}

ShardingRule TopKOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors rows = addLeading(rule, shapeOf(getInput()).drop_back());
  // Which elements are the largest depends on all elements of the row.
  int64_t choices = rule.addFactor("choices", shapeOf(getInput()).back(), FactorKind::Replicated);
  int64_t chosen = rule.addFactor("chosen", shapeOf(getValues()).back(), FactorKind::Replicated);
  rule.operands = {rows + choices};
  rule.results = {rows + chosen, rows + chosen};
  return rule;
}

ShardingRule LastTokenOp::getShardingRule() {
  ShardingRule rule;
  ArrayRef<int64_t> shape = shapeOf(getInput());
  int64_t batch = rule.addFactor("batch", shape[0]), hidden = rule.addFactor("hidden", shape[2]);
  // The position of the last token depends on all elements of the mask's row.
  int64_t seq = rule.addFactor("seq", shape[1], FactorKind::Replicated);
  int64_t last = rule.addFactor("last", 1, FactorKind::Replicated);
  rule.operands = {{{batch}, {seq}, {hidden}}, {{batch}, {seq}}};
  rule.results = {{{batch}, {last}, {hidden}}};
  rule.linear = true;
  rule.partialOperands = {0};
  return rule;
}

/// One parallel factor per dimension; the last is "hidden".
static TensorFactors elementwise(ShardingRule &rule, ArrayRef<int64_t> shape) {
  if (shape.empty())
    return {};
  TensorFactors factors = addLeading(rule, shape.drop_back());
  return factors + rule.addFactor("hidden", shape.back());
}

ShardingRule ActivationOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors all = elementwise(rule, shapeOf(getInput()));
  rule.operands = {all};
  rule.results = {all};
  return rule;
}

ShardingRule AddOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors all = elementwise(rule, shapeOf(getLhs()));
  rule.operands = {all, TensorFactors(ArrayRef(all).take_back(shapeOf(getRhs()).size()))};
  rule.results = {all};
  rule.linear = true;
  rule.partialOperands = {0, 1};
  rule.sum = shapeOf(getLhs()) == shapeOf(getRhs());
  return rule;
}

ShardingRule MulOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors all = elementwise(rule, shapeOf(getLhs()));
  rule.operands = {all, TensorFactors(ArrayRef(all).take_back(shapeOf(getRhs()).size()))};
  rule.results = {all};
  // A multiplication distributes over one partial sum, but not over two.
  rule.linear = true;
  rule.partialOperands = {0};
  rule.linearIn = {0, 1};
  return rule;
}
