//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Medians of calibrations: of each figure by itself, and of what is the same only.
//
//===----------------------------------------------------------------------===//
#include "SampleMachine.h"
#include "Testing.h"

using namespace braid::cost;
using namespace braid::cost::testing;
using braid::runtime::Result;

namespace {

/// Samples of one minute after the other, named after their number.
std::vector<MachineFile> samples(size_t count) {
  std::vector<MachineFile> files;
  for (size_t i = 0; i < count; ++i) {
    files.push_back({std::string(1, static_cast<char>('a' + i)) + ".json", sampleMachine()});
    Machine &machine = files.back().machine;
    machine.name = "of " + std::to_string(i);
    machine.measurement->at = "2026-01-02T03:0" + std::to_string(i) + ":00Z";
  }
  return files;
}

/// Of two samples, of which the second one has this change.
template <typename Change> std::string refusal(Change change) {
  std::vector<MachineFile> files = samples(2);
  change(files[1].machine);
  return medianOf(files).status().message();
}

} // namespace

TEST(MachineMedian, IsOfEachFigureByItself) {
  std::vector<MachineFile> files = samples(3);
  const double seconds[] = {3e-6, 1e-6, 2e-6}, rates[] = {1e10, 3e10, 2.5e10};
  for (size_t i = 0; i < 3; ++i) {
    files[i].machine.transports[1].collectives[0].seconds = seconds[i];
    files[i].machine.compute[1].matmul[3].flopsPerSecond = rates[i];
    files[i].machine.compute[0].rowOverlapEfficiency = 0.25 + 0.25 * double(i);
  }
  const Result<Machine> machine = medianOf(files);
  ASSERT_OK(machine.status());
  EXPECT_EQ(machine->name, "of 0");
  EXPECT_EQ(machine->transports[1].collectives[0].seconds, 2e-6);
  EXPECT_EQ(machine->compute[1].matmul[3].flopsPerSecond, 2.5e10);
  EXPECT_EQ(machine->compute[0].rowOverlapEfficiency, 0.5);
  const Machine sample = sampleMachine();
  EXPECT_EQ(machine->measurement->at, "2026-01-02T03:02:00Z");
  EXPECT_EQ(machine->measurement->seconds, 3 * sample.measurement->seconds);
  EXPECT_EQ(machine->measurement->calibrations, 3);
  EXPECT_EQ(machine->measurement->missing, sample.measurement->missing);
  // All else is as it was.
  Machine other = *machine;
  other.name = sample.name;
  other.measurement = sample.measurement;
  other.transports[1].collectives[0] = sample.transports[1].collectives[0];
  other.compute[1].matmul[3] = sample.compute[1].matmul[3];
  other.compute[0].rowOverlapEfficiency = sample.compute[0].rowOverlapEfficiency;
  EXPECT_EQ(machineToJson(other), machineToJson(sample));
}

TEST(MachineMedian, OfAnEvenNumberIsTheMeanOfTheTwoInTheMiddle) {
  std::vector<MachineFile> files = samples(2);
  files[0].machine.overheads->callSeconds = 1e-6;
  files[1].machine.overheads->callSeconds = 4e-6;
  const Result<Machine> machine = medianOf(files);
  ASSERT_OK(machine.status());
  EXPECT_DOUBLE_EQ(machine->overheads->callSeconds, 2.5e-6);
}

TEST(MachineMedian, CountsTheCalibrationsOfAMedian) {
  std::vector<MachineFile> files = samples(2);
  files[0].machine.measurement->calibrations = 3;
  const Result<Machine> machine = medianOf(files);
  ASSERT_OK(machine.status());
  EXPECT_EQ(machine->measurement->calibrations, 4);
}

TEST(MachineMedian, RefusesWhatHasNotMeasuredTheSame) {
  EXPECT_ERROR(medianOf(samples(1)).status(),
               "a median expects the files of two calibrations or more, got 1");
  const Result<Machine> published = openMachine("h100");
  ASSERT_OK(published.status());
  EXPECT_EQ(refusal([&](Machine &m) { m = *published; }),
            "'b.json' is a published machine: only calibrations have a median");
  EXPECT_EQ(refusal([](Machine &m) { m.measurement->at = "2026-01-02T03:00:00Z"; }),
            "'a.json' and 'b.json' are the same calibration, of 2026-01-02T03:00:00Z");
  EXPECT_EQ(refusal([](Machine &m) {
              m.measurement->at = "2026-01-02T03:00:00Z";
              m.links[0].exchanges[0].seconds = 8e-5; // of the same host with other links
            }),
            "");
  EXPECT_EQ(refusal([](Machine &m) { m.processor->cores = 3; }),
            "'b.json' does not measure what 'a.json' does: in 'processor.cores' expects 2, got 3");
  EXPECT_EQ(refusal([](Machine &m) { m.measurement->version = "0.2.0"; }),
            "'b.json' does not measure what 'a.json' does: in 'measurement.version' expects "
            "\"0.1.0\", got \"0.2.0\"");
  EXPECT_EQ(refusal([](Machine &m) { m.transports[1].collectives[0].bytes = 10; }),
            "'b.json' does not measure what 'a.json' does: in 'transports[1].collectives[0].bytes' "
            "expects 1000, got 10");
  EXPECT_EQ(refusal([](Machine &m) { m.transports.pop_back(); }),
            "'b.json' does not measure what 'a.json' does: in 'transports' expects 2 entries, got "
            "1 entry");
  EXPECT_EQ(refusal([](Machine &m) { m.overheads.reset(); }),
            "'b.json' does not measure what 'a.json' does: has no 'overheads'");
  EXPECT_EQ(refusal([](Machine &m) { m.compute[1].rowOverlapEfficiency = 0.5; }),
            "'b.json' does not measure what 'a.json' does: in 'compute[1]' has "
            "'row_overlap_efficiency'");
}
