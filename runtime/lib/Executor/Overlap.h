//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the time of a rank's collectives, and determines which of them can be hidden.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_OVERLAP_H
#define BRAID_EXECUTOR_OVERLAP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::runtime {

struct RankProgram; // Commands.h

/// The commands of the compute queue during which a command of another queue may run: from the one
/// after the last record that it waits for to the first that waits for it or for a later command of
/// its queue, each perhaps by way of further queues.
struct Window {
  size_t begin, end;
};
/// By queue and command; nothing for the compute queue.
std::vector<std::vector<Window>> windowsOf(const RankProgram &program);

/// The time of a rank's collectives in one run, in nanoseconds. Totals sum collectives, also those
/// that were in flight at once on several queues.
struct CommunicationTimes {
  /// Inside of collectives, from arrival to end. The end is taken before its event is set.
  int64_t communicationNs = 0;
  /// Processor time that the compute queue spent in computing commands while bytes of a collective
  /// were moved or reduced.
  int64_t hiddenNs = 0;
  /// The compute queue was blocked at the wait.
  int64_t exposedNs = 0;
  /// In rendezvous, before all peers had arrived. Unknown on a device.
  int64_t peerWaitNs = 0;
};

/// Finds out, from the program alone, what may run at the same time: marks the computing commands
/// between the start of a collective and its wait, and the collectives without any, which are
/// exposed by form.
void findOverlap(RankProgram &program);

/// Assigns commands of other queues without overlap to the compute queue's thread that waits for
/// them, which would sleep otherwise. A queue keeps its order: where its own thread and the compute
/// queue's alternate, they synchronize by events of their own.
void giveToWaiters(RankProgram &program);

/// Finds out which collectives of a queue may be under way at once: those of which none writes what
/// another one reads or writes. `symmetric`: the rank's symmetric memory.
void findInFlight(RankProgram &program, std::byte *symmetric);

struct Interval {
  int64_t beginNs = 0, endNs = 0;
};
/// The time that `span` overlaps with one of `busy`, which are in order and disjoint. For devices,
/// whose clocks cannot be read while they compute.
int64_t coveredNs(Interval span, const std::vector<Interval> &busy);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_OVERLAP_H
