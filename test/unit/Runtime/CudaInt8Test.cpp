//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls of 8-bit integers on the null device: the bits of the CPU, by cuBLASLt where sizes allow
// it and by the library's own kernel elsewhere.
//
//===----------------------------------------------------------------------===//
#include "CudaPrograms.h"
#include "NullDeviceTesting.h"

#include <cmath>
#include <random>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType i8 = DType::i8;

struct Int8Case {
  Shape leading;   ///< of x, before its rows
  int64_t m, n, k; ///< of a matrix
  int64_t gap;     ///< elements between rows of the quantized x and of the result
  bool bias;
};

/// y = quantized x times w, in memory with gaps.
ProgramBuilder int8Program(const Int8Case &c) {
  ProgramBuilder b({{"a", 1}});
  uint32_t next = 0;
  auto operand = [&](const char *name, DType dtype, const Shape &shape) {
    b.operand(name, dtype, shape);
    return argument(next++, dtype, shape);
  };
  Shape x = c.leading, y = c.leading, scales = c.leading;
  x.insert(x.end(), {c.m, c.k});
  y.insert(y.end(), {c.m, c.n});
  scales.push_back(c.m);
  auto spaced = [&](uint64_t offset, DType dtype, const Shape &shape) {
    V view = local(offset, dtype, shape);
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      view.strides[d] = stride;
      stride = stride * shape[d] + (d + 1 == shape.size() ? c.gap : 0);
    }
    return view;
  };
  int64_t rows = c.m;
  for (int64_t size : c.leading)
    rows *= size;
  const auto values = static_cast<uint64_t>((rows * (c.k + c.gap) + 63) / 64 * 64),
             factors = static_cast<uint64_t>((rows * 4 + 63) / 64 * 64);
  MatmulLaunch matmul;
  if (c.bias)
    matmul.bias = operand("bias", f32, {c.n}).build();
  matmul.rhs_scale = operand("scales", f32, {c.n}).build();
  matmul.rhs = operand("w", i8, {c.n, c.k}).build();
  const V input = operand("x", f32, x);
  b.result("y", f32, y);
  const V result = argument(next++, f32, y);
  const V quantized = spaced(0, i8, x), scale = local(values, f32, scales),
          out = spaced(values + factors, f32, y);
  auto p = b.procedure("main", next,
                       values + factors + static_cast<uint64_t>(4 * rows * (c.n + c.gap)), 0, 0);
  QuantizeRowsLaunch quantize;
  quantize.input = input.build();
  quantize.values = quantized.build();
  quantize.scales = scale.build();
  p.compute("quantize", std::move(quantize));
  matmul.transpose_rhs = true;
  matmul.lhs = quantized.build();
  matmul.lhs_scale = scale.build();
  matmul.out = out.build();
  p.compute("product", std::move(matmul));
  p.copy("y", out, result);
  return b;
}

Result<HostTensor> run(Session &session, const Int8Case &c, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  auto floats = [&](const Shape &shape) {
    HostTensor tensor = HostTensor::zeros(f32, shape);
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.as<float>()[i] = normal(random);
    return tensor;
  };
  HostTensor w = HostTensor::zeros(i8, {c.n, c.k});
  for (int64_t i = 0; i < w.numElements(); ++i)
    w.as<int8_t>()[i] = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
  Shape x = c.leading;
  x.insert(x.end(), {c.m, c.k});
  HostTensor input = floats(x);
  input.as<float>()[0] = std::nanf(""); // a row without a scale
  if (c.bias)
    RETURN_IF_ERROR(session.setInput("bias", floats({c.n})));
  RETURN_IF_ERROR(session.setInput("scales", floats({c.n})));
  RETURN_IF_ERROR(session.setInput("w", w));
  RETURN_IF_ERROR(session.setInput("x", input));
  RETURN_IF_ERROR(session.run());
  return session.output("y");
}

TEST(CudaInt8, GivesTheBitsOfTheCpu) {
  const std::string before = inUse();
  const std::vector<Int8Case> cases = {
      {{}, 1, 4, 4, 0, false},      {{}, 7, 12, 64, 0, true},     {{}, 7, 12, 64, 4, true},
      {{}, 5, 9, 64, 0, true},      {{}, 5, 8, 33, 0, false},     {{}, 5, 8, 64, 3, false},
      {{2, 3}, 4, 16, 32, 0, true}, {{2, 3}, 4, 16, 32, 8, true}, {{3}, 2, 5, 7, 1, true},
      {{}, 2100, 4096, 4, 0, true}, // in two blocks
  };
  for (const Int8Case &c : cases) {
    SCOPED_TRACE(shapeString(c.leading) + " x " + shapeString({c.m, c.n, c.k}) + ", gap " +
                 std::to_string(c.gap));
    ProgramBuilder builder = int8Program(c);
    auto cuda = cudaSession(builder, onNullDevice("threads"));
    auto cpu = builder.session();
    ASSERT_OK(cuda);
    ASSERT_OK(cpu);
    for (uint32_t seed : {1, 2}) { // also when it runs again
      const Result<HostTensor> got = run(**cuda, c, seed), expected = run(**cpu, c, seed);
      ASSERT_OK(got);
      ASSERT_OK(expected);
      for (int64_t i = 0; i < got->numElements(); ++i) {
        const float x = got->as<float>()[i], y = expected->as<float>()[i];
        ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y) && i < c.n))
            << x << " and " << y << " at " << i;
      }
    }
  }
  EXPECT_EQ(inUse(), before);
}

} // namespace
