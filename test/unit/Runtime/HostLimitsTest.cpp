//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Limits of the host: shared memory, processes, threads. Each gives one error that names the rank
// or the amount, and nothing is left behind.
//
//===----------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "runtime/lib/Model/Processes.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <cerrno>
#include <csignal>
#include <functional>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::MatchesRegex;

namespace {

constexpr DType f32 = DType::f32;

/// Runs `work` in a child process, since limits and mounts cannot be undone. Returns its text:
/// "skip: ..." if the process lacks the permission.
std::string inChildProcess(const std::function<std::string()> &work) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  pid_t pid = fork();
  EXPECT_GE(pid, 0);
  if (pid == 0) {
    std::string text = work();
    _exit(write(pipes[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(pipes[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(pipes[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(pipes[0]);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  return text;
}

#define SKIP_IF_NOT_PERMITTED(text)                                                                \
  if ((text).rfind("skip: ", 0) == 0)                                                              \
  GTEST_SKIP() << (text)

/// y = all_reduce(x), of `elements` each. A copy runs at the same time, so that a rank needs a
/// thread for each of its queues.
ProgramBuilder sum(int64_t ranks, int64_t elements = 16) {
  ProgramBuilder b({{"tp", ranks}});
  b.operand("x", f32, {ranks, elements}, {{"tp"}, {}});
  b.result("y", f32, {ranks, elements}, {{"tp"}, {}});
  uint64_t bytes = static_cast<uint64_t>((elements * 4 + 63) / 64 * 64);
  auto p = b.procedure("main", 2, bytes, 2 * bytes, 2);
  V in = symmetric(0, f32, {1, elements}), out = symmetric(bytes, f32, {1, elements});
  p.copy("in", argument(0, f32, {1, elements}), in);
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {in}, {out}, 0, 0, 1);
  p.copy("beside", argument(0, f32, {1, elements}), local(0, f32, {1, elements}));
  p.wait("sum", 1);
  p.copy("out", out, argument(1, f32, {1, elements}));
  return b;
}

/// The first error of creating a session, setting its input or running it.
std::string firstError(ProgramBuilder &b, const std::string &transport, int64_t ranks,
                       int64_t elements = 16) {
  WorldOptions options;
  options.transport = transport;
  auto session = b.session(options);
  if (!session.ok())
    return session.status().message();
  std::vector<float> x(static_cast<size_t>(ranks * elements), 1.0f);
  Status status = (*session)->setInput("x", f32, {ranks, elements}, x.data());
  if (status.ok())
    status = (*session)->run();
  return status.ok() ? "it ran" : status.message();
}

/// Becomes a user other than root, since only those have limits of processes, and sets the limit.
/// Each test uses its own user, since processes are counted by user and tests run in parallel.
std::string limitProcesses(rlim_t count) {
  if (getuid() == 0 && setuid(20000 + static_cast<uid_t>(getpid()) % 40000) != 0)
    return std::string("skip: cannot become another user: ") + std::strerror(errno);
  rlimit limit{count, count};
  if (setrlimit(RLIMIT_NPROC, &limit) != 0)
    return std::string("skip: cannot limit processes: ") + std::strerror(errno);
  return "";
}

/// /dev/shm is absent, or has one page as in some containers.
TEST(HostLimits, RanksShareMemoryWithoutDevShm) {
  for (const bool absent : {false, true}) {
    SCOPED_TRACE(absent ? "absent" : "of one page");
    std::string text = inChildProcess([&] {
      if (unshare(CLONE_NEWNS) != 0)
        return std::string("skip: cannot have mounts of its own: ") + std::strerror(errno);
      if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("tmpfs", absent ? "/dev" : "/dev/shm", "tmpfs", 0, "size=4k") != 0)
        return std::string("skip: cannot mount: ") + std::strerror(errno);
      if ((access("/dev/shm", F_OK) == 0) == absent)
        return std::string("/dev/shm is not as it should be");
      ProgramBuilder b = sum(4, 1 << 20);
      return firstError(b, "shm", 4, 1 << 20);
    });
    SKIP_IF_NOT_PERMITTED(text);
    EXPECT_EQ(text, "it ran");
  }
}

TEST(HostLimits, MoreThanTheSystemHasIsRefused) {
  HostMemory memory;
  const uint64_t available = availableMemory();
  ASSERT_GT(available, 0u);
  EXPECT_THAT(memory.map(available + (uint64_t(64) << 30), Sharing::forks).message(),
              MatchesRegex("cannot allocate [0-9]+ bytes, the system has [0-9]+ available: Cannot "
                           "allocate memory"));
  EXPECT_EQ(memory.data(), nullptr);
}

/// Shared memory is no file.
TEST(HostLimits, AFileSizeLimitDoesNotLimitMemory) {
  std::string text = inChildProcess([] {
    rlimit limit{1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
      return std::string("skip: cannot limit the size of files");
    ProgramBuilder b = sum(2, 1 << 20);
    return firstError(b, "shm", 2, 1 << 20);
  });
  SKIP_IF_NOT_PERMITTED(text);
  EXPECT_EQ(text, "it ran");
}

TEST(HostLimits, MoreRanksThanTheSystemHasProcesses) {
  ProgramBuilder b = sum(int64_t(1) << 23);
  EXPECT_THAT(firstError(b, "shm", 1 << 23),
              MatchesRegex("mesh <tp = 8388608> expects 25165824 processes and threads for its "
                           "8388608 ranks, the system allows [0-9]+"));
  EXPECT_THAT(firstError(b, "threads", 1 << 23),
              MatchesRegex("mesh <tp = 8388608> expects 16777216 threads for its 8388608 ranks, "
                           "the system allows [0-9]+"));
}

TEST(HostLimits, MoreRanksThanTheUserMayStart) {
  for (const char *transport : {"shm", "threads"}) {
    std::string text = inChildProcess([&] {
      std::string refused = limitProcesses(5);
      if (!refused.empty())
        return refused;
      ProgramBuilder b = sum(4);
      return firstError(b, transport, 4);
    });
    SKIP_IF_NOT_PERMITTED(text);
    EXPECT_EQ(text, transport == std::string("shm")
                        ? "mesh <tp = 4> expects 12 processes and threads for its 4 ranks, the "
                          "system allows 5"
                        : "mesh <tp = 4> expects 8 threads for its 4 ranks, the system allows 5");
  }
}

TEST(Processes, OneThatCannotStartIsNamedAndNoneIsLeft) {
  std::string text = inChildProcess([] {
    std::string refused = limitProcesses(0);
    if (!refused.empty())
      return refused;
    Processes processes;
    Status status = processes.start(3, [](int64_t) { return 0; });
    return status.message() + "; " + std::to_string(processes.numRunning());
  });
  SKIP_IF_NOT_PERMITTED(text);
  EXPECT_EQ(text, "cannot start a process for rank 0 of 3: Resource temporarily unavailable; 0");
}

/// Other processes of the user leave too few: the error comes late, and started ranks end.
TEST(HostLimits, TheRankThatCannotStartIsNamed) {
  std::string text = inChildProcess([] {
    std::string refused = limitProcesses(20);
    if (!refused.empty())
      return refused;
    // Fills the user's limit of 20, which also counts a sanitizer's threads, and leaves two.
    std::vector<pid_t> others;
    for (pid_t pid; (pid = fork()) >= 0; others.push_back(pid))
      if (pid == 0) {
        alarm(600); // ends it even if the test dies
        pause();
        _exit(0);
      }
    auto end = [&] {
      kill(others.back(), SIGKILL);
      waitpid(others.back(), nullptr, 0);
      others.pop_back();
    };
    end();
    end();
    ProgramBuilder b = sum(4);
    std::string result = firstError(b, "shm", 4);
    while (!others.empty())
      end();
    return result + (waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? "; nobody is left"
                                                                            : "; one is left");
  });
  SKIP_IF_NOT_PERMITTED(text);
  // The kind of error depends on whether a rank's threads are started first.
  EXPECT_THAT(text, MatchesRegex("cannot start (a process for|the threads of) rank [0-3] of 4: "
                                 "Resource temporarily unavailable; nobody is left"));
}

TEST(HostLimits, TheThreadsOfARankThatCannotStart) {
  std::string text = inChildProcess([] {
    std::string refused = limitProcesses(8);
    if (!refused.empty())
      return refused;
    pid_t other = fork();
    if (other == 0) {
      pause();
      _exit(0);
    }
    ProgramBuilder b = sum(4); // needs 8 threads besides two running processes
    std::string result = firstError(b, "threads", 4);
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
    return result;
  });
  SKIP_IF_NOT_PERMITTED(text);
  EXPECT_THAT(text,
              MatchesRegex("cannot start the threads of rank [1-3] of 4: Resource temporarily "
                           "unavailable"));
}

} // namespace
