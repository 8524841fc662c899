//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The interpreter's payloads are those of the CPU, bit for bit.
//
//===----------------------------------------------------------------------===//
#include "CodecTesting.h"
#include "lib/Interpreter/Core/Codec.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// A row through the interpreter and every instruction set, to all types.
void expectSame(const Encoding &e, DType type, Input input, int64_t columns, std::mt19937 &random) {
  SCOPED_TRACE(::testing::Message() << e.str() << " of " << name(type) << ", " << columns
                                    << " columns, input " << static_cast<int>(input));
  const std::vector<float> x = inputOf(input, type, columns, random);
  const std::vector<uint8_t> from = stored(type, x), bytes = braid::interp::encodeRow(e, type, x);
  const auto decoded = braid::interp::decodeRow(e, type, columns, bytes);
  ASSERT_OK(decoded);
  const CodecRow codec = CodecRow::of(layoutOf(e, type, 1, columns, 1));
  ASSERT_EQ(static_cast<int64_t>(bytes.size()), codec.rowBytes);
  std::vector<uint8_t> expected[std::size(kTypes)];
  for (size_t out = 0; out < std::size(kTypes); ++out) {
    std::vector<float> cast;
    for (float y : *decoded)
      cast.push_back(braid::interp::castTo(kTypes[out], y));
    expected[out] = stored(kTypes[out], cast);
  }
  for (const VectorKernels *kernels : allKernels()) {
    std::vector<uint8_t> row(bytes.size());
    kernels->codec->encodeRow(codec, from.data(), row.data());
    ASSERT_TRUE(row == bytes) << kernels->isa;
    for (size_t out = 0; out < std::size(kTypes); ++out) {
      std::vector<uint8_t> got(expected[out].size());
      const void *rows[] = {row.data()};
      kernels->codec->decodeRows(codec, rows, 1, -1, static_cast<int>(kTypes[out]), got.data(),
                                 false);
      ASSERT_TRUE(got == expected[out]) << kernels->isa << " to " << name(kTypes[out]);
    }
  }
}

/// Every encoding of every type. Sizes and inputs take turns, or all of them with BRAID_TEST_LONG.
TEST(CodecInterpreter, GivesTheSameBytesAndNumbers) {
  const uint32_t seed = codecSeed(41);
  std::mt19937 random(seed);
  const size_t many = testsAreLong() ? 7 : 1;
  size_t turn = 0;
  for (const Encoding &e : encodingsOf({32, 128, 512, 8192}, {0, 16, 128}))
    for (DType type : kTypes) {
      // One element, a group longer than the row, tails of groups and of bytes.
      const int64_t sizes[] = {1, 2 * e.group + 17, e.group + 1, 300, 576 / 3, e.group / 2, 3};
      for (size_t i = 0; i < many; ++i, ++turn) {
        // Large groups take long, and are like the others.
        if (e.group == 8192 && turn % 4 != 0 && !testsAreLong())
          continue;
        expectSame(e, type, kInputs[turn % std::size(kInputs)],
                   std::max<int64_t>(1, sizes[turn % std::size(sizes)]), random);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ", turn " << turn;
      }
    }
}

/// An element, and the bits of integers.
using Codes = std::pair<Encoding::Element, int64_t>;
class CodecInterpreterOf : public ::testing::TestWithParam<Codes> {};

/// 2^22 + 3 elements in a row, of all encodings with BRAID_TEST_LONG. Otherwise of one with 4 bits;
/// rows of the others are as odd, and shorter.
TEST_P(CodecInterpreterOf, LongRowsAreTheSame) {
  std::mt19937 random(codecSeed(42));
  const auto [element, bits] = GetParam();
  std::vector<Encoding> chosen;
  for (const Encoding &e : encodingsOf({128}, {0, 64}))
    if (e.element == element && (element != Encoding::Element::integer || e.bits == bits))
      chosen.push_back(e);
  int64_t columns = int64_t(1) << 22;
  if (!testsAreLong()) {
    chosen = {chosen[random() % chosen.size()]};
    if (GetParam() != Codes(Encoding::Element::integer, 4))
      columns = int64_t(1) << 14;
  }
  size_t turn = 0;
  for (const Encoding &e : chosen) {
    expectSame(e, kTypes[turn++ % std::size(kTypes)], Input::heavyTailed, columns + 3, random);
    ASSERT_FALSE(HasFailure());
  }
}

std::string nameOfCodes(const ::testing::TestParamInfo<Codes> &info) {
  const auto [element, bits] = info.param;
  return nameOf(element) + (element == Encoding::Element::integer ? std::to_string(bits) : "");
}
using E = Encoding::Element;
INSTANTIATE_TEST_SUITE_P(, CodecInterpreterOf,
                         ::testing::Values(Codes(E::bf16, 0), Codes(E::f16, 0),
                                           Codes(E::integer, 2), Codes(E::integer, 3),
                                           Codes(E::integer, 4), Codes(E::integer, 5),
                                           Codes(E::integer, 6), Codes(E::integer, 7),
                                           Codes(E::integer, 8), Codes(E::e4m3, 0),
                                           Codes(E::e5m2, 0), Codes(E::e3m2, 0), Codes(E::e2m3, 0),
                                           Codes(E::e2m1, 0)),
                         nameOfCodes);

/// Payloads that no encoder writes.
TEST(CodecInterpreter, DecodesAnyBytesToTheSameNumbers) {
  const uint32_t seed = codecSeed(43);
  std::mt19937 random(seed);
  for (const Encoding &e : encodingsOf({32, 264}, {0, 32})) {
    SCOPED_TRACE(::testing::Message() << e.str() << ", seed " << seed);
    const int64_t columns = e.isCast() ? 77 : 2 * e.group + 3;
    const CodecRow codec = CodecRow::of(layoutOf(e, DType::bf16, 1, columns, 1));
    std::vector<uint8_t> bytes(static_cast<size_t>(codec.rowBytes));
    for (int i = 0; i < 20; ++i) {
      anyPayload(e, DType::bf16, columns, bytes, random);
      const auto y = braid::interp::decodeRow(e, DType::bf16, columns, bytes);
      ASSERT_OK(y);
      for (const VectorKernels *kernels : allKernels()) {
        std::vector<uint8_t> got(y->size() * 4);
        const void *rows[] = {bytes.data()};
        kernels->codec->decodeRows(codec, rows, 1, -1, 0, got.data(), false);
        ASSERT_EQ(got, storedResult(DType::f32, *y)) << kernels->isa;
      }
    }
  }
}

} // namespace
