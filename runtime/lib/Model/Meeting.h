//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How the ranks of a process group came to a collective in a run and left it, and what follows of
// the collective's time.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_MEETING_H
#define BRAID_MODEL_MEETING_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace braid::runtime {

struct Meeting {
  int64_t group = 0; ///< its first rank
  int64_t firstArrivalNs = INT64_MAX, lastArrivalNs = INT64_MIN;
  int64_t spinNs = 0; ///< how long its ranks spin at most
  std::vector<int64_t> endsNs;

  /// Takes the ranks of another part of the group, whose times are of the same clock.
  void join(const Meeting &part) {
    firstArrivalNs = std::min(firstArrivalNs, part.firstArrivalNs);
    lastArrivalNs = std::max(lastArrivalNs, part.lastArrivalNs);
    spinNs = std::max(spinNs, part.spinNs);
    endsNs.insert(endsNs.end(), part.endsNs.begin(), part.endsNs.end());
  }
  /// Who waits for longer than it spins sleeps, and wakes up when the last rank has come.
  bool isAwake() const { return lastArrivalNs - firstArrivalNs <= spinNs; }
};

/// The meetings of a collective in one run, one for each group.
using Meetings = std::vector<Meeting>;

/// Adds a part of a group to the meetings of its collective.
inline void join(Meetings &meetings, const Meeting &part) {
  auto same = std::find_if(meetings.begin(), meetings.end(),
                           [&](const Meeting &one) { return one.group == part.group; });
  if (same == meetings.end())
    meetings.push_back(part);
  else
    same->join(part);
}

/// From the arrival of the last rank to the end, in seconds; mean over the ranks of all groups.
inline double secondsOf(const Meetings &meetings) {
  double sum = 0, ranks = 0;
  for (const Meeting &meeting : meetings)
    for (int64_t end : meeting.endsNs) {
      // A rank that awaits nothing of the last one may have ended before.
      sum += static_cast<double>(std::max<int64_t>(0, end - meeting.lastArrivalNs)) * 1e-9;
      ++ranks;
    }
  return ranks > 0 ? sum / ranks : 0;
}

} // namespace braid::runtime
#endif // BRAID_MODEL_MEETING_H
