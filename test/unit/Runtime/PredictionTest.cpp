//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Predictions of programs written by hand, on the sample machine.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Model/Prediction.h"
#include "ProgramBuilder.h"
#include "SampleMachine.h"
#include "braid/Cost/OperationTime.h"
#include "braid/Cost/ScheduleChoice.h"
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
  EXPECT_OK((*session)->loadWeights(*WeightSource::random(1)));
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
  // As the transport executes it.
  const auto machine = std::make_shared<const Machine>(braid::cost::testing::sampleMachine());
  braid::cost::ScheduleChooser("threads", machine).choose(request);
  return braid::cost::timeOf(request, *braid::cost::networkOf(*machine, "threads", 2))->seconds;
}

/// Of a call the longest process counts in each run, of an operation their mean, of a message
/// the shortest.
TEST(Prediction, OfSeveralProcesses) {
  auto figures = [](double scale) {
    PredictionFigures one;
    one.machine = "two hosts";
    one.runSeconds = 8 * scale;
    auto fill = [&](PredictionFigures::Part &part, const std::string &name) {
      part.order = {name};
      part.predicted = {{name, 4 * scale}};
      // The processes take turns in being faster.
      part.samples = {{name, {1 * scale, 6 / scale, 3}}};
    };
    fill(one.calls, "layer");
    fill(one.operations, "matmul up");
    fill(one.collectives, "send");
    return one;
  };
  PredictionFigures second = figures(2);
  // What only one has stays as it is.
  second.collectives.order.push_back("recv");
  second.collectives.predicted["recv"] = 5;
  second.collectives.samples["recv"] = {5, 5, 5};
  const PredictionFigures all = PredictionFigures::merged({figures(1).raw({}), second.raw({})});
  EXPECT_EQ(all.machine, "two hosts");
  EXPECT_EQ(all.runSeconds, 16);
  using Samples = std::vector<double>;
  EXPECT_EQ(all.calls.predicted.at("layer"), 8);
  EXPECT_EQ(all.calls.samples.at("layer"), (Samples{2, 6, 3}));
  EXPECT_EQ(all.operations.predicted.at("matmul up"), 6);
  EXPECT_EQ(all.operations.samples.at("matmul up"), (Samples{1.5, 4.5, 3}));
  EXPECT_EQ(all.collectives.order, (std::vector<std::string>{"send", "recv"}));
  EXPECT_EQ(all.collectives.predicted.at("send"), 4);
  EXPECT_EQ(all.collectives.samples.at("send"), (Samples{1, 3, 3}));
  EXPECT_EQ(all.collectives.samples.at("recv"), (Samples{5, 5, 5}));
  const Json report = all.json(20, 16);
  EXPECT_EQ(report["run"]["error"], 16.0 / 20 - 1);
  EXPECT_EQ(report["collectives"][0]["least_measured_s"], 1);
  EXPECT_FALSE(report.contains("missing"));
  // Before the first run there is nothing to compare.
  PredictionFigures unused = figures(1);
  unused.collectives.samples.clear();
  EXPECT_TRUE(PredictionFigures::merged({unused.raw({}), unused.raw({})})
                  .json(0, 0)["collectives"]
                  .empty());
  second.notEstimated = "no figure";
  EXPECT_EQ(PredictionFigures::merged({figures(1).raw({}), second.raw({})}).json(20, 16)["missing"],
            "no figure");
}

/// Collectives of a job are told on rank 0's clock, from the arrival of the last rank of a group.
TEST(Prediction, OfCollectivesOfSeveralProcesses) {
  auto process = [](int64_t ranks, double predicted, std::vector<Meetings> runs) {
    PredictionFigures one;
    one.ranks = ranks;
    one.collectives.order = {"sum"};
    one.collectives.predicted = {{"sum", predicted}};
    one.meetings["sum"] = std::move(runs);
    return one;
  };
  // Ranks 0 and 1, and ranks 2 and 3, are groups; ranks 1 and 3 are a process whose clock is 1 ms
  // late. Times are of one clock here, in us.
  auto us = [](int64_t at) { return at * 1000; };
  auto met = [&](int64_t group, int64_t arrival, int64_t end, int64_t late) {
    return Meeting{group, us(arrival - late), us(arrival - late), us(50), {us(end - late)}};
  };
  ClockMap late;
  late.last.offsetNs = us(1000);
  const PredictionFigures both = PredictionFigures::merged(
      {process(2, 4, {{met(0, 0, 200, 0), met(2, 0, 40, 0)}, {met(0, 0, 30, 0), met(2, 0, 30, 0)}})
           .raw({}),
       process(2, 2,
               {{met(0, 100, 150, 1000), met(2, 10, 30, 1000)},
                {met(0, 40, 50, 1000), met(2, 0, 30, 1000)},
                {met(0, 0, 1, 1000), met(2, 0, 1, 1000)}})
           .raw(late)});
  EXPECT_EQ(both.collectives.predicted.at("sum"), 3);
  // The first run takes (100 + 50 + 30 + 20) / 4, the second (0 + 10 + 30 + 30) / 4, as its rank 0
  // awaits nothing of rank 1; of the third the first process knows nothing.
  const std::vector<double> &samples = both.collectives.samples.at("sum");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_NEAR(samples[0], 50e-6, 1e-12);
  EXPECT_NEAR(samples[1], 17.5e-6, 1e-12);
  // In the first one, rank 0 waited for longer than it spins.
  ASSERT_EQ(both.awakeSamples.at("sum").size(), 1u);
  EXPECT_NEAR(both.awakeSamples.at("sum")[0], 17.5e-6, 1e-12);
  EXPECT_TRUE(both.meetings.empty());
  // A process that gives its report alone tells of its own ranks.
  const Json alone = process(1, 4, {{met(0, 100, 150, 0)}}).json(1, 1);
  EXPECT_NEAR(alone["collectives"][0]["measured_s"].get<double>(), 50e-6, 1e-12);
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
  // Both runs, or those in which no rank slept.
  const auto awake = prediction["collectives"][0]["runs_awake"].get<int64_t>();
  EXPECT_LE(awake, 2);
  EXPECT_EQ(prediction["collectives"][0]["measured_awake_s"].is_null(), awake == 0);
  if (awake == 2)
    EXPECT_EQ(prediction["collectives"][0]["measured_awake_s"],
              prediction["collectives"][0]["measured_s"]);
  ASSERT_EQ(prediction["operations"].size(), 1u);
  EXPECT_EQ(prediction["operations"][0]["identity"], "matmul up");
  EXPECT_CLOSE(prediction["operations"][0]["predicted_s"], productSeconds());
  EXPECT_TRUE(prediction["median_error_of_calls"].is_number());
}

/// A run follows one like it, which has used as much memory since it last used a product's weights;
/// what a run computes itself has just been used.
TEST(Prediction, ProductsFindInCachesWhatARunDoesNotDisplace) {
  ProgramBuilder b({{"tp", 1}});
  b.parameter("w", {256, 256}); // 256 KiB
  auto main = b.procedure("main", 1, 1 << 20, 0, 0);
  // The same input, and two results that lie one over the other: 64 KiB and 96 KiB.
  main.matmul("weights", local(0, f32, {64, 256}), argument(0, f32, {256, 256}), nullptr,
              local(65536, f32, {64, 256}));
  main.matmul("computed", local(0, f32, {64, 256}), local(524288, f32, {128, 256}), nullptr,
              local(98304, f32, {64, 128}));
  Machine machine = braid::cost::testing::sampleMachine();
  for (auto &rates : machine.compute)
    for (auto &point : rates.matmul)
      point.flopsPerSecond = 1e9;
  const double used = (256 + 64 + 64 + 128) * 1024;
  const auto ofWeights = 2.0 * 64 * 256 * 256 / 1e9, ofComputed = 2.0 * 64 * 256 * 128 / 1e9;
  auto expect = [&](double weights, double computed) {
    const Json operations = predictionOf(b, machine)["operations"];
    ASSERT_EQ(operations.size(), 2u);
    EXPECT_EQ(operations[0]["identity"], "matmul weights");
    EXPECT_CLOSE(operations[0]["predicted_s"], 1e-6 + weights);
    EXPECT_EQ(operations[1]["identity"], "matmul computed");
    EXPECT_CLOSE(operations[1]["predicted_s"], 1e-6 + computed);
  };
  expect(ofWeights, ofComputed);
  for (auto &rates : machine.compute)
    rates.weightReads = {{16, 1024, 1e10}, {16, int64_t(used), 2e9}, {16, 1 << 30, 1e9}};
  expect(ofWeights - 262144 / 1e9 + 262144 / 2e9, ofComputed - 131072 / 1e9 + 131072 / 1e10);
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

TEST(Prediction, NeedsACpu) {
  WorldOptions options;
  options.machine = std::make_shared<const Machine>(braid::cost::testing::sampleMachine());
  options.target = "cuda";
  EXPECT_ERROR(World::create(options).status(), "a machine to predict on expects target 'cpu'");
}

TEST(Prediction, MeasuresCollectivesFromTheArrivalOfTheLastRank) {
  WorldOptions options;
  options.trace = true;
  options.machine = std::make_shared<const Machine>(braid::cost::testing::sampleMachine());
  Result<std::unique_ptr<Session>> session = layer(false).session(options);
  ASSERT_OK(session);
  ASSERT_OK((*session)->run());
  // The spans of whole collectives, not those of their steps, which are in the trace, too.
  double last = 0, ends = 0;
  const Json trace = Json::parse(*(*session)->trace());
  for (const Json &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "communication") {
      last = std::max(last, event["ts"].get<double>());
      ends += (event["ts"].get<double>() + event["dur"].get<double>()) / 2;
    }
  const Json prediction = Json::parse((*session)->report())["prediction"];
  EXPECT_NEAR(prediction["collectives"][0]["measured_s"].get<double>(), (ends - last) * 1e-6, 2e-9);

  // The same without text.
  const Result<std::vector<Execution::Span>> spans = (*(*session)->model().execution(""))->spans();
  ASSERT_OK(spans);
  double lastOfSpans = 0, endsOfSpans = 0;
  std::map<std::string, int> operations;
  for (const Execution::Span &span : *spans) {
    EXPECT_LE(span.beginSeconds, span.endSeconds);
    ++operations[span.operation];
    if (span.collective.empty())
      continue;
    EXPECT_EQ(span.collective, "@main/@layer/sum");
    lastOfSpans = std::max(lastOfSpans, span.beginSeconds);
    endsOfSpans += span.endSeconds / 2;
  }
  EXPECT_NEAR(endsOfSpans - lastOfSpans, (ends - last) * 1e-6, 2e-9);
  std::map<std::string, int> ofTrace;
  for (const Json &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] != "step")
      ++ofTrace[event["args"]["operation"].get<std::string>()];
  EXPECT_EQ(operations, ofTrace);
}

TEST(Prediction, SpansExpectATrace) {
  Result<std::unique_ptr<Session>> session = layer(false).session();
  ASSERT_OK(session);
  ASSERT_OK((*session)->run());
  EXPECT_ERROR((*(*session)->model().execution(""))->spans().status(),
               "a trace expects a world that was created with tracing on");
}

TEST(Prediction, TwoMachinesLeadToTwoAlgorithmsWithTheSameBits) {
  constexpr int64_t kRanks = 4, kSum = 5000;
  ProgramBuilder b({{"tp", kRanks}});
  b.operand("x", f32, {kRanks, kSum}, {{"tp"}, {}});
  b.result("y", f32, {kRanks, kSum}, {{"tp"}, {}});
  auto p = b.procedure("main", 2, 0, 1 << 16, 2);
  const V input = symmetric(0, f32, {1, kSum}), output = symmetric(1 << 15, f32, {1, kSum});
  p.copy("in", argument(0, f32, {1, kSum}), input);
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {input}, {output}, 0, 0, 1, "sum");
  p.wait("sum", 1);
  p.copy("out", output, argument(1, f32, {1, kSum}));
  // Whose sums differ by the order of the ranks.
  std::vector<float> x(kRanks * kSum);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (i / kSum % 2 == 0 ? 1e7f : -1e7f) + 1.0f / static_cast<float>(i % 977 + 1);
  auto run = [&](std::shared_ptr<const Machine> machine, Json &collective) {
    WorldOptions options;
    options.machine = std::move(machine);
    Result<std::unique_ptr<Session>> session = b.session(options);
    EXPECT_OK(session);
    EXPECT_OK((*session)->setInput("x", f32, {kRanks, kSum}, x.data()));
    EXPECT_OK((*session)->run());
    const Json report = Json::parse((*session)->report());
    EXPECT_FALSE(report.contains("prediction"));
    collective = report["collectives"][0];
    return (*session)->output("y")->data;
  };
  auto machineOf = [](double messageSeconds) {
    auto machine = std::make_shared<Machine>(braid::cost::testing::sampleMachine());
    machine->processor->cores = kRanks;
    machine->transports[0].ranks = kRanks;
    machine->transports[0].messageSeconds = messageSeconds;
    return machine;
  };
  Json byRule, oneStep, twoSteps;
  const auto sum = run(nullptr, byRule);
  EXPECT_EQ(byRule["algorithm"], "direct");
  EXPECT_EQ(byRule["chosen_by"], "rule");
  EXPECT_EQ(byRule["why_by_rule"], "no machine file is given");
  EXPECT_EQ(run(machineOf(1e-3), oneStep), sum);
  EXPECT_EQ(oneStep["algorithm"], "one_shot");
  EXPECT_EQ(oneStep["chosen_by"], "time");
  EXPECT_EQ(oneStep["considered"][0]["chunk_bytes"], oneStep["chunk_bytes"]);
  EXPECT_LE(oneStep["considered"][0]["predicted_s"].get<double>(),
            (1 - braid::cost::kWorthwhile) * oneStep["rule_predicted_s"].get<double>());
  EXPECT_EQ(oneStep["bytes_sent_per_rank"], (kRanks - 1) * kSum * 4);
  EXPECT_EQ(run(machineOf(0), twoSteps), sum);
  EXPECT_EQ(twoSteps["algorithm"], "direct");
  EXPECT_EQ(twoSteps["chosen_by"], "rule"); // which is as fast
  for (const Json &one : {oneStep, twoSteps}) {
    EXPECT_FALSE(one.contains("why_by_rule"));
    ASSERT_GE(one["considered"].size(), 2u);
    EXPECT_EQ(one["considered"][0]["algorithm"], one["algorithm"]);
    EXPECT_LE(one["considered"][0]["predicted_s"].get<double>(),
              one["considered"][1]["predicted_s"].get<double>());
  }
}
