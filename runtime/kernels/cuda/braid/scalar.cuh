//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Scalar functions of MLIR that C++ has no operator for.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace braid {
/// Neither is NaN.
__device__ __forceinline__ bool ordered(float a, float b) { return a == a && b == b; }
/// Unequal, and neither is NaN.
__device__ __forceinline__ bool less_or_greater(float a, float b) { return a < b || a > b; }
/// x / by for a constant that is neither very large nor very small, rounded as a division unless
/// the quotient is subnormal. For a division the compiler would call a function and save registers
/// around it.
__device__ __forceinline__ float divide(float x, float by) {
  const float inverse = 1.0f / by, near = x * inverse;
  const float quotient = fmaf(fmaf(-near, by, x), inverse, near);
  return quotient == quotient ? quotient : near; // An infinite x has no remainder.
}
template <class T> __device__ __forceinline__ T most(T a, T b) { return a < b ? b : a; }
template <class T> __device__ __forceinline__ T least(T a, T b) { return b < a ? b : a; }
} // namespace braid
