//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rows of 8-bit integers with a scale each, symmetric around 0: what a quantized matmul multiplies.
// All arithmetic is in f32, rounded to nearest with ties to even, without contraction:
//
//   scale = max(|x|) / 127, and value = round(x / scale)
//
// - A scale below 2^-126 would have too few digits: the row is zeros, with a scale of 0. What is
//   lost of each element is below 127 * 2^-126.
// - A row with an infinity or a NaN is zeros with a scale of NaN, which all products with it have.
//
// Bound: |x - value * scale| <= scale * (1/2 + 127 * 2^-23). The quotient is rounded once, by at
// most 127 * 2^-24, and then to an integer, by at most 1/2; that value * scale is rounded changes
// it by at most 127 * 2^-24 * scale. No quotient is above 127 * (1 + 2^-22), which rounds to 127,
// so values are within [-127, 127].
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_ROWQUANTIZATION_H
#define BRAID_BASE_ROWQUANTIZATION_H

#include <cstdint>

namespace braid::runtime {

/// The most products of two numbers of 8 bits whose sum is within 32 bits: 2^14 each.
constexpr int64_t kMaxInt8Products = 131071;

/// Quantizes `count` elements, and returns the scale. `values` may be null.
float quantizeRow(const float *x, int64_t count, int8_t *values);

/// The relative L2 error that rows of `count` normally distributed numbers are expected to have.
double expectedRowError(int64_t count);

} // namespace braid::runtime
#endif // BRAID_BASE_ROWQUANTIZATION_H
