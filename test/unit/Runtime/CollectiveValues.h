//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values of collectives without a program, for tests of transports.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_COLLECTIVEVALUES_H
#define BRAID_TEST_UNIT_RUNTIME_COLLECTIVEVALUES_H

#include "braid/Base/StridedCopy.h"
#include "runtime/lib/Collective/CollectiveParts.h"

namespace braid::runtime::testing {

/// What a rank takes from each source, and the offsets of input and output.
struct Part {
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t input = 0, output = 0;
};

/// A contiguous value of `c`, of which each rank takes such a part.
inline CollectiveValue valueOf(const Collective &c, int64_t ranks, const Part &part) {
  CollectiveValue value;
  value.dtype = part.dtype;
  value.input = {part.input, part.shape, {}};
  value.output = {part.output, part.shape, {}};
  const auto dim = static_cast<size_t>(c.kind == CollectiveKind::allToAllV ? 0 : c.dim);
  const auto concat = static_cast<size_t>(c.kind == CollectiveKind::allToAll ? c.concatDim : dim);
  if (c.kind == CollectiveKind::reduceScatter || c.kind == CollectiveKind::allToAll ||
      c.kind == CollectiveKind::allToAllV)
    value.input.shape[dim] *= ranks;
  if (c.kind == CollectiveKind::allGather || c.kind == CollectiveKind::allToAll ||
      c.kind == CollectiveKind::allToAllV)
    value.output.shape[concat] *= ranks;
  for (StridedView *view : {&value.input, &value.output})
    view->strides = rowMajorStrides(view->shape);
  setParts(c, ranks, value);
  return value;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_COLLECTIVEVALUES_H
