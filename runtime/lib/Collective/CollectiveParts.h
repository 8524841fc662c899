//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which part of the values of the ranks each rank takes in a collective.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_COLLECTIVEPARTS_H
#define BRAID_COLLECTIVE_COLLECTIVEPARTS_H

#include "Transport.h"
#include "braid/Collective/Schedule.h"

namespace braid::runtime {

/// Sets what follows from the views of a value of `c`: the runs of a part, and where the parts lie.
/// The program was verified (Program/ProgramCollectives.cpp), so the dimensions exist and divide.
void setParts(const Collective &c, int64_t ranks, CollectiveValue &value);

/// What the schedule of a collective depends on.
ScheduleRequest requestOf(const Collective &c);
/// And the schedule that a transport runs where no machine is known.
ScheduleRequest requestOf(const Collective &c, const std::string &transport);

/// The bytes of an all_reduce's value, in logical order, that the rank at `position` reduces: whole
/// lines of 64 elements.
struct ByteRange {
  int64_t begin, end;
};
ByteRange reducedRange(const CollectiveValue &value, int64_t position, int64_t ranks);

/// The position whose value this rank receives in a broadcast, a permute, or a reduce to another
/// rank; -1 where there is none and the output is zeros.
int64_t sourceOf(const Collective &c);

/// Blocks and rows of a part of an all_to_all_v's value; a count is a block of one row.
struct CountedBlocks {
  int64_t blocks, rows, rowBytes;
};
CountedBlocks blocksOf(const CollectiveValue &value, int64_t ranks);
/// The largest count that every value of an all_to_all_v has room for in a block.
int64_t countCapacity(const Collective &c);
/// The count of a block of an all_to_all_v; `counts` need not be aligned, `stride` is in elements.
int64_t countOfBlock(const std::byte *counts, DType dtype, int64_t stride, int64_t block);
/// An error for the first count of this rank's all_to_all_v, whose counts are at `counts`, that its
/// values have no room for.
Status checkOwnCounts(const Collective &c, const std::byte *counts);
/// The error for a count of `c` that is out of range.
Status countError(const Collective &c, int64_t count, int64_t block);
/// Whether this rank gives its value to another rank.
bool isSource(const Collective &c);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_COLLECTIVEPARTS_H
