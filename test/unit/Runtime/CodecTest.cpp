//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rows of payloads: every instruction set against the definition of braid/Base/Encoding.h, and the
// bounds that it states.
//
//===----------------------------------------------------------------------===//
#include "CodecTesting.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace braid::runtime::testing {
extern const CodecKernels codecPortable; // CodecPortable.cpp
} // namespace braid::runtime::testing

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

std::string hex(const std::vector<uint8_t> &bytes, size_t at) {
  std::string text;
  for (size_t i = at; i < std::min(at + 8, bytes.size()); ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x ", bytes[i]);
    text += byte;
  }
  return text;
}

void expectBytes(const std::vector<uint8_t> &got, const std::vector<uint8_t> &expected,
                 const std::string &what) {
  ASSERT_EQ(got.size(), expected.size());
  if (got == expected)
    return;
  const auto at = static_cast<size_t>(
      std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin());
  ADD_FAILURE() << what << " differs at byte " << at << " of " << got.size() << ": " << hex(got, at)
                << "instead of " << hex(expected, at);
}

/// Of every instruction set, and of processors other than x86.
std::vector<std::pair<const char *, const CodecKernels *>> allCodecs() {
  std::vector<std::pair<const char *, const CodecKernels *>> codecs{{"portable", &codecPortable}};
  for (const VectorKernels *kernels : allKernels())
    codecs.emplace_back(kernels->isa, kernels->codec);
  return codecs;
}

/// Encodes some rows with the definition and every instruction set; decodes each, and their sum.
void checkRows(const Encoding &e, DType type, int64_t columns, const std::vector<Input> &inputs,
               std::mt19937 &random) {
  const PayloadLayout layout = layoutOf(e, type, 1, columns, 1);
  const CodecRow codec = CodecRow::of(layout);
  CodecReference reference(e, type, columns);
  std::vector<std::vector<uint8_t>> rows, unencoded;
  std::vector<std::vector<float>> xs, ys;
  std::vector<float> sum;
  for (Input input : inputs) {
    const std::vector<float> x = inputOf(input, type, columns, random);
    const std::vector<uint8_t> bytes = stored(type, x);
    rows.push_back(reference.encode(x));
    ASSERT_EQ(static_cast<int64_t>(rows.back().size()), layout.rowBytes);
    const std::vector<float> y = reference.decode(rows.back());
    unencoded.push_back(bytes);
    xs.push_back(x);
    ys.push_back(y);
    for (size_t i = 0; i < y.size(); ++i)
      if (rows.size() == 1)
        sum.push_back(y[i]);
      else
        sum[i] += y[i];
    for (const auto &[isa, kernels] : allCodecs()) {
      SCOPED_TRACE(::testing::Message() << isa << ", input " << static_cast<int>(input));
      Guarded row(rows.back().size());
      kernels->encodeRow(codec, bytes.data(), row.data());
      EXPECT_TRUE(row.intact());
      ASSERT_NO_FATAL_FAILURE(expectBytes(row.get(), rows.back(), "the payload"));
      for (DType out : kTypes) {
        Guarded result(static_cast<size_t>(columns * byteSize(out)));
        const void *from[] = {row.data()};
        const SpikeFault fault = kernels->decodeRows(codec, from, 1, -1, static_cast<int>(out),
                                                     result.data(), columns % 2 == 0);
        EXPECT_LT(fault.position, 0);
        EXPECT_TRUE(result.intact());
        expectBytes(result.get(), storedResult(out, y), std::string("y in ") + name(out));
      }
    }
  }
  for (const auto &[isa, kernels] : allCodecs())
    for (DType out : kTypes) {
      std::vector<const void *> from;
      for (const std::vector<uint8_t> &row : rows)
        from.push_back(row.data());
      Guarded result(static_cast<size_t>(columns * byteSize(out)));
      kernels->decodeRows(codec, from.data(), static_cast<int64_t>(from.size()), -1,
                          static_cast<int>(out), result.data(), columns % 2 == 0);
      EXPECT_TRUE(result.intact());
      SCOPED_TRACE(isa);
      expectBytes(result.get(), storedResult(out, sum), std::string("the sum in ") + name(out));
      // Each of them as it was.
      for (size_t own = 0; own < rows.size(); ++own) {
        std::vector<float> mixed = own == 0 ? xs[0] : ys[0];
        for (size_t r = 1; r < rows.size(); ++r)
          for (size_t i = 0; i < mixed.size(); ++i)
            mixed[i] += own == r ? xs[r][i] : ys[r][i];
        std::vector<const void *> terms = from;
        terms[own] = unencoded[own].data();
        kernels->decodeRows(codec, terms.data(), static_cast<int64_t>(terms.size()),
                            static_cast<int64_t>(own), static_cast<int>(out), result.data(),
                            columns % 2 == 0);
        EXPECT_TRUE(result.intact());
        expectBytes(result.get(), storedResult(out, mixed),
                    "the sum in " + std::string(name(out)) + " with own row " +
                        std::to_string(own));
      }
    }
}

class CodecOf : public ::testing::TestWithParam<Encoding::Element> {};

/// Every encoding, with few columns, of all types.
TEST_P(CodecOf, InstructionSetsDoAsTheDefinition) {
  std::mt19937 random(11);
  size_t turn = 0;
  for (const Encoding &e : encodingsOf({32, 40, 128, 256}, {0, 16, 32, 64, 128, 256})) {
    if (e.element != GetParam())
      continue;
    const int64_t sizes[] = {1, 2, 3, 31, 2 * e.group + 17, e.group, e.group - 1, 3 * e.group + 8};
    for (DType type : kTypes)
      for (int i = 0; i < 2; ++i) {
        const int64_t columns = std::max<int64_t>(1, sizes[turn % std::size(sizes)]);
        std::vector<Input> inputs;
        for (int k = 0; k < 2; ++k)
          inputs.push_back(kInputs[(turn + static_cast<size_t>(k) * 4) % std::size(kInputs)]);
        ++turn;
        SCOPED_TRACE(::testing::Message() << e.str() << " of " << name(type) << ", " << columns
                                          << " columns, seed 11, turn " << turn);
        checkRows(e, type, columns, inputs, random);
        if (HasFailure())
          return;
      }
  }
}

/// All inputs, for some encodings of each element.
TEST_P(CodecOf, EveryInputAsTheDefinition) {
  std::mt19937 random(12);
  for (const Encoding &e : encodingsOf({128, 8192}, {0, 128})) {
    if (e.element != GetParam() ||
        (e.element == Encoding::Element::integer && e.bits % 3 == 1 && e.bits != 4))
      continue;
    const int64_t columns = e.group == 8192 ? 8192 + 37 : 300;
    for (DType type : kTypes) {
      if (e.group == 8192 && (type != DType::f16 || e.bits == 5))
        continue;
      SCOPED_TRACE(::testing::Message() << e.str() << " of " << name(type) << ", seed 12");
      checkRows(e, type, columns, {std::begin(kInputs), std::end(kInputs)}, random);
      if (HasFailure())
        return;
    }
  }
}

std::string nameOfElement(const ::testing::TestParamInfo<Encoding::Element> &info) {
  return nameOf(info.param);
}
INSTANTIATE_TEST_SUITE_P(, CodecOf,
                         ::testing::Values(Encoding::Element::bf16, Encoding::Element::f16,
                                           Encoding::Element::integer, Encoding::Element::e4m3,
                                           Encoding::Element::e5m2, Encoding::Element::e3m2,
                                           Encoding::Element::e2m3, Encoding::Element::e2m1),
                         nameOfElement);

} // namespace
