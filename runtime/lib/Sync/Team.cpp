//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Team.h"
#include "SchedulePoint.h"

#include <exception>

namespace braid::runtime {

// An exception must neither end the process from a helper nor leave the leader's frame, which holds
// the work, while helpers still use it.
void Team::perform(int64_t member) {
  atSchedulePoint("before a share");
  try {
    (*jobWork)(member);
  } catch (const std::exception &e) {
    jobControl->fail(Status::error("rank " + std::to_string(jobRank) + ": " +
                                       (jobCommand ? describe(*jobCommand) + ": " : std::string()) +
                                       e.what(),
                                   Code::rankFailed));
  }
}

bool Team::run(int64_t count, const MemberWork &work, RunControl &control, QueueState &self) {
  jobWork = &work;
  jobCommand = self.at.load(std::memory_order_relaxed);
  jobControl = &control;
  jobRank = self.rank;
  if (count <= 1 || size == 1) {
    for (int64_t member = 0; member < count; ++member)
      perform(member);
    return !control.failed();
  }
  for (int64_t member = 1; member < count; ++member) // the others keep sleeping
    started[static_cast<size_t>(member)].increment();
  perform(0);
  // `work` lives on the caller's stack, so even after a failure elsewhere this waits until no
  // helper uses it. Helpers run finite shares; only this wait has no limit of its own.
  const uint32_t target = given += static_cast<uint32_t>(count - 1);
  if (!finished.reached(target)) {
    self.since.store(nowNs(), std::memory_order_relaxed);
    self.waiting.store(Waiting::team, std::memory_order_release);
    if (!self.idleSpin.reaches(finished, target))
      while (!finished.waitOnce(target, 20000000)) {
      }
    self.waiting.store(Waiting::nothing, std::memory_order_release);
  }
  return !control.failed();
}

void Team::serve(int64_t member, SpinLimit limit) {
  Counter &jobs = started[static_cast<size_t>(member)];
  Spin spin(limit);
  for (uint32_t next = 1;; ++next) {
    while (!spin.reaches(jobs, next) && !jobs.waitOnce(next, -1))
      if (stopping.load(std::memory_order_acquire))
        return;
    if (stopping.load(std::memory_order_acquire))
      return;
    int64_t begin = trace ? nowNs() : 0;
    perform(member);
    if (trace)
      spans[static_cast<size_t>(member)].push_back({jobCommand, begin, nowNs()});
    finished.increment();
  }
}

void Team::stop() {
  stopping.store(true, std::memory_order_release);
  for (int64_t member = 1; member < size; ++member)
    started[static_cast<size_t>(member)].increment();
}

} // namespace braid::runtime
