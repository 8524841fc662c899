//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Barriers of ranks that read each other's memory.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_INPLACEGROUP_H
#define BRAID_COLLECTIVE_INPLACEGROUP_H

#include "Transport.h"

namespace braid::runtime {

/// A rank's data for a barrier. It writes them before it arrives; they stay until all have left.
struct BarrierSlot {
  explicit BarrierSlot(Sharing sharing) : arrivals(sharing) {}
  Counter arrivals;
  const Collective *collective = nullptr;
  uint32_t step = 0;              ///< arrivals so far, used by the owner only
  const void **sources = nullptr; ///< room for an address of each rank, used by the owner only
};

struct InPlaceGroup : ProcessGroup {
  InPlaceGroup(std::vector<int64_t> members, Queue itsQueue, MemoryPool &pool)
      : slots(pool.create<BarrierSlot>(members.size(), pool.sharing())) {
    ranks = std::move(members);
    queue = itsQueue;
    for (size_t i = 0; i < ranks.size(); ++i)
      slots[i].sources = pool.create<const void *>(ranks.size());
  }
  std::vector<int64_t> missing(int64_t position) const override {
    std::vector<int64_t> result;
    uint32_t mine = slots[position].arrivals.value();
    for (size_t i = 0; i < ranks.size(); ++i)
      if (!slots[i].arrivals.reached(mine))
        result.push_back(ranks[i]);
    return result;
  }
  /// Value v of the rank at a position, in that rank's memory.
  const CollectiveValue &value(size_t position, size_t v) const {
    return slots[position].collective->values[v];
  }
  BarrierSlot *slots; ///< by position, in the pool
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_INPLACEGROUP_H
