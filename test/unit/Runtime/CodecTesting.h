//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Encodings and inputs for tests of the codec.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_CODECTESTING_H
#define BRAID_TEST_UNIT_RUNTIME_CODECTESTING_H

#include "CodecReference.h"
#include "LibraryCallsTesting.h"

#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

namespace braid::runtime::testing {

/// All valid encodings with one of these groups and rotations, where those can be chosen.
inline std::vector<Encoding> encodingsOf(const std::vector<int64_t> &groups,
                                         const std::vector<int64_t> &rotations) {
  std::vector<Encoding> result;
  std::set<uint32_t> codes;
  auto add = [&](const Encoding &e) {
    if (Encoding::fromCode(e.code()).ok() && codes.insert(e.code()).second)
      result.push_back(e);
  };
  std::vector<int64_t> allGroups = groups;
  allGroups.insert(allGroups.end(), {0, 16, 32});
  for (uint8_t element = 0; element <= static_cast<uint8_t>(Encoding::Element::e2m1); ++element)
    for (int64_t bits : {2, 3, 4, 5, 6, 7, 8, 16})
      for (uint8_t form = 0; form < 3; ++form)
        for (uint8_t scale = 0; scale < 4; ++scale)
          for (int64_t group : allGroups)
            for (int64_t rotation : rotations)
              for (bool spikes : {false, true}) {
                const bool given = scale >= 2 || element < 2;
                if (!given && std::count(groups.begin(), groups.end(), group) == 0)
                  continue;
                add({static_cast<Encoding::Element>(element), bits, group,
                     static_cast<Encoding::Form>(form), static_cast<Encoding::Scale>(scale),
                     rotation, spikes});
              }
  return result;
}

inline std::string nameOf(Encoding::Element element) {
  const char *names[] = {"bf16", "f16", "integer", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};
  return names[static_cast<size_t>(element)];
}

enum class Input {
  normal,
  heavyTailed,
  alternating, ///< two extremes
  constant,
  subnormal,
  huge,
  zeros, ///< of both signs
  integers,
  damaged,   ///< with some infinities and NaNs
  halfSteps, ///< between codes of 8 bits, of a step beside a number of f16 and bf16
  ties,      ///< all halfway between codes of a zero point, the ends included
  outliers,  ///< a few are far larger than the others
  anyBits,   ///< of all sizes
};
constexpr Input kInputs[] = {
    Input::normal, Input::heavyTailed, Input::alternating, Input::constant, Input::subnormal,
    Input::huge,   Input::zeros,       Input::integers,    Input::damaged,  Input::halfSteps,
    Input::ties,   Input::outliers,    Input::anyBits};

/// BRAID_CODEC_SEED, or the test's own seed; it is shown.
inline uint32_t codecSeed(uint32_t own) {
  const char *given = std::getenv("BRAID_CODEC_SEED");
  const auto seed = given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : own;
  std::cout << "BRAID_CODEC_SEED=" << seed << std::endl;
  return seed;
}

/// Whether the tests that take long are asked for.
inline bool testsAreLong() {
  const char *given = std::getenv("BRAID_TEST_LONG");
  return given && *given;
}

/// Numbers that the type can hold.
inline std::vector<float> inputOf(Input kind, DType type, int64_t count, std::mt19937 &random) {
  std::vector<float> x(static_cast<size_t>(count));
  std::normal_distribution<float> normal;
  std::cauchy_distribution<float> cauchy;
  const float sizes[] = {1e-30f, 1e-6f, 0.02f, 1, 1000, 1e30f};
  const float size = sizes[random() % std::size(sizes)], other = normal(random) * size;
  const float large = type == DType::f16 ? 65504.0f : 3.4e38f;
  // A step that rounds up to the next number that a scale may have, or just does not.
  const float mantissa = 1 + static_cast<float>(random() % 1024) / 1024;
  const float step = std::ldexp(mantissa, static_cast<int>(random() % 16) - 8) *
                     (1 + 0x1p-23f * static_cast<float>(static_cast<int>(random() % 3) - 1));
  const auto levels = static_cast<float>((4 << random() % 7) - 1);
  const float powerOfTwo = std::ldexp(1.0f, static_cast<int>(random() % 8) - 4);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t bits = static_cast<uint32_t>(random());
    switch (kind) {
    case Input::normal:
    case Input::damaged:
      x[i] = normal(random) * (size < 1e-20f || size > 1e20f ? 1 : size);
      break;
    case Input::heavyTailed:
      x[i] = cauchy(random);
      break;
    case Input::alternating:
      x[i] = i % 2 == 0 ? size : -other;
      break;
    case Input::constant:
      x[i] = other;
      break;
    case Input::subnormal:
      x[i] = normal(random) * (type == DType::f16 ? 1e-6f : bits % 4 == 0 ? 1e-37f : 1e-42f);
      break;
    case Input::huge:
      x[i] = large * (normal(random) > 0 ? 1.0f : -1.0f) / static_cast<float>(1 + bits % 3);
      break;
    case Input::zeros:
      x[i] = bits % 2 == 0 ? 0.0f : -0.0f;
      break;
    case Input::integers:
      x[i] = static_cast<float>(static_cast<int>(bits % 511) - 255);
      break;
    case Input::halfSteps: {
      const float code =
          i % 32 < 2 ? static_cast<float>(i % 2) * 255.0f : static_cast<float>(bits % 255) + 0.5f;
      x[i] = (code - 100) * step *
             (1 + 0x1p-23f * static_cast<float>(static_cast<int>(bits >> 16) % 3 - 1));
      break;
    }
    case Input::ties:
      // Both ends round away from 0, so that the largest code is one too many.
      x[i] = ((i % 32 == 0   ? 0
               : i % 32 == 1 ? levels
                             : static_cast<float>(bits % static_cast<uint32_t>(levels))) -
              1.5f) *
             powerOfTwo;
      break;
    case Input::outliers:
      x[i] = normal(random) * (bits % 61 == 0 ? 1000.0f : 0.001f);
      break;
    case Input::anyBits:
      std::memcpy(&x[i], &bits, sizeof bits);
      if (!std::isfinite(x[i]))
        x[i] = 0;
      break;
    }
    if (kind == Input::damaged && bits % 97 == 0)
      x[i] = bits % 2 == 0 ? INFINITY : bits % 3 == 0 ? -INFINITY : NAN;
  }
  for (float &v : x)
    v = castTo(type, v);
  return x;
}

/// The bytes of numbers of the type.
inline std::vector<uint8_t> stored(DType type, const std::vector<float> &x) {
  std::vector<uint8_t> bytes(x.size() * static_cast<size_t>(byteSize(type)));
  for (size_t i = 0; i < x.size(); ++i)
    if (type == DType::f32) {
      std::memcpy(bytes.data() + 4 * i, &x[i], 4);
    } else {
      const FloatType &half = type == DType::f16 ? FloatType::f16() : FloatType::bf16();
      const auto code = static_cast<uint16_t>(half.cast(x[i]));
      std::memcpy(bytes.data() + 2 * i, &code, 2);
    }
  return bytes;
}

/// Those of a result: NaNs are the quiet NaN of positive sign.
inline std::vector<uint8_t> storedResult(DType type, std::vector<float> y) {
  const uint32_t quiet = 0x7fc00000;
  for (float &v : y)
    if (std::isnan(v))
      std::memcpy(&v, &quiet, 4);
  return stored(type, y);
}

inline PayloadLayout layoutOf(const Encoding &e, DType type, int64_t rows, int64_t columns,
                              int64_t parts) {
  Result<PayloadLayout> layout = PayloadLayout::of(e, type, rows, columns, parts);
  EXPECT_OK(layout);
  return *layout;
}

/// Bytes of a row that no encoder need have written, with spikes inside of their groups.
inline void anyPayload(const Encoding &e, DType type, int64_t columns, std::vector<uint8_t> &bytes,
                       std::mt19937 &random) {
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random() % 5 == 0 ? 0xff : random());
  if (!e.spikes)
    return;
  const auto wide = static_cast<size_t>(e.group > 256 ? 2 : 1);
  size_t header = 0;
  for (int64_t begin = 0; begin < columns; begin += e.group) {
    header += static_cast<size_t>(e.groupHeaderBytes(type));
    const int64_t elements = std::min(e.group, columns - begin);
    for (size_t spike : {size_t(1), size_t(2)}) {
      const auto place = static_cast<uint16_t>(random() % static_cast<uint32_t>(elements));
      std::memcpy(bytes.data() + header - spike * wide, &place, wide);
    }
  }
}

/// A row that ends where memory does that must not be touched: guards follow and precede it.
class Guarded {
public:
  explicit Guarded(size_t size) : bytes(size + 2 * kGuard, 0xA5), size(size) {}
  uint8_t *data() { return bytes.data() + kGuard; }
  std::vector<uint8_t> get() const {
    return {bytes.begin() + kGuard, bytes.end() - static_cast<std::ptrdiff_t>(kGuard)};
  }
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (bytes[i] != 0xA5 || bytes[kGuard + size + i] != 0xA5)
        return false;
    return true;
  }

private:
  static constexpr size_t kGuard = 128;
  std::vector<uint8_t> bytes;
  size_t size;
};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_CODECTESTING_H
