//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The engine on schedules of every algorithm, also those that the transports do not choose, of
// values that are strided, in place, and longer than a chunk.
//
//===----------------------------------------------------------------------===//
#include "TransportTesting.h"
#include "runtime/lib/Collective/EngineRun.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

struct Run {
  CollectiveKind kind;
  ScheduleAlgorithm algorithm;
  int64_t ranks;
  bool inPlace;
};
void PrintTo(const Run &run, std::ostream *os) {
  *os << name(run.kind) << " by " << name(run.algorithm) << " of " << run.ranks
      << (run.inPlace ? " in place" : "");
}

constexpr int64_t kRows = 37, kColumns = 29, kPitch = 31; // of a part; rows have gaps

/// Runs the collective three times on each rank, and returns the number of wrong elements.
int64_t wrongElements(const Run &run) {
  const int64_t n = run.ranks;
  const bool scatters = run.kind == CollectiveKind::reduceScatter;
  const bool gathers = run.kind == CollectiveKind::allGather;
  constexpr uint64_t kOutput = 65536;
  TestWorld w(n, 2 * kOutput);
  std::vector<int64_t> group;
  for (int64_t rank = 0; rank < n; ++rank)
    group.push_back(rank);
  w.transport->group(group, kCommunicationQueue);
  // Three ranks on a host, of which the last one is on another NUMA node.
  Topology topology;
  for (int64_t rank = 0; rank < n; ++rank)
    topology.places.push_back({rank / 3, rank % 3 / 2});
  PlanTable plans;
  MemoryPool pool(Sharing::process);
  std::vector<Command> commands;
  for (int64_t rank = 0; rank < n; ++rank) {
    Command c = command(w, run.kind, group, rank, {}, ReduceKind::sum, "c");
    Collective &collective = std::get<CollectiveCommand>(c.op).collective;
    collective.root = n / 2;
    CollectiveValue value;
    value.input = {0, {(scatters ? n : 1) * kRows, kColumns}, {kPitch, 1}};
    value.output = {run.inPlace ? 0 : kOutput, {(gathers ? n : 1) * kRows, kColumns}, {kPitch, 1}};
    setParts(collective, n, value);
    collective.values.push_back(value);
    ScheduleRequest request = requestOf(collective, "threads");
    request.algorithm = run.algorithm;
    request.topology = topology;
    request.chunkBytes = 500; // no whole number of rows
    GroupMember &member =
        *static_cast<EngineGroup *>(collective.group)->members[static_cast<size_t>(rank)];
    auto plan = plans.find(request, member.pairs, rank);
    EXPECT_OK(plan);
    if (!plan.ok())
      return -1;
    collective.plan = *plan;
    collective.shared = SharedCollective::make(collective, pool);
    member.reserve(collective, pool);
    commands.push_back(std::move(c));
  }
  std::atomic<int64_t> wrong{0};
  w.run([&](int64_t rank) {
    const Command &c = commands[static_cast<size_t>(rank)];
    const CollectiveValue &value = std::get<CollectiveCommand>(c.op).collective.values[0];
    float *in = w.memory<float>(rank, 0), *out = w.memory<float>(rank, value.output.offset);
    for (int round = 0; round < 3; ++round) {
      std::fill_n(out, value.output.shape[0] * kPitch, -99.0F);
      for (int64_t row = 0; row < value.input.shape[0]; ++row)
        for (int64_t column = 0; column < kPitch; ++column)
          in[row * kPitch + column] =
              static_cast<float>(contribution(rank, row * kColumns + column, round));
      if (!w.collective(rank, c)) {
        wrong.fetch_add(1);
        return;
      }
      for (int64_t row = 0; row < value.output.shape[0]; ++row)
        for (int64_t column = 0; column < kColumns; ++column) {
          const int64_t mine = (scatters ? rank * kRows + row : row % kRows) * kColumns + column;
          double expected = expectedReduce(ReduceKind::sum, group, mine, round);
          if (gathers)
            expected = contribution(row / kRows, mine, round);
          else if (run.kind == CollectiveKind::broadcast)
            expected = contribution(n / 2, mine, round);
          else if (run.kind == CollectiveKind::reduce && rank != n / 2)
            expected = 0;
          if (static_cast<double>(out[row * kPitch + column]) != expected)
            wrong.fetch_add(1);
        }
      // Between the rows nothing is written.
      for (int64_t row = 0; row < value.output.shape[0] && !run.inPlace; ++row)
        for (int64_t column = kColumns; column < kPitch; ++column)
          if (out[row * kPitch + column] != -99.0F)
            wrong.fetch_add(1);
    }
  });
  EXPECT_FALSE(w.control.failed()) << w.control.failure().message();
  return wrong;
}

std::vector<Run> allRuns() {
  std::vector<Run> runs;
  for (CollectiveKind kind :
       {CollectiveKind::allReduce, CollectiveKind::reduceScatter, CollectiveKind::allGather,
        CollectiveKind::reduce, CollectiveKind::broadcast})
    for (ScheduleAlgorithm algorithm :
         {ScheduleAlgorithm::direct, ScheduleAlgorithm::oneShot, ScheduleAlgorithm::ring,
          ScheduleAlgorithm::recursiveDoubling, ScheduleAlgorithm::tree,
          ScheduleAlgorithm::hierarchical})
      for (int64_t ranks : {1, 2, 4, 5})
        for (bool inPlace : {false, true})
          if (checkAlgorithm(algorithm, kind, ranks).ok() &&
              (!inPlace || kind == CollectiveKind::allReduce))
            runs.push_back({kind, algorithm, ranks, inPlace});
  return runs;
}

class Engines : public ::testing::TestWithParam<Run> {};

TEST_P(Engines, ExecuteEveryAlgorithm) { EXPECT_EQ(wrongElements(GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(Of, Engines, ::testing::ValuesIn(allRuns()));

} // namespace
