//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A counter that threads, or processes that share its memory, wait on: spins briefly, then sleeps
// in the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_COUNTER_H
#define BRAID_EXEC_COUNTER_H

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

  /// Sets a new value and wakes who waits for it.
  void set(uint32_t value);
  /// Adds one and wakes.
  void increment();
  /// Wakes all waiters without a new value, to make them look around.
  void wake();

  /// Returns when `target` is reached, after a wake-up, or after `timeoutNs` (negative: never);
  /// tells whether the target is reached. Looks `spins` times before it sleeps.
  bool waitOnce(uint32_t target, int spins, int64_t timeoutNs);

private:
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};
  const Sharing sharing; ///< the kernel finds sleepers of one process with less work
};

} // namespace braid::runtime
#endif // BRAID_EXEC_COUNTER_H
