//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Converts between sharding attributes and the layouts of the resharding search, which treat axes
// and sub-axes alike.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_MESHLAYOUTS_H
#define BRAID_LIB_TRANSFORMS_MESHLAYOUTS_H

#include "Reshard.h"

#include "braid/Transforms/ShardingUtils.h"

namespace braid {

class MeshLayouts {
public:
  explicit MeshLayouts(comm::MeshOp mesh) : mesh(mesh) {}

  SubAxis subAxis(comm::AxisAttr axis);
  SubAxes subAxes(llvm::ArrayRef<comm::AxisAttr> axes);
  /// The dimensions of a sharding without its partial axes.
  Layout layout(comm::ShardingAttr sharding);
  comm::AxisAttr axis(const SubAxis &part);
  /// Merges adjacent sub-axes of an axis.
  AxisList axes(const SubAxes &axes);
  comm::ShardingAttr sharding(const Layout &layout);
  Resharder resharder(mlir::RankedTensorType whole);

private:
  comm::MeshOp mesh;
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_MESHLAYOUTS_H
