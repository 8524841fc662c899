//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels without reductions: rows of every width, the accuracy of transcendental functions,
// in-place operands.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace braid;
using namespace braid::test;

namespace {
const int64_t kColumns[] = {1, 2, 7, 16, 31, 383, 384, 385, 4097};
constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

std::string mapSource(int64_t columns, const std::string &body) {
  return mapKernel("map", columns, body);
}

/// Evaluates `body` with each of `inputs` as x, each in several lanes of main and masked vectors.
std::vector<float> evaluate(const LoadedKernels &kernels, const std::vector<float> &inputs) {
  Tensor<float> x({static_cast<int64_t>(inputs.size()), 19}), w({19}, 0.0f), out(x.shape, 7.0f);
  for (size_t row = 0; row < inputs.size(); ++row)
    std::fill_n(x.data.begin() + row * 19, 19, inputs[row]);
  kernels.call("map", {x.descriptor(), w.descriptor(), out.descriptor()});
  std::vector<float> results;
  for (size_t row = 0; row < inputs.size(); ++row) {
    const float *first = &out.data[row * 19];
    for (int lane = 1; lane < 19; ++lane)
      EXPECT_EQ(llvm::bit_cast<uint32_t>(first[0]), llvm::bit_cast<uint32_t>(first[lane]))
          << "x = " << inputs[row] << ": lane " << lane << " gives " << first[lane] << ", lane 0 "
          << *first;
    results.push_back(*first);
  }
  return results;
}

/// The largest error of `body` over [low, high], relative to max(|f(x)|, floor).
double worstError(const std::string &body, double low, double high, double floor,
                  double (*reference)(double)) {
  double worst = 0;
  forEachISA(mapSource(61, body), [&](const LoadedKernels &kernels) {
    auto x = Tensor<float>::random({997, 61}, 5, low, high);
    Tensor<float> w({61}, 0.0f), out(x.shape);
    kernels.call("map", {x.descriptor(), w.descriptor(), out.descriptor()});
    for (size_t i = 0; i < x.data.size(); ++i) {
      double expected = reference(x.data[i]);
      worst =
          std::max(worst, std::abs(out.data[i] - expected) / std::max(std::abs(expected), floor));
    }
  });
  return worst;
}

const char *kGeluErf = R"(
  %k = arith.constant 0.70710678118654752 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %s = arith.addf %a, %b : f32
  %0 = arith.mulf %s, %k : f32
  %1 = math.erf %0 : f32
  %2 = arith.addf %1, %one : f32
  %3 = arith.mulf %s, %half : f32
  %y = arith.mulf %3, %2 : f32)";

const char *kSilu = R"(
  %one = arith.constant 1.0 : f32
  %0 = arith.negf %a : f32
  %1 = math.exp %0 : f32
  %2 = arith.addf %1, %one : f32
  %y = arith.divf %a, %2 : f32)";
} // namespace

TEST(Elementwise, EveryWidth) {
  for (int64_t columns : kColumns) {
    SCOPED_TRACE(columns);
    std::string source =
        mapSource(columns, "%0 = arith.mulf %a, %b : f32\n %y = arith.subf %0, %a : f32");
    forEachISA(source, [&](const LoadedKernels &kernels) {
      for (int64_t rows : {0, 1, 5}) {
        auto x = Tensor<float>::random({rows, columns}, 1), w = Tensor<float>::random({columns}, 2);
        // Memory after the rows must not change.
        Tensor<float> out({rows + 1, columns}, 7.0f);
        kernels.call("map", {x.descriptor(), w.descriptor(), out.descriptor(0, rows)});
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c) {
            float a = x.data[r * columns + c];
            ASSERT_EQ(out.data[r * columns + c], a * w.data[c] - a)
                << "row " << r << " column " << c;
          }
        for (int64_t c = 0; c < columns; ++c)
          ASSERT_EQ(out.data[rows * columns + c], 7.0f)
              << "column " << c << " behind " << rows << " rows";
      }
    });
  }
}

TEST(Elementwise, InPlace) {
  forEachISA(mapSource(385, "%y = arith.addf %a, %b : f32"), [&](const LoadedKernels &kernels) {
    auto x = Tensor<float>::random({3, 385}, 1), w = Tensor<float>::random({385}, 2);
    std::vector<float> before(x.data.begin(), x.data.end());
    kernels.call("map", {x.descriptor(), w.descriptor(), x.descriptor()});
    for (size_t i = 0; i < x.data.size(); ++i)
      ASSERT_EQ(x.data[i], before[i] + w.data[i % 385]) << i;
  });
}

TEST(Elementwise, StridedRows) {
  forEachISA(mapSource(33, "%y = arith.addf %a, %b : f32"), [&](const LoadedKernels &kernels) {
    auto x = Tensor<float>::random({4, 50}, 1), w = Tensor<float>::random({33}, 2);
    x.shape[1] = 33; // columns 3 to 35 of a wider matrix
    x.offset = 3;
    Tensor<float> out({4, 33});
    kernels.call("map", {x.descriptor(), w.descriptor(), out.descriptor()});
    for (int64_t r = 0; r < 4; ++r)
      for (int64_t c = 0; c < 33; ++c)
        ASSERT_EQ(out.data[r * 33 + c], x.data[r * 50 + 3 + c] + w.data[c]);
  });
}

TEST(Elementwise, AccuracyOfApproximations) {
  EXPECT_LT(worstError("%y = math.exp %a : f32", -80, 80, 0, [](double x) { return std::exp(x); }),
            1.2e-7);
  EXPECT_LT(
      worstError("%y = math.log %a : f32", 1e-3, 1e3, 1e-2, [](double x) { return std::log(x); }),
      2.5e-7);
  EXPECT_LT(worstError("%y = math.erf %a : f32", -5, 5, 0, [](double x) { return std::erf(x); }),
            4e-7);
  EXPECT_LT(
      worstError("%y = math.tanh %a : f32", -12, 12, 0, [](double x) { return std::tanh(x); }),
      4e-7);
  EXPECT_LT(worstError("%y = math.sqrt %a : f32", 0, 9, 0, [](double x) { return std::sqrt(x); }),
            6e-8);
  // Where 1 + erf cancels, the error is relative to 1.
  EXPECT_LT(worstError(kGeluErf, -10, 10, 1,
                       [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }),
            4e-7);
  EXPECT_LT(worstError(kSilu, -80, 80, 1e-30, [](double x) { return x / (1 + std::exp(-x)); }),
            3e-7);
}

/// Every 61st float that erf does not map to 1, with both signs, and some larger floats.
TEST(Elementwise, ErfOverAllFloats) {
  forEachISA(mapSource(64, "%y = math.erf %a : f32"), [&](const LoadedKernels &kernels) {
    Tensor<float> x({4096, 64}), w({64}, 0.0f), out(x.shape);
    double worst = 0, worstRelative = 0;
    const uint32_t last = llvm::bit_cast<uint32_t>(4.5f);
    for (uint32_t next = 0; next <= last;) {
      for (float &value : x.data) {
        value = llvm::bit_cast<float>(std::min(next, last));
        next += 61;
      }
      for (size_t i = 0; i < x.data.size(); i += 2)
        x.data[i] = -x.data[i];
      kernels.call("map", {x.descriptor(), w.descriptor(), out.descriptor()});
      for (size_t i = 0; i < x.data.size(); ++i) {
        double expected = std::erf(static_cast<double>(x.data[i]));
        double error = std::abs(out.data[i] - expected);
        worst = std::max(worst, error);
        // The result for a denormal is a denormal or 0.
        if (std::abs(x.data[i]) > 1e-35f)
          worstRelative = std::max(worstRelative, error / std::abs(expected));
      }
    }
    EXPECT_LE(worst, 2.1e-7);
    EXPECT_LE(worstRelative, 2.1e-7);
  });
  forEachISA(mapSource(19, "%y = math.erf %a : f32"), [&](const LoadedKernels &kernels) {
    std::vector<float> y =
        evaluate(kernels, {kInf, -kInf, kNaN, 0.0f, -0.0f, 1e-40f, 4.0f, -4.0f, 1e20f, -3.4e38f});
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], -1.0f);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_TRUE(y[4] == 0.0f && std::signbit(y[4]));
    EXPECT_NEAR(y[5], 1.128e-40, 1e-42);
    for (int i = 6; i < 10; ++i)
      EXPECT_EQ(y[i], i % 2 ? -1.0f : 1.0f);
  });
}

TEST(Elementwise, SpecialValues) {
  forEachISA(mapSource(19, kSilu), [&](const LoadedKernels &kernels) {
    std::vector<float> y = evaluate(kernels, {-100.0f, 100.0f, kInf, kNaN, 0.0f, -0.0f});
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 100.0f);
    EXPECT_EQ(y[2], kInf);
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 0.0f);
    EXPECT_TRUE(std::signbit(y[5]));
  });
  forEachISA(mapSource(19, kGeluErf), [&](const LoadedKernels &kernels) {
    std::vector<float> y = evaluate(kernels, {-1e30f, 1e30f, kInf, kNaN, 0.0f});
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], 1e30f);
    EXPECT_EQ(y[2], kInf);
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 0.0f);
  });
  forEachISA(mapSource(19, "%y = math.exp %a : f32"), [&](const LoadedKernels &kernels) {
    std::vector<float> y = evaluate(kernels, {-kInf, kInf, kNaN, 0.0f, -200.0f, 200.0f});
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], kInf);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1.0f);
    EXPECT_EQ(y[4], 0.0f);
    EXPECT_EQ(y[5], kInf);
  });
  forEachISA(mapSource(19, "%y = math.tanh %a : f32"), [&](const LoadedKernels &kernels) {
    std::vector<float> y = evaluate(kernels, {-kInf, kInf, kNaN, -50.0f});
    EXPECT_FLOAT_EQ(y[0], -1.0f);
    EXPECT_FLOAT_EQ(y[1], 1.0f);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_FLOAT_EQ(y[3], -1.0f);
  });
}

TEST(Elementwise, IntegersSelect) {
  // Converts an attention mask of i64 to the values that are added to scores.
  const char *source = R"(
    rt.kernel @mask(%m: tensor<?x37xi64>) -> tensor<?x37xf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %m, %c0 : tensor<?x37xi64>
      %e = tensor.empty(%n) : tensor<?x37xf32>
      %low = arith.constant 0xFF800000 : f32
      %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%m : tensor<?x37xi64>) outs(%e : tensor<?x37xf32>) {
        ^bb0(%a: i64, %o: f32):
          %zero = arith.constant 0 : i64
          %col = linalg.index 1 : index
          %i = arith.index_cast %col : index to i64
          %f = arith.sitofp %i : i64 to f32
          %keep = arith.cmpi ne, %a, %zero : i64
          %1 = arith.select %keep, %f, %low : f32
          linalg.yield %1 : f32
      } -> tensor<?x37xf32>
      rt.yield %0 : tensor<?x37xf32>
    })";
  forEachISA(source, [&](const LoadedKernels &kernels) {
    Tensor<int64_t> mask({3, 37});
    for (size_t i = 0; i < mask.data.size(); ++i)
      mask.data[i] = i % 3 ? int64_t(i) << 32 : 0;
    Tensor<float> out({3, 37});
    kernels.call("mask", {mask.descriptor(), out.descriptor()});
    for (size_t i = 0; i < mask.data.size(); ++i)
      ASSERT_EQ(out.data[i], i % 3 ? float(i % 37) : -kInf) << i;
  });
}
