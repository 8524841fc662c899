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
struct Seat {
  explicit Seat(Sharing sharing) : arrivals(sharing) {}
  Counter arrivals;
  const Collective *collective = nullptr;
  uint32_t step = 0;              ///< arrivals so far, used by the owner only
  const void **sources = nullptr; ///< room for an address of each rank, used by the owner only
};

/// An array in a pool.
struct Seats {
  Seat *first;
  size_t count;
  Seat &operator[](size_t i) const { return first[i]; }
  size_t size() const { return count; }
  Seat *begin() const { return first; }
  Seat *end() const { return first + count; }
};

struct InPlaceGroup : Group {
  InPlaceGroup(std::vector<int64_t> members, MemoryPool &pool)
      : seats{pool.create<Seat>(members.size(), pool.sharing()), members.size()} {
    ranks = std::move(members);
    for (Seat &seat : seats)
      seat.sources = pool.create<const void *>(ranks.size());
  }
  std::vector<int64_t> absent(int64_t position) const override {
    std::vector<int64_t> result;
    uint32_t mine = seats[static_cast<size_t>(position)].arrivals.value();
    for (size_t i = 0; i < seats.size(); ++i)
      if (!seats[i].arrivals.reached(mine))
        result.push_back(ranks[i]);
    return result;
  }
  /// Value v of the rank at a position, in that rank's memory.
  const CollectiveValue &value(size_t position, size_t v) const {
    return seats[position].collective->values[v];
  }
  Seats seats;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_INPLACEGROUP_H
