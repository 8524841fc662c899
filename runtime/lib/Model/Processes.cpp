//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Processes.h"
#include "runtime/lib/Sync/ControlGroups.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace braid::runtime {

int64_t taskLimit() {
  int64_t limit = INT64_MAX;
  auto lower = [&](const std::string &path) { // "max" is no number
    if (int64_t value; std::ifstream(path) >> value)
      limit = std::min(limit, value);
  };
  lower("/proc/sys/kernel/pid_max");
  lower("/proc/sys/kernel/threads-max");
  forEachControlGroup("", "pids", [&](const std::string &folder) { lower(folder + "/pids.max"); });
  // This limit does not apply to root.
  if (rlimit given{}; getuid() != 0 && getrlimit(RLIMIT_NPROC, &given) == 0 &&
                      given.rlim_cur < static_cast<rlim_t>(limit))
    limit = static_cast<int64_t>(given.rlim_cur);
  return limit;
}

void Processes::closeOthers(std::vector<int> kept) const {
  kept.push_back(wakeup);
  std::sort(kept.begin(), kept.end());
  auto closeRange = [](int first, int last) {
    if (first > last ||
        close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0) == 0)
      return;
    rlimit limit{}; // a system without that call
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
      for (int file = first; file <= std::min<int64_t>(last, static_cast<int64_t>(limit.rlim_cur));
           ++file)
        close(file);
  };
  int next = 3;
  for (int file : kept) {
    closeRange(next, file - 1);
    next = std::max(next, file + 1);
  }
  closeRange(next, INT_MAX);
}

Status Processes::start(int64_t count, const std::function<int(int64_t)> &work,
                        const std::vector<int> &kept) {
  kill();
  wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wakeup < 0)
    return Status::error(std::string("cannot start processes: ") + std::strerror(errno));
  const pid_t parent = getpid();
  for (int64_t rank = 0; rank < count; ++rank) {
    pid_t pid = fork();
    if (pid == 0)
      beginSchedule(rank, kMainLane);
    atSchedulePoint("forked");
    if (pid == 0) {
      // A parent that ended before the call to prctl sends no signal.
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
      closeOthers(kept);
      atSchedulePoint("tied to its parent");
      int status;
      try {
        status = work(rank);
      } catch (...) {
        status = 1; // unwinding further would run the parent's code
      }
      _exit(status); // the parent cleans up everything else
    }
    if (pid < 0) {
      Status status = Status::error("cannot start a process for rank " + std::to_string(rank) +
                                    " of " + std::to_string(count) + ": " + std::strerror(errno));
      kill();
      return status;
    }
    Child child;
    child.pid = pid;
    // Old kernels give no handle; then wait() notices an end after its timeout.
    child.handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    children.push_back(child);
  }
  return {};
}

void Processes::notify() const {
  uint64_t one = 1;
  // A write fails only when so many are pending that the parent is awake anyway.
  if (write(wakeup, &one, sizeof one) != sizeof one)
    return;
}

void Processes::release(Child &child) {
  if (child.handle >= 0)
    close(child.handle);
  child = Child();
}

static std::string howItEnded(int status) {
  if (WIFSIGNALED(status))
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

std::vector<Processes::End> Processes::wait(int64_t timeoutNs) {
  polled.assign(1, {wakeup, POLLIN, 0});
  for (const Child &child : children)
    polled.push_back({child.handle, POLLIN, 0}); // negative ones are ignored
  timespec timeout{timeoutNs / 1000000000, timeoutNs % 1000000000};
  ppoll(polled.data(), polled.size(), &timeout, nullptr);
  uint64_t count;
  if (polled[0].revents && read(wakeup, &count, sizeof count) < 0)
    count = 0; // another process woke this one
  std::vector<End> ended;
  for (size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    if (children[i].pid < 0)
      continue;
    pid_t pid = waitpid(children[i].pid, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
      continue;
    // The embedding program may have waited for it.
    ended.push_back({static_cast<int64_t>(i),
                     pid < 0 ? std::string("ended in an unknown way") : howItEnded(status)});
    release(children[i]);
  }
  return ended;
}

int64_t Processes::numRunning() const {
  return std::count_if(children.begin(), children.end(),
                       [](const Child &child) { return child.pid >= 0; });
}

uint64_t Processes::activity(int64_t rank) const {
  if (!running(rank))
    return 0;
  std::ifstream file("/proc/" + std::to_string(children[static_cast<size_t>(rank)].pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The name is in parentheses and may contain anything. After it come the state and, from the
  // tenth field on, page faults and times.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  uint64_t sum = 0;
  for (int i = 0; i < 13 && fields >> field; ++i)
    if (i == 7 || i == 9 || i == 11 || i == 12) // minflt, majflt, utime, stime
      sum += std::strtoull(field.c_str(), nullptr, 10);
  return sum;
}

void Processes::kill() {
  atSchedulePoint("before children are killed");
  for (const Child &child : children)
    if (child.pid >= 0)
      ::kill(child.pid, SIGKILL);
  for (Child &child : children) {
    if (child.pid < 0)
      continue;
    while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    release(child);
  }
  children.clear();
  if (wakeup >= 0)
    close(wakeup);
  wakeup = -1;
}

} // namespace braid::runtime
