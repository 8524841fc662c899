//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The table of activation functions. The code of every target is made from it. The interpreter has
// an implementation of its own, which tests compare with this one.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/DecomposeBuilder.h"
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid::nn;

namespace {

Value gelu(Scalars &s, Value x) {
  Value half = s.mul(x, s.constant(0.5));
  Value erf = s.unary<math::ErfOp>(s.mul(x, s.constant(0.70710678118654752)));
  return s.mul(half, s.add(erf, s.constant(1.0)));
}

Value geluTanh(Scalars &s, Value x) {
  Value half = s.mul(x, s.constant(0.5));
  Value cube = s.mul(s.mul(x, x), s.mul(x, s.constant(0.044715)));
  Value inner = s.mul(s.add(x, cube), s.constant(0.79788456080286536)); // sqrt(2 / pi)
  return s.mul(half, s.add(s.unary<math::TanhOp>(inner), s.constant(1.0)));
}

/// Where exp(-x) overflows, x / inf is the limit, 0.
Value silu(Scalars &s, Value x) {
  Value grown = s.unary<math::ExpOp>(s.sub(s.constant(0.0), x));
  return s.div(x, s.add(s.constant(1.0), grown));
}

Value quickGelu(Scalars &s, Value x) {
  Value grown = s.unary<math::ExpOp>(s.mul(x, s.constant(-1.702)));
  return s.div(x, s.add(s.constant(1.0), grown));
}

Value clamp(Scalars &s, Value x, double low, double high) {
  return s.min(s.max(x, s.constant(low)), s.constant(high));
}

Value gelu10(Scalars &s, Value x) { return clamp(s, gelu(s, x), -10.0, 10.0); }

Value relu(Scalars &s, Value x) { return s.max(x, s.constant(0.0)); }

Value relu2(Scalars &s, Value x) {
  Value positive = relu(s, x);
  return s.mul(positive, positive);
}

Value relu6(Scalars &s, Value x) { return clamp(s, x, 0.0, 6.0); }

Value leakyRelu(Scalars &s, Value x) { return s.max(x, s.mul(x, s.constant(0.01))); }

/// With n = exp(x), tanh(log(1 + n)) is 1 / (1 + 2 / (n (n + 2))), without cancellation. From x =
/// 20 on it is 1, and n^2 would overflow later.
Value mish(Scalars &s, Value x) {
  Value n = s.unary<math::ExpOp>(s.min(x, s.constant(20.0)));
  Value product = s.mul(n, s.add(n, s.constant(2.0)));
  return s.div(x, s.add(s.constant(1.0), s.div(s.constant(2.0), product)));
}

Value tanh(Scalars &s, Value x) { return s.unary<math::TanhOp>(x); }

Value sigmoid(Scalars &s, Value x) {
  Value grown = s.unary<math::ExpOp>(s.sub(s.constant(0.0), x));
  return s.div(s.constant(1.0), s.add(s.constant(1.0), grown));
}

Value hardswish(Scalars &s, Value x) {
  Value gate = clamp(s, s.add(x, s.constant(3.0)), 0.0, 6.0);
  return s.mul(x, s.mul(gate, s.constant(1.0 / 6.0)));
}

Value laplace(Scalars &s, Value x) {
  Value scaled = s.mul(s.sub(x, s.constant(0.707107)),
                       s.constant(0.70710678118654752 / 0.282095)); // 1 / (sigma * sqrt(2))
  return s.mul(s.constant(0.5), s.add(s.unary<math::ErfOp>(scaled), s.constant(1.0)));
}

struct Activation {
  Value (*build)(Scalars &, Value);
  int64_t flops; ///< arithmetic operations in the result of `build`
};

/// In the order of ActivationKind.
constexpr Activation kActivations[] = {
    {gelu, 5}, {geluTanh, 9}, {silu, 4},      {quickGelu, 4}, {gelu10, 7},
    {relu, 1}, {relu2, 2},    {relu6, 2},     {leakyRelu, 2}, {mish, 7},
    {tanh, 1}, {sigmoid, 4},  {hardswish, 5}, {laplace, 5},
};
static_assert(std::size(kActivations) == getMaxEnumValForActivationKind() + 1);

const Activation &activationOf(ActivationKind kind) {
  return kActivations[static_cast<uint32_t>(kind)];
}

} // namespace

int64_t braid::nn::flopsOf(ActivationKind kind) { return activationOf(kind).flops; }

StringRef ActivationOp::getKernelName() { return stringifyActivationKind(getKind()); }

FailureOr<SmallVector<Value>> ActivationOp::decompose(OpBuilder &builder, ValueRange operands) {
  RankedTensorType type = typeOf(operands[0]);
  const Activation &activation = activationOf(getKind());
  return SmallVector<Value>{
      GenericBuilder(builder, getLoc())
          .map(getKernelName(), type.getRank(), {{operands[0], firstDims(type.getRank())}},
               type.getElementType(),
               [&](Scalars &s, ValueRange x) { return activation.build(s, x[0]); })};
}
