//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ScheduleTesting.h"

#include <gmock/gmock.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::allReduce, CollectiveKind::reduceScatter,
                                        CollectiveKind::allGather, CollectiveKind::allToAll,
                                        CollectiveKind::allToAllV, CollectiveKind::broadcast,
                                        CollectiveKind::reduce,    CollectiveKind::permute,
                                        CollectiveKind::send,      CollectiveKind::recv};

class Schedules : public ::testing::TestWithParam<CollectiveKind> {};

TEST_P(Schedules, AreCorrectForEveryGroupAndSize) {
  const int64_t chunk = kChunk / 4;
  int64_t checked = 0;
  for (int64_t ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16})
    forEachRequest(GetParam(), ranks,
                   {0, 1, 63, chunk - 1, chunk, chunk + 1, 3 * chunk + 5, 9 * chunk},
                   [&](const ScheduleRequest &request) {
                     if (request.ranks == 16 && request.values[0].partBytes > 4 * kChunk)
                       return; // the larger groups and sizes do not need each other
                     Status status = checkSchedules(request, schedulesOf(request));
                     EXPECT_TRUE(status.ok()) << requestText(request) << ": " << status.message();
                     ++checked;
                   });
  EXPECT_GT(checked, 70);
}

TEST_P(Schedules, AreCorrectForSeveralValuesAndOtherElements) {
  for (int64_t ranks : {2, 3, 4, 7})
    forEachRequest(GetParam(), ranks, {300}, [&](ScheduleRequest request) {
      request.values.insert(request.values.begin(), {{130 * 2, 2, false}, {77 * 8, 8, false}});
      if (GetParam() == CollectiveKind::allReduce)
        request.values[0].inPlace = true;
      for (int64_t chunkBytes : {8, 520, 1 << 20}) {
        request.chunkBytes = chunkBytes;
        if (chunkBytes == 8 && ranks > 3)
          continue;
        Status status = checkSchedules(request, schedulesOf(request), /*messagesInFlight=*/3);
        EXPECT_TRUE(status.ok()) << requestText(request) << ": " << status.message();
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Of, Schedules, ::testing::ValuesIn(kAllKinds),
                         [](const auto &info) { return std::string(name(info.param)); });

ScheduleRequest allReduceOf(ScheduleAlgorithm algorithm, int64_t ranks, int64_t elements) {
  ScheduleRequest request;
  request.algorithm = algorithm;
  request.ranks = ranks;
  request.values = {{elements * 4, 4, false}};
  return request;
}

int64_t mostSent(const ScheduleRequest &request) {
  int64_t most = 0;
  for (const Schedule &schedule : schedulesOf(request))
    most = std::max(most, schedule.bytesSent());
  return most;
}

TEST(Schedule, BytesAsTheHeaderSays) {
  const int64_t elements = 8 * 64, bytes = elements * 4;
  EXPECT_EQ(mostSent(allReduceOf(ScheduleAlgorithm::direct, 8, elements)), 2 * 7 * bytes / 8);
  EXPECT_EQ(mostSent(allReduceOf(ScheduleAlgorithm::ring, 8, elements)), 2 * 7 * bytes / 8);
  EXPECT_EQ(mostSent(allReduceOf(ScheduleAlgorithm::oneShot, 8, elements)), 7 * bytes);
  EXPECT_EQ(mostSent(allReduceOf(ScheduleAlgorithm::recursiveDoubling, 8, elements)), 3 * bytes);
  ScheduleRequest gather = allReduceOf(ScheduleAlgorithm::recursiveDoubling, 8, elements);
  gather.kind = CollectiveKind::allGather;
  EXPECT_EQ(mostSent(gather), 7 * bytes);
  ScheduleRequest tree = allReduceOf(ScheduleAlgorithm::tree, 8, elements);
  tree.kind = CollectiveKind::broadcast;
  EXPECT_EQ(mostSent(tree), 3 * bytes);
}

/// Between hosts, each part of an all_reduce goes once each way.
TEST(Schedule, HierarchicalSendsLittleBetweenHosts) {
  constexpr int64_t kHosts = 3, kPerHost = 4, kRanks = kHosts * kPerHost;
  const int64_t bytes = kRanks * 64 * 4;
  ScheduleRequest request = allReduceOf(ScheduleAlgorithm::hierarchical, kRanks, bytes / 4);
  for (int64_t rank = 0; rank < kRanks; ++rank)
    request.topology.places.push_back({rank / kPerHost, rank % 2});
  const std::vector<Schedule> schedules = schedulesOf(request);
  std::vector<int64_t> sent(kHosts, 0), mostOfARank(kHosts, 0);
  for (const Schedule &schedule : schedules) {
    int64_t mine = 0;
    for (const ScheduleStep &step : schedule.steps)
      if (step.kind == StepKind::send && !request.topology.sameHost(schedule.position, step.peer))
        mine += step.piece.bytes;
    const auto host = static_cast<size_t>(schedule.position / kPerHost);
    sent[host] += mine;
    mostOfARank[host] = std::max(mostOfARank[host], mine);
  }
  for (size_t host = 0; host < kHosts; ++host) {
    EXPECT_EQ(sent[host], 2 * (kHosts - 1) * bytes / kHosts);
    EXPECT_LT(mostOfARank[host], sent[host] / 2); // the ranks of a host share it
  }
}

TEST(Schedule, OfOneRankCopies) {
  for (ScheduleAlgorithm algorithm : kScheduleAlgorithms) {
    Result<Schedule> schedule = makeSchedule(allReduceOf(algorithm, 1, 3), 0);
    ASSERT_OK(schedule);
    EXPECT_EQ(scheduleText(*schedule), "      0  copy     output 0 [0, 12) = input 0 [0, 12)\n");
  }
}

TEST(Schedule, Text) {
  Result<Schedule> schedule = makeSchedule(allReduceOf(ScheduleAlgorithm::direct, 2, 128), 1);
  ASSERT_OK(schedule);
  EXPECT_EQ(scheduleText(*schedule, {5, 9}),
            "      0  send     input 0 [0, 256) to 5 as message 0\n"
            "      1  reduce   output 0 [256, 512) = message 0 of 5 + input 0 [256, 512)\n"
            "      2  send     output 0 [256, 512) to 5 as message 1, after 1\n"
            "      3  receive  output 0 [0, 256) = message 1 of 5\n");
}

TEST(Schedule, AlgorithmsHaveNames) {
  for (ScheduleAlgorithm algorithm : kScheduleAlgorithms)
    EXPECT_EQ(*scheduleAlgorithm(name(algorithm)), algorithm);
  EXPECT_EQ(scheduleAlgorithm("rings").status().message(),
            "there is no algorithm 'rings', there are direct, one_shot, ring, recursive_doubling, "
            "tree, hierarchical");
}

TEST(Schedule, AnAlgorithmThatDoesNotApplyIsRefused) {
  auto refusal = [](CollectiveKind kind, ScheduleAlgorithm algorithm, int64_t ranks) {
    return checkAlgorithm(algorithm, kind, ranks).message();
  };
  EXPECT_EQ(refusal(CollectiveKind::allToAll, ScheduleAlgorithm::ring, 4),
            "there is no schedule of all_to_all by ring");
  EXPECT_EQ(refusal(CollectiveKind::broadcast, ScheduleAlgorithm::oneShot, 4),
            "there is no schedule of broadcast by one_shot");
  EXPECT_EQ(refusal(CollectiveKind::allGather, ScheduleAlgorithm::recursiveDoubling, 6),
            "all_gather by recursive_doubling expects a power of two of ranks, got 6");
  EXPECT_EQ(refusal(CollectiveKind::reduceScatter, ScheduleAlgorithm::tree, 4),
            "there is no schedule of reduce_scatter by tree");
  // Each refusal is also that of the schedule.
  for (CollectiveKind kind : kAllKinds)
    for (ScheduleAlgorithm algorithm : kScheduleAlgorithms) {
      ScheduleRequest request = allReduceOf(algorithm, 6, 10);
      request.kind = kind;
      request.values.push_back({4, 4, false});
      Result<Schedule> schedule = makeSchedule(request, 0);
      EXPECT_EQ(schedule.status().message(), refusal(kind, algorithm, 6));
    }
}

TEST(Schedule, AWrongRequestIsRefused) {
  auto refusal = [](auto change) {
    ScheduleRequest request = allReduceOf(ScheduleAlgorithm::direct, 4, 10);
    change(request);
    return makeSchedule(request, 0).status().message();
  };
  using Request = ScheduleRequest &;
  EXPECT_EQ(refusal([](Request r) { r.ranks = 0; }), "a schedule expects at least 1 rank, got 0");
  EXPECT_EQ(refusal([](Request r) { r.topology.places.resize(3); }),
            "a topology expects a place for each of 4 ranks, got 3");
  EXPECT_EQ(refusal([](Request r) { r.root = 4; }), "a root expects a position below 4, got 4");
  EXPECT_EQ(refusal([](Request r) { r.values.clear(); }), "a schedule expects a value");
  EXPECT_EQ(refusal([](Request r) { r.values[0].partBytes = 41; }),
            "a part expects whole elements, got 41 bytes of 4");
  EXPECT_EQ(refusal([](Request r) { r.values[0].partBytes = -4; }),
            "a part expects whole elements, got -4 bytes of 4");
  EXPECT_EQ(refusal([](Request r) { r.chunkBytes = 3; }),
            "a chunk expects room for an element of 4 bytes, got 3 bytes");
  EXPECT_EQ(refusal([](Request r) { r.values[0].partBytes = int64_t(1) << 62; }),
            "a value of 4 parts of 4611686018427387904 bytes is too long");
  EXPECT_EQ(refusal([](Request r) { r.values[0].partBytes = int64_t(1) << 40; }),
            "chunks of 262144 bytes make more than 4194304 pieces");
  EXPECT_EQ(refusal([](Request r) { r.pairs = {{0, 4}}; }),
            "a pair expects positions below 4, got 0 -> 4");
  EXPECT_EQ(refusal([](Request r) { r.pairs = {{0, 1}, {2, 1}}; }),
            "a position is in two pairs as the same side, as of 2 -> 1");
  EXPECT_EQ(refusal([](Request r) { r.kind = CollectiveKind::send, r.pairs = {{1, 1}}; }),
            "a send expects two ranks, got 1 -> 1");
  EXPECT_EQ(refusal([](Request r) { r.kind = CollectiveKind::allToAllV; }),
            "a schedule of all_to_all_v expects counts after its values");
  EXPECT_EQ(refusal([](Request r) {
              r.kind = CollectiveKind::broadcast;
              r.values[0].inPlace = true;
            }),
            "only an all_reduce works in place, not broadcast");
  EXPECT_EQ(makeSchedule(allReduceOf(ScheduleAlgorithm::direct, 4, 10), 4).status().message(),
            "a schedule expects a position below 4, got 4");
}

//===----------------------------------------------------------------------===//
// What the check finds
//===----------------------------------------------------------------------===//

/// The check's message for the schedules of an all_reduce of two ranks, changed. Rank 1's steps are
/// those of the test Text; rank 0's are the same for the other halves.
template <typename Change>
std::string found(Change change, ScheduleAlgorithm algorithm = ScheduleAlgorithm::direct,
                  int64_t ranks = 2) {
  const ScheduleRequest request = allReduceOf(algorithm, ranks, 64 * ranks);
  std::vector<Schedule> schedules = schedulesOf(request);
  EXPECT_TRUE(checkSchedules(request, schedules).ok());
  change(schedules);
  return checkSchedules(request, schedules).message();
}

void remove(Schedule &schedule, size_t step) {
  schedule.steps.erase(schedule.steps.begin() + static_cast<int64_t>(step));
  for (ScheduleStep &other : schedule.steps)
    other.numDependencies = 0; // their numbers are others now
}

using All = std::vector<Schedule> &;

TEST(ScheduleCheck, Pieces) {
  EXPECT_EQ(found([](All s) { s[1].steps[0].piece.offset = 400; }),
            "pieces: step 0 (send) of position 1 names bytes [400, 656) of the input of value 0, "
            "which has 512");
  EXPECT_EQ(found([](All s) { s[1].steps[3].piece.offset = 2; }),
            "pieces: step 3 (receive) of position 1 splits an element of 4 bytes: bytes [2, 258) "
            "of the output of value 0");
  EXPECT_EQ(
      found([](All s) { s[1].steps[1].piece.space = Space::input; }),
      "pieces: step 1 (reduce) of position 1 writes bytes [256, 512) of the input of value 0");
  EXPECT_EQ(found([](All s) { s[0].steps[0].peer = 0; }),
            "pieces: step 0 (send) of position 0 is to position 0");
  EXPECT_EQ(found([](All s) { s[0].steps[3].numSources = 0; }),
            "pieces: step 3 (receive) of position 0 has 0 sources");
  EXPECT_EQ(found([](All s) { s[0].dependencies[0] = 3; }),
            "pieces: step 2 (send) of position 0 is after step 3");
  const ScheduleRequest small = [] {
    ScheduleRequest request = allReduceOf(ScheduleAlgorithm::direct, 2, 128);
    request.chunkBytes = 128;
    return request;
  }();
  EXPECT_EQ(
      checkSchedules(small, schedulesOf(allReduceOf(ScheduleAlgorithm::direct, 2, 128))).message(),
      "pieces: step 0 (send) of position 0 has a message of 256 bytes, a chunk has 128");
}

TEST(ScheduleCheck, Messages) {
  EXPECT_EQ(found([](All s) { s[1].steps[2].message = 2; }),
            "messages: step 2 (send) of position 1 sends message 2 to position 0, the next one is "
            "1");
  EXPECT_EQ(found([](All s) { remove(s[1], 2); }),
            "messages: step 3 (receive) of position 0 takes message 1 of position 1, which is not "
            "sent");
  EXPECT_EQ(found([](All s) { remove(s[0], 3); }),
            "messages: nothing takes message 1 of step 2 (send) of position 1 at position 0");
  EXPECT_EQ(found([](All s) { s[0].sources[s[0].steps[3].firstSource].message = 0; }),
            "messages: step 3 (receive) of position 0 takes message 0 of position 1, which step 1 "
            "(reduce) of position 0 takes too");
  EXPECT_EQ(found([](All s) { s[1].steps[2].piece.bytes = 128; }),
            "messages: step 3 (receive) of position 0 takes message 1 of position 1 as 256 bytes, "
            "step 2 (send) of position 1 sends 128 bytes");
}

TEST(ScheduleCheck, Progress) {
  // Both send their results only when they have received the other's.
  EXPECT_THAT(found([](All s) {
                for (Schedule &schedule : s) {
                  std::swap(schedule.steps[2], schedule.steps[3]);
                  schedule.dependencies.assign({1, 2});
                  schedule.steps[3].firstDependency = 0;
                  schedule.steps[3].numDependencies = 2;
                }
              }),
              ::testing::AllOf(StartsWith("progress: steps wait for each other: "),
                               HasSubstr("step 2 (receive) of position 0 for step 3 (send) of "
                                         "position 1 for step 2 (receive) of position 1")));
  // An executor that takes steps in turn does not reach the second one.
  EXPECT_THAT(found([](All s) {
                for (Schedule &schedule : s)
                  std::swap(schedule.steps[0], schedule.steps[1]);
                for (Schedule &schedule : s)
                  schedule.dependencies = {0};
              }),
              StartsWith("progress: steps wait for each other when each rank takes its steps in "
                         "turn: step 1 (send) of position 0 for step 0 (reduce) of position 0 for "
                         "step 1 (send) of position 1 "));
}

TEST(ScheduleCheck, MessagesAreTakenInOrder) {
  ScheduleRequest request = allReduceOf(ScheduleAlgorithm::direct, 2, 128);
  request.kind = CollectiveKind::permute;
  request.chunkBytes = 256;
  request.pairs = {{1, 0}, {0, 1}};
  std::vector<Schedule> schedules = schedulesOf(request);
  ASSERT_EQ(scheduleText(schedules[0]), "      0  send     input 0 [0, 256) to 1 as message 0\n"
                                        "      1  receive  output 0 [0, 256) = message 0 of 1\n"
                                        "      2  send     input 0 [256, 512) to 1 as message 1\n"
                                        "      3  receive  output 0 [256, 512) = message 1 of 1\n");
  ASSERT_OK(checkSchedules(request, schedules));
  // Rank 0 takes the second message before the first.
  std::swap(schedules[0].steps[1], schedules[0].steps[3]);
  schedules[0].dependencies = {1};
  schedules[0].steps[3].numDependencies = 1;
  EXPECT_THAT(checkSchedules(request, schedules).message(), StartsWith("progress: "));
}

TEST(ScheduleCheck, Written) {
  EXPECT_EQ(found([](All s) { // the sum goes elsewhere, but the output is sent
              s[1].scratchBytes = 512;
              s[1].steps[1].piece.space = Space::scratch;
            }),
            "written: step 2 (send) of position 1 reads bytes [256, 512) of the output of value 0, "
            "of which byte 256 is not written");
}

TEST(ScheduleCheck, Races) {
  EXPECT_EQ(found([](All s) { s[1].steps[2].numDependencies = 0; }),
            "races: step 1 (reduce) of position 1 and step 2 (send) of position 1 use bytes "
            "[256, 512) of the output of value 0 in any order");
  // A partial sum may be sent while the result is written over it.
  EXPECT_THAT(found(
                  [](All s) {
                    for (ScheduleStep &step : s[0].steps)
                      if (step.kind == StepKind::receive)
                        step.numDependencies = 0;
                  },
                  ScheduleAlgorithm::ring, 4),
              StartsWith("races: "));
}

TEST(ScheduleCheck, Result) {
  EXPECT_EQ(found([](All s) { s[1].steps[1].numSources = 1; }), // the message alone
            "result: byte 256 of the output of value 0 at position 0 holds byte 256 of the inputs "
            "of value 0 at positions 0");
  EXPECT_EQ(found([](All s) { s[1].steps[0].piece.offset = 256; }),
            "result: step 1 (reduce) of position 0 adds byte 256 of value 0 to byte 0 of value 0");
  EXPECT_EQ(found([](All s) { std::swap(s[1].sources[0], s[1].sources[1]); }),
            "result: byte 256 of the output of value 0 at position 0 holds byte 256 of the inputs "
            "of value 0 at positions 1 + 0");
  EXPECT_EQ(found([](All s) { // its own value twice
              s[1].sources.push_back(s[1].sources[1]);
              s[1].sources.insert(s[1].sources.begin() + 1, s[1].sources[1]);
              s[1].steps[1].numSources = 3;
              ++s[1].steps[3].firstSource;
            }),
            "result: byte 256 of the output of value 0 at position 0 holds byte 256 of the inputs "
            "of value 0 at positions 0 + 1 + 1");
}

TEST(ScheduleCheck, Once) {
  EXPECT_EQ(found([](All s) { // the result, copied over itself
              ScheduleStep again = s[1].steps[2];
              again.kind = StepKind::copy;
              again.firstSource = static_cast<uint32_t>(s[1].sources.size());
              again.numSources = 1;
              s[1].sources.push_back({-1, 0, again.piece});
              again.firstDependency = static_cast<uint32_t>(s[1].dependencies.size());
              again.numDependencies = 2;
              s[1].dependencies.insert(s[1].dependencies.end(), {1, 2});
              s[1].steps.push_back(again);
            }),
            "once: step 4 (copy) of position 1 writes over the result at byte 256 of the output of "
            "value 0");
}

TEST(ScheduleCheck, NeedsTheWholeGroup) {
  const ScheduleRequest request = allReduceOf(ScheduleAlgorithm::direct, 2, 128);
  std::vector<Schedule> schedules = schedulesOf(request);
  EXPECT_EQ(checkSchedules(request, schedules, 0).message(),
            "a check expects at least 1 message in flight, got 0");
  std::swap(schedules[0], schedules[1]);
  EXPECT_EQ(checkSchedules(request, schedules).message(),
            "a check expects schedules in the order of positions, got that of 1 at 0");
  schedules.pop_back();
  EXPECT_EQ(checkSchedules(request, schedules).message(),
            "a check expects the schedules of 2 ranks, got 1");
}

/// Without any one of its steps, no group comes to its results.
TEST(ScheduleCheck, EveryStepIsNeeded) {
  for (ScheduleAlgorithm algorithm : kScheduleAlgorithms)
    for (int64_t ranks : {2, 5}) {
      const ScheduleRequest request = allReduceOf(algorithm, ranks, 64 * ranks);
      const std::vector<Schedule> schedules = schedulesOf(request);
      for (size_t rank = 0; rank < schedules.size(); ++rank)
        for (size_t step = 0; step < schedules[rank].steps.size(); ++step) {
          std::vector<Schedule> changed = schedules;
          remove(changed[rank], step);
          EXPECT_FALSE(checkSchedules(request, changed).ok())
              << requestText(request) << " without step " << step << " of " << rank;
        }
    }
}

/// Without any one of its dependencies, some order of its steps goes wrong.
TEST(ScheduleCheck, DependenciesAreNeeded) {
  int64_t needed = 0, all = 0;
  for (ScheduleAlgorithm algorithm : kScheduleAlgorithms) {
    const ScheduleRequest request = allReduceOf(algorithm, 4, 64 * 4);
    const std::vector<Schedule> schedules = schedulesOf(request);
    for (size_t rank = 0; rank < schedules.size(); ++rank)
      for (size_t step = 0; step < schedules[rank].steps.size(); ++step)
        for (uint32_t d = 0; d < schedules[rank].steps[step].numDependencies; ++d) {
          std::vector<Schedule> changed = schedules;
          ScheduleStep &its = changed[rank].steps[step];
          std::swap(changed[rank].dependencies[its.firstDependency + d],
                    changed[rank].dependencies[its.firstDependency + its.numDependencies - 1]);
          --its.numDependencies;
          ++all;
          needed += checkSchedules(request, changed).ok() ? 0 : 1;
        }
  }
  EXPECT_GT(needed, 0);
  // The others follow from the messages: what is received back was taken before.
  EXPECT_GT(needed * 2, all);
}

} // namespace
