//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Weights that are quantized while they are loaded.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"
#include "braid/Base/HostTensor.h"
#include "braid/Base/RowQuantization.h"
#include "braid/Base/Slices.h"
#include "braid/Base/Weights.h"

#include <cmath>
#include <limits>

using namespace braid::runtime;

namespace {

/// A matrix [rows, columns] of which a checkpoint's tensor [rows, stored] fills the first columns.
Parameter parameter(QuantizedPart part, int64_t rows, int64_t columns, int64_t stored) {
  Parameter p;
  p.name = "w";
  p.quantized = part;
  p.dtype = part == QuantizedPart::values ? DType::i8 : DType::f32;
  p.globalShape = {rows};
  if (part == QuantizedPart::values)
    p.globalShape.push_back(columns);
  p.slices.push_back({"w", {rows, stored}, {}, {0, 0}, {0, 0}, {rows, stored}});
  return p;
}

template <typename T>
std::vector<T> read(const Parameter &p, const Box &box, WeightSource &source) {
  std::vector<T> values(static_cast<size_t>(HostTensor::zeros(p.dtype, box.sizes).numElements()));
  EXPECT_OK(readParameter(source, p, box, values.data()));
  return values;
}

TEST(QuantizedParameter, IsTheSameInAnyBox) {
  const int64_t rows = 37, columns = 96, stored = 90;
  const std::unique_ptr<WeightSource> source = WeightSource::random(11);
  const Parameter values = parameter(QuantizedPart::values, rows, columns, stored),
                  scales = parameter(QuantizedPart::scales, rows, columns, stored);
  // From the matrix in f32, a row at a time.
  Parameter matrix = sourceOf(values);
  EXPECT_EQ(matrix.globalShape, (std::vector<int64_t>{rows, columns}));
  EXPECT_EQ(sourceOf(scales).globalShape, (std::vector<int64_t>{rows, stored}));
  std::vector<float> floats(rows * columns);
  ASSERT_OK(source->read(matrix, {{0, 0}, {rows, columns}}, floats.data()));
  std::vector<int8_t> expected(rows * columns);
  std::vector<float> expectedScales;
  for (int64_t row = 0; row < rows; ++row)
    expectedScales.push_back(
        quantizeRow(floats.data() + row * columns, columns, expected.data() + row * columns));
  for (const Box &box : {Box{{0, 0}, {rows, columns}}, Box{{5, 0}, {9, columns}},
                         Box{{0, 48}, {rows, 48}}, Box{{36, 32}, {1, 32}}, Box{{3, 80}, {2, 16}}}) {
    const std::vector<int8_t> got = read<int8_t>(values, box, *source);
    for (int64_t i = 0; i < box.sizes[0]; ++i)
      for (int64_t j = 0; j < box.sizes[1]; ++j)
        ASSERT_EQ(got[size_t(i * box.sizes[1] + j)],
                  expected[size_t((box.offsets[0] + i) * columns + box.offsets[1] + j)]);
    const std::vector<float> gotScales =
        read<float>(scales, {{box.offsets[0]}, {box.sizes[0]}}, *source);
    for (int64_t i = 0; i < box.sizes[0]; ++i)
      ASSERT_EQ(gotScales[size_t(i)], expectedScales[size_t(box.offsets[0] + i)]);
  }
}

TEST(QuantizedParameter, OfManyRowsIsReadInPieces) {
  const int64_t rows = 600, columns = 4096; // more than 2^20 elements
  const std::unique_ptr<WeightSource> source = WeightSource::random(12);
  const Parameter values = parameter(QuantizedPart::values, rows, columns, columns);
  const std::vector<int8_t> all = read<int8_t>(values, {{0, 0}, {rows, columns}}, *source);
  for (int64_t row : {0, 255, 256, 257, 599}) {
    const std::vector<int8_t> one = read<int8_t>(values, {{row, 0}, {1, columns}}, *source);
    ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + row * columns)) << row;
  }
}

/// A matrix with one number that is not finite.
class Damaged : public WeightSource {
public:
  std::string describe() const override { return "damaged"; }
  std::vector<TensorInfo> tensors() const override { return {}; }
  Status read(const Parameter &, const Box &box, void *dest) override {
    for (int64_t i = 0; i < box.sizes[0] * box.sizes[1]; ++i)
      static_cast<float *>(dest)[i] = i == 2 * box.sizes[1] + 1 ? INFINITY : 1;
    return {};
  }
};

TEST(QuantizedParameter, ExpectsFiniteWeights) {
  Damaged source;
  for (QuantizedPart part : {QuantizedPart::values, QuantizedPart::scales}) {
    const Parameter p = parameter(part, 4, 8, 8);
    std::vector<float> dest(32);
    Box box{{1}, {3}};
    if (part == QuantizedPart::values)
      box = {{1, 4}, {3, 4}};
    EXPECT_ERROR(readParameter(source, p, box, dest.data()),
                 "parameter 'w' expects finite weights to quantize, got others in row 3");
  }
}

TEST(QuantizedParameter, HasTheTypeOfItsPart) {
  Parameter p = parameter(QuantizedPart::values, 4, 8, 8);
  EXPECT_OK(verifySlices(p));
  p.dtype = DType::f32;
  EXPECT_ERROR(verifySlices(p), "expects quantized values of i8 with 2 dimensions, got f32 [4, 8]");
  p = parameter(QuantizedPart::scales, 4, 8, 8);
  EXPECT_OK(verifySlices(p));
  p.globalShape = {4, 8};
  EXPECT_ERROR(verifySlices(p), "expects quantized scales of f32 with 1 dimension, got f32 [4, 8]");
  p = parameter(QuantizedPart::scales, 4, 8, 8);
  p.slices[0].sizes[1] = std::numeric_limits<int64_t>::max();
  EXPECT_ERROR(verifySlices(p), "shape [4, 9223372036854775807] is too large");
  p = parameter(QuantizedPart::scales, 3, 8, 8);
  p.slices[0].sizes = {4, 8};
  EXPECT_ERROR(verifySlices(p), "slice 0 of tensor 'w' takes 4 from offset 0 in dimension 0, which "
                                "has size 3 in the tensor");
  p.slices[0].sizes = {};
  EXPECT_ERROR(verifySlices(p), "slice 0 of tensor 'w' expects sizes of rank 2, got []");
}

} // namespace
