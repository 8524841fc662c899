//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/ProcessWatch.h"
#include "ProcessTesting.h"
#include "runtime/lib/Net/Host.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::testing;

namespace {

pid_t forkSleeper() {
  const pid_t process = fork();
  if (process == 0)
    for (;;)
      pause();
  return process;
}

TEST(Host, NumaNodeOfProcessors) {
  const std::map<int64_t, std::string> nodes{{0, "0-3,8-11"}, {1, "4-7,12-15"}, {2, ""}, {3, "x"}};
  EXPECT_EQ(numaNodeOf({9, 2}, nodes), 0);
  EXPECT_EQ(numaNodeOf({4, 5, 15}, nodes), 1);
  // Of both nodes, of none, and of a machine that does not say.
  EXPECT_EQ(numaNodeOf({3, 4}, nodes), 0);
  EXPECT_EQ(numaNodeOf({16}, nodes), 0);
  EXPECT_EQ(numaNodeOf({}, nodes), 0);
  EXPECT_EQ(numaNodeOf({4}, {}), 0);
}

TEST(ProcessWatch, TellsOfEachEndOnce) {
  if (!ProcessWatch::isSupported())
    GTEST_SKIP() << "watching processes expects pidfd_open, of Linux 5.3";
  const pid_t first = forkSleeper(), second = forkSleeper();
  ProcessWatch watch;
  watch.add(3, first);
  watch.add(5, second);
  EXPECT_EQ(watch.takeEnded(), std::vector<int64_t>{});
  // Nobody has waited for it, so its number is still taken.
  kill(first, SIGKILL);
  std::vector<int64_t> ended;
  for (const int64_t until = nowNs() + 10 * kSecond; ended.empty() && nowNs() < until;)
    ended = watch.takeEnded();
  EXPECT_EQ(ended, std::vector<int64_t>{3});
  EXPECT_EQ(watch.takeEnded(), std::vector<int64_t>{});
  EXPECT_EQ(waitpid(first, nullptr, 0), first);
  watch.add(7, first);
  EXPECT_EQ(watch.takeEnded(), std::vector<int64_t>{7});
  kill(second, SIGKILL);
  EXPECT_EQ(waitpid(second, nullptr, 0), second);
}

} // namespace
