//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of ranks that do not see each other's memory: every step of a schedule that crosses
// ranks is a message over a link (Net/Link.h). A process has one rank.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_MESSAGETRANSPORT_H
#define BRAID_COLLECTIVE_MESSAGETRANSPORT_H

#include "SharedArenas.h"
#include "Transport.h"
#include "runtime/lib/Net/Link.h"

#include <functional>

namespace braid::runtime {

/// What a transport of messages uses; it must outlive the transport.
struct MessageLinks {
  /// For the collectives of each communication queue, in their order; the queue's thread moves its
  /// messages itself.
  std::vector<net::Link *> queues;
  /// For sends and recvs, whose messages a thread of the transport moves, whatever the queues do.
  net::Link *pointToPoint = nullptr;
  /// Tells models apart that use the same links: messages of others are not taken.
  uint8_t model = 0;
  /// By rank: a number of its host, and its NUMA node there. Empty: each rank is on a host of its
  /// own.
  std::vector<RankPlace> places;
  /// Shares memory with the ranks of this host; where it is empty they have links only.
  SharedArenas::Exchange shareArenas;
  /// By whose times schedules are chosen, the same in all processes; may be null.
  std::shared_ptr<const cost::Machine> machine;
  double timeLimitSeconds = 60; ///< for ranks of this host to prepare; 0: none
  /// Called when a run begins, and when it has ended.
  std::function<void(RunControl &)> beginRun;
  std::function<void(bool failed)> endRun;
  /// The error for a lost peer, with where it was.
  std::function<Status(int64_t peer, const Status &error)> describeLoss;
};

/// The transport of the rank of `links`. Sums are in rank order, so results have the bits that
/// ranks of one host get. After a run that has failed, no run succeeds: ranks are at different
/// messages then.
std::unique_ptr<Transport> createMessageTransport(MessageLinks links,
                                                  int64_t messagesInFlight = kMessagesInFlight);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_MESSAGETRANSPORT_H
