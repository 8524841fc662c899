//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Axes and their parts as the same thing: `tp` of 8 ranks is `tp:(1)2` and `tp:(2)4` one after the
// other.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_AXISPIECES_H
#define BRAID_LIB_TRANSFORMS_AXISPIECES_H

#include "braid/Transforms/ShardingUtils.h"

namespace braid {

/// Cuts axes where one of another value begins or ends, so that parts that they have in common are
/// equal attributes. Nothing changes where all axes are whole.
void refine(comm::MeshOp mesh, llvm::ArrayRef<DimAxes *> values);

/// Joins parts of an axis that follow each other.
AxisList joinPieces(comm::MeshOp mesh, llvm::ArrayRef<comm::AxisAttr> axes);
DimAxes joinPieces(comm::MeshOp mesh, const DimAxes &dims);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_AXISPIECES_H
