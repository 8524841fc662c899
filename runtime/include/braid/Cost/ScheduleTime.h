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

#include <string>
#include <utility>
#include <vector>

namespace braid::cost {

/// A collective of one value that was measured; its time by the bytes of input and output.
struct MeasuredCollective {
  runtime::CollectiveKind kind = runtime::CollectiveKind::allReduce;
  std::vector<std::pair<double, double>> seconds;
};

/// As in Transport: by the bytes between, the seconds by the bytes that a rank writes.
using ColdTimes = std::vector<std::pair<double, std::vector<std::pair<double, double>>>>;

/// What ranks and the links between them take.
struct Network {
  // Within a host, and what a rank itself does. As in Transport; no points: no time.
  double startSeconds = 0, messageSeconds = 0;
  std::vector<TransferPoint> transfers;
  int64_t cores = 0; ///< of a host; 0: each rank has its own
  /// Of the transport, with its number of ranks.
  std::string transport;
  std::vector<MeasuredCollective> measured;
  ColdTimes cold;
  /// Between hosts: a host has one such card, whose bandwidth in each direction all of its ranks
  /// share.
  Link between;
  ColdTimes coldBetween; ///< its
};

/// What `ranks` ranks in these places have on a machine: of a processor, the transport for as many
/// ranks as its fullest host has, and the first link between hosts; of a GPU, NVLink and the
/// network cards.
Result<Network> networkOf(const Machine &machine, const std::string &transport, int64_t ranks,
                          const runtime::Topology &topology = {});

struct CollectiveTime {
  double seconds = 0;              ///< until the last rank is done, all having begun together
  std::vector<double> rankSeconds; ///< by position
  /// By position: what the rank's host sends to others.
  std::vector<double> hostBytesSent;
};

/// A rank does one step at a time, in the order of its schedule; where ranks are on several hosts,
/// the first one that can be done. A send takes its rank no time.
///
/// Within a host a message is there `messageSeconds` later, and the rank that takes it reads it in
/// place. To copy and to clear own bytes takes the time of copies, to receive that of receives, a
/// sum of s sources that of s - 1 reductions; and bytes of the rank's own memory that it touches
/// and a peer reads take the time of shared bytes besides. All of them are those per byte of
/// the TransferPoint with as many bytes as the rank's input and output have. Of a host that has
/// more ranks than cores, a core serves one rank until that must wait, and another one
/// `messageSeconds` later; a message takes no time of its own then. The others have done what
/// needs no message when the last rank comes, and the time is the mean over which one that is.
///
/// Between hosts the messages from one rank to another follow each other, at a rate that is the
/// smaller of equal shares of both cards, and each arrives the latency later in the memory where it
/// is read; that of an exchange (exchangeLatency of braid/Cost/LinkBurst.h) if its receiver sends
/// to other hosts too. What links pass at once (the same header) is left out.
///
/// Of ranks on one host whose kind of collective was measured, all times are as many times as long
/// as those measured are, for a collective of one value with as many bytes of input and output and
/// the schedule that the transport runs where no machine is known (chooseSchedule).
Result<CollectiveTime> timeOf(const runtime::ScheduleRequest &request, const Network &network);
/// By the steps alone.
Result<CollectiveTime> timeOfSteps(const runtime::ScheduleRequest &request, const Network &network);

/// A collective whose messages are read by the commands behind it, where the senders have them
/// (runtime/lib/Executor/ReadInPlace.h): no bytes move, and it takes the time of its shortest
/// messages.
runtime::ScheduleRequest readInPlace(runtime::ScheduleRequest request);

/// How much longer the collective takes on each rank, if the ranks have used so many other bytes
/// since they last used what they write: on their host, and between hosts. Between the measured
/// figures it is linear in both. Fewer bytes than were measured take as long as the least, values
/// in place too: the commands of a collective and its flags are no longer in caches either.
double coldSeconds(const runtime::ScheduleRequest &request, const Network &network,
                   double betweenBytes);

} // namespace braid::cost
#endif // BRAID_COST_SCHEDULETIME_H
