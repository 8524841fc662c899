//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What all queues of all ranks share during a run: the first failure, who is where, and waiting
// with a limit on lack of progress.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_RUNCONTROL_H
#define BRAID_EXEC_RUNCONTROL_H

#include "Counter.h"
#include "braid/Runtime/Status.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace braid::runtime {

struct Command; // Commands.h

enum class Waiting : int32_t { nothing = 0, event, peer, team };
enum class QueueKind : int32_t { compute = 0, communication };
const char *name(QueueKind kind);

/// Where a queue is. Written by its thread, read by whoever has to say why nothing moves.
struct alignas(64) QueueState {
  int64_t rank = 0;
  QueueKind kind = QueueKind::compute;
  std::atomic<uint64_t> progress{0}; ///< finished commands and parts of commands
  std::atomic<const Command *> at{nullptr};
  std::atomic<Waiting> waiting{Waiting::nothing};
  std::atomic<int64_t> missingRank{-1}; ///< the peer waited for
  std::atomic<int64_t> since{0};        ///< nowNs() when the wait began
  std::atomic<bool> stalled{false};     ///< by StallInjection
};

class RunControl {
public:
  RunControl(int64_t ranks, double timeLimitSeconds, int spins);

  QueueState &queue(int64_t rank, QueueKind kind) {
    return queues[static_cast<size_t>(rank * 2 + static_cast<int>(kind))];
  }
  int spins() const { return spinCount; }

  /// Forgets the failure of an earlier run. No queue may be running.
  void begin();
  bool failed() const { return failedFlag.load(std::memory_order_acquire); }
  /// Ends the run on all ranks. Only the first failure is kept.
  void fail(Status failure);
  Status failure() const;

  /// Waits on behalf of a queue until the counter has reached the target; false when the run has
  /// failed, by this wait's time limit or elsewhere.
  bool wait(Counter &counter, uint32_t target, QueueState &self, Waiting what,
            int64_t missingRank = -1);
  /// The same for the thread that started the run.
  bool waitForQueues(Counter &counter, uint32_t target);
  /// Waits until the run fails, without taking part in it.
  void stall(QueueState &self);

private:
  bool waitWithLimit(Counter &counter, uint32_t target, int spins);
  uint64_t progress() const;
  std::string diagnose() const;

  std::vector<QueueState> queues;
  int64_t limitNs;
  int64_t sliceNs; ///< how long a sleep lasts at most before the run is looked at again
  int spinCount;
  std::atomic<bool> failedFlag{false};
  mutable std::mutex mutex;
  Status firstFailure;
};

} // namespace braid::runtime
#endif // BRAID_EXEC_RUNCONTROL_H
