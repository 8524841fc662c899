//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The table of activation functions, from which every target's code comes. What they mean is
// written a second time, in the interpreter.
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

struct Activation {
  Value (*build)(Scalars &, Value);
  int64_t flops; ///< arithmetic operations that `build` makes
};

/// In the order of ActivationKind.
constexpr Activation kActivations[] = {
    {gelu, 5},
    {geluTanh, 9},
    {silu, 4},
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
