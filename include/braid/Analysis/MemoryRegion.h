//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The bytes that a view of a buffer covers, and whether views overlap or cover each other.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_MEMORYREGION_H
#define BRAID_ANALYSIS_MEMORYREGION_H

#include "dialects/RT/IR/RT.h"

namespace braid {

/// Bytes of a buffer or an argument of a procedure: blocks of `length` bytes, the first one at
/// `begin`, at all combinations of the distances in `steps`.
struct MemoryRegion {
  mlir::Value root;
  int64_t begin = 0, length = 0;
  struct Step {
    int64_t count, bytes;
    bool operator==(const Step &o) const { return count == o.count && bytes == o.bytes; }
  };
  llvm::SmallVector<Step, 2> steps; ///< outermost first
  /// On the rank at position p of `group`, the region begins ((p + shift) mod ranks) * bytes later.
  struct ByRank {
    comm::GroupAttr group;
    int64_t shift, ranks, bytes;
    bool operator==(const ByRank &o) const {
      return group == o.group && shift == o.shift && ranks == o.ranks && bytes == o.bytes;
    }
  };
  llvm::SmallVector<ByRank, 1> byRank;

  bool operator==(const MemoryRegion &o) const {
    return root == o.root && begin == o.begin && length == o.length && steps == o.steps &&
           byRank == o.byRank;
  }
};

/// The region of a view, in its root.
MemoryRegion regionOf(mlir::Value memory);
/// The region of an argument's view in a callee, in the memory that the caller passes.
MemoryRegion inCaller(const MemoryRegion &inArgument, const MemoryRegion &passed);

/// Whether two regions may share a byte on some rank. Exact, except where a region has more than
/// 2^20 blocks or its place depends on more than 2^12 positions: these overlap what is near them.
bool mayOverlap(const MemoryRegion &a, const MemoryRegion &b);
/// Whether the regions together cover all bytes of `whole`, on every rank.
bool cover(llvm::ArrayRef<const MemoryRegion *> parts, const MemoryRegion &whole);

} // namespace braid
#endif // BRAID_ANALYSIS_MEMORYREGION_H
