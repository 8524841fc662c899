//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processor time of threads, and of a rank's computation.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_COMPUTECLOCK_H
#define BRAID_SYNC_COMPUTECLOCK_H

#include <atomic>
#include <cstdint>
#include <ctime>
#include <thread>

namespace braid::runtime {

/// Processor time of a thread, in nanoseconds; 0 when the thread has ended.
int64_t processorNs(clockid_t clock);
/// The clock of a thread's processor time, readable from all threads of the process.
clockid_t processorClock(std::thread &thread);

/// Processor time that the compute queue of a rank has spent in commands that compute. The queue's
/// thread counts it; the communication queues' threads read it meanwhile.
class ComputeClock {
public:
  /// The clock of the compute queue's thread; before its first run.
  void attach(clockid_t clock) { threadClock = clock; }
  /// Counts the calling thread's time as computation during its lifetime; null does not count it.
  class Span {
  public:
    explicit Span(ComputeClock *clock);
    ~Span();
    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;

  private:
    ComputeClock *clock;
  };
  int64_t readNs() const;

private:
  void begin();
  void end();
  clockid_t threadClock{};
  /// Twice the time so far. While a command runs: twice the difference of the time so far and the
  /// thread's clock at the command's begin, plus 1.
  std::atomic<int64_t> state{0};
};

} // namespace braid::runtime
#endif // BRAID_SYNC_COMPUTECLOCK_H
