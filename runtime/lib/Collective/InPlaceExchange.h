//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a rank copies and reduces from its peers' memory between the barriers of a collective.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_INPLACEEXCHANGE_H
#define BRAID_COLLECTIVE_INPLACEEXCHANGE_H

#include "CollectiveParts.h"
#include "InPlaceGroup.h"
#include "runtime/lib/Kernels/VectorKernels.h"

namespace braid::runtime {

/// What one rank does in a collective.
class Exchange {
public:
  Exchange(const Collective &collective, const SymmetricHeap &heap, const VectorKernels &kernels)
      : c(collective), group(*static_cast<const InPlaceGroup *>(collective.group)), heap(heap),
        kernels(kernels), ranks(static_cast<int64_t>(group.ranks.size())) {}

  /// An error for the first count of an all_to_all_v beyond the capacity of its values.
  Status checkCounts() const;
  /// Runs between the first and the last barrier; for an all_reduce the first of two steps.
  void run() const;
  /// The second step of an all_reduce: copies the ranges that the others have reduced.
  void copyOthers() const;

private:
  void run(size_t v) const;
  void reduceMine(size_t v) const;
  void copyOthers(size_t v) const;
  /// Takes the part of each rank.
  void takeAll(size_t v) const;
  void takeCounted(size_t v) const;
  /// Copies the value of the rank at a position; writes zeros for a position below 0.
  void take(size_t v, int64_t source) const;

  /// Reduces the bytes [begin, end) of the parts that begin at `inputByte` of each rank's input.
  void reduce(size_t v, int64_t inputByte, ByteRange range) const;
  const std::byte *inputOf(int64_t position, size_t v) const {
    auto i = static_cast<size_t>(position);
    return heap.peer(group.ranks[i], group.value(i, v).input.offset);
  }
  std::byte *outputOf(int64_t position, size_t v) const {
    auto i = static_cast<size_t>(position);
    return heap.peer(group.ranks[i], group.value(i, v).output.offset);
  }
  std::byte *output(size_t v) const { return heap.peer(heap.rank, c.values[v].output.offset); }

  const Collective &c;
  const InPlaceGroup &group;
  const SymmetricHeap &heap;
  const VectorKernels &kernels;
  int64_t ranks;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_INPLACEEXCHANGE_H
