//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ComputeClock.h"

#include <pthread.h>

namespace braid::runtime {

int64_t processorNs(clockid_t clock) {
  timespec time{};
  return clock_gettime(clock, &time) == 0 ? int64_t(time.tv_sec) * 1000000000 + time.tv_nsec : 0;
}

clockid_t processorClock(std::thread &thread) {
  clockid_t clock{};
  pthread_getcpuclockid(thread.native_handle(), &clock); // every thread has one until it is joined
  return clock;
}

ComputeClock::Span::Span(ComputeClock *clock) : clock(clock) {
  if (clock)
    clock->begin();
}
ComputeClock::Span::~Span() {
  if (clock)
    clock->end();
}

void ComputeClock::begin() {
  const int64_t before = state.load(std::memory_order_relaxed) / 2;
  state.store((before - processorNs(CLOCK_THREAD_CPUTIME_ID)) * 2 + 1, std::memory_order_release);
}

void ComputeClock::end() {
  const int64_t begun = (state.load(std::memory_order_relaxed) - 1) / 2;
  state.store((begun + processorNs(CLOCK_THREAD_CPUTIME_ID)) * 2, std::memory_order_release);
}

int64_t ComputeClock::readNs() const {
  for (;;) {
    const int64_t seen = state.load(std::memory_order_acquire);
    if (seen % 2 == 0)
      return seen / 2;
    const int64_t now = processorNs(threadClock);
    if (state.load(std::memory_order_acquire) == seen)
      return (seen - 1) / 2 + now;
  }
}

} // namespace braid::runtime
