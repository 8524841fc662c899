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

  /// Spins for this long. Returns whether the target is reached.
  bool spin(uint32_t target, int64_t ns) const;
  /// Returns when `target` is reached, after a wake-up, or after `timeoutNs` (negative: never), and
  /// whether the target is reached. Spins for `spinNs` before it sleeps.
  bool waitOnce(uint32_t target, int64_t spinNs, int64_t timeoutNs);

private:
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};
  const Sharing sharing; ///< the kernel finds the sleepers of one process faster
};

/// How long one thread spins before it sleeps. A spin in vain wastes time, and perhaps the core
/// that the awaited thread needs, so the next spin is shorter; occasionally a long one is tried.
class Spin {
public:
  explicit Spin(int64_t mostNs = 0) : most(mostNs), length(mostNs) {}
  /// Spins and returns whether the counter reaches the target.
  bool reaches(const Counter &counter, uint32_t target);

private:
  int64_t most, length;
  int untried = 0; ///< waits without a spin
};

} // namespace braid::runtime
#endif // BRAID_SYNC_COUNTER_H
