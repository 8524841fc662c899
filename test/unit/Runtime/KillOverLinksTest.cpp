//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kills or stops a process of one rank at every one of its steps, from the start over UCX to the
// end, while the processes of the other ranks do their part: each of them ends in time and names
// the rank.
//
//===----------------------------------------------------------------------===//
#include "KillPrograms.h"
#include "Leftovers.h"
#include "ProcessTesting.h"
#include "braid/Runtime/Communicator.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gmock/gmock.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <tuple>

#ifdef BRAID_SCHEDULE_POINTS

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::ContainsRegex;

namespace {

constexpr DType f32 = DType::f32;
constexpr int64_t kRanks = 3;
constexpr double kLimit = 4; ///< seconds, of the start and of a silence
constexpr int kRounds = 10;
constexpr size_t kAtOnce = 5; ///< jobs that run side by side, as they wait most of the time

/// The n-th time that a thread of a rank is at a step.
struct Moment {
  int64_t lane = 0;
  std::string step;
  int occurrence = 0;
};
// Of a process.
Moment moment;
int signalAtTheMoment = 0;
std::atomic<int> numBefore{0};
std::mutex mutex;
std::map<std::pair<int64_t, std::string>, int> passed; ///< how many times, by thread and step

void signalIt(const SchedulePoint &at) {
  if (at.lane == moment.lane && moment.step == at.step && numBefore++ == moment.occurrence)
    raise(signalAtTheMoment);
}

void record(const SchedulePoint &at) {
  const std::lock_guard<std::mutex> lock(mutex);
  ++passed[{at.lane, at.step}];
}

/// A matmul and an all_reduce, twice, and a ring of sends.
ProgramBuilder program() {
  ProgramBuilder b({{"tp", kRanks}});
  b.manifest.transports = {"ucx"};
  b.parameter("w", {kRanks * 8, 8}, {{"tp"}, {}});
  b.operand("x", f32, {kRanks * 4, 8}, {{"tp"}, {}});
  b.result("y", f32, {4, 8});
  auto p = b.procedure("main", 3, 128, 512, 8);
  V w = argument(0, f32, {8, 8}), x = argument(1, f32, {4, 8}), y = argument(2, f32, {4, 8});
  addLayersAndRing(p, x, w, y);
  return b;
}

/// What a rank's process does, from its start to its end or its first failure.
Status live(const Board &board, int64_t rank, const std::string &transports) {
  ProgramBuilder b = program();
  UcxOptions options;
  options.launch.rank = rank;
  options.launch.size = kRanks;
  options.launch.jobId = "kill";
  options.launch.rendezvous = Rendezvous();
  options.launch.rendezvous->file = board.path("rendezvous");
  options.timeLimitSeconds = kLimit;
  options.transports = transports;
  atSchedulePoint("before the start");
  WorldOptions world;
  world.transport = "ucx";
  world.timeLimitSeconds = kLimit;
  ASSIGN_OR_RETURN(world.communicator, createUcxCommunicator(*b.bundle(), options));
  atSchedulePoint("has met the others");
  {
    ASSIGN_OR_RETURN(std::unique_ptr<Session> session, b.session(world));
    atSchedulePoint("has a model");
    RETURN_IF_ERROR(session->loadWeights(*WeightSource::random(5)));
    const std::vector<float> x(static_cast<size_t>(kRanks * 32), 0.25F);
    RETURN_IF_ERROR(session->setInput("x", f32, {kRanks * 4, 8}, x.data()));
    for (int run = 0; run < 2; ++run) {
      atSchedulePoint("before a run");
      RETURN_IF_ERROR(session->run());
    }
    atSchedulePoint("has run");
    RETURN_IF_ERROR(session->output("y").status());
  }
  atSchedulePoint("has no model any more");
  world.communicator.reset();
  atSchedulePoint("has left");
  return {};
}

/// The processes of all three, with a hook in one of them.
class JobOfTest {
public:
  JobOfTest(const std::string &transports, int64_t hooked, void (*hook)(const SchedulePoint &))
      : hooked(hooked), processes(kRanks, [&](int64_t rank) {
          beginSchedule(rank, kMainLane);
          scheduleHook.store(rank == hooked ? hook : nullptr);
          const int64_t begin = nowNs();
          const Status status = live(board, rank, transports);
          scheduleHook.store(nullptr);
          std::ostringstream text;
          if (!status.ok()) {
            text << status.message();
            if (static_cast<double>(nowNs() - begin) * 1e-9 > 3 * kLimit + 2)
              text << " (late)";
          }
          if (hook == record && rank == hooked)
            for (const auto &[at, count] : passed)
              text << at.first << "|" << at.second << "|" << count << "\n";
          return text.str();
        }) {}

  /// What came of each. One that was stopped is killed when the others have ended.
  std::vector<std::string> results() {
    std::vector<std::string> texts(kRanks);
    for (int64_t rank = 0; rank < kRanks; ++rank)
      if (rank != hooked)
        texts[static_cast<size_t>(rank)] = processes.result(rank);
    if (processes.isStopped(hooked))
      processes.signal(hooked, SIGKILL);
    texts[static_cast<size_t>(hooked)] = processes.result(hooked);
    return texts;
  }

private:
  Board board;
  int64_t hooked;
  RankProcessesOfTest processes;
};

std::vector<std::string> liveOnce(const std::string &transports, int64_t hooked,
                                  void (*hook)(const SchedulePoint &)) {
  return JobOfTest(transports, hooked, hook).results();
}

bool hasAborted(const std::vector<std::string> &results, int64_t killed) {
  for (int64_t rank = 0; rank < kRanks; ++rank)
    if (rank != killed && results[static_cast<size_t>(rank)] == "signal 6")
      return true;
  return false;
}

int64_t turn() {
  const char *seed = std::getenv("BRAID_MOMENT_SEED");
  return seed ? std::atoll(seed) : 0;
}

class EveryMomentOverLinks
    : public ::testing::TestWithParam<std::tuple<int64_t, const char *, int>> {
protected:
  /// For each step of each thread the first and the last time. Under the thread sanitizer half of
  /// them. Of stops, after each of which the others wait for the time limit, a quarter of these;
  /// another one with another BRAID_MOMENT_SEED. With BRAID_EVERY_MOMENT set, every time.
  static std::vector<Moment> momentsOf(const std::string &recorded, int signal) {
    const bool all = std::getenv("BRAID_EVERY_MOMENT");
    const int64_t oneOf = (kThreadSanitizer ? 2 : 1) * (signal == SIGSTOP ? 4 : 1);
    std::vector<Moment> moments;
    int64_t numFound = turn();
    std::istringstream lines(recorded);
    for (std::string lane, step, count; std::getline(lines, lane, '|') &&
                                        std::getline(lines, step, '|') &&
                                        std::getline(lines, count);) {
      const int times = std::stoi(count);
      for (int n = 0; n < times; ++n)
        if (all || ((n == 0 || n == times - 1) && numFound++ % oneOf == 0))
          moments.push_back({std::stoll(lane), step, n});
    }
    return moments;
  }
};

TEST_P(EveryMomentOverLinks, TheRankIsNamedByAllOthers) {
  const auto &[lost, transports, signal] = GetParam();
  const auto segmentsBefore = segments();
  const auto undisturbed = liveOnce(transports, lost, record);
  for (int64_t rank = 0; rank < kRanks; ++rank)
    if (rank != lost)
      ASSERT_EQ(undisturbed[static_cast<size_t>(rank)], "");
  const std::vector<Moment> moments = momentsOf(undisturbed[static_cast<size_t>(lost)], signal);
  ASSERT_GT(moments.size(), kThreadSanitizer ? 5U : 12U);
  std::printf("%zu moments, BRAID_MOMENT_SEED=%lld\n", moments.size(),
              static_cast<long long>(turn()));
  signalAtTheMoment = signal;
  size_t numLost = 0, numFailures = 0;
  std::vector<std::unique_ptr<JobOfTest>> jobs;
  for (size_t i = 0; i < moments.size(); ++i) {
    if (i % kAtOnce == 0) {
      jobs.clear();
      for (size_t k = i; k < std::min(i + kAtOnce, moments.size()); ++k) {
        moment = moments[k];
        jobs.push_back(std::make_unique<JobOfTest>(transports, lost, signalIt));
      }
    }
    moment = moments[i];
    SCOPED_TRACE("thread " + std::to_string(moment.lane) + ", '" + moment.step + "' after " +
                 std::to_string(moment.occurrence));
    std::vector<std::string> results = jobs[i % kAtOnce]->results();
    // UCX 1.13 aborts a process whose peer ends while they connect.
    for (int round = 0; round < kRounds && hasAborted(results, lost); ++round)
      results = liveOnce(transports, lost, signalIt);
    const std::string &own = results[static_cast<size_t>(lost)];
    EXPECT_TRUE(own == "signal 9" || own.empty()) << own; // a wait may be over before it begins
    numLost += own == "signal 9" ? 1 : 0;
    // What others need the rank for ends with its last run.
    const bool isNeeded =
        own == "signal 9" && moment.lane == kMainLane &&
        (moment.step == "before the start" || moment.step == "has met the others" ||
         moment.step == "has a model" || moment.step == "before a run");
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const std::string &text = results[static_cast<size_t>(rank)];
      if (rank == lost || (text.empty() && !isNeeded))
        continue;
      ++numFailures;
      EXPECT_THAT(text, ContainsRegex("ranks? " + std::to_string(lost)));
      EXPECT_EQ(text.find("(late)"), std::string::npos) << text;
    }
  }
  jobs.clear();
  EXPECT_EQ(segments(), segmentsBefore);
  EXPECT_GT(numLost, moments.size() / 2);
  EXPECT_GT(numFailures, numLost / 2);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryMomentOverLinks,
                         ::testing::Combine(::testing::Values(0, 1), ::testing::Values("", "tcp"),
                                            ::testing::Values(SIGKILL, SIGSTOP)),
                         [](const auto &info) {
                           return "Rank" + std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param)[0] ? "OverTcp" : "WithSharedArenas") +
                                  (std::get<2>(info.param) == SIGKILL ? "Killed" : "Stopped");
                         });

} // namespace
#endif
