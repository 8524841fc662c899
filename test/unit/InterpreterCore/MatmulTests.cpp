//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The CPU's matmul in every form against the program interpreter, and both against sums by hand.
//
//===----------------------------------------------------------------------===//
#include "../Runtime/MatmulPrograms.h"
#include "OverlapProgram.h"
#include "braid/Interpreter/Core/Kernels.h"
#include "braid/Interpreter/Core/ProgramOrder.h"

#include <gmock/gmock.h>

#include <cmath>

namespace braid::interp::testing {
namespace {

using runtime::testing::MatmulCase;
using runtime::testing::matmulProgram;
using runtime::testing::RandomMatmuls;
using runtime::testing::runMatmul;

runtime::HostTensor interpret(const runtime::Bundle &bundle,
                              const std::map<std::string, runtime::HostTensor> &inputs) {
  auto interpreter =
      ProgramInterpreter::create(bundle.program(), bundle.manifest(), bundle.manifest().entries[0],
                                 [](const std::string &) { return runtime::KernelFunction(); });
  EXPECT_TRUE(interpreter.ok()) << interpreter.status().message();
  EXPECT_THAT(checkOrder((*interpreter)->program()), ::testing::IsEmpty());
  for (const auto &[name, value] : inputs)
    EXPECT_TRUE((*interpreter)->setInput(name, value).ok());
  Result<ProgramResults> results = (*interpreter)->runSchedules(1, 1);
  EXPECT_TRUE(results.ok()) << results.status().message();
  return results->at("out");
}

/// The same operands without their signs: the sums of magnitudes that bound how far two orders of
/// additions may differ.
std::map<std::string, runtime::HostTensor>
magnitudes(const std::map<std::string, runtime::HostTensor> &inputs) {
  std::map<std::string, runtime::HostTensor> result;
  for (const auto &[name, value] : inputs) {
    if (value.dtype != DType::f32) {
      result[name] = value;
      continue;
    }
    runtime::HostTensor &tensor = result[name] =
        runtime::HostTensor::zeros(DType::f32, value.shape);
    for (int64_t i = 0; i < value.numElements(); ++i)
      tensor.as<float>()[i] = std::fabs(value.as<float>()[i]);
  }
  return result;
}

TEST(Matmul, CpuAgreesWithTheInterpreterInEveryForm) {
  const uint32_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  RandomMatmuls random(seed);
  for (int i = 0; i < 200; ++i) {
    const MatmulCase c = random.next();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", case " + std::to_string(i) + ": " +
                 c.describe());
    const auto inputs = random.inputs(c);
    auto program = matmulProgram(c);
    const runtime::HostTensor expected = interpret(*program.bundle(), inputs);
    const runtime::HostTensor sums = interpret(*program.bundle(), magnitudes(inputs));
    for (int64_t threads : {1, 3}) {
      runtime::WorldOptions options;
      options.threadsPerRank = threads;
      auto session = program.session(options);
      ASSERT_TRUE(session.ok()) << session.status().message();
      Result<runtime::HostTensor> got = runMatmul(**session, inputs);
      ASSERT_TRUE(got.ok()) << got.status().message();
      // Relative to what was added: the result itself may be a small rest of large terms.
      ASSERT_EQ(got->shape, expected.shape);
      for (int64_t j = 0; j < expected.numElements(); ++j)
        ASSERT_NEAR(got->as<float>()[j], expected.as<float>()[j], 2e-6 * sums.as<float>()[j])
            << "element " << j;
    }
  }
}

Tensor floats(Shape shape, std::vector<double> values) {
  return Tensor::ofFloats(DType::f32, std::move(shape), std::move(values));
}
std::vector<double> valuesOf(const Result<Tensor> &tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.status().message();
  return {tensor->floats(), tensor->floats() + tensor->numElements()};
}

TEST(Matmul, MeaningByHand) {
  using ::testing::ElementsAre;
  const Tensor a = floats({2, 2}, {1, 2, 3, 4}), b = floats({2, 2}, {5, 6, 7, 8}),
               one = floats({2, 2}, {1, 1, 1, 1});
  MatmulOperands o;
  o.lhs = &a;
  o.rhs = &b;
  EXPECT_THAT(valuesOf(matmul(o)), ElementsAre(19, 22, 43, 50));
  o.transposeRhs = true;
  EXPECT_THAT(valuesOf(matmul(o)), ElementsAre(17, 23, 39, 53));
  o.transposeLhs = true;
  EXPECT_THAT(valuesOf(matmul(o)), ElementsAre(23, 31, 34, 46));
  o.addend = &one;
  EXPECT_THAT(valuesOf(matmul(o)), ElementsAre(24, 32, 35, 47));
  // Groups of two rows, of which one and none are valid; a bias is added to valid rows only.
  const Tensor rows = floats({2, 2, 1}, {1, 2, 3, 4}), weights = floats({2, 1, 1}, {10, 100}),
               bias = floats({2, 1}, {7, 8}), counts = Tensor::ofInts(DType::i32, {2}, {1, 0});
  MatmulOperands grouped;
  grouped.lhs = &rows;
  grouped.rhs = &weights;
  grouped.bias = &bias;
  EXPECT_THAT(valuesOf(matmul(grouped)), ElementsAre(17, 27, 308, 408));
  grouped.counts = &counts;
  EXPECT_THAT(valuesOf(matmul(grouped)), ElementsAre(17, 0, 0, 0));
  const Tensor wrong = Tensor::ofInts(DType::i32, {2}, {1, 3});
  grouped.counts = &wrong;
  EXPECT_EQ(matmul(grouped).status().message(),
            "matmul expects counts of 0 to 2, got 3 of group 1");
}

TEST(Matmul, BytesWithScales) {
  const Tensor lhs = Tensor::ofInts(DType::i8, {2, 2}, {127, -128, 3, 4}),
               rhs = Tensor::ofInts(DType::i8, {2, 2}, {127, 1, 1, -1}),
               rows = floats({2}, {0.5, 2}), columns = floats({2}, {1, 10});
  MatmulOperands o;
  o.lhs = &lhs;
  o.rhs = &rhs;
  EXPECT_EQ(matmul(o).status().message(),
            "matmul expects floating-point operands, or i8 with scales, got i8[2, 2]");
  o.lhsScale = &rows;
  o.rhsScale = &columns;
  o.type = DType::f32;
  EXPECT_THAT(valuesOf(matmul(o)), ::testing::ElementsAre(8000.5, 1275, 770, -20));
}

TEST(Matmul, CountsOutOfRangeAreRefusedOnTheCpu) {
  MatmulCase c;
  c.lhs = {{2, 3, 4}, {12, 4, 1}};
  c.rhs = {{2, 4, 5}, {20, 5, 1}};
  c.out = {{2, 3, 5}, {15, 5, 1}};
  c.counts = true;
  auto program = matmulProgram(c);
  auto session = program.session();
  ASSERT_TRUE(session.ok()) << session.status().message();
  auto inputs = RandomMatmuls(1).inputs(c);
  for (int32_t count : {-1, 4}) {
    inputs["counts"].as<int32_t>()[1] = count;
    Result<runtime::HostTensor> got = runMatmul(**session, inputs);
    EXPECT_EQ(got.status().message(), "rank 0: matmul 'product' in @main: count " +
                                          std::to_string(count) +
                                          " at position 1 is outside of [0, 3]");
  }
}

} // namespace
} // namespace braid::interp::testing
