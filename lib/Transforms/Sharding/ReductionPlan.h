//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans the reduction of a partial value, given the forms that its users want.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
#define BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H

#include "braid/Transforms/ShardingUtils.h"

#include <optional>

namespace braid {

/// A reduction over axes of one kind: an all-reduce, or a scatter over a dimension. Without a kind,
/// a local slice of partial sums, which leaves less to reduce.
struct Reduction {
  std::optional<comm::ReduceKind> kind;
  AxisList axes;
  std::optional<int64_t> dim;
};

/// The reduction steps, in order, with which a rank sends the fewest bytes until all `wanted` forms
/// exist. The search is bounded: with more than a few partial axes this is the best of the visited
/// sequences, which begin with those that leave axes where they are wanted.
llvm::SmallVector<Reduction> planReductions(comm::MeshOp mesh, mlir::RankedTensorType whole,
                                            comm::ShardingAttr sharding,
                                            llvm::ArrayRef<comm::ShardingAttr> wanted);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
