//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The threads that share the work of one compute queue: the queue's own thread (member 0) and its
// helpers.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_TEAM_H
#define BRAID_EXEC_TEAM_H

#include "RunControl.h"

#include <functional>

namespace braid::runtime {

/// What a thread did when, for the trace.
struct TraceSpan {
  const Command *command;
  int64_t beginNs, endNs;
};

class Team {
public:
  explicit Team(int64_t members) : spans(static_cast<size_t>(members)), size(members) {}
  int64_t members() const { return size; }

  /// Runs work(member) for 0 <= member < count, count <= members(), member 0 on the calling thread;
  /// returns when all are done, or false when the run failed first (helpers then still finish
  /// before the next job starts).
  bool run(int64_t count, const std::function<void(int64_t)> &work, RunControl &control,
           QueueState &self);

  /// The loop of helper `member`; returns after stop().
  void serve(int64_t member, int spins);
  void stop();

  bool trace = false;
  std::vector<std::vector<TraceSpan>>
      spans; ///< of the helpers, by member; written while `trace` is set

private:
  /// The member's part of the job; what it throws ends the run.
  void perform(int64_t member);

  int64_t size;
  Counter started, finished;
  uint32_t job = 0;
  int64_t jobCount = 0;
  const std::function<void(int64_t)> *jobWork = nullptr;
  const Command *jobCommand = nullptr;
  RunControl *jobControl = nullptr;
  int64_t jobRank = 0;
  std::atomic<bool> stopping{false};
};

/// The part of [0, total) that belongs to a member; parts differ by one at most.
struct Range {
  int64_t begin, end;
};
inline Range partOf(int64_t total, int64_t member, int64_t members) {
  return {total * member / members, total * (member + 1) / members};
}

} // namespace braid::runtime
#endif // BRAID_EXEC_TEAM_H
