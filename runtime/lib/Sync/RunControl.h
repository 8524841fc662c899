//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What all queues of all ranks share during a run: the first failure, who is where, and waiting
// with a limit on lack of progress. Ranks may be processes forked later.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_RUNCONTROL_H
#define BRAID_SYNC_RUNCONTROL_H

#include "ComputeClock.h"
#include "Counter.h"
#include "NamedCommand.h"
#include "braid/Program/Program.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::runtime {

enum class Waiting : int32_t { nothing = 0, event, peer, team };
/// "1.5 s"
std::string seconds(int64_t ns);

/// Where a queue is. Written by its thread, read by whoever has to say why nothing moves.
struct alignas(64) QueueState {
  int64_t rank = 0;
  Queue kind = Queue::compute;
  std::atomic<uint64_t> progress{0}; ///< finished commands and parts of commands
  std::atomic<const NamedCommand *> at{nullptr};
  std::atomic<Waiting> waiting{Waiting::nothing};
  std::atomic<int64_t> missingRank{-1}; ///< the peer waited for
  std::atomic<int64_t> since{0};        ///< nowNs() when the wait began
  std::atomic<bool> stalled{false};     ///< by StallInjection
  Spin spin;                            ///< for the queue's thread only, as is the rest

  /// Of the collective at hand: its waits for peers, and how much the compute queue's clock went on
  /// in them; a null clock: nothing is computed beside it.
  const ComputeClock *clock = nullptr;
  int64_t peerWaitNs = 0, computedInWaitsNs = 0;
  int64_t computedNs() const { return clock ? clock->readNs() : 0; }
};

class RunControl {
public:
  RunControl(int64_t ranks, double timeLimitSeconds, int64_t spinNs,
             Sharing sharing = Sharing::process);

  QueueState &queue(int64_t rank, Queue kind) { return queues[rank * 2 + static_cast<int>(kind)]; }
  /// How long to look before sleeping, in nanoseconds, at most. Set before any thread starts.
  int64_t spinNs() const { return spinTime; }
  void setSpin(int64_t ns);
  /// Nanoseconds without progress that end a run; 0: none do.
  int64_t limit() const { return limitNs; }

  /// Forgets the failure of an earlier run. No queue may be running.
  void begin();
  bool failed() const { return record->state.load(std::memory_order_acquire) != kNone; }
  /// Ends the run on all ranks. Only the first failure is kept.
  void fail(Status failure);
  Status failure() const;
  /// Puts this failure in the place of any other. For a rank that ended and may have left a
  /// half-told one.
  void replaceFailure(const Status &failure);

  /// Waits on behalf of a queue until the counter has reached the target; false when the run has
  /// failed, by this wait's time limit or elsewhere.
  bool wait(Counter &counter, uint32_t target, QueueState &self, Waiting what,
            int64_t missingRank = -1);
  /// The same for the thread that started the run; it calls `tick` about every slice().
  bool waitForQueues(Counter &counter, uint32_t target, const std::function<void()> &tick);
  /// Waits until the run fails, without taking part in it.
  void stall(QueueState &self);

  /// Until when nothing has moved, for one that waits.
  struct Watch {
    uint64_t progress = 0;
    int64_t since = -1; ///< before the first look
  };
  /// False when the run has failed, or fails now because nothing has moved for too long.
  /// `idle` names who is late when no queue is at a command.
  bool poll(Watch &watch, const std::function<std::string()> &idle = {});
  /// How long a sleep lasts at most before the run is looked at again.
  int64_t slice() const { return sliceNs; }

  /// "at all_reduce 'a' in @main on its communication queue"
  std::string describePosition(int64_t rank) const;
  /// "rank 0 waits for it at all_reduce 'a' in @main"; empty when no rank waits for this one in a
  /// collective.
  std::string waiter(int64_t rank) const;

private:
  bool waitWithLimit(Counter &counter, uint32_t target, QueueState &self);
  uint64_t progress() const;
  std::string diagnose(const std::function<std::string()> &idle) const;
  /// The rank's queue that says more about where it is.
  const QueueState &nearest(int64_t rank) const;
  /// Ranks that wait for each other in collectives, each for the next and the last for the first;
  /// mostly none.
  std::vector<int64_t> deadlockCycle() const;
  /// The queue that waits for this rank in a collective, or null.
  const QueueState *waiterFor(int64_t rank) const;

  enum : uint32_t { kNone, kBeingWritten, kWritten };
  /// The first failure, in memory of a size that does not depend on it.
  struct Record {
    std::atomic<uint32_t> state{kNone};
    Code code = Code::ok;
    uint32_t length = 0;
    char text[16384];
  };
  void tell(const Status &failure);

  MemoryPool pool;
  size_t numQueues;
  QueueState *queues;
  Record *record;
  int64_t limitNs;
  int64_t sliceNs;
  int64_t spinTime;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_RUNCONTROL_H
