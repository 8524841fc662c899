//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes forked from this one; their ends are noticed at once.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_PROCESSES_H
#define BRAID_MODEL_PROCESSES_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <functional>
#include <poll.h>
#include <sys/types.h>
#include <vector>

namespace braid::runtime {

/// The number of threads and processes that this process may start, as far as known in advance.
int64_t taskLimit();

/// One process per rank. None outlives this object, nor the thread that started it: the kernel
/// kills the processes when that thread ends, however it ends.
class Processes {
public:
  Processes() = default;
  ~Processes() { kill(); }
  Processes(const Processes &) = delete;
  Processes &operator=(const Processes &) = delete;

  /// A process that ended, and how: "was ended by signal 9 (Killed)".
  struct End {
    int64_t rank;
    std::string how;
  };

  /// Forks; each process runs work(rank) on its only thread and exits with the result. Threads of
  /// this process must hold no lock that the work needs. Of the descriptors of this process a rank
  /// keeps the standard ones and `kept` only, as connections, ports and locks must not stay open in
  /// a rank.
  Status start(int64_t count, const std::function<int(int64_t)> &work,
               const std::vector<int> &kept = {});
  /// Closes all descriptors except the standard ones, `kept` and our own. For a started process.
  void closeOthers(std::vector<int> kept) const;
  /// Wakes the process that started this one. For a started process.
  void notify() const;
  /// Sleeps until a process notifies or ends, or until the timeout; returns those that ended since
  /// the last call.
  std::vector<End> wait(int64_t timeoutNs);
  int64_t numRunning() const;
  bool running(int64_t rank) const { return children[static_cast<size_t>(rank)].pid >= 0; }
  pid_t pid(int64_t rank) const { return children[static_cast<size_t>(rank)].pid; }
  /// A number that grows while the process computes or reads pages; 0 when it has ended.
  uint64_t activity(int64_t rank) const;
  /// Kills the processes that still run, and waits until they are gone.
  void kill();

private:
  struct Child {
    pid_t pid = -1; ///< -1 when ended
    int handle = -1;
  };
  void release(Child &child);

  std::vector<Child> children;
  std::vector<pollfd> polled;
  int wakeup = -1;
};

} // namespace braid::runtime
#endif // BRAID_MODEL_PROCESSES_H
