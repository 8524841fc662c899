//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where the elements that a collective moves lie in the values of the ranks.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_COLLECTIVEEXTENTS_H
#define BRAID_COLLECTIVE_COLLECTIVEEXTENTS_H

#include "Transport.h"
#include "runtime/lib/Kernels/Tensor.h"

namespace braid::runtime {

/// Sets the type and the extents of a value of `c`, whose process group is known, from the input.
/// The program was verified (Program/ProgramCollectives.cpp), so the dimensions exist and divide.
void setExtents(const Collective &c, const Tensor &input, CollectiveValue &value);

/// Elements [begin, end) of an all_reduce that the rank at `position` reduces, in whole lines of 64
/// elements.
std::pair<int64_t, int64_t> reducedRange(int64_t elements, int64_t position, int64_t ranks);

/// The position whose value this rank receives in a broadcast, a permute, or a reduce to another
/// rank; -1 where there is none and the output is zeros.
int64_t sourceOf(const Collective &c);

/// Byte strides in a buffer that holds the chunks of an all_to_all side by side along one
/// dimension.
struct ChunkStrides {
  int64_t outer, first, between, chunk;
  /// Where row (o, f, b) of a chunk begins.
  int64_t at(int64_t index, int64_t o, int64_t f, int64_t b) const {
    return index * chunk + o * outer + f * first + b * between;
  }
};
/// The input's chunks lie along the dimension that is split, the output's along the one that is
/// concatenated.
struct AllToAllStrides {
  ChunkStrides input, output;
  int64_t rowBytes; ///< contiguous in both
};
AllToAllStrides allToAllStrides(const Collective &c, const CollectiveValue &value, int64_t ranks);
/// Calls `visit(o, f, b)` for the rows of a chunk.
template <typename Visit> void forEachRow(const CollectiveValue &value, Visit visit) {
  for (int64_t o = 0; o < value.outer; ++o)
    for (int64_t f = 0; f < value.first; ++f)
      for (int64_t b = 0; b < value.between; ++b)
        visit(o, f, b);
}

/// The largest count that every value of an all_to_all_v has room for in a block.
int64_t countCapacity(const Collective &c);
/// The error for a count of `c` that is out of range.
Status countError(const Collective &c, int64_t count, int64_t block);
/// Whether this rank gives its value to another rank.
bool isSource(const Collective &c);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_COLLECTIVEEXTENTS_H
