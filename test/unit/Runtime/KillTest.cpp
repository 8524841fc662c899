//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kills every rank at every one of its steps, and the launcher at every step of its own and of its
// ranks, while ranks start, run and stop. Steps are schedule points in the runtime's code, counted
// on each thread, so results do not depend on the machine's speed.
//
//===----------------------------------------------------------------------===//
#include "KillPrograms.h"
#include "Leftovers.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>
#include <ostream>
#include <set>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#ifdef BRAID_SCHEDULE_POINTS

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::MatchesRegex;

namespace {

constexpr DType f32 = DType::f32;
constexpr int64_t kRanks = 3, kLauncher = -1;
constexpr int64_t kWide = 1 << 16; ///< elements of a kernel that two threads share
constexpr int kRounds = 20;        ///< attempts, for a busy machine

/// The launcher's activity.
enum Phase : int { kLoading, kFirstRun, kSecondRun, kStopping, kNumPhases };

/// The n-th time that a thread is at a step.
struct Moment {
  int64_t rank = 0, lane = 0;
  const char *step = nullptr;
  int occurrence = 0;
};

/// Memory shared by all processes of a test.
struct Shared {
  std::atomic<int> phase{kLoading};
  std::atomic<int> killedIn{-1}; ///< the phase; -1: no process was killed
  /// The steps that threads have passed, and how many times each.
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  size_t numPassed = 0;
  Moment passed[256];
};
Shared *shared = nullptr;

Moment moment;
std::atomic<int> numBefore{0}; ///< times that the thread was at the step, per process
pid_t launcher = 0;            ///< of this life's ranks

bool isTheMoment(const SchedulePoint &at) {
  return at.rank == moment.rank && at.lane == moment.lane &&
         std::strcmp(at.step, moment.step) == 0 && numBefore.fetch_add(1) == moment.occurrence;
}

/// Kills the process that reaches the moment.
void killAtTheMoment(const SchedulePoint &at) {
  if (!isTheMoment(at))
    return;
  shared->killedIn.store(shared->phase.load());
  kill(getpid(), SIGKILL);
}

/// Kills the launcher. The rank that reaches the moment then continues as far as it can.
void killTheLauncherAtTheMoment(const SchedulePoint &at) {
  if (!isTheMoment(at))
    return;
  shared->killedIn.store(shared->phase.load());
  kill(launcher, SIGKILL);
  while (getppid() == launcher)
    std::this_thread::yield();
}

void record(const SchedulePoint &at) {
  while (shared->busy.test_and_set(std::memory_order_acquire))
    std::this_thread::yield();
  Moment *end = shared->passed + shared->numPassed;
  Moment *found = std::find_if(shared->passed, end, [&](const Moment &m) {
    return m.rank == at.rank && m.lane == at.lane && std::strcmp(m.step, at.step) == 0;
  });
  if (found == end && shared->numPassed < std::size(shared->passed)) {
    *found = {at.rank, at.lane, at.step, 0};
    ++shared->numPassed;
  }
  if (found != std::end(shared->passed))
    ++found->occurrence;
  shared->busy.clear(std::memory_order_release);
}

std::string describe(const Moment &m) {
  return (m.rank == kLauncher ? std::string("the launcher") : "rank " + std::to_string(m.rank)) +
         ", thread " + std::to_string(m.lane) + ", '" + m.step + "' after " +
         std::to_string(m.occurrence);
}

/// Whether all threads reach the step under any schedule: a wait may be over before it begins.
bool isCertain(const char *step) {
  static const std::set<std::string> waits{"before a sleep", "announced a sleep", "falls asleep",
                                           "after a wait"};
  return waits.count(step) == 0;
}

/// System resources of sessions, except private memory.
struct Holdings {
  size_t processes = 0, files = 0, segments = 0, sharedMappings = 0;
  bool operator==(const Holdings &o) const {
    return processes == o.processes && files == o.files && segments == o.segments &&
           sharedMappings == o.sharedMappings;
  }
  friend std::ostream &operator<<(std::ostream &os, const Holdings &h) {
    return os << h.processes << " processes, " << h.files << " files and sockets, " << h.segments
              << " names in /dev/shm, " << h.sharedMappings << " shared mappings";
  }
};
Holdings holdings() {
  Holdings held;
  held.processes = children().size();
  std::filesystem::directory_iterator files("/proc/self/fd");
  held.files = static_cast<size_t>(std::distance(begin(files), end(files)));
  held.segments = segments().size();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/memfd:") != std::string::npos || line.find("/dev/zero") != std::string::npos)
      ++held.sharedMappings;
  return held;
}

/// `descriptor` is a memref descriptor: allocated, aligned, offset, sizes, strides.
float *data(void *descriptor) {
  auto *words = static_cast<int64_t *>(descriptor);
  return reinterpret_cast<float *>(words[1]) + words[2];
}
constexpr float kMarked = 7;
/// Fails on the rank whose first value is marked.
void check(void *const *descriptors) {
  if (data(descriptors[0])[0] == kMarked)
    throw std::runtime_error("a marked value");
  std::copy_n(data(descriptors[0]), 32, data(descriptors[1]));
}

/// Does nothing; both threads of a rank call it.
void wide(void *const *) {}

/// A kernel of many rows, two layers of a matmul and an all_reduce, and a ring of sends.
ProgramBuilder program() {
  ProgramBuilder b({{"tp", kRanks}});
  b.parameter("w", {kRanks * 8, 8}, {{"tp"}, {}});
  b.operand("x", f32, {kRanks * 4, 8}, {{"tp"}, {}});
  b.result("y", f32, {4, 8});
  const uint32_t checks = b.kernel("check", 2, check), wides = b.kernel("wide", 1, wide);
  auto p = b.procedure("main", 3, 128 + kWide * 4, 512, 8);
  V w = argument(0, f32, {8, 8}), x = argument(1, f32, {4, 8}), y = argument(2, f32, {4, 8}),
    in = local(0, f32, {4, 8});
  p.launch("wide", wides, {local(128, f32, {kWide / 64, 64})}, {true}, kWide / 64);
  p.launch("check", checks, {x, in}, {true, true}, 4);
  addLayersAndRing(p, in, w, y);
  return b;
}

/// One session from its start to its end or its first failure.
struct Life {
  Status status;
  int failedIn = kNumPhases;
  std::vector<float> y; ///< empty after a failure
};

class EveryMoment : public ::testing::Test {
protected:
  void SetUp() override {
    void *memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared = new (memory) Shared;
    usual = scheduleHook.load();
    live(nullptr); // creates what a process creates once: streams, libraries
    before = holdings();
    const Life undisturbed = live(record);
    ASSERT_OK(undisturbed.status);
    ASSERT_LT(shared->numPassed, std::size(shared->passed));
    y = undisturbed.y;
  }
  void TearDown() override {
    scheduleHook.store(usual);
    munmap(shared, sizeof(Shared));
  }

  /// For each step of the rank's threads the first, a middle and the last time. With
  /// BRAID_EVERY_MOMENT set, and for the launcher, every time. Under the thread sanitizer a third
  /// of these.
  std::vector<Moment> momentsOf(int64_t rank) {
    const bool all = rank == kLauncher || hasEveryMoment();
    std::vector<Moment> moments;
    size_t numFound = 0;
    for (size_t i = 0; i < shared->numPassed; ++i) {
      const Moment &step = shared->passed[i];
      if (step.rank != rank)
        continue;
      const int count = step.occurrence;
      for (int n = 0; n < count; ++n)
        if ((all || n == 0 || n == count / 2 || n == count - 1) &&
            (!kThreadSanitizer || hasEveryMoment() || numFound++ % 3 == 0))
          moments.push_back({step.rank, step.lane, step.step, n});
    }
    return moments;
  }

  Life live(void (*hook)(const SchedulePoint &), int64_t marked = -1) {
    shared->killedIn = -1;
    shared->phase = kLoading;
    numBefore = 0;
    launcher = getpid();
    Life life;
    auto fails = [&](const Status &status) {
      life.status = status;
      life.failedIn = shared->phase;
      return !status.ok();
    };
    ProgramBuilder b = program();
    WorldOptions options;
    options.transport = "shm";
    options.threadsPerRank = 2;
    options.timeLimitSeconds = 120;
    scheduleHook.store(hook);
    {
      auto session = b.session(options);
      if (fails(statusOf(session)))
        return life;
      std::vector<float> x(static_cast<size_t>(kRanks * 32));
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = 0.01F * static_cast<float>(i);
      if (marked >= 0)
        x[static_cast<size_t>(marked * 32)] = kMarked;
      if (fails((*session)->setInput("x", f32, {kRanks * 4, 8}, x.data())))
        return life;
      auto loadRunAndRun = [&] {
        shared->phase = kLoading;
        if (fails((*session)->loadWeights(*WeightSource::random(5))))
          return false;
        for (Phase run : {kFirstRun, kSecondRun}) {
          shared->phase = run;
          if (fails((*session)->run()))
            return false;
        }
        auto output = (*session)->output("y");
        if (fails(statusOf(output)))
          return false;
        const auto *values = reinterpret_cast<const float *>(output->data.data());
        life.y.assign(values, values + output->numElements());
        return true;
      };
      if (!loadRunAndRun() && marked < 0 && moment.occurrence == 0) {
        // Loading again starts new processes, and the session works.
        const Life failed = life;
        scheduleHook.store(nullptr);
        EXPECT_TRUE(loadRunAndRun()) << life.status.message();
        EXPECT_EQ(life.y, y);
        life = failed;
      }
      shared->phase = kStopping;
    }
    scheduleHook.store(nullptr);
    return life;
  }

  static bool hasEveryMoment() { return std::getenv("BRAID_EVERY_MOMENT"); }

  /// For each moment of the rank or launcher, runs a life in which a process is killed then; all
  /// steps must occur, and without the thread sanitizer all phases. A life is repeated if the rank
  /// was late and ended before its last steps.
  template <typename Live> void expectKilledEverywhere(int64_t rank, Live liveOnce) {
    std::set<int> phases;
    for (const Moment &next : momentsOf(rank)) {
      moment = next;
      SCOPED_TRACE(describe(moment));
      for (int round = 0; round == 0 || (isCertain(moment.step) && shared->killedIn < 0); ++round) {
        ASSERT_LT(round, kRounds) << "nobody ever comes there";
        liveOnce();
        if (HasFatalFailure())
          return;
      }
      phases.insert(shared->killedIn);
    }
    phases.erase(-1);
    if (kThreadSanitizer && !hasEveryMoment())
      EXPECT_FALSE(phases.empty());
    else
      EXPECT_EQ(phases, (std::set<int>{kLoading, kFirstRun, kSecondRun, kStopping}));
  }
  void expectNobodyIsLeft(void (*hook)(const SchedulePoint &));

  void (*usual)(const SchedulePoint &) = nullptr; ///< the hook of random schedules
  Holdings before;
  std::vector<float> y; ///< of an undisturbed life
};

class EveryMomentOfARank : public EveryMoment, public ::testing::WithParamInterface<int64_t> {
protected:
  static std::string place() {
    std::string others;
    for (int64_t rank = 0; rank < kRanks; ++rank)
      if (rank != GetParam())
        others += std::to_string(rank);
    return "rank " + std::to_string(GetParam()) +
           " was ended by signal 9 \\(Killed\\) while it was "
           "(at (kernel '(wide|check)'|matmul '(first|second)'|(record|wait) "
           "'(sum\\.[01]|send|recv)'|copy 'out')"
           " in @main on its compute queue"
           "|at (all_reduce 'sum\\.[01]'|send 'send'|recv 'recv')"
           " in @main on its communication queue"
           "|not at any command of its compute queue)"
           "(, rank [" +
           others + "] waits for it at (all_reduce 'sum\\.[01]'|recv 'recv') in @main)?";
  }
};

TEST_P(EveryMomentOfARank, ItIsNamedAndTheOthersEnd) {
  const std::string ended =
      "rank " + std::to_string(GetParam()) + " was ended by signal 9 \\(Killed\\) ";
  expectKilledEverywhere(GetParam(), [&] {
    const Life life = live(killAtTheMoment);
    const int killedIn = shared->killedIn;
    EXPECT_EQ(holdings(), before);
    if (life.status.ok()) {
      // The rank was ending, or had completed its last run.
      EXPECT_TRUE(killedIn < 0 || killedIn >= kSecondRun) << killedIn;
      EXPECT_EQ(life.y, y);
      return;
    }
    // If the rank had completed its run, the failure comes one phase later.
    EXPECT_TRUE(life.failedIn == killedIn || life.failedIn == killedIn + 1)
        << "killed in " << killedIn << ", failed in " << life.failedIn;
    EXPECT_LE(life.failedIn, kSecondRun);
    EXPECT_EQ(life.status.code(), Code::rankFailed);
    if (life.failedIn == kLoading)
      EXPECT_THAT(life.status.message(), MatchesRegex(ended + "before its first run"));
    else
      EXPECT_THAT(life.status.message(), MatchesRegex(place()));
  });
}

/// The rank is killed while it reports a failure: the others report that it is gone.
TEST_P(EveryMomentOfARank, WhileItTellsOfAFailure) {
  Life life = live(nullptr, GetParam());
  EXPECT_EQ(life.status.message(),
            "rank " + std::to_string(GetParam()) + ": kernel 'check' in @main: a marked value");
  moment = {GetParam(), kComputeLane, "before a failure is written", 0};
  // The launcher waits only shortly for an incomplete report, perhaps before it sees that the rank
  // is gone.
  for (int round = 0; round < kRounds; ++round) {
    life = live(killAtTheMoment, GetParam());
    EXPECT_EQ(shared->killedIn, kFirstRun);
    EXPECT_EQ(holdings(), before);
    EXPECT_EQ(life.status.code(), Code::rankFailed);
    if (life.status.message() != "a rank ended while it reported a failure")
      break;
  }
  EXPECT_THAT(life.status.message(), MatchesRegex(place()));
}

/// Waits until the launcher and all processes that it started have ended, orphans too.
bool allEnd(pid_t launcher, int &status) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(120)) {
    int one = 0;
    const pid_t pid = waitpid(-1, &one, WNOHANG);
    if (pid < 0 && errno == ECHILD)
      return true;
    if (pid == launcher)
      status = one;
    if (pid == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// The hook kills a launcher in a child process; no process may be left.
void EveryMoment::expectNobodyIsLeft(void (*hook)(const SchedulePoint &)) {
  shared->killedIn = -1;
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0)
    _exit(live(hook).y == y ? 0 : 2);
  int status = 0;
  const bool allEnded = allEnd(pid, status);
  for (pid_t left : children())
    kill(left, SIGKILL);
  ASSERT_TRUE(allEnded);
  EXPECT_EQ(holdings(), before);
  if (shared->killedIn < 0)
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  else
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_P(EveryMomentOfARank, AKilledLauncherLeavesNobody) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); // adopts the launcher's orphans
  expectKilledEverywhere(GetParam(), [&] { expectNobodyIsLeft(killTheLauncherAtTheMoment); });
}

TEST_F(EveryMoment, AKilledLauncherLeavesNobody) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  expectKilledEverywhere(kLauncher, [&] { expectNobodyIsLeft(killAtTheMoment); });
}

INSTANTIATE_TEST_SUITE_P(Number, EveryMomentOfARank, ::testing::Range<int64_t>(0, kRanks));

} // namespace
#endif
