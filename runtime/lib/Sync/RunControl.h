//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What all queues of all ranks share during a run: the first failure, the position of each queue,
// and waits with a limit on lack of progress. Ranks may be processes forked later, or processes
// that say several times a second where they are (Net/Control.h).
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

/// A Status in memory of a fixed size, for processes that share the memory. A longer message is
/// truncated.
struct StatusRecord {
  void set(const Status &status);
  Status get() const;

private:
  Code code = Code::ok;
  size_t length = 0;
  char text[16384];
};

/// How the waits of a model spin.
struct SpinLimits {
  SpinLimit links;  ///< for messages over networks
  SpinLimit events; ///< of threads whose core another thread of the rank may need
  SpinLimit idle;   ///< of threads of ranks that have nothing to compute meanwhile
};

/// Where a queue is. Its thread writes it; whoever explains a lack of progress reads it.
struct alignas(64) QueueState {
  int64_t rank = 0;
  Queue queue = kComputeQueue;
  const char *name = "";             ///< of the queue
  std::atomic<uint64_t> progress{0}; ///< finished commands and shares of commands
  std::atomic<const NamedCommand *> at{nullptr};
  std::atomic<Waiting> waiting{Waiting::nothing};
  std::atomic<int64_t> missingRank{-1}; ///< the peer waited for
  std::atomic<int64_t> since{0};        ///< nowNs() when the wait began
  std::atomic<bool> stalled{false};     ///< by StallInjection
  /// Of the compute queue of a rank elsewhere: when it was heard of last, if it says nothing; or 0.
  std::atomic<int64_t> silentSince{0};
  Spin spin;     ///< for the queue's thread only, as is the rest
  Spin idleSpin; ///< while no thread of the rank has anything to compute

  /// Of the current collective: its waits for peers, and the time that the compute queue's clock
  /// counted during them. The clock is null when nothing is computed beside the collective.
  const ComputeClock *clock = nullptr;
  int64_t peerWaitNs = 0, computedInWaitsNs = 0;
  int64_t computedNs() const { return clock ? clock->readNs() : 0; }
};

class RunControl {
public:
  RunControl(int64_t ranks, const std::vector<QueueInfo> &queues, double timeLimitSeconds,
             SpinLimit ofAll, Sharing sharing = Sharing::process);

  QueueState &queue(int64_t rank, Queue queue) {
    return queues[static_cast<size_t>(rank) * numQueues + queue];
  }
  const QueueState &queue(int64_t rank, Queue queue) const {
    return queues[static_cast<size_t>(rank) * numQueues + queue];
  }
  int64_t numRanks() const { return static_cast<int64_t>(numStates / numQueues); }
  size_t numQueuesOfRank() const { return numQueues; }
  /// How waits spin before they sleep. Set before any thread starts.
  const SpinLimits &spins() const { return limits; }
  void setSpins(const SpinLimits &ofWaits);
  /// A run ends after so many nanoseconds without progress; 0: never.
  int64_t limit() const { return limitNs; }

  /// Messages name late ranks with their hosts: "rank 1 (host)". No queue may be running.
  void nameHosts(const std::vector<std::string> &ofRanks) {
    if (hosts.empty())
      hosts = ofRanks;
  }
  /// Forgets the failure of an earlier run. No queue may be running.
  void begin();
  bool failed() const { return record->state.load(std::memory_order_acquire) != kNone; }
  /// Ends the run on all ranks. Only the first failure is kept.
  void fail(const Status &failure);
  Status failure() const;
  /// Replaces any other failure: a rank that ended may have left one half written.
  void replaceFailure(const Status &failure);

  /// Waits on behalf of a queue until the counter has reached the target; false when the run has
  /// failed, by this wait's time limit or elsewhere.
  bool wait(Counter &counter, uint32_t target, QueueState &self, Waiting what,
            int64_t missingRank = -1);
  /// The same for something that the caller brings nearer: progress(until) returns whether it is
  /// there, when nowNs() reaches `until` at the latest.
  template <typename Progress>
  bool waitFor(QueueState &self, Waiting what, int64_t missingRank, Progress progress) {
    const Waited waited(self, what, missingRank);
    Watch watch;
    bool reached = progress(nowNs() + sliceNs);
    while (!reached && poll(watch))
      reached = progress(nowNs() + sliceNs);
    return reached && !failed();
  }
  /// The same for the thread that started the run; it calls `tick` about every slice().
  bool waitForQueues(Counter &counter, uint32_t target, const std::function<void()> &tick);
  /// Waits until the run fails, without taking part in it.
  void stall(QueueState &self);

  /// The progress of all queues that a waiting thread saw last.
  struct Watch {
    uint64_t progress = 0;
    int64_t since = -1; ///< when it changed last; -1 before the first poll
  };
  /// False when the run has failed, or fails now because nothing has moved for too long.
  /// `idle` names the late ranks when no queue is at a command.
  bool poll(Watch &watch, const std::function<std::string()> &idle = {});
  /// How long a sleep lasts at most before the run is polled again.
  int64_t slice() const { return sliceNs; }

  /// "at all_reduce 'a' in @main on its communication queue"
  std::string describePosition(int64_t rank) const;
  /// "rank 0 waits for it at all_reduce 'a' in @main"; empty when no rank waits for this one in a
  /// collective.
  std::string waiter(int64_t rank) const;

private:
  /// What a queue says of itself while it waits.
  class Waited {
  public:
    Waited(QueueState &queue, Waiting what, int64_t missingRank);
    ~Waited();
    Waited(const Waited &) = delete;
    Waited &operator=(const Waited &) = delete;

  private:
    QueueState &queue;
    const Waiting what;
    // What was computed is read outside of what the clock says, so that a thread that loses its
    // core between the two does not count time both as hidden and as a wait.
    const int64_t computedNs, beginNs;
  };
  bool waitWithLimit(Counter &counter, uint32_t target, QueueState &self, Spin &spin);
  uint64_t progress() const;
  std::string diagnose(const std::function<std::string()> &idle) const;
  /// "; rank 1 (host) has not been heard of for 3.9 s": whoever waits for a rank that itself waits
  /// for this one, but in no run, may be at the limit first. Empty when all are heard.
  std::string silence() const;
  /// "rank 1", "ranks 1, 2 and 4"
  std::string ranksString(const std::vector<RankQueue> &queues) const;
  /// The most informative one of the rank's queues.
  const QueueState &nearest(int64_t rank) const;
  /// Queues that wait for each other in collectives and for events, each for the next and the last
  /// for the first; empty when there is no cycle.
  std::vector<const QueueState *> deadlockCycle() const;
  /// The queue that waits for this rank in a collective, or null.
  const QueueState *waiterFor(int64_t rank) const;

  enum : uint32_t { kNone, kBeingWritten, kWritten };
  struct Record {
    std::atomic<uint32_t> state{kNone};
    StatusRecord failure; ///< the first one
  };

  MemoryPool pool;
  std::vector<std::string> names, hosts; ///< of queues; of ranks, or empty
  size_t numQueues, numStates;           ///< of a rank, and of all
  QueueState *queues;                    ///< by rank and queue
  Record *record;
  int64_t limitNs;
  int64_t sliceNs;
  SpinLimits limits;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_RUNCONTROL_H
