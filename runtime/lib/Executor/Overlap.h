//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What collectives take of a rank's time: how it is measured, and which of them can be hidden.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_OVERLAP_H
#define BRAID_EXECUTOR_OVERLAP_H

#include <cstdint>
#include <vector>

namespace braid::runtime {

struct RankProgram; // Commands.h

/// What collectives took of a rank's time in one run, in nanoseconds.
struct CommunicationTimes {
  /// Inside of collectives, from coming to one to its end. The end is taken before anyone is told.
  int64_t communicationNs = 0;
  /// Processor time that the compute queue spent in computing commands while bytes of a collective
  /// were moved or reduced.
  int64_t hiddenNs = 0;
  /// The compute queue stood at the wait.
  int64_t exposedNs = 0;
  /// In rendezvous, before all peers had arrived. Not known of a device.
  int64_t peerWaitNs = 0;
};

/// Finds out, from the program alone, what may run at once: commands of the compute queue that
/// compute between a collective's start and its wait are marked, as are the collectives that have
/// none of them. These are exposed by form, whatever a clock says.
void findOverlap(RankProgram &program);

/// Gives commands of the communication queue that nothing runs beside to the thread that comes to
/// the wait for them, which would sleep meanwhile. The queue's order stays: where its own thread
/// and the compute queue's take turns, they hand over by events of their own.
void giveToWaiters(RankProgram &program);

struct Interval {
  int64_t beginNs = 0, endNs = 0;
};
/// How long `span` goes on while one of `busy` does; those are in order and apart. For devices,
/// whose clocks cannot be read while they compute.
int64_t coveredNs(Interval span, const std::vector<Interval> &busy);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_OVERLAP_H
