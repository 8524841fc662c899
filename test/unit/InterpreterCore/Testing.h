//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_INTERPRETERCORE_TESTING_H
#define BRAID_TEST_UNIT_INTERPRETERCORE_TESTING_H

#include "braid/Interpreter/Core/Tensor.h"

#include <cmath>
#include <gtest/gtest.h>

namespace braid::interp::testing {

/// sin(first), sin(first + 1), ..., as in the NumPy code that computed the expected values.
inline Tensor sines(double first, Shape shape) {
  std::vector<double> values(static_cast<size_t>(numElements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(first + static_cast<double>(i));
  return Tensor::ofFloats(DType::f32, std::move(shape), std::move(values));
}

inline Tensor floats(Shape shape, std::vector<double> values) {
  return Tensor::ofFloats(DType::f32, std::move(shape), std::move(values));
}
inline Tensor ints(Shape shape, std::vector<int64_t> values) {
  return Tensor::ofInts(DType::i64, std::move(shape), std::move(values));
}

/// Compares the elements from `offset` on.
inline void expectNear(const Result<Tensor> &got, size_t offset,
                       const std::vector<double> &expected, double tolerance = 1e-14) {
  ASSERT_TRUE(got.ok()) << got.status().message();
  ASSERT_LE(offset + expected.size(), static_cast<size_t>(got->numElements()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got->floats()[offset + i], expected[i], tolerance) << "at element " << offset + i;
}

inline void expectEqual(const Result<Tensor> &got, const Shape &shape,
                        const std::vector<double> &expected) {
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->shape(), shape);
  ASSERT_TRUE(got->isFloat());
  EXPECT_EQ(std::vector<double>(got->floats(), got->floats() + got->numElements()), expected);
}

inline void expectError(const Status &status, const std::string &message) {
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), message);
}

} // namespace braid::interp::testing
#endif // BRAID_TEST_UNIT_INTERPRETERCORE_TESTING_H
