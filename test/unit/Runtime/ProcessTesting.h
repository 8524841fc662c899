//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes that stand for hosts: each runs a function of its rank and tells what came of it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_PROCESSTESTING_H
#define BRAID_TEST_UNIT_RUNTIME_PROCESSTESTING_H

#include "Testing.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <poll.h>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace braid::runtime::testing {

constexpr int64_t kSecond = 1000000000;

inline void sleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// They are forked when this is made, so the test must have no threads by then.
class RankProcessesOfTest {
public:
  using Work = std::function<std::string(int64_t rank)>;
  RankProcessesOfTest(int64_t ranks, const Work &work) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      int ends[2];
      if (pipe(ends) != 0)
        std::abort();
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        const std::string text = work(rank);
        (void)!write(ends[1], text.data(), text.size());
        _exit(0);
      }
      close(ends[1]);
      pids.push_back(pid);
      pipes.push_back(ends[0]);
      results.emplace_back();
    }
  }
  RankProcessesOfTest(const RankProcessesOfTest &) = delete;
  RankProcessesOfTest &operator=(const RankProcessesOfTest &) = delete;
  ~RankProcessesOfTest() {
    for (pid_t pid : pids)
      if (pid > 0) {
        ::kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
      }
    for (int end : pipes)
      close(end);
  }

  void signal(int64_t rank, int number) const { ::kill(pids[static_cast<size_t>(rank)], number); }

  bool isStopped(int64_t rank) const {
    const pid_t pid = pids[static_cast<size_t>(rank)];
    siginfo_t info{};
    return pid > 0 &&
           waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
  }

  /// Returns when all threads of the rank have slept for a moment and used no processor time, as
  /// when nothing happens until another process does something. However slow the machine is, a
  /// thread that waits for a processor does not sleep. Threads of a sanitizer wake up now and then,
  /// so waking up alone does not count.
  void awaitRest(int64_t rank) const {
    const std::string tasks = "/proc/" + std::to_string(pids[static_cast<size_t>(rank)]) + "/task";
    // The processor time of all threads, in ticks, or nothing when one does not sleep.
    auto look = [&] {
      std::string seen;
      for (const auto &task : std::filesystem::directory_iterator(tasks)) {
        std::ifstream file(task.path() / "stat");
        std::string stat((std::istreambuf_iterator<char>(file)), {});
        // After the name, which is in parentheses: the state, ten numbers, user and system time.
        std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
        std::string field, used;
        for (int i = 0; fields >> field; ++i) {
          if (i == 0 && field != "S")
            return std::string();
          if (i == 11 || i == 12)
            used += field + " ";
        }
        seen += used;
      }
      return seen;
    };
    constexpr int kLooks = 5;
    std::string before;
    int alike = 0;
    for (const int64_t until = nowNs() + 60 * kSecond; nowNs() < until;) {
      sleepFor(0.03);
      const std::string now = look();
      alike = !now.empty() && now == before ? alike + 1 : 0;
      before = now;
      if (alike == kLooks)
        return;
    }
    std::abort();
  }

  /// What the rank returned, or "signal 9", or that it did not end within so many seconds.
  std::string result(int64_t rank, double seconds = 60) {
    pid_t &pid = pids[static_cast<size_t>(rank)];
    std::string &result = results[static_cast<size_t>(rank)];
    if (pid < 0)
      return result;
    const int64_t until = nowNs() + static_cast<int64_t>(seconds * kSecond);
    std::string text;
    for (;;) {
      pollfd entry{pipes[static_cast<size_t>(rank)], POLLIN, 0};
      const int64_t left = until - nowNs();
      if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left / 1000000 + 1)) <= 0)
        return "has not ended";
      char bytes[4096];
      const ssize_t got = read(entry.fd, bytes, sizeof bytes);
      if (got <= 0)
        break;
      text.append(bytes, static_cast<size_t>(got));
    }
    int status = 0;
    waitpid(pid, &status, 0);
    pid = -1;
    return result = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : text;
  }

private:
  std::vector<pid_t> pids;
  std::vector<int> pipes;
  std::vector<std::string> results; ///< of those that have ended
};

/// Small texts that the processes of a test tell each other, as files.
class Board {
public:
  void write(const std::string &name, const std::string &text) const {
    put(folder.path(name + ".new"), text);
    std::filesystem::rename(folder.path(name + ".new"), folder.path(name));
  }
  /// Waits for it.
  std::string read(const std::string &name) const {
    while (!std::filesystem::exists(folder.path(name)))
      sleepFor(0.001);
    return get(folder.path(name));
  }
  /// Returns when all ranks have come here.
  void meet(const std::string &name, int64_t rank, int64_t ranks) const {
    write(name + std::to_string(rank), "");
    for (int64_t other = 0; other < ranks; ++other)
      read(name + std::to_string(other));
  }
  std::string path(const std::string &name) const { return folder.path(name); }

private:
  TemporaryFolder folder;
};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_PROCESSTESTING_H
