//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes forked from this one, and noticing at once when one of them ends.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SESSION_PROCESSES_H
#define BRAID_SESSION_PROCESSES_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <functional>
#include <poll.h>
#include <sys/types.h>
#include <vector>

namespace braid::runtime {

/// How many threads and processes this process may start, as far as that is known in advance.
int64_t taskLimit();

/// One process per rank. None outlives this object, nor the thread that started them: the kernel
/// kills them when that ends, however it ends.
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

  /// Forks; each process runs work(rank) on its only thread and ends with what that returns.
  /// Threads of this process must hold no lock that the work needs. Of this process's descriptors
  /// they have the standard ones and `kept` only: its connections, ports and locks must not live on
  /// in a rank.
  Status start(int64_t count, const std::function<int(int64_t)> &work,
               const std::vector<int> &kept = {});
  /// Closes all descriptors but the standard ones, these and our own. Called by them.
  void closeOthers(std::vector<int> kept) const;
  /// Wakes the process that started them. Called by them.
  void notify() const;
  /// Sleeps until one has notified or ended, or the time is over; returns those that have ended
  /// since the last call.
  std::vector<End> wait(int64_t timeoutNs);
  int64_t numRunning() const;
  bool running(int64_t rank) const { return children[static_cast<size_t>(rank)].pid >= 0; }
  pid_t pid(int64_t rank) const { return children[static_cast<size_t>(rank)].pid; }
  /// A number that grows while the process computes or reads pages; 0 when it has ended.
  uint64_t activity(int64_t rank) const;
  /// Ends those that still run, and waits until they are gone.
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
#endif // BRAID_SESSION_PROCESSES_H
