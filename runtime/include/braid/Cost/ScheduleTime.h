//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time of a collective on a topology: its schedules (braid/Collective/Schedule.h), executed
// event by event on paper.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_SCHEDULETIME_H
#define BRAID_COST_SCHEDULETIME_H

#include "braid/Collective/Schedule.h"
#include "braid/Cost/Machine.h"

#include <utility>

namespace braid::cost {

/// What ranks and the links between them take.
struct Network {
  // Within a host, and what a rank itself does. As in Transport; no points: no time.
  double startSeconds = 0, messageSeconds = 0;
  std::vector<TransferPoint> transfers;
  /// Between hosts: a host has one such card, whose bandwidth in each direction all of its ranks
  /// share.
  Link between;
};

/// A transport of a machine between `ranks` ranks of one host.
Result<Network> networkOf(const Machine &machine, const std::string &transport, int64_t ranks);

struct CollectiveTime {
  double seconds = 0;              ///< until the last rank is done, all having begun together
  std::vector<double> rankSeconds; ///< by position
};

/// Steps run as soon as those that they are after are done and their messages are there; a rank
/// does one at a time, the first of its schedule first. A send takes its rank no time. Between
/// ranks of a host a message is there `messageSeconds` later, and the rank that takes it reads it
/// in place. Between hosts the messages from one rank to another follow each other, at a rate that
/// is the smaller of equal shares of both cards, and each arrives the latency later in the memory
/// where it is read. To receive from this host, to copy and to clear is to copy; a sum of s sources
/// is s - 1 reductions. Both take the time per byte of a transfer of F bytes, of which the rank's
/// input and output together have n + 1, as in an all_gather of F bytes from each of n ranks.
Result<CollectiveTime> timeOf(const runtime::ScheduleRequest &request, const Network &network);

/// The algorithm among these that takes the least time; the first one among equals. Those that do
/// not apply to the request are passed over; an error if none applies.
Result<runtime::ScheduleAlgorithm>
fastestAlgorithm(const runtime::ScheduleRequest &request, const Network &network,
                 const std::vector<runtime::ScheduleAlgorithm> &among);

} // namespace braid::cost
#endif // BRAID_COST_SCHEDULETIME_H
