//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How the ranks of a group tell each other about messages. The ranks are on one host and see each
// other's memory: a message is read where it lies, and sending it sets a counter. The counters are
// in memory that all ranks share.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_FABRIC_H
#define BRAID_COLLECTIVE_FABRIC_H

#include "Transport.h"
#include "braid/Collective/Schedule.h"

namespace braid::runtime {

/// The memory of a piece of some rank.
struct PiecePlace {
  Space space;
  const std::byte *base; ///< of its part of the value; of the piece itself in scratch memory
  int64_t partByte;      ///< where the piece begins in its part; -1 in scratch memory
};

/// The messages from one rank to another since the beginning, in the order of their numbers. Each
/// counter has one writer.
struct DirectPair {
  explicit DirectPair(Sharing sharing) : sent(sharing), taken(sharing) {}
  Counter sent;                             ///< by the sender: they may be read
  Counter taken;                            ///< by the receiver: they are not read any more
  uint32_t sentBefore = 0, takenBefore = 0; ///< in earlier collectives; of the sender, the receiver
};

/// What a rank tells all others when it reaches a collective.
struct Arrival {
  explicit Arrival(Sharing sharing) : arrivals(sharing) {}
  Counter arrivals; ///< collectives that the rank has reached
  /// A rank that is one collective ahead does not overwrite what others still compare.
  const Collective *reached[2] = {nullptr, nullptr};
  /// What the rank waits for within the collective: a counter of a pair with this position, or -1,
  /// and the value that it must reach. For explanations only.
  std::atomic<int64_t> awaited{-1};
  std::atomic<bool> awaitsTaken{false};
  std::atomic<uint32_t> target{0};
  uint32_t count = 0;             ///< of `arrivals`, for the owner only
  const void **sources = nullptr; ///< room for an address of each rank, for the owner only
  PiecePlace *places = nullptr;   ///< the same for their places
};

struct DirectGroup : ProcessGroup {
  DirectGroup(std::vector<int64_t> members, Queue itsQueue, MemoryPool &pool)
      : arrivals(pool.create<Arrival>(members.size(), pool.sharing())),
        pairs(pool.create<DirectPair>(members.size() * members.size(), pool.sharing())) {
    ranks = std::move(members);
    queue = itsQueue;
    for (size_t i = 0; i < ranks.size(); ++i) {
      arrivals[i].sources = pool.create<const void *>(ranks.size());
      arrivals[i].places = pool.create<PiecePlace>(ranks.size());
    }
  }

  /// The ranks that have not reached the collective; when all have, the one that this one waits
  /// for.
  std::vector<int64_t> missing(int64_t position) const override {
    std::vector<int64_t> result;
    const Arrival &mine = arrivals[position];
    const uint32_t step = mine.arrivals.value();
    for (size_t i = 0; i < ranks.size(); ++i)
      if (!arrivals[i].arrivals.reached(step))
        result.push_back(ranks[i]);
    // The peer may have done its part since, and be elsewhere.
    if (const int64_t peer = mine.awaited.load(std::memory_order_relaxed);
        result.empty() && peer >= 0 &&
        !awaitedCounter(position, peer, mine.awaitsTaken.load(std::memory_order_relaxed))
             .reached(mine.target.load(std::memory_order_relaxed)))
      result.push_back(ranks[static_cast<size_t>(peer)]);
    return result;
  }
  /// Of the messages to the peer that it has taken, or that it has sent.
  Counter &awaitedCounter(int64_t position, int64_t peer, bool taken) const {
    return taken ? pair(position, peer).taken : pair(peer, position).sent;
  }
  DirectPair &pair(int64_t from, int64_t to) const {
    return pairs[static_cast<size_t>(from) * ranks.size() + static_cast<size_t>(to)];
  }
  /// Forgets the messages of a failed run.
  void reset();

  Arrival *arrivals; ///< by position, in the pool
  DirectPair *pairs; ///< by sender and receiver
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_FABRIC_H
