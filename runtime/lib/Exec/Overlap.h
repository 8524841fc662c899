//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How much of a rank's communication runs while the rank computes.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_OVERLAP_H
#define BRAID_EXEC_OVERLAP_H

#include <cstdint>
#include <vector>

namespace braid::runtime {

struct Interval {
  int64_t beginNs = 0, endNs = 0;
};

/// What `whole` has besides `parts`, which are in order and apart, and may reach beyond it.
std::vector<Interval> without(Interval whole, const std::vector<Interval> &parts);

/// How long `span` goes on while one of `busy` does; those are in order and apart.
int64_t coveredNs(Interval span, const std::vector<Interval> &busy);

/// A collective on the communication queue.
struct CollectiveSpan {
  Interval time;
  uint32_t roleIndex = 0;
};

/// What collectives took of a rank's time in one run.
struct CommunicationTimes {
  int64_t communicationNs = 0; ///< communication queue inside of collectives
  int64_t hiddenNs = 0;        ///< of that, while the compute queue computed
  int64_t waitingNs = 0;       ///< compute queue inside of CollectiveWait
  int64_t exposedNs() const { return communicationNs - hiddenNs; }
};

/// Adds up collectives, all together and by role, in times that hold zeros or waiting times. The
/// compute queue was at work from `computing.beginNs` to `computing.endNs`, but for `waits`.
void addCollectives(const std::vector<CollectiveSpan> &collectives, Interval computing,
                    const std::vector<Interval> &waits, CommunicationTimes &total,
                    std::vector<CommunicationTimes> &roles);

} // namespace braid::runtime
#endif // BRAID_EXEC_OVERLAP_H
