//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Points at which tests may delay a thread or end its process: between the steps of counters,
// waits, transports, and of starting and stopping ranks. Empty in ordinary builds.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_SCHEDULEPOINT_H
#define BRAID_SYNC_SCHEDULEPOINT_H

#include <cstdint>
#ifdef BRAID_SCHEDULE_POINTS
#include <atomic>
#endif

namespace braid::runtime {

/// The role of a thread in its rank: a queue's thread is at kComputeLane + its number, and helpers
/// of the compute queue follow by their number in the team. Two threads talk to other processes:
/// that of control, and the one that moves sends and recvs.
enum ScheduleLane : int64_t { kControlLane = -2, kMessageLane, kMainLane, kComputeLane };

#ifdef BRAID_SCHEDULE_POINTS
/// A point of a thread. Threads are identified by role rather than by creation order, so that
/// points are the same in every run.
struct SchedulePoint {
  int64_t rank = -1; ///< -1: the session's own thread
  int64_t lane = kMainLane;
  uint64_t passed = 0; ///< points of this thread before this one
  const char *step = nullptr;
};
inline thread_local SchedulePoint schedulePoint;

/// A test's function for every point; may be null.
inline std::atomic<void (*)(const SchedulePoint &)> scheduleHook{nullptr};

/// Relaxed, so that the thread sanitizer sees no order that ordinary builds do not have.
inline void atSchedulePoint(const char *step) {
  if (auto *act = scheduleHook.load(std::memory_order_relaxed)) {
    schedulePoint.step = step;
    act(schedulePoint);
    ++schedulePoint.passed;
  }
}
/// Sets the role of the calling thread.
inline void beginSchedule(int64_t rank, int64_t lane) { schedulePoint = {rank, lane, 0, nullptr}; }
#else
inline void atSchedulePoint(const char *) {}
inline void beginSchedule(int64_t, int64_t) {}
#endif

} // namespace braid::runtime
#endif // BRAID_SYNC_SCHEDULEPOINT_H
