//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans the reduction of a partial value, given the layouts that its users want.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
#define BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H

#include "Reshard.h"

#include "dialects/Comm/IR/Comm.h"

namespace braid {

/// An axis over which a value is not reduced yet.
struct PartialAxis {
  SubAxis axis;
  comm::ReduceKind kind;
};

/// A reduction over axes of one kind: an all-reduce, or a scatter over a dimension. Without a kind,
/// a local slice of partial sums, which leaves less to reduce.
struct Reduction {
  std::optional<comm::ReduceKind> kind;
  SubAxes axes;
  std::optional<size_t> dim;
};

/// The reduction steps, in order, with which a rank sends the fewest bytes until all `wanted`
/// layouts exist. The search is bounded: with more than a few partial axes this is the best of the
/// visited sequences, which begin with those that leave axes where they are wanted.
std::vector<Reduction> planReductions(const Resharder &resharder, const Layout &layout,
                                      const std::vector<PartialAxis> &partials,
                                      const std::vector<Layout> &wanted);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
