//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The extents of values for collectives of each kind.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_COLLECTIVEEXTENTS_H
#define BRAID_COLLECTIVE_COLLECTIVEEXTENTS_H

#include "Transport.h"
#include "runtime/lib/Kernels/Tensor.h"

namespace braid::runtime {

/// Sets the type and extents of a value of `c`, whose group is known, from its memory before and
/// after; `isLast` among the values. Error when the two do not fit together.
Status setExtents(const Collective &c, const Tensor &input, const Tensor &output, bool isLast,
                  CollectiveValue &value);
/// How many rows there is room for in a block of every value of an all_to_all_v.
int64_t countedRows(const Collective &c);
/// The error for a count of `c` that is out of range.
Status noRoom(const Collective &c, int64_t count, int64_t block);
/// This rank gives its value to another rank.
bool isSource(const Collective &c);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_COLLECTIVEEXTENTS_H
