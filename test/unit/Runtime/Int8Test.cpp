//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Quantized rows and matmuls of 8-bit integers on the CPU, in the code of each instruction set that
// this host has, against the interpreter's.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Kernels/Int8.h"
#include "LibraryCallsTesting.h"
#include "braid/Base/RowQuantization.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"

#include <cmath>
#include <limits>

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace interp = braid::interp;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<const Int8Kernels *> allInt8Kernels() {
  std::vector<const Int8Kernels *> kernels = {int8KernelsGeneric()};
  const std::string best = int8Kernels().isa;
  if (best != "generic")
    kernels.push_back(int8KernelsAvx2());
  if (best == "avx512" || best == "avx512vnni")
    kernels.push_back(int8KernelsAvx512());
  if (best == "avx512vnni")
    kernels.push_back(int8KernelsVnni());
  return kernels;
}

template <typename T>
Tensor tensorOf(std::vector<T> &data, DType type, std::vector<int64_t> shape) {
  return {reinterpret_cast<std::byte *>(data.data()), type, shape, rowMajorStrides(shape)};
}

interp::Tensor floats(const std::vector<float> &x, std::vector<int64_t> shape) {
  return interp::Tensor::ofFloats(DType::f32, std::move(shape), {x.begin(), x.end()});
}
interp::Tensor integers(const std::vector<int8_t> &x, std::vector<int64_t> shape) {
  return interp::Tensor::ofInts(DType::i8, std::move(shape), {x.begin(), x.end()});
}

bool sameBits(float a, double b) { return std::isnan(a) ? std::isnan(b) : double(a) == b; }

/// Compares every implementation with the interpreter's.
void checkRow(const std::vector<float> &x) {
  const auto count = static_cast<int64_t>(x.size());
  const interp::QuantizedRows expected = interp::quantizeRows(floats(x, {1, count}));
  auto check = [&](const char *what, float scale, const std::vector<int8_t> &values) {
    ASSERT_TRUE(sameBits(scale, expected.scales.floats()[0])) << what << " " << scale;
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(values[static_cast<size_t>(i)], expected.values.ints()[i]) << what << " at " << i;
  };
  std::vector<int8_t> values(x.size(), 99);
  const float scale = quantizeRow(x.data(), count, values.data());
  check("loader", scale, values);
  EXPECT_TRUE(sameBits(quantizeRow(x.data(), count, nullptr), double(scale)));
  for (const Int8Kernels *kernels : allInt8Kernels()) {
    std::fill(values.begin(), values.end(), int8_t(99));
    check(kernels->isa, kernels->quantizeRow(x.data(), count, values.data()), values);
  }
  // The bound of RowQuantization.h.
  if (std::isnormal(scale))
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(std::fabs(double(x[i]) - values[i] * double(scale)),
                double(scale) * (0.5 + 127 * 0x1p-23));
}

TEST(QuantizedRows, AreTheInterpretersInEachInstructionSet) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  std::cauchy_distribution<float> heavy;
  std::uniform_int_distribution<uint32_t> bits;
  for (int64_t count : {1, 2, 7, 8, 15, 16, 31, 33, 64, 100, 576, 1000, 4099})
    for (int turn = 0; turn < 20; ++turn) {
      SCOPED_TRACE(::testing::Message() << count << " elements, turn " << turn << ", seed 17");
      std::vector<float> x(static_cast<size_t>(count));
      for (float &element : x) {
        if (turn % 4 == 0)
          element = normal(random);
        else if (turn % 4 == 1)
          element = heavy(random);
        else if (turn % 4 == 2)
          element = static_cast<float>(static_cast<int>(bits(random) % 509) - 254) / 2; // ties
        else {
          const uint32_t word = bits(random);
          std::memcpy(&element, &word, sizeof word);
        }
      }
      checkRow(x);
    }
}

TEST(QuantizedRows, OfExtremes) {
  const float least = std::numeric_limits<float>::denorm_min(), normal = 0x1p-126F;
  const float most = std::numeric_limits<float>::max();
  for (const std::vector<float> &x : {std::vector<float>{0, -0.0F},
                                      {1, kInf},
                                      {-kInf, 2},
                                      {kNaN, 1},
                                      {1, -kNaN, kInf},
                                      {least, 0},
                                      {127 * normal, normal, normal / 2},
                                      {126 * normal, normal},
                                      {std::nextafter(127 * normal, 0.0F), normal},
                                      {most, -most, most / 127, 1},
                                      {-127, 127},
                                      {127, 0.5F, 1.5F, -0.5F, 2.5F, 126.5F}})
    checkRow(x);
}

TEST(QuantizedRows, SaysWhatIsExpectedToBeLost) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int64_t count : {64, 576, 4096}) {
    double lost = 0, all = 0;
    for (int row = 0; row < 200; ++row) {
      std::vector<float> x(static_cast<size_t>(count));
      for (float &element : x)
        element = normal(random);
      std::vector<int8_t> values(x.size());
      const float scale = quantizeRow(x.data(), count, values.data());
      for (size_t i = 0; i < x.size(); ++i) {
        lost += std::pow(double(x[i]) - values[i] * double(scale), 2);
        all += double(x[i]) * double(x[i]);
      }
    }
    EXPECT_NEAR(std::sqrt(lost / all), expectedRowError(count), 0.25 * expectedRowError(count));
  }
}

struct Operands {
  Operands(int64_t m, int64_t n, int64_t k, bool extreme, std::mt19937 &random)
      : m(m), n(n), k(k), lhs(size_t(m * k)), rhs(size_t(n * k)), lhsScale(size_t(m)),
        rhsScale(size_t(n)), bias(size_t(n)), out(size_t(m * n)) {
    std::uniform_int_distribution<int> codes(-128, 127);
    std::uniform_real_distribution<float> scales(0.001F, 0.1F);
    for (auto *side : {&lhs, &rhs})
      for (int8_t &x : *side)
        x = static_cast<int8_t>(extreme ? -128 : codes(random));
    for (auto *scale : {&lhsScale, &rhsScale, &bias})
      for (float &x : *scale)
        x = scales(random);
  }
  LibraryArguments arguments(bool biased) {
    lhsTensor = tensorOf(lhs, DType::i8, {m, k});
    rhsTensor = tensorOf(rhs, DType::i8, {n, k});
    lhsScaleTensor = tensorOf(lhsScale, DType::f32, {m});
    rhsScaleTensor = tensorOf(rhsScale, DType::f32, {n});
    biasTensor = tensorOf(bias, DType::f32, {n});
    outTensor = tensorOf(out, DType::f32, {m, n});
    return call("matmul",
                {&lhsTensor, &rhsTensor, biased ? &biasTensor : nullptr, nullptr, &lhsScaleTensor,
                 &rhsScaleTensor, &outTensor},
                {0, 1, 0});
  }
  /// In f32 from the exact sum on.
  float expected(int64_t i, int64_t j, bool biased) const {
    int64_t sum = 0;
    for (int64_t x = 0; x < k; ++x)
      sum += int64_t(lhs[size_t(i * k + x)]) * rhs[size_t(j * k + x)];
    volatile float scaled = static_cast<float>(sum) * lhsScale[size_t(i)]; // no contraction
    scaled = scaled * rhsScale[size_t(j)];
    return biased ? scaled + bias[size_t(j)] : scaled;
  }

  int64_t m, n, k;
  std::vector<int8_t> lhs, rhs;
  std::vector<float> lhsScale, rhsScale, bias, out;
  Tensor lhsTensor, rhsTensor, lhsScaleTensor, rhsScaleTensor, biasTensor, outTensor;
};

TEST(Int8Matmuls, SumExactlyInEachInstructionSet) {
  std::mt19937 random(23);
  const std::vector<std::array<int64_t, 3>> sizes = {
      {1, 1, 1},      {1, 7, 33},     {2, 3, 16},   {3, 5, 15},    {4, 2, 31},
      {5, 9, 64},     {6, 4, 65},     {7, 11, 100}, {13, 17, 576}, {1, 700, 192},
      {9, 300, 1000}, {2, 2, 131071}, {33, 29, 48}, {128, 12, 33}};
  for (auto [m, n, k] : sizes)
    for (bool extreme : {false, true}) {
      Operands x(m, n, k, extreme, random);
      for (const Int8Kernels *kernels : allInt8Kernels())
        for (bool biased : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << kernels->isa << " " << m << " x " << n << " x " << k);
          std::vector<char> bytes(static_cast<size_t>(kernels->scratchBytes(k)) + 64);
          auto *scratch = reinterpret_cast<void *>((uintptr_t(bytes.data()) + 63) & ~uintptr_t(63));
          std::fill(x.out.begin(), x.out.end(), kNaN);
          kernels->matmul({x.lhs.data(), x.rhs.data(), x.lhsScale.data(), x.rhsScale.data(),
                           biased ? x.bias.data() : nullptr, x.out.data(), m, n, k, k, k, n},
                          scratch);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              ASSERT_EQ(x.out[size_t(i * n + j)], x.expected(i, j, biased)) << i << ", " << j;
        }
    }
}

Status run(const LibraryArguments &a, int64_t threads) {
  RETURN_IF_ERROR(a.check());
  CpuResources resources;
  resources.threads = threads;
  ASSIGN_OR_RETURN(const LibraryCommand command, resolveLibrary(a, resources));
  Bench bench(threads, vectorKernels());
  command->run(Command(), bench.context);
  return bench.control.failed() ? bench.control.failure() : Status();
}

TEST(Int8Matmuls, AreSharedByThreadsAndNearTheInterpreters) {
  std::mt19937 random(29);
  for (auto [m, n, k] : {std::array<int64_t, 3>{70, 90, 200}, {2, 999, 400}, {1, 1, 8}})
    for (int64_t threads : {1, 2, 3, 5}) {
      Operands x(m, n, k, false, random);
      ASSERT_OK(run(x.arguments(true), threads));
      const interp::Tensor lhs = integers(x.lhs, {m, k}), rhs = integers(x.rhs, {n, k}),
                           lhsScale = floats(x.lhsScale, {m}), rhsScale = floats(x.rhsScale, {n}),
                           bias = floats(x.bias, {n});
      interp::MatmulOperands operands;
      operands.lhs = &lhs;
      operands.rhs = &rhs;
      operands.lhsScale = &lhsScale;
      operands.rhsScale = &rhsScale;
      operands.bias = &bias;
      operands.transposeRhs = true;
      operands.type = DType::f32;
      const Result<interp::Tensor> expected = interp::matmul(operands);
      ASSERT_OK(expected);
      for (int64_t i = 0; i < m * n; ++i) {
        const double want = expected->floats()[i];
        ASSERT_NEAR(x.out[size_t(i)], want, 4e-7 * std::fabs(want) + 1e-7) << i;
        ASSERT_EQ(x.out[size_t(i)], x.expected(i / n, i % n, true));
      }
    }
}

TEST(Int8Matmuls, TakeRowsWithGapsAndLeadingDimensions) {
  std::mt19937 random(31);
  std::normal_distribution<float> normal;
  // [2, 3, 40] with gaps between rows, quantized and multiplied with [5, 40].
  std::vector<float> x(2 * 3 * 50), scales(6), weightScales(5, 0.5F), out(30, kNaN);
  for (float &element : x)
    element = normal(random);
  std::vector<int8_t> values(240), weight(200, 3);
  Tensor input{reinterpret_cast<std::byte *>(x.data()), DType::f32, {2, 3, 40}, {150, 50, 1}};
  Tensor valuesTensor = tensorOf(values, DType::i8, {2, 3, 40}),
         scalesTensor = tensorOf(scales, DType::f32, {2, 3}),
         weightTensor = tensorOf(weight, DType::i8, {5, 40}),
         weightScalesTensor = tensorOf(weightScales, DType::f32, {5}),
         outTensor = tensorOf(out, DType::f32, {2, 3, 5});
  for (int64_t threads : {1, 4}) {
    ASSERT_OK(run(call("quantize_rows", {&input, &valuesTensor, &scalesTensor}), threads));
    ASSERT_OK(run(call("matmul",
                       {&valuesTensor, &weightTensor, nullptr, nullptr, &scalesTensor,
                        &weightScalesTensor, &outTensor},
                       {0, 1, 0}),
                  threads));
    for (size_t row = 0; row < 6; ++row) {
      std::vector<int8_t> expected(40);
      ASSERT_EQ(scales[row], quantizeRow(x.data() + row * 50, 40, expected.data()));
      int64_t sum = 0;
      for (size_t i = 0; i < 40; ++i) {
        ASSERT_EQ(values[row * 40 + i], expected[i]);
        sum += 3 * expected[i];
      }
      for (size_t j = 0; j < 5; ++j)
        ASSERT_EQ(out[row * 5 + j], static_cast<float>(sum) * scales[row] * 0.5F);
    }
  }
}

TEST(Int8Matmuls, RefuseWhatHasNoKernel) {
  std::mt19937 random(37);
  Operands x(4, 4, 4, false, random);
  const std::string form = "matmul of i8 is implemented on target 'cpu' for lhs [rows, k] and one "
                           "rhs [columns, k], without accumulate and counts";
  LibraryArguments a = x.arguments(false);
  a.integers = {0, 0, 0};
  EXPECT_ERROR(run(a, 1), form);
  a.integers = {0, 1, 1};
  EXPECT_ERROR(run(a, 1), form);
  a.integers = {1, 1, 0};
  EXPECT_ERROR(run(a, 1), form);
  a = x.arguments(false);
  std::vector<float> wide(8);
  x.rhsScaleTensor = tensorOf(wide, DType::f32, {4});
  x.rhsScaleTensor.strides = {2};
  a.operands[5]->strides = {2};
  EXPECT_ERROR(run(a, 1), "rhs_scale: expects a contiguous tensor, got shape [4] and strides [2]");
  std::vector<int8_t> half(32);
  Tensor input = tensorOf(half, DType::f16, {4, 4}), values = tensorOf(x.lhs, DType::i8, {4, 4}),
         scales = tensorOf(x.lhsScale, DType::f32, {4});
  EXPECT_ERROR(run(call("quantize_rows", {&input, &values, &scales}), 1),
               "quantize_rows of f16 is not implemented on target 'cpu'");
  Tensor few = tensorOf(x.lhsScale, DType::f32, {3});
  EXPECT_ERROR(run(call("quantize_rows", {&input, &values, &few}), 1),
               "scales: expects shape [4], got [3]");
}

TEST(Int8Matmuls, RefuseSumsThatLeave32Bits) {
  std::mt19937 random(41);
  Operands x(1, 1, 131072, false, random);
  EXPECT_ERROR(
      x.arguments(false).check(),
      "lhs: expects at most 131071 products of i8, whose sum is within 32 bits, got 131072");
}

} // namespace
