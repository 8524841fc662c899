//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "Streams.h"
#include "runtime/lib/Sync/Cores.h"
#include "runtime/lib/Sync/Counter.h"
#include "runtime/lib/Sync/RunControl.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <thread>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

/// A root folder with the files of a system.
class Root {
public:
  void file(const std::string &path, const std::string &text) {
    const std::string whole = folder.path(path);
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    put(whole, text);
  }
  double cores() const { return usableCores(folder.path("")); }

private:
  TemporaryFolder folder;
};

/// Calls `work` while this thread and threads that it starts are restricted to one processor. It
/// uses no other thread: the thread sanitizer refuses to fork a process with several threads.
template <typename Work> void onOneProcessor(Work work) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all))
      CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  work();
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(UsableCores, FollowAffinity) {
  const double all = Root().cores(); // without control groups
  EXPECT_GE(all, 1);
  onOneProcessor([] { EXPECT_EQ(Root().cores(), 1); });
}

TEST(UsableCores, FollowControlGroups) {
  Root none, whole, parent, v1, container, unlimited;
  const double all = none.cores();
  whole.file("proc/self/cgroup", "0::/\n");
  whole.file("sys/fs/cgroup/cpu.max", "25000 100000\n");
  EXPECT_EQ(whole.cores(), 0.25);
  // The minimum of a group and its ancestors.
  parent.file("proc/self/cgroup", "1:name=systemd:/x\n0::/jobs/7\n");
  parent.file("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  parent.file("sys/fs/cgroup/jobs/7/cpu.max", "max 100000\n");
  EXPECT_EQ(parent.cores(), 0.5);
  v1.file("proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a\n");
  v1.file("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "75000\n");
  v1.file("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(v1.cores(), 0.75);
  // Within a container there is no folder with the group's outer name.
  container.file("proc/self/cgroup", "3:cpu:/docker/abc\n");
  container.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "30000\n");
  container.file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(container.cores(), 0.3);
  unlimited.file("proc/self/cgroup", "3:cpu:/\nno group\n0::/\n");
  unlimited.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  unlimited.file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  unlimited.file("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(unlimited.cores(), all);
}

TEST(UsableCores, ThreadsThatOutnumberCoresYieldOrSleepSoon) {
  EXPECT_FALSE(spinFor(2, 2, 2).yields);
  EXPECT_TRUE(spinFor(3, 2, 2).yields);
  // Polling would take from the quota.
  EXPECT_FALSE(spinFor(1, 0.5, 1).yields);
  EXPECT_LT(spinFor(1, 0.5, 1).ns, spinFor(1, 1, 1).ns);
  EXPECT_EQ(spinFor(1, 0.9, 2).ns, spinFor(1, 2, 2).ns); // nearly a core for the one thread
  EXPECT_LT(spinFor(2, 0.9, 2).ns, spinFor(1, 2, 2).ns);
  EXPECT_LT(spinFor(3, 1, 2).ns, spinFor(3, 2, 2).ns);
}

TEST(UsableCores, ThreadsOnTheirOwnCoresSpinForLongerThanAWakeUpTakes) {
  EXPECT_GT(spinOnOwnCores(2, 2, 2).ns, 10 * spinFor(2, 2, 2).ns);
  EXPECT_FALSE(spinOnOwnCores(2, 2, 2).yields);
  for (auto [threads, usable, allowed] :
       {std::tuple(3, 2.0, 2), {1, 0.5, 1}, {1, 0.9, 2}, {2, 0.9, 2}}) {
    const SpinLimit own = spinOnOwnCores(threads, usable, static_cast<size_t>(allowed)),
                    other = spinFor(threads, usable, static_cast<size_t>(allowed));
    EXPECT_EQ(own.ns, other.ns) << threads << " of " << usable;
    EXPECT_EQ(own.yields, other.yields) << threads << " of " << usable;
  }
}

/// Whoever waits for a peer while its rank computes nothing stays awake. Else the peer would wait
/// for its wake-up, asleep in turn, in every collective from then on.
TEST(Spin, StaysAwakeForAPeerWhileNothingIsComputed) {
  RunControl control(2, computeAndCommunication(), 60, {});
  control.setSpins({{}, {}, {int64_t(60) * 1000000000, false}});
  control.begin();
  QueueState &queue = control.queue(0, kCommunicationQueue);
  const ComputeClock clock;
  auto sleepsIn = [&](Waiting what, const ComputeClock *computing, int milliseconds) {
    Counter counter;
    queue.clock = computing;
    const std::string status = "/proc/self/task/" + std::to_string(gettid()) + "/status";
    auto switches = [&status] {
      std::ifstream lines(status);
      const std::string field = "voluntary_ctxt_switches:";
      for (std::string line; std::getline(lines, line);)
        if (line.compare(0, field.size(), field) == 0)
          return std::stol(line.substr(field.size()));
      return -1L;
    };
    std::atomic<bool> isAboutToWait{false};
    long before = 0;
    bool sleeps = false;
    // It looks before it ends the wait, as what follows a wait may hold the thread up.
    std::thread peer([&] {
      while (!isAboutToWait)
        std::this_thread::yield();
      for (int i = 0; i < milliseconds && !sleeps; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        // When the thread slept, not when another one took its core.
        sleeps = switches() > before;
      }
      counter.set(1);
    });
    before = switches();
    EXPECT_GE(before, 0);
    isAboutToWait = true;
    EXPECT_TRUE(control.wait(counter, 1, queue, what));
    peer.join();
    return sleeps;
  };
  EXPECT_FALSE(sleepsIn(Waiting::peer, nullptr, 20));
  EXPECT_TRUE(sleepsIn(Waiting::peer, &clock, 10000));
  EXPECT_TRUE(sleepsIn(Waiting::event, nullptr, 10000));
}

/// After spinning in vain a thread stops spinning and retries only rarely.
TEST(Spin, BecomesShorterInVain) {
  constexpr int64_t kMost = 2000000;
  Counter counter;
  Spin spin({kMost, false});
  auto spun = [&](uint32_t target) {
    const int64_t begin = nowNs();
    spin.reaches(counter, target);
    return nowNs() - begin;
  };
  EXPECT_GE(spun(1), kMost);
  for (int i = 0; i < 20; ++i)
    spun(1);
  int tries = 0;
  for (int i = 0; i < 128; ++i)
    tries += spun(1) >= kMost / 2;
  EXPECT_GE(tries, 1);
  EXPECT_LE(tries, 8); // expects 2, plus delays by the machine
  counter.set(1);
  for (int i = 0; i < 64; ++i)
    EXPECT_TRUE(spin.reaches(counter, 1)) << i;
  EXPECT_GE(spun(2), kMost); // after successes it spins fully again
}

/// A session on one processor counts one, whatever the machine has.
TEST(UsableCores, OfASession) {
  auto reportOf = [](WorldOptions options) {
    auto session = projection().session(options);
    EXPECT_OK(session);
    EXPECT_OK((*session)->loadWeights(*WeightSource::random(1)));
    const std::vector<float> x(64, 1);
    EXPECT_OK((*session)->setInput("x", DType::f32, {4, 16}, x.data()));
    for (int run = 0; run < 20; ++run)
      EXPECT_OK((*session)->run());
    return nlohmann::json::parse((*session)->report());
  };
  onOneProcessor([&] {
    for (const char *transport : {"threads", "shm"}) {
      WorldOptions options;
      options.transport = transport;
      const auto report = reportOf(options); // two ranks
      EXPECT_EQ(report["machine"]["usable_cores"], 1.0);
      EXPECT_DOUBLE_EQ(report["spin_s"], static_cast<double>(spinFor(2, 1, 1).ns) * 1e-9);
    }
  });
  WorldOptions options;
  options.spinMicroseconds = 3.5;
  EXPECT_DOUBLE_EQ(reportOf(options)["spin_s"], 3.5e-6);
  options.spinMicroseconds = -1;
  EXPECT_ERROR(projection().session(options),
               "expects to spin for 0 to 1e6 microseconds, got -1.000000");
}

} // namespace
