//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The threads that share the work of one compute queue: the queue's own thread (member 0) and its
// helpers.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_TEAM_H
#define BRAID_SYNC_TEAM_H

#include "RunControl.h"

#include <memory>

namespace braid::runtime {

/// A time span of a thread, for the trace.
struct TraceSpan {
  const NamedCommand *command; ///< that the thread ran, or ran a share of
  int64_t beginNs, endNs;
  /// A collective was under way for so long before, beside an older one of its queue.
  int64_t besideNs = 0;
  int64_t step = -1; ///< of the schedule of a collective; -1: the command itself
};

/// Refers to a function of a member's number, which must outlive it. Unlike std::function it never
/// allocates.
class MemberWork {
public:
  template <typename Function>
  MemberWork(const Function &function) // NOLINT(google-explicit-constructor): takes lambdas
      : object(&function), call([](const void *object, int64_t member) {
          (*static_cast<const Function *>(object))(member);
        }) {}
  void operator()(int64_t member) const { call(object, member); }

private:
  const void *object;
  void (*call)(const void *object, int64_t member);
};

class Team {
public:
  explicit Team(int64_t members)
      : spans(static_cast<size_t>(members)), size(members),
        started(std::make_unique<Counter[]>(static_cast<size_t>(members))) {}
  int64_t members() const { return size; }

  /// Runs work(member) for 0 <= member < count, count <= members(), member 0 on the calling thread;
  /// returns when all are done, or false when the run failed first (helpers then still finish
  /// before the next job starts).
  bool run(int64_t count, const MemberWork &work, RunControl &control, QueueState &self);

  /// The loop of helper `member`; returns after stop().
  void serve(int64_t member, SpinLimit limit);
  void stop();

  bool trace = false;
  std::vector<std::vector<TraceSpan>>
      spans; ///< of the helpers, by member; written while `trace` is set

private:
  /// The member's share of the job; an exception ends the run.
  void perform(int64_t member);

  int64_t size;
  std::unique_ptr<Counter[]> started; ///< by member: the jobs that it takes part in
  Counter finished;                   ///< shares that helpers have done
  uint32_t given = 0;                 ///< shares that were given to helpers
  const MemberWork *jobWork = nullptr;
  const NamedCommand *jobCommand = nullptr;
  RunControl *jobControl = nullptr;
  int64_t jobRank = 0;
  std::atomic<bool> stopping{false};
};

/// The share of a member in [0, total); shares differ by at most one.
struct Range {
  int64_t begin, end;
};
inline Range partOf(int64_t total, int64_t member, int64_t members) {
  return {total * member / members, total * (member + 1) / members};
}

} // namespace braid::runtime
#endif // BRAID_SYNC_TEAM_H
