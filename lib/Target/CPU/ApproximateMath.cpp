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
/// erf(x) below |x| = 1.25 as x * P(x^2), P of degree 6, and beyond as 1 - 1 / Q(|x|)^16, Q of
/// degree 6 (the form of Abramowitz and Stegun 7.1.28): no quotient near 1, whose rounding GELU
/// multiplies by x / 2. From |x| = 3.93 on it is 1 exactly. MLIR's own approximation is piecewise
/// and selects every coefficient. Least maximum of the error, relative below and absolute beyond;
/// with rounding 2e-7.
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
    auto polynomial = [&](Value at, ArrayRef<float> coefficients) {
      Value value = constant(coefficients.front());
      for (float coefficient : coefficients.drop_front())
        value = math::FmaOp::create(b, value, at, constant(coefficient));
      return value;
    };
    auto select = [&](arith::CmpFPredicate when, Value x, float bound, Value yes,
                      Value no) -> Value {
      Value condition = arith::CmpFOp::create(b, when, x, constant(bound));
      return arith::SelectOp::create(b, condition, yes, no);
    };
    Value x = op.getOperand();
    Value near = arith::MulFOp::create(
        b, x,
        polynomial(arith::MulFOp::create(b, x, x),
                   {6.20237261e-05f, -0.000742605946f, 0.00510998908f, -0.026804911f, 0.112821937f,
                    -0.376124799f, 1.12837911f}));
    Value magnitude = math::AbsFOp::create(b, x);
    // Q^16 overflows for large x. A NaN is not larger and stays.
    Value power =
        polynomial(select(arith::CmpFPredicate::OGT, magnitude, 4, constant(4), magnitude),
                   {0.000147128027f, -0.000676353171f, 0.0037872924f, 0.0018519978f, 0.0508343764f,
                    0.0652440488f, 1.00136101f});
    for (int i = 0; i < 4; ++i)
      power = arith::MulFOp::create(b, power, power);
    Value one = constant(1);
    Value far = arith::SubFOp::create(b, one, arith::DivFOp::create(b, one, power));
    rewriter.replaceOp(op, select(arith::CmpFPredicate::OLT, magnitude, 1.25, near,
                                  math::CopySignOp::create(b, far, x)));
    return success();
  }
};

class ApproximateMath : public braid::cpu::impl::CPUApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ApproximateErf>(&getContext(), /*benefit=*/2);
    populateMathPolynomialApproximationPatterns(patterns, MathPolynomialApproximationOptions());
    // Functions without a polynomial of their own, expressed in functions with one.
    math::populateExpansionPatterns(
        patterns, {"sinh", "cosh", "tan", "asinh", "acosh", "atanh", "powf", "exp2"});
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
