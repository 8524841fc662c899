//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/HostTensor.h"

#include "Testing.h"
#include "braid/Base/Float16.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace braid::runtime;

namespace {

HostTensor iota(std::vector<int64_t> shape) {
  HostTensor tensor = HostTensor::zeros(DType::i32, std::move(shape));
  std::iota(tensor.as<int32_t>(), tensor.as<int32_t>() + tensor.numElements(), 0);
  return tensor;
}

HostTensor floats(std::vector<float> values) {
  HostTensor tensor = HostTensor::zeros(DType::f32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

TEST(HostTensor, Zeros) {
  HostTensor tensor = HostTensor::zeros(DType::f16, {2, 3});
  EXPECT_EQ(tensor.numElements(), 6);
  EXPECT_EQ(tensor.data.size(), 12u);
  EXPECT_EQ(HostTensor::zeros(DType::f64, {}).data.size(), 8u);
  EXPECT_EQ(shapeString({2, 3}), "[2, 3]");
  EXPECT_EQ(shapeString({}), "[]");
}

TEST(HostTensor, BoxesEqualElementwiseCopies) {
  const std::vector<int64_t> shape = {3, 4, 5};
  HostTensor tensor = iota(shape);
  const Box boxes[] = {{{0, 0, 0}, {3, 4, 5}}, {{1, 0, 0}, {2, 4, 5}}, {{0, 1, 2}, {3, 2, 3}},
                       {{2, 3, 4}, {1, 1, 1}}, {{0, 0, 1}, {3, 4, 1}}, {{1, 2, 0}, {1, 2, 5}},
                       {{1, 1, 1}, {0, 2, 2}}};
  for (const Box &box : boxes) {
    HostTensor part = extractBox(tensor, box);
    ASSERT_EQ(part.shape, box.sizes);
    int64_t next = 0;
    for (int64_t i = 0; i < box.sizes[0]; ++i)
      for (int64_t j = 0; j < box.sizes[1]; ++j)
        for (int64_t k = 0; k < box.sizes[2]; ++k)
          EXPECT_EQ(part.as<int32_t>()[next++],
                    ((i + box.offsets[0]) * 4 + j + box.offsets[1]) * 5 + k + box.offsets[2]);
    EXPECT_EQ(next, part.numElements());

    // Into a tensor of other values: only the box changes.
    HostTensor target = HostTensor::zeros(DType::i32, shape);
    std::fill(target.as<int32_t>(), target.as<int32_t>() + target.numElements(), -1);
    insertBox(target, box, part);
    int64_t changed = 0;
    for (int64_t i = 0; i < target.numElements(); ++i) {
      if (target.as<int32_t>()[i] == -1)
        continue;
      EXPECT_EQ(target.as<int32_t>()[i], i);
      ++changed;
    }
    EXPECT_EQ(changed, part.numElements());
  }
}

TEST(HostTensor, BoxOfAScalar) {
  HostTensor scalar = floats({4});
  scalar.shape = {};
  EXPECT_EQ(extractBox(scalar, {{}, {}}).as<float>()[0], 4);
}

TEST(HostTensor, CompareMeasures) {
  Result<Difference> same = compare(floats({1, 2, 2}), floats({1, 2, 2}));
  ASSERT_OK(same);
  EXPECT_EQ(same->relativeL2, 0);
  EXPECT_EQ(same->maxAbs, 0);
  Result<Difference> other = compare(floats({1, 2, 2.5}), floats({1, 2, 2}));
  ASSERT_OK(other);
  EXPECT_DOUBLE_EQ(other->relativeL2, 0.5 / 3);
  EXPECT_DOUBLE_EQ(other->maxAbs, 0.5);
  EXPECT_EQ(compare(floats({1}), floats({0}))->relativeL2, INFINITY);
}

TEST(HostTensor, CompareNeverOverlooksWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = INFINITY;
  for (auto [got, expected] :
       {std::pair(nan, 1.0f), std::pair(1.0f, nan), std::pair(nan, nan), std::pair(infinity, 1.0f),
        std::pair(1.0f, infinity), std::pair(infinity, -infinity)}) {
    Result<Difference> difference = compare(floats({1, got}), floats({1, expected}));
    ASSERT_OK(difference);
    EXPECT_EQ(difference->relativeL2, INFINITY) << got << " " << expected;
    EXPECT_EQ(difference->maxAbs, INFINITY) << got << " " << expected;
  }
  EXPECT_EQ(compare(floats({1, infinity}), floats({1, infinity}))->relativeL2, 0);
  HostTensor huge = HostTensor::zeros(DType::f64, {1}), other = huge;
  huge.as<double>()[0] = 1e200;
  other.as<double>()[0] = 2e200;
  EXPECT_EQ(compare(huge, other)->relativeL2, INFINITY);
}

TEST(HostTensor, CompareTypes) {
  HostTensor half = HostTensor::zeros(DType::f16, {1}), brain = HostTensor::zeros(DType::bf16, {1});
  half.as<uint16_t>()[0] = floatToF16(1.5f);
  brain.as<uint16_t>()[0] = floatToBf16(1.5f);
  EXPECT_EQ(compare(half, floats({1.5}))->maxAbs, 0);
  EXPECT_EQ(compare(brain, half)->maxAbs, 0);
  EXPECT_ERROR(compare(floats({1, 2}), floats({1})), "expects a tensor of shape [1], got [2]");
  EXPECT_ERROR(compare(HostTensor::zeros(DType::i64, {1}), floats({1})),
               "expects integer values to compare with i64, got f32");
  EXPECT_ERROR(compare(floats({1}), HostTensor::zeros(DType::i32, {1})),
               "expects floating-point values to compare with f32, got i32");
}

TEST(HostTensor, CompareIntegersExactly) {
  HostTensor a = HostTensor::zeros(DType::i64, {2}), b = HostTensor::zeros(DType::i32, {2});
  EXPECT_EQ(compare(a, b)->relativeL2, 0);
  b.as<int32_t>()[1] = -4;
  EXPECT_EQ(compare(a, b)->relativeL2, 1);
  EXPECT_EQ(compare(a, b)->maxAbs, 4);
  HostTensor c = a;
  a.as<int64_t>()[0] = int64_t(1) << 60;
  c.as<int64_t>()[0] = (int64_t(1) << 60) + 1;
  EXPECT_GT(compare(a, c)->relativeL2, 0);
  EXPECT_EQ(compare(a, a)->relativeL2, 0);
  HostTensor small = HostTensor::zeros(DType::i8, {1}), other = small;
  small.as<int8_t>()[0] = -3;
  EXPECT_EQ(compare(small, other)->relativeL2, INFINITY);
}

TEST(Float16, HalfRoundTripsEveryValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = f16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(value))));
      continue;
    }
    EXPECT_EQ(floatToF16(value), bits);
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(floatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(floatToF16(65520.0f), 0x7c00);
  EXPECT_EQ(floatToF16(1 + 0x1p-11f), 0x3c00);
  EXPECT_EQ(floatToF16(1 + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(floatToF16(0x1p-25f), 0);
  EXPECT_EQ(floatToF16(1.5f * 0x1p-25f), 1);
  EXPECT_EQ(floatToF16(-0x1.ff8p-15f), 0x83ff);
  EXPECT_EQ(floatToF16(-0x1.ffcp-15f), 0x8400); // rounds up into the normal numbers
  EXPECT_EQ(f16ToFloat(1), 0x1p-24f);
  EXPECT_EQ(floatToBf16(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(floatToBf16(1 + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(floatToBf16(3.4e38f), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBf16(bitsToFloat(0x7f800001)))));
}

} // namespace
