//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sharding rules as text: one bracket for each dimension with its factors, then the kinds of the
// factors that are not parallel.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace braid::comm;
using namespace braid::nn;
using namespace braid::nn::testing;

namespace {

std::string text(const ShardingRule &rule) {
  std::string result;
  auto tensors = [&](ArrayRef<TensorFactors> list) {
    for (const TensorFactors &tensor : list) {
      result += &tensor == list.begin() ? "" : ", ";
      for (const DimFactors &dim : tensor) {
        result += "[";
        for (int64_t factor : dim)
          result += (result.back() == '[' ? "" : " ") + rule.factors[factor].name;
        result += "]";
      }
    }
  };
  tensors(rule.operands);
  result += " -> ";
  tensors(rule.results);
  for (const Factor &factor : rule.factors)
    if (factor.kind != FactorKind::Parallel)
      result += "; " + factor.name +
                (factor.kind == FactorKind::Replicated ? " replicated"
                 : factor.reduce == ReduceKind::Sum
                     ? " reduced"
                     : " reduced by " + stringifyReduceKind(factor.reduce).str());
  for (int64_t i : rule.completeResults)
    result += "; result " + std::to_string(i) + " complete";
  return result + (rule.linear ? "; linear" : "");
}

/// Returns the rule as text, after checking that the product of a dimension's factors is its size.
std::string ruleOf(const std::string &arguments, const std::string &body) {
  Context context;
  auto module = parse(context, arguments, body);
  if (!module)
    return "bad module";
  auto op = first<ShardingRuleOpInterface>(*module);
  ShardingRule rule = op.getShardingRule();
  auto check = [&](ValueRange values, ArrayRef<TensorFactors> factors) {
    ASSERT_EQ(values.size(), factors.size());
    for (auto [value, tensor] : llvm::zip_equal(values, factors)) {
      ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
      ASSERT_EQ(shape.size(), tensor.size());
      for (auto [size, dim] : llvm::zip_equal(shape, tensor)) {
        int64_t product = 1;
        for (int64_t factor : dim)
          product *= rule.factors[factor].size;
        EXPECT_EQ(product, size);
      }
    }
  };
  check(op->getOperands(), rule.operands);
  check(op->getResults(), rule.results);
  return text(rule);
}

TEST(ShardingRule, Embedding) {
  EXPECT_EQ(
      ruleOf("%i: tensor<2x3xi64>, %t: tensor<10x4xf32>",
             "%0 = nn.embedding %i, %t : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xf32>"),
      "[batch][seq], [vocab][hidden] -> [batch][seq][hidden]; vocab reduced");
}

TEST(ShardingRule, Matmul) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>",
                   "%0 = nn.matmul %x, %w : tensor<2x3x4xf32>, tensor<4x5xf32> -> "
                   "tensor<2x3x5xf32>"),
            "[batch][rows][in], [in][out] -> [batch][rows][out]; in reduced");
  EXPECT_EQ(ruleOf("%x: tensor<2x4x3xf32>, %w: tensor<2x5x4xf32>",
                   "%0 = nn.matmul %x transposed, %w transposed : tensor<2x4x3xf32>, "
                   "tensor<2x5x4xf32> -> tensor<2x3x5xf32>"),
            "[batch][in][rows], [batch][out][in] -> [batch][rows][out]; in reduced");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %w: tensor<2x4x5xf32>, %n: tensor<2xi32>",
                   "%0 = nn.matmul %x, %w counts %n : tensor<2xi32> : tensor<2x3x4xf32>, "
                   "tensor<2x4x5xf32> -> tensor<2x3x5xf32>"),
            "[group][rows][in], [group][in][out], [group] -> [group][rows][out]; rows replicated; "
            "in reduced");
  EXPECT_EQ(ruleOf("%x: tensor<4xf32>, %w: tensor<4x5xf32>, %a: tensor<5xf32>",
                   "%0 = nn.matmul %x, %w plus %a : tensor<5xf32> : tensor<4xf32>, tensor<4x5xf32> "
                   "-> tensor<5xf32>"),
            "[in], [in][out], [out] -> [out]; in replicated");
}

TEST(ShardingRule, AttentionWithLogSum) {
  EXPECT_EQ(ruleOf("%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>",
                   "%0, %1 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, "
                   "tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>, "
                   "tensor<2x3x4xf32>"),
            "[batch][seq_q][kv_head group][head_dim], [batch][seq_k][kv_head][head_dim], "
            "[batch][seq_k][kv_head][value_dim] -> [batch][seq_q][kv_head group][value_dim], "
            "[batch][seq_q][kv_head group]; seq_q replicated; seq_k replicated; group replicated; "
            "head_dim replicated");
}

TEST(ShardingRule, MapWithRows) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %w: tensor<4xf32>, %m: tensor<2x3xf32>",
                   "%0 = nn.map %x, %w rows(%m) : tensor<2x3x4xf32>, tensor<4xf32> "
                   "rows(tensor<2x3xf32>) -> tensor<2x3x4xf32> {\n"
                   "^bb0(%a: f32, %b: f32, %c: f32):\nnn.yield %a : f32\n}"),
            "[dim0][dim1][dim2], [dim2], [dim0][dim1] -> [dim0][dim1][dim2]");
}

TEST(ShardingRule, Reduce) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>",
                   "%0 = nn.reduce sum %x dims [0, 1] : tensor<2x3x4xf32> -> tensor<4xf32>"),
            "[dim0][dim1][dim2] -> [dim2]; dim0 reduced; dim1 reduced; linear");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>",
                   "%0 = nn.reduce max %x dims [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>"),
            "[dim0][dim1][dim2] -> [dim0][dim1]; dim2 reduced by max");
  // buildLocal reduces the maximum; the sum is left.
  EXPECT_EQ(ruleOf("%x: tensor<2x3xf32>",
                   "%0, %1 = nn.reduce max %x dims [1] : tensor<2x3xf32> -> tensor<2xf32>, "
                   "tensor<2xf32>"),
            "[dim0][dim1] -> [dim0], [dim0]; dim1 reduced; result 0 complete");
}

TEST(ShardingRule, Linear) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>",
                   "%0 = nn.linear %x, %w : tensor<2x3x4xf32>, tensor<5x4xf32> -> "
                   "tensor<2x3x5xf32>"),
            "[batch][seq][in], [out][in] -> [batch][seq][out]; in reduced");
  EXPECT_EQ(ruleOf("%x: tensor<4xf32>, %w: tensor<5x4xf32>",
                   "%0 = nn.linear %x, %w : tensor<4xf32>, tensor<5x4xf32> -> tensor<5xf32>"),
            "[in], [out][in] -> [out]; in reduced");
}

TEST(ShardingRule, Heads) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x8xf32>",
                   "%0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>"),
            "[batch][seq][head head_dim] -> [batch][seq][head][head_dim]; linear");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x2x4xf32>",
                   "%0 = nn.merge_heads %x : tensor<2x3x2x4xf32> -> tensor<2x3x8xf32>"),
            "[batch][seq][head][head_dim] -> [batch][seq][head head_dim]; linear");
}

TEST(ShardingRule, Parts) {
  EXPECT_EQ(ruleOf("%x: tensor<2x9x4xf32>",
                   "%0 = nn.slice %x dim 1 from 3 size 5 : tensor<2x9x4xf32> -> tensor<2x5x4xf32>"),
            "[batch][sliced][dim2] -> [batch][slice][dim2]; sliced replicated; slice replicated; "
            "linear");
  EXPECT_EQ(ruleOf("%x: tensor<2x9xi64>, %y: tensor<3x9xi64>",
                   "%0 = nn.concat %x, %y, %x dim 0 : tensor<2x9xi64>, tensor<3x9xi64>, "
                   "tensor<2x9xi64> -> tensor<7x9xi64>"),
            "[part0][dim1], [part1][dim1], [part2][dim1] -> [all][dim1]; part0 replicated; part1 "
            "replicated; part2 replicated; all replicated; linear");
}

TEST(ShardingRule, Attention) {
  EXPECT_EQ(ruleOf("%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x6xf32>, %m: "
                   "tensor<2x5xi64>, "
                   "%l: tensor<2xi64>, %o: tensor<2xi32>",
                   "%0 = nn.attention causal %q, %k, %v mask %m : tensor<2x5xi64> valid_length %l "
                   ": tensor<2xi64> "
                   "position_offset %o : tensor<2xi32> scale 0.25 : tensor<2x3x4x8xf32>, "
                   "tensor<2x5x2x8xf32>, "
                   "tensor<2x5x2x6xf32> -> tensor<2x3x4x6xf32>"),
            "[batch][seq_q][kv_head group][head_dim], [batch][seq_k][kv_head][head_dim], "
            "[batch][seq_k][kv_head][value_dim], [batch][seq_k], [batch], [batch] -> "
            "[batch][seq_q][kv_head group][value_dim]; seq_q replicated; seq_k replicated; group "
            "replicated; "
            "head_dim replicated");
}

TEST(ShardingRule, Append) {
  EXPECT_EQ(ruleOf("%x: tensor<2x1x4xf32>, %c: tensor<2x64x4xf32>, %p: tensor<2xi32>",
                   "%0 = nn.append %x to %c dim 1 at %p : tensor<2x1x4xf32>, tensor<2x64x4xf32>, "
                   "tensor<2xi32>"),
            "[batch][appended][dim2], [batch][capacity][dim2], [batch] -> "
            "[batch][capacity][dim2]; capacity replicated; appended replicated");
}

TEST(ShardingRule, Rows) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %w: tensor<4xf32>",
                   "%0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<2x3x4xf32>, "
                   "tensor<4xf32>, tensor<4xf32> -> "
                   "tensor<2x3x4xf32>"),
            "[batch][seq][hidden], [hidden], [hidden] -> [batch][seq][hidden]; hidden replicated");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>", "%0 = nn.activation gelu %x : tensor<2x3x4xf32>"),
            "[batch][seq][hidden] -> [batch][seq][hidden]");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %y: tensor<3x4xf32>",
                   "%0 = nn.add %x, %y : tensor<2x3x4xf32>, tensor<3x4xf32> -> tensor<2x3x4xf32>"),
            "[batch][seq][hidden], [seq][hidden] -> [batch][seq][hidden]; linear");
}

TEST(ShardingRule, DecoderRows) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %w: tensor<4xf32>",
                   "%0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32> -> "
                   "tensor<2x3x4xf32>"),
            "[batch][seq][hidden], [hidden] -> [batch][seq][hidden]; hidden replicated");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>", "%0 = nn.activation silu %x : tensor<2x3x4xf32>"),
            "[batch][seq][hidden] -> [batch][seq][hidden]");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>", "%0 = nn.softmax %x : tensor<2x3x4xf32>"),
            "[batch][seq][normalized] -> [batch][seq][normalized]; normalized replicated");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %y: tensor<3x4xf32>",
                   "%0 = nn.mul %x, %y : tensor<2x3x4xf32>, tensor<3x4xf32> -> tensor<2x3x4xf32>"),
            "[batch][seq][hidden], [seq][hidden] -> [batch][seq][hidden]; linear");
}

TEST(ShardingRule, PositionIds) {
  EXPECT_EQ(ruleOf("%i: tensor<2x3xi64>", "%0 = nn.position_ids %i padding 1 : tensor<2x3xi64>"),
            "[batch][seq] -> [batch][seq]; seq replicated");
}

TEST(ShardingRule, LastToken) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x4xf32>, %m: tensor<2x3xi64>",
                   "%0 = nn.last_token %x mask %m : tensor<2x3x4xf32>, tensor<2x3xi64> -> "
                   "tensor<2x1x4xf32>"),
            "[batch][seq][hidden], [batch][seq] -> [batch][last][hidden]; seq replicated; last "
            "replicated; "
            "linear");
}

TEST(ShardingRule, Rotary) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x5x8xf32>, %t: tensor<2x3x4xf32>",
                   "%0 = nn.rotary %x, %t, %t : tensor<2x3x5x8xf32>, tensor<2x3x4xf32>"),
            "[batch][seq][head][half pair], [batch][seq][pair], [batch][seq][pair] -> "
            "[batch][seq][head][half pair]; half replicated; pair replicated; linear");
  EXPECT_EQ(ruleOf("%o: tensor<2xi64>",
                   "%0, %1 = nn.rotary_table [1.0, 0.5] position_offset %o : tensor<2xi64> : "
                   "tensor<2x3x2xf32>"),
            "[batch] -> [batch][seq][pair], [batch][seq][pair]; seq replicated; pair replicated");
}

TEST(ShardingRule, Experts) {
  const std::string chosen = "tensor<2x3x2xi32>";
  EXPECT_EQ(ruleOf("%l: tensor<2x3x4xf32>",
                   "%w, %e, %s, %c = nn.router %l top 2 capacity 5 : tensor<2x3x4xf32>"),
            "[group][token][expert] -> [group][token][choice], [group][token][choice], "
            "[group][token][choice], [group][expert]; token replicated; expert replicated; choice "
            "replicated");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x8xf32>, %e: " + chosen,
                   "%0 = nn.dispatch %x, %e, %e : tensor<2x3x8xf32>, " + chosen +
                       " -> tensor<2x4x5x8xf32>"),
            "[group][token][hidden], [group][token][choice], [group][token][choice] -> "
            "[group][expert][slot][hidden]; token replicated; choice replicated; expert "
            "replicated; slot replicated; "
            "linear");
  EXPECT_EQ(ruleOf("%b: tensor<2x4x5x8xf32>, %w: tensor<2x3x2xf32>, %e: " + chosen,
                   "%0 = nn.combine %b, %w, %e, %e : tensor<2x4x5x8xf32>, tensor<2x3x2xf32>, " +
                       chosen + " -> tensor<2x3x8xf32>"),
            "[group][expert][slot][hidden], [group][token][choice], [group][token][choice], "
            "[group][token][choice] -> [group][token][hidden]; choice replicated; expert "
            "replicated; slot "
            "replicated; linear");
}

TEST(ShardingRule, Training) {
  EXPECT_EQ(ruleOf("", "%0 = nn.iota : tensor<8xi64>"), " -> [position]; position replicated");
  EXPECT_EQ(ruleOf("%x: tensor<2x3xf32>, %i: tensor<2xi64>, %j: tensor<3xi64>, %s: tensor<i64>",
                   "%0 = nn.dropout %x at (%i, %j : tensor<2xi64>, tensor<3xi64>) seed %s : "
                   "tensor<i64> rate 0.5 : tensor<2x3xf32>"),
            "[dim0][dim1], [dim0], [dim1],  -> [dim0][dim1]; linear");
  EXPECT_EQ(ruleOf("%x: tensor<2x3x8xf32>, %l: tensor<2x3xi64>",
                   "%0 = nn.cross_entropy %x, %l : tensor<2x3x8xf32>, tensor<2x3xi64> -> "
                   "tensor<2x3xf32>"),
            "[batch][dim1][class], [batch][dim1] -> [batch][dim1]; class replicated");
}

} // namespace
