//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the processes of a job give each other beside collectives, over a link of its own: results
// and reports for rank 0, inputs from rank 0, and how their clocks differ.
//
// All processes call the same functions in the same order. Each fails when a process is lost, or
// when nothing comes of one for the time limit.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_PROCESSEXCHANGE_H
#define BRAID_NET_PROCESSEXCHANGE_H

#include "Control.h"
#include "Link.h"
#include "braid/Runtime/Communicator.h"

#include <memory>
#include <vector>

namespace braid::runtime::net {

/// What a round trip tells of the other clock: a message left this process at `wentNs`, came to the
/// other one at `cameThereNs` of its clock, left it at `wentThereNs`, and was back at `backNs`.
ClockMap::Reading readingOf(int64_t wentNs, int64_t cameThereNs, int64_t wentThereNs,
                            int64_t backNs);

class ProcessExchange {
public:
  /// Over a link that is connected to all members. `control` tells of lost processes; a limit of 0
  /// seconds is none.
  ProcessExchange(std::unique_ptr<Link> link, const Control &control, double limitSeconds);
  ProcessExchange(const ProcessExchange &) = delete;
  ProcessExchange &operator=(const ProcessExchange &) = delete;
  ~ProcessExchange();

  // As of Communicator.
  Result<std::vector<Contribution>> gather(std::vector<std::byte> mine,
                                           const std::vector<size_t> &bytes);
  Result<std::vector<std::byte>> scatter(const Communicator::MakePart &make,
                                         const std::vector<size_t> &bytes);
  Status broadcast(void *data, size_t bytes);
  Status collect(const Communicator::NextPiece &next, const Communicator::TakePiece &take);
  Result<ClockMap> measureClock();

  /// Waits for the others, as what was sent to a process that has not taken it is lost when its
  /// sender ends. Of processes that are lost, Control tells.
  void leave();
  /// Something has failed: processes are at different calls.
  bool isBroken() const { return broken; }
  /// Ends without a word to the others, of which some are lost.
  void giveUp() { link->giveUp(); }

private:
  struct Message;
  class Messages;
  /// The number of the messages of one call; rank 0 and its peers count alike.
  uint64_t nextTag() { return ++calls << 8; }
  bool isFirst() const { return link->rank() == 0; }
  int64_t size() const { return link->ranks(); }
  Status serveClock(uint64_t tag);
  Result<ClockMap::Reading> readClock(uint64_t tag);
  Status takePieces(uint64_t tag, int64_t first, int64_t last, std::vector<bool> &ended,
                    const Communicator::TakePiece &take, Status &failure);
  Status givePieces(uint64_t tag, const Communicator::NextPiece &next);

  std::unique_ptr<Link> link;
  const Control &control;
  const double limitSeconds;
  uint64_t calls = 0;
  ClockMap clock;
  bool broken = false;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_PROCESSEXCHANGE_H
