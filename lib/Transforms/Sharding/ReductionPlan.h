//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a partial value is reduced, given the forms that it will be wanted in.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
#define BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H

#include "braid/Transforms/ShardingUtils.h"

#include <optional>

namespace braid {

/// A reduction over axes of one kind, to all or scattered over a dimension. Without a kind, a local
/// slice of addends, so that there is less to reduce.
struct Reduction {
  std::optional<comm::ReduceKind> kind;
  AxisList axes;
  std::optional<int64_t> dim;
};

/// The steps of reduction, in order, with which a rank sends least until the value is there in all
/// forms that are `wanted`. The search is bounded: with more than a few partial axes it is the best
/// of those steps that it looked at, of which the first leave axes where they are wanted.
llvm::SmallVector<Reduction> planReductions(comm::MeshOp mesh, mlir::RankedTensorType whole,
                                            comm::ShardingAttr sharding,
                                            llvm::ArrayRef<comm::ShardingAttr> wanted);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
