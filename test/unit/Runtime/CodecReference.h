//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Payloads' rows by the text of braid/Base/Encoding.h, without any trick: numbers of a type are a
// table in ascending order, rounding looks for the neighbors in it, and codes are written bit by
// bit.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_CODECREFERENCE_H
#define BRAID_TEST_UNIT_RUNTIME_CODECREFERENCE_H

#include "braid/Base/Encoding.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace braid::runtime::testing {

/// The finite numbers, from 0 up, of a floating-point type with subnormals; the index is the code.
struct FloatType {
  int bits, mantissaBits, bias;
  uint32_t nan, infinity; ///< their codes; 0: none
  std::vector<float> values;

  FloatType(int bits, int mantissaBits, int bias, uint32_t end, uint32_t infinity, uint32_t nan)
      : bits(bits), mantissaBits(mantissaBits), bias(bias), nan(nan), infinity(infinity) {
    for (uint32_t code = 0; code < end; ++code) {
      const int exponent = static_cast<int>(code >> mantissaBits);
      const double mantissa = (code & ((1u << mantissaBits) - 1)) / std::exp2(mantissaBits);
      values.push_back(static_cast<float>(exponent == 0
                                              ? mantissa * std::exp2(1 - bias)
                                              : (1 + mantissa) * std::exp2(exponent - bias)));
    }
  }
  float largest() const { return values.back(); }
  float smallestNormal() const { return values[1u << mantissaBits]; }
  uint32_t sign() const { return 1u << (bits - 1); }

  /// The code of the last value that is not above x >= 0.
  uint32_t below(float x) const {
    return static_cast<uint32_t>(std::upper_bound(values.begin(), values.end(), x) -
                                 values.begin() - 1);
  }
  /// The code of the first value that is not below x >= 0; one after the last: beyond the range.
  uint32_t above(float x) const {
    return static_cast<uint32_t>(std::lower_bound(values.begin(), values.end(), x) -
                                 values.begin());
  }
  /// To nearest even, saturating.
  uint32_t cast(float x) const {
    const uint32_t negative = std::signbit(x) ? sign() : 0;
    if (std::isnan(x))
      return nan;
    if (std::isinf(x) && infinity != 0)
      return negative | infinity;
    const float m = std::fabs(x);
    const uint32_t low = below(m), high = low + 1;
    if (high == values.size())
      return negative | low;
    const double middle =
        (static_cast<double>(values[low]) + static_cast<double>(values[high])) / 2;
    const auto exact = static_cast<double>(m);
    return negative | (exact < middle ? low : exact > middle ? high : low + (low & 1));
  }
  float value(uint32_t code) const {
    const uint32_t m = code & (sign() - 1);
    const float v = m < values.size() ? values[m] : m == infinity && infinity != 0 ? INFINITY : NAN;
    return std::isnan(v) ? NAN : (code & sign()) != 0 ? -v : v;
  }

  static const FloatType &f16() {
    static const FloatType type(16, 10, 15, 0x7c00, 0x7c00, 0x7e00);
    return type;
  }
  static const FloatType &bf16() {
    static const FloatType type(16, 7, 127, 0x7f80, 0x7f80, 0x7fc0);
    return type;
  }
  static const FloatType &of(Encoding::Element element) {
    static const FloatType e4m3(8, 3, 7, 0x7f, 0, 0x7f), e5m2(8, 2, 15, 0x7c, 0x7c, 0x7f),
        e3m2(6, 2, 3, 0x20, 0, 0), e2m3(6, 3, 1, 0x20, 0, 0), e2m1(4, 1, 1, 0x8, 0, 0);
    switch (element) {
    case Encoding::Element::bf16:
      return bf16();
    case Encoding::Element::f16:
      return f16();
    case Encoding::Element::e4m3:
      return e4m3;
    case Encoding::Element::e5m2:
      return e5m2;
    case Encoding::Element::e3m2:
      return e3m2;
    case Encoding::Element::e2m3:
      return e2m3;
    default:
      return e2m1;
    }
  }
};

/// x as a tensor of the type holds it.
inline float castTo(DType type, float x) {
  if (std::isnan(x))
    return NAN;
  if (type == DType::f32)
    return x;
  const FloatType &half = type == DType::f16 ? FloatType::f16() : FloatType::bf16();
  return half.value(half.cast(x));
}

/// Replaces whole blocks by H x / sqrt(R).
inline void rotateByDefinition(std::vector<float> &x, int64_t block) {
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(block)));
  const auto size = static_cast<size_t>(block);
  for (size_t begin = 0; begin + size <= x.size(); begin += size) {
    for (size_t h = 1; h < size; h *= 2)
      for (size_t i = 0; i < size; ++i)
        if ((i & h) == 0) {
          const float a = x[begin + i], b = x[begin + i + h];
          x[begin + i] = a + b;
          x[begin + i + h] = a - b;
        }
    for (size_t i = 0; i < size; ++i)
      x[begin + i] *= factor;
  }
}

/// What a group was encoded with, for tests of bounds.
struct GroupFacts {
  bool refused = false;
  float scale = 0, offset = 0;
  std::vector<float> x; ///< rotated
  std::vector<size_t> spikes;
};

class CodecReference {
public:
  CodecReference(const Encoding &encoding, DType type, int64_t columns)
      : e(encoding), type(type), columns(static_cast<size_t>(columns)),
        scales(e.scale == Encoding::Scale::bf16 ? FloatType::bf16() : FloatType::f16()) {}

  std::vector<GroupFacts> facts; ///< of the groups that were encoded last

  std::vector<uint8_t> encode(const std::vector<float> &row) {
    header.clear();
    codes.clear();
    facts.clear();
    if (e.isCast()) {
      for (float x : row)
        put(codes, FloatType::of(e.element).cast(x), 2);
      return codes;
    }
    std::vector<std::vector<float>> groups;
    const auto size = static_cast<size_t>(e.group);
    float most = 0; // of the groups whose elements are all finite
    for (size_t begin = 0; begin < columns; begin += size) {
      std::vector<float> x(row.begin() + static_cast<std::ptrdiff_t>(begin),
                           row.begin() +
                               static_cast<std::ptrdiff_t>(std::min(columns, begin + size)));
      if (e.rotation != 0)
        rotateByDefinition(x, e.rotation);
      if (allFinite(x))
        for (float v : x)
          most = std::max(most, std::fabs(v));
      groups.push_back(std::move(x));
    }
    if (e.scale == Encoding::Scale::nvfp4) {
      rowFactor = most / (448.0f * 6.0f);
      if (rowFactor < FLT_MIN)
        rowFactor = 0;
      uint32_t bits;
      std::memcpy(&bits, &rowFactor, 4);
      put(header, bits, 4);
    }
    for (const std::vector<float> &x : groups)
      encodeGroup(x);
    header.insert(header.end(), codes.begin(), codes.end());
    return header;
  }

  /// y in f32, before it is cast.
  std::vector<float> decode(const std::vector<uint8_t> &row) const {
    std::vector<float> result;
    if (e.isCast()) {
      for (size_t i = 0; i < columns; ++i)
        result.push_back(FloatType::of(e.element).value(take(row, 2 * i, 2)));
      return result;
    }
    const auto size = static_cast<size_t>(e.group);
    const size_t numGroups = (columns + size - 1) / size;
    const size_t headerBytes = static_cast<size_t>(e.groupHeaderBytes(type));
    size_t at = 0;
    float factor = 1;
    if (e.scale == Encoding::Scale::nvfp4) {
      const uint32_t bits = take(row, 0, 4);
      std::memcpy(&factor, &bits, 4);
      at = 4;
    }
    size_t code = at + numGroups * headerBytes;
    for (size_t begin = 0; begin < columns; begin += size) {
      const size_t count = std::min(size, columns - begin);
      const std::vector<float> y = decodeGroup(row, at, code, count, factor);
      result.insert(result.end(), y.begin(), y.end());
      at += headerBytes;
      code += (count * static_cast<size_t>(e.bits) + 7) / 8;
    }
    return result;
  }

private:
  using Bytes = std::vector<uint8_t>;
  static void put(Bytes &to, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      to.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  static uint32_t take(const Bytes &from, size_t at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= static_cast<uint32_t>(from[at + static_cast<size_t>(i)]) << (8 * i);
    return value;
  }
  static bool allFinite(const std::vector<float> &x) {
    return std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); });
  }
  bool hasWideScale() const {
    return e.scale == Encoding::Scale::f16 || e.scale == Encoding::Scale::bf16;
  }
  float largestCode() const {
    if (e.element != Encoding::Element::integer)
      return FloatType::of(e.element).largest();
    return static_cast<float>((1 << (e.form == Encoding::Form::symmetric ? e.bits - 1 : e.bits)) -
                              1);
  }

  /// What a scale is made from, before it is divided by the number of steps.
  float spanOf(const std::vector<float> &x) const {
    const auto [min, max] = std::minmax_element(x.begin(), x.end());
    if (e.element != Encoding::Element::integer || e.form == Encoding::Form::symmetric)
      return std::max(std::fabs(*min), std::fabs(*max));
    if (e.form == Encoding::Form::zeroPoint)
      return std::max(*max, 0.0f) - std::min(*min, 0.0f);
    return *max - *min;
  }

  void encodeGroup(const std::vector<float> &x) {
    GroupFacts fact;
    fact.x = x;
    bool good = allFinite(x);
    std::vector<size_t> spikes(2);
    std::vector<float> others = x;
    if (e.spikes && good) {
      // From the smallest, and from the largest element on; equal ones as they come.
      std::vector<size_t> up(x.size()), down(x.size());
      std::iota(up.begin(), up.end(), 0);
      std::iota(down.begin(), down.end(), 0);
      std::sort(up.begin(), up.end(),
                [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] < x[b] : a < b; });
      std::sort(down.begin(), down.end(),
                [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] > x[b] : a < b; });
      const size_t last = x.size() - 1, next = std::min<size_t>(1, last);
      const std::vector<std::vector<size_t>> pairs = {
          {up[0], down[0] == up[0] ? down[next] : down[0]},
          {down[0], down[next]},
          {up[0], up[next]}};
      for (const std::vector<size_t> &pair : pairs) {
        std::vector<float> rest;
        for (size_t i = 0; i < x.size(); ++i)
          if (i != pair[0] && i != pair[1])
            rest.push_back(x[i]);
        if (rest.empty())
          rest.push_back(0);
        if (&pair == pairs.data() || spanOf(rest) < spanOf(others)) {
          others = rest;
          spikes = pair;
        }
      }
      fact.spikes = spikes;
    }
    uint32_t scaleCode = 0, offsetCode = 0;
    float scale = 0, offset = 0, zero = 0, inv = 0;
    const float range = largestCode();
    const bool integer = e.element == Encoding::Element::integer;
    if (good) {
      float min = *std::min_element(others.begin(), others.end());
      float max = *std::max_element(others.begin(), others.end());
      const float m = std::max(std::fabs(min), std::fabs(max));
      if (e.scale == Encoding::Scale::e8m0) {
        int exponent = m < FLT_MIN ? -127 : std::ilogb(m);
        exponent = std::clamp(exponent - std::ilogb(range), -127, 127);
        scaleCode = static_cast<uint32_t>(exponent + 127);
        scale = std::ldexp(1.0f, exponent);
      } else if (e.scale == Encoding::Scale::nvfp4) {
        const FloatType &e4m3 = FloatType::of(Encoding::Element::e4m3);
        if (rowFactor != 0)
          scaleCode = e4m3.above(std::min(m / 6.0f / rowFactor, 448.0f));
        scale = e4m3.value(scaleCode) * rowFactor;
        if (scale < FLT_MIN) {
          scale = 0;
          scaleCode = 0;
        }
      } else {
        float steps = m / range;
        if (integer && e.form == Encoding::Form::asymmetric) {
          if (min >= 0) {
            offsetCode = scales.below(min);
          } else {
            offsetCode = scales.above(-min);
            good = offsetCode < scales.values.size();
            offsetCode |= 0x8000;
          }
          offset = good ? scales.value(offsetCode) : 0;
          steps = (max - offset) / range;
        } else if (integer && e.form == Encoding::Form::zeroPoint) {
          min = std::min(min, 0.0f);
          max = std::max(max, 0.0f);
          steps = (max - min) / range;
        }
        scaleCode = scales.above(steps);
        good = good && scaleCode < scales.values.size();
        scale = good ? scales.value(scaleCode) : 0;
        if (e.scale == Encoding::Scale::bf16 && scale != 0 && scale < FLT_MIN) {
          scale = FLT_MIN;
          scaleCode = 0x80;
        }
      }
      good = good && std::isfinite(offset + range * scale);
      inv = scale == 0 ? 0 : 1 / scale;
      if (e.form == Encoding::Form::zeroPoint)
        zero = std::clamp(std::nearbyint(-min * inv), 0.0f, range);
    }
    fact.refused = !good;
    fact.scale = scale;
    fact.offset = offset;
    facts.push_back(fact);
    if (!good) {
      scaleCode = e.scale == Encoding::Scale::e8m0    ? 255
                  : e.scale == Encoding::Scale::nvfp4 ? 0x7f
                                                      : scales.nan;
      offsetCode = 0;
      zero = 0;
      spikes = {0, 0};
    }
    put(header, scaleCode, hasWideScale() ? 2 : 1);
    if (integer && e.form == Encoding::Form::asymmetric)
      put(header, offsetCode, 2);
    if (e.form == Encoding::Form::zeroPoint)
      put(header, static_cast<uint32_t>(zero), 1);
    if (e.spikes) {
      for (size_t place : spikes)
        putSpike(good ? x[place] : NAN);
      for (size_t place : spikes)
        put(header, static_cast<uint32_t>(place), e.group > 256 ? 2 : 1);
    }
    Bytes bits((x.size() * static_cast<size_t>(e.bits) + 7) / 8);
    for (size_t i = 0; i < x.size() && good; ++i) {
      uint32_t code;
      if (e.spikes && (i == spikes[0] || i == spikes[1]))
        code = 0;
      else if (!integer)
        code = FloatType::of(e.element).cast(x[i] * inv);
      else if (e.form == Encoding::Form::symmetric)
        code = static_cast<uint32_t>(
            static_cast<int32_t>(std::clamp(std::nearbyint(x[i] * inv), -range, range)));
      else if (e.form == Encoding::Form::zeroPoint)
        code = static_cast<uint32_t>(std::clamp(std::nearbyint(x[i] * inv) + zero, 0.0f, range));
      else
        code =
            static_cast<uint32_t>(std::clamp(std::nearbyint((x[i] - offset) * inv), 0.0f, range));
      for (size_t b = 0; b < static_cast<size_t>(e.bits); ++b) {
        const size_t bit = i * static_cast<size_t>(e.bits) + b;
        bits[bit / 8] = static_cast<uint8_t>(bits[bit / 8] | (code >> b & 1) << bit % 8);
      }
    }
    codes.insert(codes.end(), bits.begin(), bits.end());
  }

  void putSpike(float x) {
    if (type != DType::f32)
      return put(header, (type == DType::f16 ? FloatType::f16() : FloatType::bf16()).cast(x), 2);
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    put(header, std::isnan(x) ? 0x7fc00000 : bits, 4);
  }
  float takeSpike(const Bytes &row, size_t at) const {
    if (type != DType::f32)
      return (type == DType::f16 ? FloatType::f16() : FloatType::bf16()).value(take(row, at, 2));
    const uint32_t bits = take(row, at, 4);
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }

  std::vector<float> decodeGroup(const Bytes &row, size_t at, size_t codesAt, size_t count,
                                 float factor) const {
    const bool integer = e.element == Encoding::Element::integer;
    float scale, offset = 0;
    int32_t zero = 0;
    if (hasWideScale()) {
      scale = scales.value(take(row, at, 2));
      at += 2;
    } else {
      const uint32_t code = take(row, at++, 1);
      if (e.scale == Encoding::Scale::e8m0)
        scale = code == 255 ? NAN : std::ldexp(1.0f, static_cast<int>(code) - 127);
      else
        scale = FloatType::of(Encoding::Element::e4m3).value(code & 0x7f) * factor;
    }
    if (e.scale == Encoding::Scale::nvfp4 && std::fabs(scale) < FLT_MIN)
      scale = 0;
    if (integer && e.form == Encoding::Form::asymmetric) {
      offset = scales.value(take(row, at, 2));
      at += 2;
    }
    if (e.form == Encoding::Form::zeroPoint)
      zero = static_cast<int32_t>(take(row, at++, 1));
    const bool refused = !std::isfinite(scale) || !std::isfinite(offset);
    std::vector<float> y;
    for (size_t i = 0; i < count; ++i) {
      uint32_t code = 0;
      for (size_t b = 0; b < static_cast<size_t>(e.bits); ++b) {
        const size_t bit = i * static_cast<size_t>(e.bits) + b;
        code |= (row[codesAt + bit / 8] >> bit % 8 & 1u) << b;
      }
      if (refused)
        y.push_back(NAN);
      else if (!integer)
        y.push_back(FloatType::of(e.element).value(code) * scale);
      else if (e.form == Encoding::Form::asymmetric)
        y.push_back(offset + static_cast<float>(code) * scale);
      else if (e.form == Encoding::Form::zeroPoint)
        y.push_back(static_cast<float>(static_cast<int32_t>(code) - zero) * scale);
      else // two's complement
        y.push_back(static_cast<float>(static_cast<int32_t>(code) -
                                       (code >> (e.bits - 1) != 0 ? 1 << e.bits : 0)) *
                    scale);
    }
    if (e.spikes) {
      const size_t spikeBytes = type == DType::f32 ? 4 : 2, placeBytes = e.group > 256 ? 2 : 1;
      for (size_t i = 0; i < 2; ++i)
        y[take(row, at + 2 * spikeBytes + i * placeBytes, static_cast<int>(placeBytes))] =
            refused ? NAN : takeSpike(row, at + i * spikeBytes);
    }
    if (e.rotation != 0)
      rotateByDefinition(y, e.rotation);
    return y;
  }

  Encoding e;
  DType type;
  size_t columns;
  const FloatType &scales; ///< where scales are f16 or bf16
  float rowFactor = 0;
  Bytes header, codes;
};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_CODECREFERENCE_H
