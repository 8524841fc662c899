//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The numbers of payloads (braid/Base/Encoding.h): arithmetic that is never contracted, casts that
// saturate, scales, and small floating-point numbers.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/device.cuh>

namespace braid {
namespace codec {

/// Rounded to nearest even, each by itself.
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float subtract(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float multiply(float a, float b) { return __fmul_rn(a, b); }

__device__ __forceinline__ unsigned bits_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float float_of(unsigned bits) { return __uint_as_float(bits); }
__device__ __forceinline__ float magnitude(float x) { return float_of(bits_of(x) & 0x7fffffffu); }
/// Neither an infinity nor a NaN.
__device__ __forceinline__ bool is_finite(float x) { return magnitude(x) < infinity(); }

/// Adding it, 1.5 * 2^23, rounds a number below 2^22 to nearest even and leaves the integer in the
/// low bits, which is faster than a conversion.
constexpr unsigned integer_bits = 0x4B400000u;
/// Only the low 22 bits count.
__device__ __forceinline__ unsigned round_to_bits(float x) {
  return bits_of(add(x, float_of(integer_bits)));
}
/// Of |i| < 2^22, exactly.
__device__ __forceinline__ float to_float(int i) {
  return subtract(float_of(integer_bits + unsigned(i)), float_of(integer_bits));
}

//===----------------------------------------------------------------------===//
// Elements of tensors
//===----------------------------------------------------------------------===//

__device__ __forceinline__ float as_float(float x) { return x; }
__device__ __forceinline__ float as_float(bf16 x) { return widen(x); }
__device__ __forceinline__ float as_float(f16 x) { return widen(x); }

/// To nearest even. Finite numbers stay finite; NaNs become the quiet NaN of positive sign.
template <class T> __device__ T cast(float x);
template <> __device__ __forceinline__ float cast<float>(float x) { return x == x ? x : nan(); }
template <class Half, unsigned Infinity, unsigned Nan>
__device__ __forceinline__ Half cast_half(float x) {
  unsigned bits = narrow<Half>(x).bits;
  if ((bits & 0x7fffu) == Infinity && is_finite(x))
    --bits;
  return {(unsigned short)(x == x ? bits : Nan)};
}
template <> __device__ __forceinline__ f16 cast<f16>(float x) {
  return cast_half<f16, 0x7c00u, 0x7e00u>(x);
}
template <> __device__ __forceinline__ bf16 cast<bf16>(float x) {
  return cast_half<bf16, 0x7f80u, 0x7fc0u>(x);
}

//===----------------------------------------------------------------------===//
// Scales and offsets, as 16 bits
//===----------------------------------------------------------------------===//

/// Steps of a float at most `end`, rounded up: v / step is exact.
__device__ __forceinline__ unsigned steps_up(float v, float end, float inverse_step) {
  const float steps = multiply(fminf(v, end), inverse_step);
  const int whole = int(steps);
  return unsigned(whole + (to_float(whole) < steps));
}

/// Of numbers that are not negative; up may give an infinity, down gives the largest number.
template <class Half> struct HalfBits;
template <> struct HalfBits<f16> {
  static constexpr unsigned nan = 0x7e00u;
  static __device__ __forceinline__ unsigned up(float v) {
    const unsigned normal = ((bits_of(v) + 0x1fffu) >> 13) - (112u << 10);
    return v < 0x1p-14f ? steps_up(v, 0x1p-14f, 0x1p24f) : normal < 0x7c00u ? normal : 0x7c00u;
  }
  static __device__ __forceinline__ unsigned down(float v) {
    const unsigned normal = (bits_of(v) >> 13) - (112u << 10);
    return v < 0x1p-14f ? unsigned(multiply(v, 0x1p24f)) : normal < 0x7bffu ? normal : 0x7bffu;
  }
  static __device__ __forceinline__ unsigned scale(float v) { return up(v); }
};
template <> struct HalfBits<bf16> {
  static constexpr unsigned nan = 0x7fc0u;
  static __device__ __forceinline__ unsigned up(float v) {
    const unsigned bits = (bits_of(v) + 0xffffu) >> 16;
    return bits < 0x7f80u ? bits : 0x7f80u;
  }
  static __device__ __forceinline__ unsigned down(float v) { return bits_of(v) >> 16; }
  /// At least 2^-126 unless it is 0, so that 1 / scale is finite.
  static __device__ __forceinline__ unsigned scale(float v) {
    const unsigned bits = up(v);
    return bits != 0 && bits < 0x80u ? 0x80u : bits;
  }
};
template <class Half> __device__ __forceinline__ float widen_bits(unsigned bits) {
  return widen(Half{(unsigned short)bits});
}
/// Rounded down, whatever the sign; zeros to +0.
template <class Half> __device__ __forceinline__ unsigned offset_bits(float v) {
  const float m = magnitude(v);
  return v < 0.0f ? HalfBits<Half>::up(m) | 0x8000u : HalfBits<Half>::down(m);
}

//===----------------------------------------------------------------------===//
// Small floating-point numbers
//===----------------------------------------------------------------------===//

/// Numbers of `Bits` with `Mantissa` bits and subnormals. `Special` is 1 if the largest magnitude
/// is a NaN, 2 if the largest exponent is that of infinities and NaNs, and 0 without either.
template <int Bits, int Mantissa, int Bias, int Special> struct SmallFloat {
  static constexpr int bits = Bits;
  static constexpr unsigned sign = 1u << (Bits - 1);
  static constexpr int shift = 23 - Mantissa;
  static constexpr unsigned largest_code =
      Special == 2 ? sign - 1 - (1u << Mantissa) : sign - 1 - Special;
  /// From the bits of a code to those of f32, of normal numbers.
  static constexpr unsigned rebias = unsigned(127 - Bias) << 23;
  static constexpr unsigned largest_bits = (largest_code << shift) + rebias;
  static constexpr unsigned normal_bits = (1u << 23) + rebias;
  /// Of the smallest number above 0, and of 2^23 times that, to which adding rounds to steps.
  static constexpr unsigned step_bits = unsigned(128 - Bias - Mantissa) << 23;
  static constexpr unsigned magic_bits = step_bits + (23u << 23);

  static __device__ __forceinline__ float largest() { return float_of(largest_bits); }

  /// Rounded to nearest even; the largest number beyond the range.
  static __device__ __forceinline__ unsigned encode(float v) {
    const float m = fminf(magnitude(v), largest());
    const unsigned b = bits_of(m);
    const unsigned normal =
        ((b + ((1u << (shift - 1)) - 1) + (b >> shift & 1)) >> shift) - (rebias >> shift);
    const unsigned small = bits_of(add(m, float_of(magic_bits))) - magic_bits;
    return (b < normal_bits ? small : normal) | (bits_of(v) >> (32 - Bits) & sign);
  }
  /// NaNs are positive.
  static __device__ __forceinline__ float decode(unsigned code) {
    const unsigned m = code & (sign - 1);
    const unsigned small = bits_of(multiply(to_float(int(m)), float_of(step_bits)));
    unsigned b = m < (1u << Mantissa) ? small : (m << shift) + rebias;
    if (Special == 2 && m == largest_code + 1)
      b = 0x7f800000u;
    b |= (code & sign) << (32 - Bits);
    if (Special != 0 && m > largest_code + (Special == 2 ? 1 : 0))
      b = 0x7fc00000u;
    return float_of(b);
  }
};
using E4m3 = SmallFloat<8, 3, 7, 1>;
using E5m2 = SmallFloat<8, 2, 15, 2>;
using E3m2 = SmallFloat<6, 2, 3, 0>;
using E2m3 = SmallFloat<6, 3, 1, 0>;
using E2m1 = SmallFloat<4, 1, 1, 0>;

/// The bits of the smallest e4m3 number that is not below v >= 0, at most 448.
__device__ __forceinline__ unsigned e4m3_up(float v) {
  const float m = fminf(v, 448.0f);
  return m < 0x1p-6f ? steps_up(m, 0x1p-6f, 512.0f) : ((bits_of(m) + 0xfffffu) >> 20) - (120u << 3);
}

} // namespace codec
} // namespace braid
