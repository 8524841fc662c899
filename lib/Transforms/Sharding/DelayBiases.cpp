//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Passes.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_DELAYBIASES
#include "braid/Transforms/Passes.h.inc"

namespace {

bool isSum(nn::AddOp add) { return add.getLhs().getType() == add.getRhs().getType(); }

/// The addition of a vector to `value` that is its only user.
nn::AddOp biased(Value value) {
  auto add = value.getDefiningOp<nn::AddOp>();
  return add && add->hasOneUse() && !isSum(add) && add.getRhs().getType().getRank() == 1
             ? add
             : nn::AddOp();
}

/// Whether `value` may be partial over the ranks: a matmul, perhaps with a bias, or a sum of such
/// values, each with one user.
bool isSumOfMatmuls(Value value) {
  while (nn::AddOp add = biased(value))
    value = add.getLhs();
  if (!value.hasOneUse())
    return false;
  auto sum = value.getDefiningOp<nn::AddOp>();
  return value.getDefiningOp<nn::LinearOp>() ||
         (sum && isSum(sum) && isSumOfMatmuls(sum.getLhs()) && isSumOfMatmuls(sum.getRhs()));
}

struct DelayBias : OpRewritePattern<nn::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::AddOp sum, PatternRewriter &rewriter) const override {
    if (!isSum(sum) || !isSumOfMatmuls(sum.getLhs()) || !isSumOfMatmuls(sum.getRhs()))
      return rewriter.notifyMatchFailure(sum, "is no sum of matmuls");
    nn::AddOp right = biased(sum.getRhs()), bias = right ? right : biased(sum.getLhs());
    if (!bias)
      return rewriter.notifyMatchFailure(sum, "has no term with a bias");
    if (!sum->getDiscardableAttrs().empty() || !bias->getDiscardableAttrs().empty())
      return rewriter.notifyMatchFailure(sum, "is stated to be sharded as it is");
    Value lhs = right ? sum.getLhs() : bias.getLhs(), rhs = right ? bias.getLhs() : sum.getRhs();
    Value unbiased = nn::AddOp::create(rewriter, sum.getLoc(), sum.getType(), lhs, rhs);
    rewriter.replaceOp(
        sum, nn::AddOp::create(rewriter, bias.getLoc(), sum.getType(), unbiased, bias.getRhs()));
    rewriter.eraseOp(bias);
    return success();
  }
};

struct DelayBiases : impl::DelayBiasesBase<DelayBiases> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DelayBias>(&getContext());
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false).setRegionSimplificationLevel(
        GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace braid
