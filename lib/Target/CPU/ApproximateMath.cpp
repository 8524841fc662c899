//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace braid::cpu {
#define GEN_PASS_DEF_CPUAPPROXIMATEMATH
#include "braid/Target/CPU/Passes.h.inc"
} // namespace braid::cpu

using namespace mlir;

namespace {
/// erf(x) as x * P(x^2) / Q(x^2), P and Q of degree 5, with x^2 no larger than 13.69: beyond, the
/// quotient is past 1 and is cut there, so that infinities give 1 exactly. Without the pieces of
/// MLIR's own approximation, between which it must select for every coefficient. Least maximum of
/// the relative error on [-3.7, 3.7]; with rounding 3e-7.
struct ApproximateErf : OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ErfOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "expects f32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto constant = [&](float value) -> Value {
      TypedAttr attribute = b.getF32FloatAttr(value);
      if (auto shaped = dyn_cast<ShapedType>(type))
        attribute = DenseElementsAttr::get(shaped, value);
      return arith::ConstantOp::create(b, attribute);
    };
    // A NaN is neither smaller nor larger and stays.
    auto clamp = [&](arith::CmpFPredicate outside, Value x, Value bound) -> Value {
      Value isOutside = arith::CmpFOp::create(b, outside, x, bound);
      return arith::SelectOp::create(b, isOutside, bound, x);
    };
    Value x = op.getOperand();
    Value square =
        clamp(arith::CmpFPredicate::OGT, arith::MulFOp::create(b, x, x), constant(13.69f));
    auto polynomial = [&](ArrayRef<float> coefficients) {
      Value value = constant(coefficients.front());
      for (float coefficient : coefficients.drop_front())
        value = math::FmaOp::create(b, value, square, constant(coefficient));
      return value;
    };
    Value numerator = polynomial({3.91732237e-06f, 0.000505312812f, 0.0061482517f, 0.0910491049f,
                                  0.320791274f, 1.97466362f});
    Value denominator = polynomial(
        {7.03871337e-05f, 0.00195721188f, 0.0253150295f, 0.194901451f, 0.867626727f, 1.75000012f});
    Value quotient = arith::DivFOp::create(b, arith::MulFOp::create(b, x, numerator), denominator);
    quotient = clamp(arith::CmpFPredicate::OGT, quotient, constant(1.0f));
    rewriter.replaceOp(op, clamp(arith::CmpFPredicate::OLT, quotient, constant(-1.0f)));
    return success();
  }
};

class ApproximateMath : public braid::cpu::impl::CPUApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ApproximateErf>(&getContext(), /*benefit=*/2);
    populateMathPolynomialApproximationPatterns(patterns, MathPolynomialApproximationOptions());
    // What has no polynomial of its own but is made of functions that have one.
    math::populateExpansionPatterns(
        patterns, {"sinh", "cosh", "tan", "asinh", "acosh", "atanh", "powf", "exp2"});
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
