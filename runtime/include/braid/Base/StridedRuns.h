//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two strided views of one shape, walked together as runs of bytes that are contiguous in both.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_STRIDEDRUNS_H
#define BRAID_BASE_STRIDEDRUNS_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::runtime {

constexpr size_t kMaxRunLoops = 8;

/// Runs under a loop nest, in the logical (row-major) order of the elements. Where both views are
/// contiguous there is one run and no loop.
struct StridedRuns {
  int64_t runBytes = 0;                                    ///< 0: no elements
  std::vector<int64_t> counts, sourceStrides, destStrides; ///< outermost first, strides in bytes

  int64_t bytes() const {
    int64_t product = runBytes;
    for (int64_t count : counts)
      product *= count;
    return product;
  }
};

/// Strides in elements. Dimensions that continue each other in both views become one.
StridedRuns runsOf(const std::vector<int64_t> &shape, int64_t elementBytes,
                   const std::vector<int64_t> &sourceStrides,
                   const std::vector<int64_t> &destStrides);

/// Visits the bytes [begin, end) of the logical order: visit(source, dest, bytes) with the offsets
/// of a run, or of a part of one, in both views.
template <typename Visit>
void forEachRun(const StridedRuns &runs, int64_t begin, int64_t end, Visit visit) {
  if (begin >= end)
    return;
  if (runs.counts.empty())
    return visit(begin, begin, end - begin);
  std::array<int64_t, kMaxRunLoops> index{};
  int64_t source = 0, dest = 0, rest = begin / runs.runBytes, skip = begin % runs.runBytes;
  for (size_t d = runs.counts.size(); d-- > 0; rest /= runs.counts[d]) {
    index[d] = rest % runs.counts[d];
    source += index[d] * runs.sourceStrides[d];
    dest += index[d] * runs.destStrides[d];
  }
  while (begin < end) {
    const int64_t bytes = std::min(runs.runBytes - skip, end - begin);
    visit(source + skip, dest + skip, bytes);
    begin += bytes;
    skip = 0;
    for (size_t d = runs.counts.size(); d-- > 0;) {
      source += runs.sourceStrides[d];
      dest += runs.destStrides[d];
      if (++index[d] < runs.counts[d])
        break;
      source -= runs.counts[d] * runs.sourceStrides[d];
      dest -= runs.counts[d] * runs.destStrides[d];
      index[d] = 0;
    }
  }
}
template <typename Visit> void forEachRun(const StridedRuns &runs, Visit visit) {
  forEachRun(runs, 0, runs.bytes(), visit);
}

/// Copies the bytes [begin, end) of the logical order. In a group of one rank both may be the same
/// memory.
void copyRuns(const StridedRuns &runs, const std::byte *source, std::byte *dest, int64_t begin,
              int64_t end);
inline void copyRuns(const StridedRuns &runs, const std::byte *source, std::byte *dest) {
  copyRuns(runs, source, dest, 0, runs.bytes());
}
/// Writes zeros to these bytes of the destination.
void clearRuns(const StridedRuns &runs, std::byte *dest, int64_t begin, int64_t end);

} // namespace braid::runtime
#endif // BRAID_BASE_STRIDEDRUNS_H
