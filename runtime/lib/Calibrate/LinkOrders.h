//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the processes of a job do together, one on each host, so that rank 0 can measure the links
// between them: messages of several patterns, and copies of memory beside them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_LINKORDERS_H
#define BRAID_CALIBRATE_LINKORDERS_H

#include "braid/Base/Status.h"
#include "runtime/lib/Net/Link.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace braid::runtime {

/// What all ranks do next. It travels as it is.
struct LinkOrder {
  static constexpr size_t kMostBytes = size_t(64) << 20;
  static constexpr uint64_t kMostExchanges = 200, kRounds = 20;

  enum What : uint64_t {
    pingPong,
    exchanges,
    stream,
    bothWays,
    toAll,
    copies,         ///< memory, without a message
    bothWaysBeside, ///< bothWays while memory is copied
    rounds,         ///< memory is copied, then messages go both ways, again and again
    end
  } what = end;
  uint64_t bytes = 0;       ///< of each message
  uint64_t sleeps = 0;      ///< whether who waits sleeps, so that processor time is that of moving
  uint64_t nanoseconds = 0; ///< of copies; before exchanges, and between rounds
  uint64_t copied = 0;      ///< in each of the rounds
  uint64_t count = 0;       ///< of exchanges
};

/// A rank's part in them.
class LinkOrders {
public:
  LinkOrders(net::Link &link, double limitSeconds)
      : link(link), limitNs(static_cast<int64_t>(limitSeconds * 1e9)), sent(LinkOrder::kMostBytes),
        received(LinkOrder::kMostBytes) {}

  /// Rank 0: has all ranks perform it. The seconds that it takes; of exchanges and copies those of
  /// one, and of rounds the median.
  Result<double> give(LinkOrder order);
  /// Rank 0: there are no more.
  Status end();
  /// The others: does as rank 0 says until the end.
  Status follow();

  int64_t ranks() const { return link.ranks(); }
  /// Seconds of a processor in the last order that sent, of rank 0 or 1, the longer.
  double processorSeconds() const { return processorOfMoves; }
  /// Seconds of a copy in the last order that copied, of rank 0 or 1, the longer.
  double copySeconds() const { return secondsOfCopies; }

private:
  /// A message, in chunks that are posted at once.
  struct Message {
    std::vector<std::unique_ptr<net::Transfer>> chunks;
    int64_t bytes = 0;
  };
  void post(Message &message, bool sends, int64_t peer, size_t bytes);
  Status wait(const Message &message);
  Status finish(net::Transfer &transfer);
  /// A value to a rank, or from it.
  template <typename T> Status giveValue(int64_t peer, uint64_t tag, T value);
  template <typename T> Result<T> takeValue(int64_t peer, uint64_t tag);
  /// The longest of what the first `count` ranks have, on rank 0; the others give theirs.
  Result<double> longest(double own, int64_t count);
  std::byte *memoryToCopy();
  /// Begins together, and returns the seconds until all that take part are done: of rank 0.
  Result<double> perform(const LinkOrder &order);
  /// Seconds of each of several exchanges between the first two ranks.
  Result<double> exchange(const LinkOrder &order);
  /// Seconds of a copy of memory on the first two ranks at once.
  Result<double> copy(const LinkOrder &order);
  /// Rank 0: seconds of the exchange of a round, the median.
  Result<double> rounds(const LinkOrder &order);
  /// A message of each of the first two ranks to the other one.
  Status swap(size_t bytes);

  net::Link &link;
  const int64_t limitNs;
  std::vector<std::byte> sent, received, copied;
  double processorOfMoves = 0, secondsOfCopies = 0;
};

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_LINKORDERS_H
