//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Predictions of programs written by hand, on the sample machine.
//
//===----------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "SampleMachine.h"
#include "braid/Cost/OperationTime.h"
#include "braid/Cost/ScheduleTime.h"
#include "runtime/lib/Sync/Cores.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using braid::cost::Machine;
using Json = nlohmann::json;

namespace {

constexpr DType f32 = DType::f32;
constexpr int64_t kElements = 4096; ///< of the value that is reduced

/// A layer reduces a value; a product stands behind the wait, or before it.
ProgramBuilder layer(bool overlaps) {
  ProgramBuilder b({{"tp", 2}});
  auto main = b.procedure("main", 0, 1 << 20, 1 << 16, 2);
  auto layer = b.procedure("layer", 0, 1 << 20, 1 << 16, 2);
  auto product = [&] {
    layer.matmul("up", local(0, f32, {64, 256}), local(65536, f32, {256, 256}), nullptr,
                 local(524288, f32, {64, 256}));
  };
  layer.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {symmetric(0, f32, {kElements})},
              {symmetric(4 * kElements, f32, {kElements})}, 0, 0, 1, "sum");
  if (overlaps)
    product();
  layer.wait("sum", 1);
  if (!overlaps)
    product();
  main.call("layer", 1, {}, 0, 0, 0);
  return b;
}

/// Runs twice and gives the report's prediction.
Json predictionOf(ProgramBuilder b, const Machine &machine) {
  WorldOptions options;
  options.trace = true;
  options.machine = std::make_shared<const Machine>(machine);
  Result<std::unique_ptr<Session>> session = b.session(options);
  EXPECT_OK(session);
  if (!session.ok())
    return {};
  for (int i = 0; i < 2; ++i)
    EXPECT_OK((*session)->run());
  return Json::parse((*session)->report())["prediction"];
}

double productSeconds() {
  const auto cores = static_cast<int64_t>(std::min(2.0, usableCores()));
  const double rate = cores == 1 ? 4e10 : 2e10;
  return 1e-6 + 2.0 * 64 * 256 * 256 / rate;
}

double sumSeconds() {
  ScheduleRequest request;
  request.ranks = 2;
  request.values = {{4 * kElements, 4, false}};
  return braid::cost::timeOf(
             request, *braid::cost::networkOf(braid::cost::testing::sampleMachine(), "threads", 2))
      ->seconds;
}

} // namespace

#define EXPECT_CLOSE(got, expected) EXPECT_NEAR((got).get<double>(), expected, 1e-9 * (expected))

TEST(Prediction, OfCallsOperationsAndCollectives) {
  const Json prediction = predictionOf(layer(false), braid::cost::testing::sampleMachine());
  EXPECT_EQ(prediction["machine"], "sample");
  EXPECT_EQ(prediction["machine_measured_at"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(prediction["warning"].get<std::string>().rfind("'sample' was measured on ", 0), 0u);
  const double whole = productSeconds() + sumSeconds();
  EXPECT_CLOSE(prediction["run"]["predicted_s"], whole);
  ASSERT_EQ(prediction["calls"].size(), 1u);
  const Json &call = prediction["calls"][0];
  EXPECT_EQ(call["identity"], "@main/@layer");
  EXPECT_CLOSE(call["predicted_s"], whole);
  EXPECT_GT(call["measured_s"], 0);
  EXPECT_EQ(call["error"].get<double>(),
            call["predicted_s"].get<double>() / call["measured_s"].get<double>() - 1);
  EXPECT_LE(call["least_measured_s"].get<double>(), call["measured_s"].get<double>());
  ASSERT_EQ(prediction["collectives"].size(), 1u);
  EXPECT_EQ(prediction["collectives"][0]["identity"], "@main/@layer/sum");
  EXPECT_CLOSE(prediction["collectives"][0]["predicted_s"], sumSeconds());
  ASSERT_EQ(prediction["operations"].size(), 1u);
  EXPECT_EQ(prediction["operations"][0]["identity"], "matmul up");
  EXPECT_CLOSE(prediction["operations"][0]["predicted_s"], productSeconds());
  EXPECT_TRUE(prediction["median_error_of_calls"].is_number());
}

TEST(Prediction, ComputationAndCommunicationSlowEachOther) {
  const Json prediction = predictionOf(layer(true), braid::cost::testing::sampleMachine());
  // Beside each other the collective takes twice its time, and the product gets on at two thirds.
  const double sum = 2 * sumSeconds(), whole = sum + productSeconds() - sum / 1.5;
  ASSERT_GT(productSeconds() * 1.5, sum);
  EXPECT_CLOSE(prediction["collectives"][0]["predicted_s"], sum);
  EXPECT_CLOSE(prediction["run"]["predicted_s"], whole);
}

TEST(Prediction, NamesTheCommandThatIsNotEstimated) {
  Machine machine = braid::cost::testing::sampleMachine();
  machine.transports.clear();
  EXPECT_EQ(predictionOf(layer(false), machine)["missing"],
            "all_reduce 'sum' in @layer: the machine file has no transport 'threads' of 2 ranks");
}

TEST(Prediction, NeedsTracing) {
  WorldOptions options;
  options.machine = std::make_shared<const Machine>(braid::cost::testing::sampleMachine());
  EXPECT_ERROR(World::create(options).status(), "a machine to predict on expects tracing on");
  options.trace = true;
  options.target = "cuda";
  EXPECT_ERROR(World::create(options).status(), "a machine to predict on expects target 'cpu'");
}
