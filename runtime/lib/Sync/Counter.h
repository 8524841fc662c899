//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A counter that threads, or processes that share its memory, wait on: spins briefly, then sleeps
// in the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_COUNTER_H
#define BRAID_SYNC_COUNTER_H

#include "MemoryPool.h"

#include <atomic>
#include <cstdint>

namespace braid::runtime {

/// Nanoseconds of the steady clock.
int64_t nowNs();

/// Values wrap around; `reached` compares in circular order, so a counter never needs a reset
/// between runs.
class alignas(64) Counter {
public:
  explicit Counter(Sharing sharing = Sharing::process) : sharing(sharing) {}

  uint32_t value() const { return word.load(std::memory_order_acquire); }
  bool reached(uint32_t target) const { return static_cast<int32_t>(value() - target) >= 0; }

  /// Sets a new value and wakes its waiters.
  void set(uint32_t value);
  /// Adds one and wakes.
  void increment();
  /// Wakes all waiters without a new value, to make them check the run's state.
  void wake();

  /// Sleeps until `target` is reached, a wake-up, or for `timeoutNs` (negative: without a limit).
  /// Returns whether the target is reached.
  bool waitOnce(uint32_t target, int64_t timeoutNs);

private:
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};
  const Sharing sharing; ///< the kernel finds the sleepers of one process faster
};

/// How threads spin before they sleep.
struct SpinLimit {
  int64_t ns = 0;      ///< at most
  bool yields = false; ///< whether another thread may have the core between two polls
};

/// How long one thread spins before it sleeps. A spin in vain wastes time, and perhaps the core
/// that the awaited thread needs, so the next spin is shorter; occasionally a long one is tried.
class Spin {
public:
  explicit Spin(SpinLimit limit = {}) : limit(limit), length(limit.ns) {}
  /// Polls, repeatedly while it spins, until this returns true; returns whether it did.
  template <typename Poll> bool until(Poll poll);
  /// Spins and returns whether the counter reaches the target.
  bool reaches(const Counter &counter, uint32_t target) {
    return until([&] { return counter.reached(target); });
  }

private:
  /// How long to spin now.
  int64_t begin();
  void end(bool reached, int64_t spunNs);
  /// Between two polls.
  void pause() const;

  SpinLimit limit;
  int64_t length;  ///< of the next spin
  int untried = 0; ///< waits without a spin
};

template <typename Poll> bool Spin::until(Poll poll) {
  const int64_t most = begin();
  if (most == 0)
    return poll();
  // Reading the clock costs about as much as a poll.
  const int polls = limit.yields ? 1 : 16;
  const int64_t beginNs = nowNs();
  int64_t spunNs = 0;
  bool reached = false;
  for (; !reached && spunNs < most; spunNs = nowNs() - beginNs)
    for (int i = 0; !reached && i < polls; ++i) {
      reached = poll();
      if (!reached)
        pause();
    }
  end(reached, spunNs);
  return reached;
}

} // namespace braid::runtime
#endif // BRAID_SYNC_COUNTER_H
