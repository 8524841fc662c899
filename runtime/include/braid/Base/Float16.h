//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Half-precision types as bits: exact conversion to f32, and from f32 rounded to nearest even.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_FLOAT16_H
#define BRAID_BASE_FLOAT16_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace braid::runtime {

inline float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float bf16ToFloat(uint16_t bits) { return bitsToFloat(uint32_t(bits) << 16); }

inline uint16_t floatToBf16(float value) {
  uint32_t bits = floatToBits(value);
  if (std::isnan(value))
    return uint16_t(bits >> 16 | 0x40); // rounding could carry a NaN into infinity
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float f16ToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f,
           mantissa = bits & 0x3ff;
  if (exponent == 0x1f)
    return bitsToFloat(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) { // zero or subnormal: mantissa * 2^-24
    float magnitude = float(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return bitsToFloat(sign | (exponent + 112) << 23 | mantissa << 13);
}

inline uint16_t floatToF16(float value) {
  uint32_t bits = floatToBits(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) // 65520, halfway between the largest finite value and 2^16
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) // below 2^-14: a multiple of 2^-24, which adding 0.5 rounds to
    return uint16_t(sign | (floatToBits(bitsToFloat(magnitude) + 0.5f) - floatToBits(0.5f)));
  uint32_t rounded = magnitude - (uint32_t(112) << 23) + 0xfff + (magnitude >> 13 & 1);
  return uint16_t(sign | rounded >> 13);
}

} // namespace braid::runtime
#endif // BRAID_BASE_FLOAT16_H
