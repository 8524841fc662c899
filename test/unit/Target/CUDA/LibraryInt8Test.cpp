//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels of int8.cuh on the CPU: rows are quantized and sums scaled with the CPU's bits.
//
//===----------------------------------------------------------------------===//
#include "LibraryTesting.h"
#include "braid/Base/RowQuantization.h"

#include <cmath>
#include <limits>

using namespace braid;
using namespace braid::test;
using interp::DType;
using interp::Shape;
using interp::Tensor;

namespace {

bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

} // namespace

TEST_F(Library, QuantizesRows) {
  constexpr float inf = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float least = std::numeric_limits<float>::denorm_min(), normal = 0x1p-126F;
  const std::vector<std::vector<float>> starts = {{},
                                                  {0, -0.0F},
                                                  {1, inf},
                                                  {-inf, 2},
                                                  {nan, 1},
                                                  {1, nan, inf},
                                                  {least, 0},
                                                  {127 * normal},
                                                  {126 * normal},
                                                  {-127, 127},
                                                  {std::numeric_limits<float>::max(), 1},
                                                  {127, 0.5F, 1.5F, -0.5F, 2.5F, 126.5F}};
  for (int64_t columns : {1, 7, 32, 33, 576}) {
    const Shape shape{2, static_cast<int64_t>(starts.size()), columns};
    std::vector<double> numbers;
    for (int64_t row = 0; row < shape[0] * shape[1]; ++row) {
      const auto &start = starts[static_cast<size_t>(row) % starts.size()];
      // Numbers beside tiny ones would hide them.
      const bool rest = start.empty() || std::fabs(start[0]) >= 1;
      for (size_t i = 0; i < static_cast<size_t>(columns); ++i)
        numbers.push_back(i < start.size() ? double(start[i])
                          : rest           ? double(std::normal_distribution<float>()(random))
                                           : 0.0);
    }
    Tensor input = Tensor::ofFloats(DType::f32, shape, numbers);
    Buffer in(input, 3), values(DType::i8, shape, 5), scales(DType::f32, {shape[0], shape[1]}, 2);
    library::Call a{};
    a.operands[0] = operandOf(in, DType::f32, shape);
    a.operands[1] = operandOf(values, DType::i8, shape);
    a.operands[2] = operandOf(scales, DType::f32, {shape[0], shape[1]});
    a.rows = shape[0] * shape[1];
    launch("braid_quantize_rows", a.rows * 32, a);
    EXPECT_TRUE(values.guardsHold() && scales.guardsHold());
    const Tensor gotValues = values.read(), gotScales = scales.read();
    for (int64_t row = 0; row < a.rows; ++row) {
      SCOPED_TRACE(std::to_string(columns) + " columns, row " + std::to_string(row));
      std::vector<float> x;
      for (int64_t i = 0; i < columns; ++i)
        x.push_back(static_cast<float>(numbers[static_cast<size_t>(row * columns + i)]));
      std::vector<int8_t> expected(x.size());
      const float scale = runtime::quantizeRow(x.data(), columns, expected.data());
      EXPECT_TRUE(same(static_cast<float>(gotScales.floats()[row]), scale)) << scale;
      for (int64_t i = 0; i < columns; ++i)
        ASSERT_EQ(gotValues.ints()[row * columns + i], expected[static_cast<size_t>(i)]) << i;
    }
  }
}

TEST_F(Library, MultipliesIntegers) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {5, 9, 33}, {16, 40, 64}, {3, 2, 131071}})
    for (bool given : {false, true})
      for (bool biased : {false, true}) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
                     (given ? ", sums" : "") + (biased ? ", bias" : ""));
        const bool extreme = k == 131071; // the largest sum that 32 bits hold
        const Tensor lhs = integers({m, k}, -128, extreme ? -128 : 127, DType::i8),
                     rhs = integers({n, k}, -128, extreme ? -128 : 127, DType::i8);
        std::vector<int64_t> sums;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            int64_t sum = 0;
            for (int64_t x = 0; x < k; ++x)
              sum += lhs.ints()[i * k + x] * rhs.ints()[j * k + x];
            sums.push_back(sum);
          }
        const Tensor lhsScale = floats({m}), rhsScale = floats({n}), bias = floats({n});
        Buffer x(lhs, 3), y(rhs, 1), s(Tensor::ofInts(DType::i32, {m, n}, sums), 0),
            ls(lhsScale, 0), rs(rhsScale, 0), b(bias, 0), out(DType::f32, {m, n}, 2);
        auto address = [](Buffer &buffer) { return static_cast<const float *>(buffer.address()); };
        const library::Int8Matmul a{static_cast<const signed char *>(x.address()),
                                    static_cast<const signed char *>(y.address()),
                                    given ? static_cast<const int *>(s.address()) : nullptr,
                                    address(ls),
                                    address(rs),
                                    biased ? address(b) : nullptr,
                                    static_cast<float *>(out.address()),
                                    m,
                                    n,
                                    k,
                                    x.strides()[0],
                                    y.strides()[0],
                                    out.strides()[0]};
        launch("braid_int8_matmul", m * n, a);
        EXPECT_TRUE(out.guardsHold());
        const Tensor got = out.read();
        for (int64_t i = 0; i < m * n; ++i) {
          volatile float expected = static_cast<float>(sums[static_cast<size_t>(i)]) *
                                    static_cast<float>(lhsScale.floats()[i / n]); // no contraction
          expected = expected * static_cast<float>(rhsScale.floats()[i % n]);
          if (biased)
            expected = expected + static_cast<float>(bias.floats()[i % n]);
          ASSERT_EQ(static_cast<float>(got.floats()[i]), expected) << i;
        }
      }
}
