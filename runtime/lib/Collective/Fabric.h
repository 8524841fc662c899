//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How the ranks of a group tell each other about messages. Ranks that see each other's memory read
// a message where it lies, and sending it sets a counter, in memory that both see. So do ranks that
// see only a part of each other's memory, to which the sender copies the message (Staging.h). To
// other ranks a message goes over a link.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_FABRIC_H
#define BRAID_COLLECTIVE_FABRIC_H

#include "Plan.h"
#include "Transport.h"
#include "runtime/lib/Sync/MemoryPool.h"

#include <atomic>

namespace braid::runtime {

class EngineRun; // EngineRun.h
class Staging;   // Staging.h

/// What a rank shows others of a collective, in memory that they read. The values and the signature
/// lie behind it.
struct SharedCollective {
  struct Value {
    uint64_t input, output; ///< offsets in symmetric memory
  };
  uint64_t operation = 0, identity = 0; ///< operationHash, identityHash
  uint32_t numValues = 0;
  const Value *values() const { return reinterpret_cast<const Value *>(this + 1); }
  const char *signature() const {
    return reinterpret_cast<const char *>(values() + numValues);
  } ///< ends with 0

  /// In memory of the pool, for its lifetime.
  static const SharedCollective *make(const Collective &c, MemoryPool &pool);
};

/// The messages from one rank to another since the beginning, in the order of their numbers. Each
/// counter has one writer.
struct DirectPair {
  explicit DirectPair(Sharing sharing) : sent(sharing), taken(sharing) {}
  Counter sent;  ///< by the sender: they may be read
  Counter taken; ///< by the receiver: they are not read any more
};

/// What a rank tells the others when it reaches a collective.
struct Arrival {
  explicit Arrival(Sharing sharing) : arrivals(sharing) {}
  Counter arrivals; ///< collectives of the group that the rank has reached
  /// By number of the collective; ones that are further by so many share a place. A rank may run
  /// ahead of one with which it exchanges nothing. It is not overtaken where they exchange
  /// messages, as at most kCollectivesInFlight are under way.
  static constexpr size_t kSlots = 2 * kCollectivesInFlight;
  struct Reached {
    std::atomic<const SharedCollective *> collective{nullptr};
    std::atomic<std::byte *> scratch{nullptr}; ///< of the run
    std::atomic<uint64_t> history{0};          ///< a hash of all collectives of the group so far
  } reached[kSlots];
  const Reached &at(uint32_t sequence) const { return reached[sequence % kSlots]; }

  // For explanations only: the oldest collective that the rank is in, by its number, and what it
  // waits for within it.
  enum What : uint8_t { nothing, sent, taken, link };
  std::atomic<uint32_t> oldest{1};
  std::atomic<uint8_t> what{nothing};
  std::atomic<int64_t> awaited{-1}; ///< a position
  std::atomic<uint32_t> target{0};  ///< of the pair's counter
};

/// A group as one rank uses it.
struct GroupMember {
  /// `itsArrival`: its own, for ever.
  GroupMember(size_t ranks, Arrival *itsArrival, MemoryPool &pool);
  GroupMember(const GroupMember &) = delete;
  GroupMember &operator=(const GroupMember &) = delete;
  ~GroupMember();
  /// Makes room for runs of a collective with a plan; not during a run.
  void reserve(const Collective &c, MemoryPool &pool);
  Arrival *arrival;
  std::vector<PairKind> pairs;      ///< by position; with itself it is direct
  std::unique_ptr<Staging> staging; ///< where pairs are staged
  // By position; null where messages go over a link. Set before the first run.
  std::vector<Arrival *> arrivals;
  std::vector<DirectPair *> to, from;
  /// What to add to an address of the other one's, by position.
  std::vector<std::ptrdiff_t> shift;
  /// Of the collectives so far. Whoever starts the ranks forgets them after a failure, so they are
  /// in shared memory.
  struct Progress {
    uint32_t sequence = 0; ///< of the last collective
    uint64_t history = 0;  ///< as in Arrival
    uint32_t reads = 0;    ///< ended, as in PeerReads
  } *progress;
  uint32_t *sends, *takes; ///< messages, by position
  PeerReads reads;         ///< set where members see each other's memory
  /// For as many collectives at once; they take turns.
  std::vector<std::unique_ptr<EngineRun>> runs;
  std::byte *scratch = nullptr; ///< of all runs
  size_t scratchBytes = 0;      ///< of one run
};

struct EngineGroup : ProcessGroup {
  EngineGroup(std::vector<int64_t> itsRanks, Queue itsQueue) {
    ranks = std::move(itsRanks);
    queue = itsQueue;
    members.resize(ranks.size());
  }
  /// The ranks that have not reached the oldest collective of the rank at this position; when all
  /// have, the one that it waits for.
  std::vector<int64_t> missing(int64_t position) const override;
  /// Forgets the messages of a failed run.
  void reset();
  /// By position; null for ranks of other processes.
  std::vector<std::unique_ptr<GroupMember>> members;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_FABRIC_H
