//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a dimension that an axis does not divide is padded: where its elements go. Without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_PADDING_H
#define BRAID_LIB_TRANSFORMS_PADDING_H

#include <cstdint>
#include <vector>

namespace braid {

/// Elements [source, source + size) of a dimension land at [dest, dest + size).
struct Segment {
  int64_t source, dest, size;
  bool operator==(const Segment &other) const {
    return source == other.source && dest == other.dest && size == other.size;
  }
};

/// A dimension after padding. What no segment covers is zero; an element may land in two places.
struct DimPadding {
  int64_t size = 0;
  std::vector<Segment> segments;
};

/// A dimension at the end of which zeros are added until `parts` divides it.
DimPadding padAtEnd(int64_t size, int64_t parts);

/// Grouped-query heads after padding: `groups` groups of `groupSize` query heads each. A group of
/// the model becomes `copies` groups with the same key and value head, which share its query heads.
struct HeadPadding {
  int64_t modelGroups, modelGroupSize;
  int64_t groups, groupSize, copies;

  /// Where query heads go, in elements of `headDim` each.
  DimPadding queries(int64_t headDim) const;
  /// Where key or value heads go.
  DimPadding keys(int64_t headDim) const;
};

/// The padding with the fewest heads, which is the fewest weights, with which every rank of `parts`
/// has whole groups, as many as every other.
HeadPadding padHeads(int64_t groups, int64_t groupSize, int64_t parts);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_PADDING_H
