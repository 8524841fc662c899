//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Places intervals of bytes that live for intervals of time, without IR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_ARENAPACKER_H
#define BRAID_LIB_CONVERSION_ARENAPACKER_H

#include "braid/Analysis/Lifetime.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

/// A need of `size` bytes of memory for a time.
struct ArenaItem {
  int64_t size;
  Lifetime life;
  int64_t offset = 0; ///< set by packArena
};

/// The sum of two such sizes fits 64 bits.
constexpr int64_t kMaxArenaBytes = int64_t(1) << 61;

/// Gives every item an offset such that items of which neither ends before the other do not
/// overlap: in the order of their sizes, each at the lowest offset that is free for all of its
/// life. Where the arena is then larger than what lives at once, other orders are tried, in which
/// the items at the arena's end come first, and the smallest arena is taken. Returns its size, or
/// nullopt above kMaxArenaBytes. Offsets and size are multiples of `alignment`.
std::optional<int64_t> packArena(std::vector<ArenaItem> &items, int64_t alignment);

} // namespace braid
#endif // BRAID_LIB_CONVERSION_ARENAPACKER_H
