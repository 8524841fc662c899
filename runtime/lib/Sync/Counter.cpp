//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Counter.h"
#include "SchedulePoint.h"

#include <chrono>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace braid::runtime {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t),
              "the kernel waits on a plain word");

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

static void pauseCpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A writer changes the word and then checks for sleepers; a waiter registers and then checks the
// word. Both are sequentially consistent, so at least one sees the other; the kernel's own
// comparison covers the rest.
void Counter::set(uint32_t value) {
  atSchedulePoint("before a set");
  word.store(value, std::memory_order_seq_cst);
  atSchedulePoint("after a set");
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    wake();
}

void Counter::increment() {
  atSchedulePoint("before an increment");
  word.fetch_add(1, std::memory_order_seq_cst);
  atSchedulePoint("after an increment");
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    wake();
}

void Counter::wake() {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word),
          sharing == Sharing::process ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

int64_t Spin::begin() {
  constexpr int kTryAfter = 32;
  if (length == 0 && ++untried < kTryAfter)
    return 0;
  untried = 0;
  return length == 0 ? limit.ns : length;
}

void Spin::end(bool reached, int64_t spunNs) {
  constexpr int64_t kLeastNs = 500;
  // A thread that computes had the core meanwhile: a sleeper is woken sooner.
  const bool isHeldUp = limit.yields && spunNs > 4 * limit.ns;
  if (isHeldUp)
    length = 0;
  else if (reached)
    length = limit.ns;
  else
    length = length / 2 < kLeastNs ? 0 : length / 2;
}

void Spin::pause() const {
  if (limit.yields)
    sched_yield();
  else
    pauseCpu();
}

bool Counter::waitOnce(uint32_t target, int64_t timeoutNs) {
  atSchedulePoint("before a sleep");
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  atSchedulePoint("announced a sleep");
  uint32_t seen = word.load(std::memory_order_seq_cst);
  if (static_cast<int32_t>(seen - target) < 0) {
    timespec timeout{};
    if (timeoutNs >= 0) {
      timeout.tv_sec = timeoutNs / 1000000000;
      timeout.tv_nsec = timeoutNs % 1000000000;
    }
    atSchedulePoint("falls asleep");
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word),
            sharing == Sharing::process ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, seen,
            timeoutNs >= 0 ? &timeout : nullptr, nullptr, 0);
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return reached(target);
}

} // namespace braid::runtime
