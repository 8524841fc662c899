//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ArenaPacker.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace braid {

namespace {

/// Tries orders in which items are placed.
class Packer {
public:
  Packer(const std::vector<ArenaItem> &items, int64_t alignment)
      : items(items), alignment(alignment), offsets(items.size(), 0) {}

  int64_t aligned(int64_t bytes) const { return (bytes + alignment - 1) / alignment * alignment; }

  /// Places each item at the lowest offset that is free for all of its life. The arena's size, or
  /// nullopt above kMaxArenaBytes.
  std::optional<int64_t> place(const std::vector<size_t> &order) {
    placed.clear();
    int64_t total = 0;
    for (size_t index : order) {
      const ArenaItem &item = items[index];
      // Looks for the first gap between placed items that live at the same time.
      int64_t offset = 0;
      for (size_t other : placed) {
        const ArenaItem &taken = items[other];
        if (taken.size == 0 || taken.life.endsBefore(item.life) || item.life.endsBefore(taken.life))
          continue;
        if (item.size <= offsets[other] - offset)
          break;
        offset = std::max(offset, aligned(offsets[other] + taken.size));
      }
      if (item.size > kMaxArenaBytes - offset)
        return std::nullopt;
      offsets[index] = offset;
      placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                     [&](size_t a, size_t b) { return offsets[a] < offsets[b]; }),
                    index);
      total = std::max(total, aligned(offset + item.size));
    }
    return total;
  }

  /// Bytes that no plan is below: of items that have begun when one begins, and not ended. Each two
  /// of them live at the same time.
  int64_t bound() const {
    int64_t most = 0;
    for (const ArenaItem &item : items) {
      int64_t live = 0;
      for (const ArenaItem &other : items)
        if (!other.life.endsBefore(item.life) &&
            std::equal(other.life.first.begin(), other.life.first.end(), item.life.first.begin(),
                       std::less_equal<>()))
          live += aligned(other.size);
      most = std::max(most, live);
    }
    return most;
  }

  /// Moves the items that end at the arena's end to the front.
  void promoteHighest(std::vector<size_t> &order, int64_t total) const {
    std::vector<size_t> highest, others;
    for (size_t index : order)
      (items[index].size != 0 && aligned(offsets[index] + items[index].size) == total ? highest
                                                                                      : others)
          .push_back(index);
    order = std::move(highest);
    order.insert(order.end(), others.begin(), others.end());
  }

  const std::vector<ArenaItem> &items;
  int64_t alignment;
  std::vector<int64_t> offsets; ///< of the last order
  std::vector<size_t> placed;   ///< by offset
};

} // namespace

std::optional<int64_t> packArena(std::vector<ArenaItem> &items, int64_t alignment) {
  // Orders take time that grows with the square of the number of items.
  constexpr size_t kMaxOrders = 64, kMaxItemsReordered = 1024;
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  // Ties are in the given order: plans do not depend on the sort.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return items[a].size != items[b].size ? items[a].size > items[b].size : a < b;
  });
  Packer packer(items, alignment);
  std::optional<int64_t> best = packer.place(order);
  if (!best)
    return std::nullopt;
  std::vector<int64_t> offsets = packer.offsets;
  if (items.size() <= kMaxItemsReordered) {
    const int64_t bound = packer.bound();
    int64_t total = *best;
    for (size_t i = 1; i < kMaxOrders && *best > bound; ++i) {
      packer.promoteHighest(order, total);
      std::optional<int64_t> next = packer.place(order);
      if (!next)
        break;
      total = *next;
      if (total < *best) {
        best = total;
        offsets = packer.offsets;
      }
    }
  }
  for (size_t i = 0; i < items.size(); ++i)
    items[i].offset = offsets[i];
  return best;
}

} // namespace braid
