//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Memory of the ranks of a host that were started separately: each has its symmetric memory, and
// what its groups tell others, in an arena that all of them map.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_SHAREDARENAS_H
#define BRAID_COLLECTIVE_SHAREDARENAS_H

#include "Fabric.h"
#include "MessageSlots.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <functional>

namespace braid::runtime {

class SharedArenas {
public:
  /// Makes this rank's arena of so many bytes, of which `needed` must be there, and maps those of
  /// all ranks of the host, in their order (Net/ArenaExchange.h).
  using Exchange = std::function<Result<std::vector<HostMemory>>(size_t bytes, size_t needed)>;

  /// `hostRanks`: those of this host, with this one, of `numRanks`. For `heapBytes` of symmetric
  /// memory of this rank.
  static Result<std::unique_ptr<SharedArenas>> create(const Exchange &exchange,
                                                      const std::vector<int64_t> &hostRanks,
                                                      int64_t rank, int64_t numRanks,
                                                      size_t heapBytes);
  /// By rank: the symmetric memory; null for ranks of other hosts.
  std::byte *const *heaps() const { return bases.data(); }
  /// Memory that the others see, for records of collectives and for scratch.
  MemoryPool &pool() { return *records; }
  /// The member of this rank, at this position; its pairs are set by connect().
  std::unique_ptr<GroupMember> makeMember(const EngineGroup &group, size_t position);
  /// Makes the counters and the memory of messages that this rank sends to another one of the host,
  /// in the slot of this number among those of the tag. False where there is no room.
  bool offer(int64_t tag, size_t number, MessageSlot &slot);
  /// Has connect() find what the sender of such messages has offered. The slot stays without
  /// counters where it has offered nothing.
  void await(int64_t tag, size_t number, MessageSlot &slot);
  /// Finds what the others have made for the same groups. Called by all ranks of the host when
  /// their groups are made; errors name the rank that has not done so within the limit, and one
  /// that does not have a group.
  Status connect(double timeLimitSeconds);
  /// Allocates the pages of the symmetric memory and of messages.
  Status touch() const;

private:
  struct Header;
  struct Entry;
  /// Messages that a rank sends.
  struct SlotEntry {
    int64_t target = 0, tag = 0;
    size_t number = 0;
    MessageSlot slot;
  };
  struct Awaited {
    int64_t tag;
    size_t number;
    MessageSlot *slot;
  };
  struct Made {
    const EngineGroup *group;
    GroupMember *member;
    size_t position;
    DirectPair *pairs; ///< from this rank to each position
  };
  SharedArenas() = default;
  Header &headerOf(size_t hostRank) const;

  std::vector<int64_t> hostRanks;
  size_t self = 0; ///< in hostRanks
  size_t heapBytes = 0;
  std::vector<HostMemory> arenas; ///< in the order of hostRanks
  std::vector<std::byte *> bases;
  std::unique_ptr<MemoryPool> records;
  std::vector<Made> groups;
  std::vector<SlotEntry> offered;
  std::vector<Awaited> awaited;
  uint32_t version = 0; ///< of the directory
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_SHAREDARENAS_H
