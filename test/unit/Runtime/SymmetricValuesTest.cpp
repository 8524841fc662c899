//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parameters, inputs and results that collectives use in place: they lie in the symmetric arena,
// behind the frame, on all transports of the CPU and of CUDA.
//
//===----------------------------------------------------------------------===//
#include "CudaTesting.h"
#include "QueuePrograms.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"

#include <nlohmann/json.hpp>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32;
constexpr int64_t kAll = kRanks * kWidth;

/// On two ranks with a row each: "all" is the gathered weight, "y" the sum of the rows of x. Three
/// of four arguments are used in place, "y" by a callee. The fourth, "same", is not.
ProgramBuilder inPlace() {
  ProgramBuilder b({{"tp", kRanks}});
  b.parameter("w", {kRanks, kWidth}, {{"tp"}, {}});
  b.operand("x", f32, {kRanks, kWidth}, {{"tp"}, {}});
  b.result("all", f32, {kRanks, kWidth});
  b.result("same", f32, {kRanks, kWidth}, {{"tp"}, {}});
  b.result("y", f32, {kRanks, kWidth}, {{"tp"}, {}});
  const V row = argument(1, f32, {kWidth});
  auto main = b.procedure("main", 5, 0, 100, 4); // values begin at byte 128
  main.copy("same", row, argument(3, f32, {kWidth}));
  main.start("gather", fb::CollectiveKind::all_gather, {"tp"}, {argument(0, f32, {1, kWidth})},
             {argument(2, f32, {kRanks, kWidth})}, 0, 0, 1);
  main.call("sum", 1, {row, argument(4, f32, {kWidth})}, 0, 0, 2);
  main.wait("gather", 1);
  b.program.procedures[0]->symmetric_arguments = {0, 1, 2, 4};
  auto sum = b.procedure("sum", 2, 0, 0, 2);
  sum.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {argument(0, f32, {kWidth})},
            {argument(1, f32, {kWidth})}, 0, 0, 1);
  sum.wait("sum", 1);
  b.program.procedures[1]->symmetric_arguments = {0, 1};
  return b;
}

std::vector<float> weights() {
  ProgramBuilder b = inPlace();
  std::vector<float> all(static_cast<size_t>(kAll));
  EXPECT_OK(WeightSource::random(5)->read(b.manifest.entries[0].parameters[0],
                                          {{0, 0}, {kRanks, kWidth}}, all.data()));
  return all;
}

std::vector<float> valuesOf(const HostTensor &tensor) {
  return {tensor.as<float>(), tensor.as<float>() + kAll};
}

class SymmetricValues : public ::testing::TestWithParam<Where> {};

TEST_P(SymmetricValues, AreUsedInPlace) {
  ProgramBuilder b = inPlace();
  auto session = GetParam().session(b);
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(5)));
  for (int round = 0; round < 20; ++round) {
    const std::vector<float> x = inputOf(round);
    ASSERT_OK((*session)->setInput("x", f32, {kRanks, kWidth}, x.data()));
    ASSERT_OK((*session)->run());
    EXPECT_EQ(valuesOf(*(*session)->output("all")), weights());
    EXPECT_EQ(valuesOf(*(*session)->output("y")), sumOfRows(x, 1));
    EXPECT_EQ(valuesOf(*(*session)->output("same")), x);
  }
  const auto report = nlohmann::json::parse((*session)->report());
  for (const auto &rank : report["per_rank"]) {
    EXPECT_EQ(rank["symmetric_arena_bytes"], 100);
    EXPECT_EQ(rank["symmetric_value_bytes"], (1 + 1 + kRanks + 1) * kWidth * 4);
    EXPECT_EQ(rank["parameter_bytes"], kWidth * 4);
  }
  EXPECT_EQ(report["bound_values_copied"].size(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Of, SymmetricValues, ::testing::ValuesIn(kEverywhere),
                         [](const auto &info) { return std::string(info.param.name); });

/// Memory of the caller is not symmetric: the session copies to and from it.
TEST(SymmetricValuesBound, AreCopiedAtTheBoundary) {
  ProgramBuilder b = inPlace();
  auto session = b.session();
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(5)));
  alignas(64) static float in[kRanks][16], sums[kRanks][16], same[kRanks][16];
  constexpr size_t kBytes = kWidth * sizeof(float);
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_OK((*session)->bindInput(rank, "x", in[rank], kBytes));
    ASSERT_OK((*session)->bindOutput(rank, "y", sums[rank], kBytes));
    ASSERT_OK((*session)->bindOutput(rank, "same", same[rank], kBytes));
  }
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> x = inputOf(round), sum = sumOfRows(x, 1);
    for (int64_t rank = 0; rank < kRanks; ++rank)
      std::copy_n(x.begin() + rank * kWidth, kWidth, in[rank]);
    ASSERT_OK((*session)->run());
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(std::equal(sums[rank], sums[rank] + kWidth, sum.begin() + rank * kWidth));
      EXPECT_TRUE(std::equal(same[rank], same[rank] + kWidth, x.begin() + rank * kWidth));
    }
    EXPECT_EQ(valuesOf(*(*session)->output("y")), sum);
  }
  const auto copied = nlohmann::json::parse((*session)->report())["bound_values_copied"];
  ASSERT_EQ(copied.size(), 2U);
  EXPECT_EQ(copied[0]["value"], "input 'x'");
  EXPECT_EQ(copied[0]["bytes"], kRanks * kBytes);
  EXPECT_EQ(copied[0]["reason"], "a collective uses it in place, in symmetric memory");
  EXPECT_EQ(copied[1]["value"], "output 'y'");
  // The same rules as for other memory of the caller.
  ASSERT_OK((*session)->bindOutput(1, "y", in[1], kBytes));
  EXPECT_ERROR((*session)->run(), "output 'y' of rank 1 expects memory that does not overlap that "
                                  "of input 'x' of rank 1");
}

TEST(SymmetricValuesInterpreted, GiveTheResultsInEveryOrder) {
  ProgramBuilder b = inPlace();
  BundleContents contents = b.contents();
  const Bytes &program = contents.members.at(contents.manifest.programMember);
  auto lookup = [](const std::string &symbol) -> Result<KernelFunction> {
    return Status::error("no kernel " + symbol);
  };
  auto interpreter = braid::interp::ProgramInterpreter::create(
      program, contents.manifest, contents.manifest.entries[0], lookup);
  ASSERT_OK(interpreter);
  EXPECT_EQ(braid::interp::checkOrder((*interpreter)->program()), std::vector<std::string>());
  ASSERT_OK((*interpreter)->loadWeights(*WeightSource::random(5)));
  const std::vector<float> x = inputOf(3);
  HostTensor input = HostTensor::zeros(f32, {kRanks, kWidth});
  std::copy(x.begin(), x.end(), input.as<float>());
  ASSERT_OK((*interpreter)->setInput("x", input));
  auto results = (*interpreter)->runSchedules(1, 100, {});
  ASSERT_OK(results);
  EXPECT_EQ(valuesOf(results->at("all")), weights());
  EXPECT_EQ(valuesOf(results->at("y")), sumOfRows(x, 1));
}

Status verifyAfter(const std::function<void(fb::ProgramT &)> &change) {
  ProgramBuilder b = inPlace();
  change(b.program);
  BundleContents contents = b.contents();
  return verifyProgram(contents.members.at(contents.manifest.programMember), contents.manifest);
}

TEST(SymmetricValuesRefused, WhereTheProgramDoesNotDeclareThem) {
  EXPECT_OK(verifyAfter([](fb::ProgramT &) {}));
  EXPECT_ERROR(
      verifyAfter([](fb::ProgramT &p) { p.procedures[0]->symmetric_arguments = {0, 1, 4}; }),
      "procedure 'main', communication command 1 ('gather'): output 0: expects symmetric "
      "memory, got argument 2, which may lie anywhere");
  EXPECT_ERROR(
      verifyAfter([](fb::ProgramT &p) { p.procedures[0]->symmetric_arguments = {0, 2, 4}; }),
      "procedure 'main', compute command 2 ('sum'): argument 0: expects symmetric memory, "
      "got argument 1, which may lie anywhere");
  EXPECT_ERROR(verifyAfter([](fb::ProgramT &p) { p.procedures[0]->symmetric_arguments = {1, 0}; }),
               "procedure 'main': expects symmetric arguments that ascend below 5, got 0");
  EXPECT_ERROR(verifyAfter([](fb::ProgramT &p) { p.procedures[0]->symmetric_arguments = {5}; }),
               "procedure 'main': expects symmetric arguments that ascend below 5, got 5");
}

TEST(SymmetricValuesRefused, BehindAFrameOfAllAddresses) {
  ProgramBuilder b = inPlace();
  b.program.procedures[0]->symmetric_bytes = UINT64_MAX - 63;
  EXPECT_ERROR(b.session(), "input 'x' of 16 bytes does not fit behind a symmetric frame of "
                            "18446744073709551552");
}

} // namespace
