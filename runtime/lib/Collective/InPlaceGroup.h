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

/// A rank's data for a barrier; written before it arrives, unchanged until all have left.
struct BarrierSlot {
  explicit BarrierSlot(Sharing sharing) : arrivals(sharing) {}
  Counter arrivals;
  const Collective *collective = nullptr;
  uint32_t step = 0;              ///< arrivals so far, used by the owner only
  const void **sources = nullptr; ///< room for an address of each rank, used by the owner only
};

/// An array in a pool.
struct BarrierSlots {
  BarrierSlot *first;
  size_t count;
  BarrierSlot &operator[](size_t i) const { return first[i]; }
  size_t size() const { return count; }
  BarrierSlot *begin() const { return first; }
  BarrierSlot *end() const { return first + count; }
};

struct InPlaceGroup : Group {
  InPlaceGroup(std::vector<int64_t> members, MemoryPool &pool)
      : slots{pool.create<BarrierSlot>(members.size(), pool.sharing()), members.size()} {
    ranks = std::move(members);
    for (BarrierSlot &slot : slots)
      slot.sources = pool.create<const void *>(ranks.size());
  }
  std::vector<int64_t> missing(int64_t position) const override {
    std::vector<int64_t> result;
    uint32_t mine = slots[static_cast<size_t>(position)].arrivals.value();
    for (size_t i = 0; i < slots.size(); ++i)
      if (!slots[i].arrivals.reached(mine))
        result.push_back(ranks[i]);
    return result;
  }
  /// Value v of the rank at a position, in that rank's memory.
  const CollectiveValue &value(size_t position, size_t v) const {
    return slots[position].collective->values[v];
  }
  BarrierSlots slots;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_INPLACEGROUP_H
