//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Padding of a dimension that an axis does not divide: the new positions of its elements. Without
// MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_PADDING_H
#define BRAID_LIB_TRANSFORMS_PADDING_H

#include <cstdint>
#include <vector>

namespace braid {

/// Moves elements [source, source + size) of a dimension to [dest, dest + size).
struct Segment {
  int64_t source, dest, size;
  bool operator==(const Segment &other) const {
    return source == other.source && dest == other.dest && size == other.size;
  }
};

/// A dimension after padding. Positions that no segment covers are zero; segments may copy an
/// element twice.
struct DimPadding {
  int64_t size = 0;
  std::vector<Segment> segments;
};

/// A dimension padded with zeros at the end until `ranks` divides it.
DimPadding padAtEnd(int64_t size, int64_t ranks);

/// Grouped-query heads after padding: `groups` groups of `groupSize` query heads each. A group of
/// the model becomes `copies` groups with the same key and value head, which share its query heads.
struct HeadPadding {
  int64_t modelGroups, modelGroupSize;
  int64_t groups, groupSize, copies;

  /// The positions of query heads, in elements of `headDim` each.
  DimPadding queries(int64_t headDim) const;
  /// The positions of key or value heads.
  DimPadding keys(int64_t headDim) const;
};

/// The padding with the fewest heads, and so the fewest weights, that gives each of `ranks` ranks
/// the same number of complete groups.
HeadPadding padHeads(int64_t groups, int64_t groupSize, int64_t ranks);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_PADDING_H
