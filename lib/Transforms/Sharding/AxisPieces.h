//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Treats axes and sub-axes alike: `tp` of 8 ranks is `tp:(1)2` followed by `tp:(2)4`.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_AXISPIECES_H
#define BRAID_LIB_TRANSFORMS_AXISPIECES_H

#include "braid/Transforms/ShardingUtils.h"

namespace braid {

/// Splits axes where an axis of another value begins or ends, so that common sub-axes are equal
/// attributes. Whole axes stay as they are.
void refine(comm::MeshOp mesh, llvm::ArrayRef<DimAxes *> values);

/// Merges adjacent sub-axes of an axis.
AxisList joinPieces(comm::MeshOp mesh, llvm::ArrayRef<comm::AxisAttr> axes);
DimAxes joinPieces(comm::MeshOp mesh, const DimAxes &dims);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_AXISPIECES_H
