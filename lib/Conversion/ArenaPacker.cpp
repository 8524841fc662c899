//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ArenaPacker.h"

#include <algorithm>
#include <numeric>

std::optional<int64_t> braid::packArena(std::vector<ArenaItem> &items, int64_t alignment) {
  auto aligned = [&](int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  std::vector<size_t> bySize(items.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  // Ties are in the given order: plans do not depend on the sort.
  std::sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return items[a].size != items[b].size ? items[a].size > items[b].size : a < b;
  });

  std::vector<size_t> placed; // by offset
  int64_t total = 0;
  for (size_t index : bySize) {
    ArenaItem &item = items[index];
    // Looks for the first gap between placed items that live at the same time.
    int64_t offset = 0;
    for (size_t other : placed) {
      const ArenaItem &taken = items[other];
      if (taken.size == 0 || taken.life.endsBefore(item.life) || item.life.endsBefore(taken.life))
        continue;
      if (item.size <= taken.offset - offset)
        break;
      offset = std::max(offset, aligned(taken.offset + taken.size));
    }
    if (item.size > kMaxArenaBytes - offset)
      return std::nullopt;
    item.offset = offset;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), index,
                         [&](size_t a, size_t b) { return items[a].offset < items[b].offset; }),
        index);
    total = std::max(total, aligned(offset + item.size));
  }
  return total;
}
