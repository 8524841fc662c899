//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names of encodings, and the sizes and headers of their payloads.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/Encoding.h"
#include "Testing.h"

#include <gtest/gtest.h>

using namespace braid::runtime;

namespace {

Encoding encodingOf(const std::string &text) {
  Result<Encoding> e = Encoding::parse(text);
  EXPECT_OK(e);
  return *e;
}

PayloadLayout layoutOf(const std::string &text, DType type, int64_t rows, int64_t columns,
                       int64_t parts) {
  Result<PayloadLayout> layout = PayloadLayout::of(encodingOf(text), type, rows, columns, parts);
  EXPECT_OK(layout);
  return *layout;
}

TEST(Encoding, NamesAndCodesComeBack) {
  for (const char *text :
       {"bf16", "f16", "int2:32", "int8:8192", "int4:128+symmetric", "int4:128+zero-point",
        "int5:40+bf16-scale", "int4:128+symmetric+bf16-scale+hadamard64+spikes", "fp8e4m3:128",
        "fp8e5m2:64+hadamard16", "fp6e3m2:32", "fp6e2m3:128+spikes", "fp4e2m1:32", "mxfp8e4m3",
        "mxfp8e5m2+hadamard32", "mxfp6e3m2", "mxfp6e2m3", "mxfp4", "nvfp4+hadamard16"}) {
    const Encoding e = encodingOf(text);
    EXPECT_EQ(e.str(), text);
    Result<Encoding> back = Encoding::fromCode(e.code());
    ASSERT_OK(back);
    EXPECT_EQ(back->str(), text);
  }
  EXPECT_EQ(encodingOf("int4+spikes+symmetric").str(), "int4:128+symmetric+spikes");
  EXPECT_EQ(encodingOf("mxfp4:32").str(), "mxfp4");
  EXPECT_EQ(EncodingPair::parse("int4+spikes/int8")->str(), "int4:128+spikes/int8:128");
  EXPECT_EQ(EncodingPair::parse("int8/int8")->str(), "int8:128");
}

TEST(Encoding, NumbersBeyond64BitsAreNone) {
  const std::string many(40, '9');
  auto refused = [&](const std::string &before, const std::string &message) {
    EXPECT_ERROR(Encoding::parse(before + many),
                 "encoding '" + before + many + "': " + message + ", got '" + many + "'");
  };
  refused("int8:", "expects a number of elements after ':'");
  refused("int", "expects integers of 2 to 8 bits");
  refused("int8+hadamard", "expects a number of elements after 'hadamard'");
}

TEST(Encoding, NumbersThatAreNoCode) {
  // Any 32 bits are refused or come back.
  int64_t accepted = 0;
  for (uint64_t i = 0; i < (uint64_t(1) << 32); i += 9973) {
    Result<Encoding> e = Encoding::fromCode(static_cast<uint32_t>(i));
    if (!e.ok())
      continue;
    ++accepted;
    EXPECT_EQ(e->code(), i);
    EXPECT_EQ(encodingOf(e->str()).code(), i);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_ERROR(Encoding::fromCode(UINT32_MAX), "expects the code of an encoding, got 4294967295");
}

TEST(Encoding, TheExpectedErrorIsMeasured) {
  // What sums of normal numbers were measured to lose in the two halves of an all_reduce, over
  // sqrt(2).
  EXPECT_NEAR(encodingOf("int8:128").expectedError(), 0.0058, 0.0015);
  EXPECT_NEAR(encodingOf("int4:128").expectedError(), 0.099, 0.025);
  EXPECT_NEAR(encodingOf("fp8e4m3:128").expectedError(), 0.026, 0.006);
  EXPECT_NEAR(encodingOf("bf16").expectedError(), 0.00165, 0.0004);
}

/// The figures of full rows, in bytes an element.
TEST(PayloadLayout, BytesAreThoseOfTheFormat) {
  auto perElement = [](const char *text) {
    return static_cast<double>(layoutOf(text, DType::f32, 1, 4096, 1).rowBytes) / 4096;
  };
  EXPECT_EQ(perElement("int8:128"), 1.03125);
  EXPECT_EQ(perElement("int6:128"), 0.78125);
  EXPECT_EQ(perElement("int4:128"), 0.53125);
  EXPECT_EQ(perElement("int4:128+symmetric"), 0.515625);
  EXPECT_EQ(perElement("fp8e4m3:128"), 1.015625);
  EXPECT_EQ(perElement("mxfp8e4m3"), 1.03125);
  EXPECT_EQ(perElement("mxfp4"), 0.53125);
  EXPECT_EQ(perElement("nvfp4"), 0.5625 + 4.0 / 4096);
  EXPECT_EQ(perElement("bf16"), 2);
  // Spikes: two values of the tensor's type and two positions.
  EXPECT_EQ(perElement("int4:128+spikes"), 0.53125 + 10.0 / 128);
  EXPECT_EQ(layoutOf("int4:128+spikes", DType::bf16, 1, 128, 1).rowBytes, 64 + 4 + 4 + 2);
  EXPECT_EQ(layoutOf("int4:512+spikes", DType::bf16, 1, 512, 1).rowBytes, 256 + 4 + 4 + 4);
}

TEST(PayloadLayout, RowsTailsAndParts) {
  // 7 rows in 4 parts: 2 in each, one of them missing. 576 elements are 4 groups and a half.
  const PayloadLayout p = layoutOf("int8:128", DType::f32, 7, 576, 4);
  EXPECT_EQ(p.groups, 5);
  EXPECT_EQ(p.rowBytes, 5 * 4 + 576);
  EXPECT_EQ(p.rowsPerPart, 2);
  EXPECT_EQ(p.partBytes, 1216); // 16 + 2 * 596 = 1208
  EXPECT_EQ(p.bytes, 4 * 1216);
  EXPECT_EQ(p.rowsOf(2), 2);
  EXPECT_EQ(p.rowsOf(3), 1);
  EXPECT_EQ(p.rowOffset(5), 2 * 1216 + 16 + 596);
  // One row over 4 ranks.
  const PayloadLayout one = layoutOf("int4:128", DType::f32, 1, 192, 4);
  EXPECT_EQ(one.rowsOf(0), 1);
  EXPECT_EQ(one.rowsOf(1), 0);
  EXPECT_EQ(one.rowsOf(3), 0);
  // Codes of 3 bits of 5 elements take 2 bytes.
  EXPECT_EQ(layoutOf("int3:8192", DType::f32, 1, 5, 1).rowBytes, 4 + 2);
}

TEST(PayloadLayout, Errors) {
  const Encoding e = encodingOf("int8:128");
  EXPECT_ERROR(PayloadLayout::of(e, DType::f64, 1, 1, 1),
               "an encoding expects f32, f16 or bf16, got f64");
  EXPECT_ERROR(PayloadLayout::of(e, DType::f32, 0, 1, 1),
               "an encoding expects at least one row, column and part, got 0, 1 and 1");
  EXPECT_ERROR(PayloadLayout::of(e, DType::f32, int64_t(1) << 40, int64_t(1) << 20, 1),
               "an encoding expects at most 2^48 elements, and rows and columns below 2^32, got "
               "1099511627776 rows of 1048576 in 1 parts");
}

TEST(PayloadLayout, Headers) {
  const PayloadLayout p = layoutOf("int8:128", DType::f32, 7, 576, 4);
  std::vector<std::byte> header(16);
  p.writeHeader(header.data(), 3);
  EXPECT_OK(p.checkHeader(header.data(), 1));
  EXPECT_ERROR(p.checkHeader(header.data(), 2), "expects a payload of 2 to 2 rows, got 1");
  auto with = [&](size_t at, int value) {
    std::vector<std::byte> changed = header;
    changed[at] = static_cast<std::byte>(value);
    return p.checkHeader(changed.data(), 1);
  };
  EXPECT_ERROR(with(0, 0), "expects a payload that begins with 0x5142, got 20736");
  EXPECT_ERROR(with(2, 2), "expects a payload of version 1, got 2");
  EXPECT_ERROR(with(3, 2), "expects a payload of f32, got type 2");
  EXPECT_ERROR(with(8, 3), "expects a payload of 1 to 2 rows, got 3");
  EXPECT_ERROR(with(12, 65), "expects a payload of 576 columns, got 577");
  std::vector<std::byte> other(16);
  layoutOf("int4:128+spikes", DType::f32, 7, 576, 4).writeHeader(other.data(), 0);
  EXPECT_ERROR(p.checkHeader(other.data(), 1),
               "expects a payload of int8:128, got int4:128+spikes");
}

} // namespace
