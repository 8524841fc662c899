//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What braid/Base/Encoding.h promises of decoded numbers: bounds, what is kept exactly, what is
// refused, and casts.
//
//===----------------------------------------------------------------------===//
#include "CodecTesting.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

Encoding encodingOf(const std::string &text) {
  Result<Encoding> e = Encoding::parse(text);
  EXPECT_OK(e);
  return *e;
}

/// One row through the best instruction set.
struct Row {
  Row(const Encoding &e, DType type, const std::vector<float> &x)
      : columns(static_cast<int64_t>(x.size())),
        codec(CodecRow::of(layoutOf(e, type, 1, columns, 1))),
        bytes(static_cast<size_t>(codec.rowBytes)) {
    const std::vector<uint8_t> from = stored(type, x);
    vectorKernels().codec->encodeRow(codec, from.data(), bytes.data());
  }
  std::vector<float> decode() const {
    std::vector<float> y(static_cast<size_t>(columns));
    const void *rows[] = {bytes.data()};
    EXPECT_LT(vectorKernels().codec->decodeRows(codec, rows, 1, -1, 0, y.data(), false).position,
              0);
    return y;
  }
  std::vector<uint8_t> decodeTo(DType type) const {
    std::vector<uint8_t> y(static_cast<size_t>(columns * byteSize(type)));
    const void *rows[] = {bytes.data()};
    vectorKernels().codec->decodeRows(codec, rows, 1, -1, static_cast<int>(type), y.data(), false);
    return y;
  }

  int64_t columns;
  CodecRow codec;
  std::vector<uint8_t> bytes;
};

std::vector<float> roundTrip(const std::string &encoding, const std::vector<float> &x) {
  return Row(encodingOf(encoding), DType::f32, x).decode();
}

double boundOf(const Encoding &e, const GroupFacts &group, float element) {
  const auto scale = static_cast<double>(group.scale);
  const double x = std::fabs(static_cast<double>(element)), u = 0x1p-22;
  if (scale == 0)
    return e.scale == Encoding::Scale::nvfp4 ? 0x1p-114 : 0x1p-134;
  if (e.element == Encoding::Element::integer)
    return scale * (0.5 + 0x1p-12) + u * (x + std::fabs(static_cast<double>(group.offset)));
  const FloatType &type = FloatType::of(e.element);
  const double step = std::exp2(-type.mantissaBits - 1), largest = type.largest();
  const double more =
      e.scale == Encoding::Scale::e8m0 ? 1 - largest / std::exp2(std::ilogb(largest) + 1) : 0;
  return x * (step + u + more) + scale * static_cast<double>(type.smallestNormal()) * step;
}

TEST(CodecBounds, HoldForAllEncodingsAndInputs) {
  const uint32_t seed = codecSeed(21);
  std::mt19937 random(seed);
  int64_t refused = 0, checked = 0;
  for (const Encoding &e : encodingsOf({32, 128, 256}, {0, 32, 128})) {
    if (e.isCast())
      continue;
    for (Input input : kInputs)
      for (DType type : {DType::f32, DType::f16, DType::bf16}) {
        SCOPED_TRACE(::testing::Message() << e.str() << " of " << name(type) << ", input "
                                          << static_cast<int>(input) << ", seed " << seed);
        const int64_t columns = 2 * e.group + 5;
        const std::vector<float> x = inputOf(input, type, columns, random);
        CodecReference reference(e, type, columns);
        reference.encode(x);
        Row row(e, type, x);
        row.codec.rotation = 0; // the bounds are those of the rotated group
        const std::vector<float> y = row.decode();
        for (size_t g = 0; g < reference.facts.size(); ++g) {
          const GroupFacts &group = reference.facts[g];
          for (size_t i = 0; i < group.x.size(); ++i) {
            const float got = y[g * static_cast<size_t>(e.group) + i], want = group.x[i];
            const bool spike = std::count(group.spikes.begin(), group.spikes.end(), i) > 0;
            if (group.refused) {
              ASSERT_TRUE(std::isnan(got));
              ++refused;
            } else if (spike) {
              ASSERT_EQ(got, castTo(type, want));
            } else {
              ASSERT_LE(std::fabs(static_cast<double>(got) - static_cast<double>(want)),
                        boundOf(e, group, want))
                  << "element " << i << " of group " << g << ": " << want << " became " << got
                  << " with scale " << group.scale << " and offset " << group.offset;
              ++checked;
            }
          }
        }
      }
  }
  EXPECT_GT(checked, 100 * 1000);
  EXPECT_GT(refused, 1000);
}

//===----------------------------------------------------------------------===//
// What is kept exactly
//===----------------------------------------------------------------------===//

TEST(CodecIdentity, NumbersOfAScaleAreKept) {
  std::mt19937 random(22);
  for (float scale : {1.0f, 0.03125f, 3.0f, 0.00012207031f, 96.0f})
    for (const Encoding &e : encodingsOf({32, 128}, {0})) {
      if (e.isCast() || e.spikes || e.scale == Encoding::Scale::nvfp4)
        continue;
      if (e.scale == Encoding::Scale::e8m0 && std::exp2(std::ilogb(scale)) != scale)
        continue;
      SCOPED_TRACE(e.str());
      const bool integer = e.element == Encoding::Element::integer;
      const int32_t levels = (1 << e.bits) - 1, half = levels / 2;
      std::vector<float> x(static_cast<size_t>(e.group) * 2);
      for (size_t i = 0; i < x.size(); ++i) {
        const auto bits = static_cast<uint32_t>(random());
        const bool end = i % static_cast<size_t>(e.group) < 2;
        const bool last = i % static_cast<size_t>(e.group) == 1;
        if (!integer) {
          const FloatType &type = FloatType::of(e.element);
          const uint32_t code = end ? static_cast<uint32_t>(type.values.size()) - 1
                                    : bits % static_cast<uint32_t>(type.values.size());
          x[i] = (bits & 0x10000 ? -1.0f : 1.0f) * type.values[code] * scale;
        } else if (e.form == Encoding::Form::symmetric) {
          const int32_t code =
              last ? half : static_cast<int32_t>(bits % static_cast<uint32_t>(levels)) - half;
          x[i] = static_cast<float>(code) * scale;
        } else {
          const int32_t first = e.form == Encoding::Form::zeroPoint ? -half / 3 : 0;
          const int32_t code = !end ? static_cast<int32_t>(bits % static_cast<uint32_t>(levels + 1))
                               : last ? levels
                                      : 0;
          x[i] = static_cast<float>(first + code) * scale;
        }
      }
      const std::vector<float> y = Row(e, DType::f32, x).decode();
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], x[i]) << "element " << i << ", scale " << scale;
    }
}

/// Numbers of a cast's own type, and of nvfp4 where its scales are powers of two times e4m3.
TEST(CodecIdentity, NumbersOfTheTypeAreKept) {
  for (const char *text : {"bf16", "f16"}) {
    const FloatType &type = FloatType::of(encodingOf(text).element);
    std::vector<float> x = type.values;
    for (float value : type.values)
      x.push_back(-value);
    EXPECT_EQ(roundTrip(text, x), x);
  }
  const FloatType &e4m3 = FloatType::of(Encoding::Element::e4m3),
                  &e2m1 = FloatType::of(Encoding::Element::e2m1);
  for (float factor : {1.0f, 0x1p-20f, 0x1p100f}) {
    std::vector<float> x(16, 448.0f * 6 * factor);
    for (uint32_t scale = 1; scale < e4m3.values.size(); ++scale)
      for (uint32_t i = 0; i < 16; ++i)
        x.push_back((i % 2 == 0 ? 1.0f : -1.0f) * e2m1.values[i < 8 ? i : 7] * e4m3.values[scale] *
                    factor);
    EXPECT_EQ(roundTrip("nvfp4", x), x);
  }
}

TEST(CodecIdentity, ConstantsAreKeptByAnOffset) {
  for (float c : {0.0f, 1.0f, -2.5f, 0.333251953125f, 65504.0f, -0x1p-24f})
    for (int bits = 2; bits <= 8; ++bits) {
      const std::vector<float> x(200, c);
      EXPECT_EQ(roundTrip("int" + std::to_string(bits) + ":128", x), x);
    }
  const std::vector<float> x(77, 0x1.fep-120f);
  EXPECT_EQ(roundTrip("int3:64+bf16-scale", x), x);
}

TEST(CodecIdentity, FloatsKeepTheSignOfZeros) {
  for (const char *text : {"fp8e4m3:32", "fp8e5m2:32", "fp6e3m2:32", "fp6e2m3:32", "fp4e2m1:32",
                           "mxfp8e4m3", "mxfp4", "nvfp4", "bf16", "f16"}) {
    SCOPED_TRACE(text);
    const std::vector<float> y = roundTrip(text, {0.0f, -0.0f, 1.0f});
    EXPECT_FALSE(std::signbit(y[0]));
    EXPECT_TRUE(std::signbit(y[1]));
  }
  EXPECT_FALSE(std::signbit(roundTrip("int8:32+symmetric", {-0.0f, 1.0f})[0]));
}

//===----------------------------------------------------------------------===//
// Refusals and casts
//===----------------------------------------------------------------------===//

TEST(CodecRefusals, OnlyTheDamagedGroupIsLost) {
  std::mt19937 random(23);
  for (const Encoding &e : encodingsOf({32, 64}, {0, 16})) {
    if (e.isCast())
      continue;
    SCOPED_TRACE(e.str());
    const auto group = static_cast<size_t>(e.group);
    const std::vector<float> x = inputOf(Input::normal, DType::f16, 4 * e.group + 3, random);
    const std::vector<float> sound = Row(e, DType::f32, x).decode();
    for (float damage : {INFINITY, -INFINITY, NAN}) {
      std::vector<float> damaged = x;
      damaged[2 * group + random() % group] = damage;
      const std::vector<float> y = Row(e, DType::f32, damaged).decode();
      for (size_t i = 0; i < y.size(); ++i)
        if (i / group == 2)
          ASSERT_TRUE(std::isnan(y[i])) << i;
        else if (e.scale != Encoding::Scale::nvfp4) // the factor of whose rows may differ
          ASSERT_EQ(y[i], sound[i]) << i;
        else
          ASSERT_TRUE(std::isfinite(y[i])) << i;
    }
  }
}

TEST(CodecRefusals, ScalesAndOffsetsBeyondTheirRange) {
  auto lost = [](const std::string &encoding, std::vector<float> x) {
    x.resize(32);
    return std::isnan(roundTrip(encoding, x)[0]);
  };
  // 255 * 65504 and 127 * 65504 are the largest that a scale in f16 reaches.
  EXPECT_FALSE(lost("int8:32", {16703520.0f}));
  EXPECT_TRUE(lost("int8:32", {16703776.0f}));
  EXPECT_FALSE(lost("int8:32+symmetric", {8319008.0f}));
  EXPECT_TRUE(lost("int8:32+symmetric", {8319200.0f}));
  EXPECT_FALSE(lost("fp8e4m3:32", {448.0f * 65504}));
  EXPECT_TRUE(lost("fp8e4m3:32", {448.0f * 65520}));
  // Offsets are rounded down: from below, 65504 is near enough; from above there is none.
  EXPECT_FALSE(lost("int8:32", std::vector<float>(32, 70000.0f)));
  EXPECT_FALSE(lost("int8:32", {-65504.0f}));
  EXPECT_TRUE(lost("int8:32", {-65505.0f}));
  EXPECT_FALSE(lost("int8:32+bf16-scale", {-65505.0f}));
  // Beyond the range of f32: the difference, and what the largest code would decode to.
  EXPECT_TRUE(lost("int8:32+bf16-scale", {3e38f, -3e38f}));
  EXPECT_FALSE(lost("int8:32+bf16-scale+symmetric", {3e38f, -3e38f}));
  EXPECT_TRUE(lost("int8:32+bf16-scale+symmetric", {FLT_MAX}));
  EXPECT_FALSE(lost("mxfp8e4m3", {FLT_MAX}));
  EXPECT_FALSE(lost("mxfp4", {FLT_MAX, -1e-45f}));
  EXPECT_FALSE(lost("nvfp4", {3e38f}));
}

TEST(CodecRefusals, AreWrittenAsTheFormatSays) {
  std::vector<float> x(40, 1.0f);
  x[3] = NAN;
  auto head = [&](const std::string &encoding, DType type, size_t count) {
    const Row row(encodingOf(encoding), type, x);
    return std::vector<uint8_t>(row.bytes.begin(),
                                row.bytes.begin() + static_cast<std::ptrdiff_t>(count));
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(head("int8:40", DType::f32, 6), (Bytes{0x00, 0x7e, 0, 0, 0, 0}));
  EXPECT_EQ(head("int8:40+zero-point+bf16-scale", DType::f32, 5), (Bytes{0xc0, 0x7f, 0, 0, 0}));
  EXPECT_EQ(head("fp8e4m3:40+spikes", DType::f16, 9),
            (Bytes{0x00, 0x7e, 0x00, 0x7e, 0x00, 0x7e, 0, 0, 0}));
  EXPECT_EQ(head("fp8e4m3:40+spikes", DType::f32, 11),
            (Bytes{0x00, 0x7e, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f, 0}));
  EXPECT_EQ(head("mxfp4", DType::f32, 4), (Bytes{255, 125, 0, 0}));
  EXPECT_EQ(head("nvfp4", DType::bf16, 6)[4], 0x7f);
}

TEST(CodecCasts, SaturateAndKeepInfinities) {
  const std::vector<float> x = {1e6f, -1e6f, INFINITY, -INFINITY, NAN, 65519.0f, 65520.0f, FLT_MAX};
  const std::vector<float> f16 = roundTrip("f16", x), bf16 = roundTrip("bf16", x);
  const float large = FloatType::bf16().largest();
  EXPECT_EQ(std::vector<float>(f16.begin(), f16.begin() + 4),
            (std::vector<float>{65504, -65504, INFINITY, -INFINITY}));
  EXPECT_TRUE(std::isnan(f16[4]) && std::isnan(bf16[4]));
  EXPECT_EQ(std::vector<float>(f16.begin() + 5, f16.end()),
            (std::vector<float>{65504, 65504, 65504}));
  EXPECT_EQ(bf16[2], INFINITY);
  EXPECT_EQ(bf16[7], large);
  // y is cast alike.
  const Row row(encodingOf("int8:32+bf16-scale"), DType::f32, {1e6f, -1e6f, 0});
  const std::vector<uint8_t> halves = row.decodeTo(DType::f16);
  EXPECT_EQ(halves, (std::vector<uint8_t>{0xff, 0x7b, 0xff, 0xfb, halves[4], halves[5]}));
}

/// Of the spikes of one group of f32 numbers.
std::pair<int, int> placesOf(const char *encoding, const std::vector<float> &x) {
  const Row row(encodingOf(encoding), DType::f32, x);
  const auto at = static_cast<size_t>(row.codec.groupHeaderBytes) - 2;
  return {row.bytes[at], row.bytes[at + 1]};
}
using P = std::pair<int, int>;

/// Those that leave the others the smallest span, by what a form makes its scale from.
TEST(CodecSpikes, LeaveTheSmallestSpan) {
  const std::vector<float> above = {0, 9, 1, 8, 2}, below = {0, -9, -1, -8, -2},
                           sides = {0, 9, 1, -9, 2};
  for (const char *encoding : {"int4:32+spikes", "int4:32+zero-point+spikes",
                               "int4:32+symmetric+spikes", "fp8e4m3:32+spikes"}) {
    EXPECT_EQ(placesOf(encoding, above), P(1, 3)) << encoding;
    EXPECT_EQ(placesOf(encoding, below), P(1, 3)) << encoding;
    EXPECT_EQ(placesOf(encoding, sides), P(3, 1)) << encoding;
  }
  // Without one of either end, as any pair leaves a range of 2. With 0, only the largest counts,
  // and so does only the largest magnitude.
  const std::vector<float> even = {5, 6, 7, 8, 9};
  EXPECT_EQ(placesOf("int4:32+spikes", even), P(0, 4));
  EXPECT_EQ(placesOf("int4:32+zero-point+spikes", even), P(4, 3));
  EXPECT_EQ(placesOf("int4:32+symmetric+spikes", even), P(4, 3));
  EXPECT_EQ(placesOf("fp8e4m3:32+spikes", {-5, -6, -7, -8, -9}), P(4, 3));
  // Where the two largest and the two smallest leave as little, the two largest.
  EXPECT_EQ(placesOf("int4:32+spikes", {0, 1, 4, 5, 8, 9}), P(5, 4));
  EXPECT_EQ(placesOf("int4:32+spikes", {0, 0, 5, 6, 7, 12, 12}), P(5, 6));
  // In vectors and behind them, where two of either end are far apart, or one is.
  for (size_t count : {4, 15, 16, 17, 31, 33, 64, 127, 128})
    for (size_t first = 0; first < count; first += 7)
      for (size_t second = 0; second < count; second += 5)
        for (float sign : {1.0F, -1.0F}) {
          if (first == second)
            continue;
          std::vector<float> x(count);
          for (size_t i = 0; i < count; ++i)
            x[i] = static_cast<float>(i % 3);
          x[first] = 200 * sign;
          x[second] = 100 * sign;
          const auto a = static_cast<int>(first), b = static_cast<int>(second);
          EXPECT_EQ(placesOf("int4:128+spikes", x), P(a, b)) << count;
          x[second] = -100 * sign;
          EXPECT_EQ(placesOf("int4:128+spikes", x), sign > 0 ? P(b, a) : P(a, b)) << count;
          x[second] = x[first] = 100 * sign;
          EXPECT_EQ(placesOf("int4:128+spikes", x), P(std::min(a, b), std::max(a, b))) << count;
        }
}

TEST(CodecSpikes, TheFirstOfEqualsTravel) {
  auto places = [](const std::vector<float> &x) { return placesOf("int2:32+spikes", x); };
  EXPECT_EQ(places({5}), P(0, 0));
  EXPECT_EQ(places({5, 5}), P(0, 1));
  EXPECT_EQ(places({5, 4}), P(1, 0));
  EXPECT_EQ(places({1, 3, 0, 3, 0}), P(1, 3));
  EXPECT_EQ(places({3, 0, 2, 0, 3, 3}), P(1, 3));
  EXPECT_EQ(places(std::vector<float>(32, 7)), P(0, 1));
  EXPECT_EQ(places({0.0f, -0.0f, 0.0f}), P(0, 1));
  // Outliers leave the others their own scale.
  std::vector<float> x(32, 1.0f);
  x[4] = -1e30f;
  x[9] = 1e30f;
  x[10] = 1.5f;
  const std::vector<float> y = roundTrip("int8:32+spikes", x);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(y[i], x[i], i == 10 ? 0.001 : 0.0) << i;
}

TEST(CodecSpikes, APositionOutsideOfTheGroupIsAFault) {
  for (const VectorKernels *kernels : allKernels())
    for (const char *text : {"int4:32+spikes", "int4:512+spikes", "fp8e4m3:32+hadamard16+spikes"}) {
      const Encoding e = encodingOf(text);
      const int64_t columns = e.group + 3;
      Row row(e, DType::f32, std::vector<float>(static_cast<size_t>(columns), 1.0f));
      const size_t header = static_cast<size_t>(e.groupHeaderBytes(DType::f32));
      const size_t wide = e.group > 256 ? 2 : 1;
      std::vector<float> y(static_cast<size_t>(columns));
      const void *rows[] = {row.bytes.data(), row.bytes.data()};
      auto fault = [&] {
        return kernels->codec->decodeRows(row.codec, rows, 2, -1, 0, y.data(), false);
      };
      EXPECT_LT(fault().position, 0);
      for (size_t group : {size_t(0), size_t(1)})
        for (size_t spike : {size_t(1), size_t(2)}) {
          const std::vector<uint8_t> before = row.bytes;
          const int64_t elements = group == 0 ? e.group : 3;
          for (int64_t bad : {elements, elements + 7}) {
            std::memcpy(row.bytes.data() + (group + 1) * header - spike * wide, &bad, wide);
            EXPECT_EQ(fault().position, bad);
            EXPECT_EQ(fault().elements, elements);
          }
          row.bytes = before;
        }
    }
}

/// Any bytes decode to something, the same for all instruction sets and the definition.
TEST(CodecPayloads, AnyBytesDecodeAsTheDefinition) {
  const uint32_t seed = codecSeed(24);
  std::mt19937 random(seed);
  for (const Encoding &e : encodingsOf({32, 40, 264}, {0, 32})) {
    SCOPED_TRACE(::testing::Message() << e.str() << ", seed " << seed);
    const int64_t columns = e.isCast() ? 77 : 2 * e.group + 3;
    const CodecRow codec = CodecRow::of(layoutOf(e, DType::f32, 1, columns, 1));
    std::vector<uint8_t> bytes(static_cast<size_t>(codec.rowBytes));
    for (int i = 0; i < 20; ++i) {
      anyPayload(e, DType::f32, columns, bytes, random);
      const std::vector<float> y = CodecReference(e, DType::f32, columns).decode(bytes);
      for (const VectorKernels *kernels : allKernels())
        for (DType type : {DType::f32, DType::f16, DType::bf16}) {
          std::vector<uint8_t> got(y.size() * static_cast<size_t>(byteSize(type)));
          const void *rows[] = {bytes.data()};
          kernels->codec->decodeRows(codec, rows, 1, -1, static_cast<int>(type), got.data(), false);
          ASSERT_EQ(got, storedResult(type, y)) << kernels->isa << " to " << name(type);
        }
    }
  }
}

/// All of a group that no encoder writes, whose scale is no number, is NaN, its spikes too.
TEST(CodecPayloads, ScalesThatAreNoNumbersLoseTheGroup) {
  for (const VectorKernels *kernels : allKernels())
    for (const char *text : {"int8:32+spikes", "fp8e4m3:32+bf16-scale+spikes",
                             "int4:32+symmetric+hadamard16+spikes"}) {
      const Encoding e = encodingOf(text);
      Row row(e, DType::f32, std::vector<float>(40, 1.0f));
      row.bytes[0] = 0xff;
      row.bytes[1] = 0x7f;
      std::vector<float> y(40);
      const void *rows[] = {row.bytes.data()};
      kernels->codec->decodeRows(row.codec, rows, 1, -1, 0, y.data(), false);
      for (size_t i = 0; i < 32; ++i)
        EXPECT_TRUE(std::isnan(y[i])) << text << ", " << kernels->isa << ", element " << i;
      EXPECT_TRUE(std::isfinite(y[32]));
    }
}

} // namespace
