//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Converts between sharding attributes and layouts.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_MESHLAYOUTS_H
#define BRAID_ANALYSIS_MESHLAYOUTS_H

#include "braid/Analysis/Layout.h"
#include "dialects/Comm/IR/Comm.h"

namespace braid {

class MeshLayouts {
public:
  explicit MeshLayouts(comm::MeshOp mesh) : mesh(mesh) {}

  SubAxis subAxis(comm::AxisAttr axis) const;
  /// One sub-axis for each axis, not merged.
  SubAxes subAxes(llvm::ArrayRef<comm::AxisAttr> axes) const;
  /// The dimensions of a sharding without its partial axes.
  Layout layout(comm::ShardingAttr sharding) const;
  comm::AxisAttr axis(const SubAxis &axis) const;
  llvm::SmallVector<comm::AxisAttr> axes(const SubAxes &axes) const;
  comm::GroupAttr group(const SubAxes &axes) const;
  comm::ShardingAttr sharding(const Layout &layout,
                              llvm::ArrayRef<comm::PartialAttr> partials = {}) const;
  comm::ShardingAttr replicated(int64_t rank) const { return sharding(Layout(rank)); }

  /// The size of each axis of the mesh.
  llvm::ArrayRef<int64_t> sizes() const { return mesh.getAxisSizes(); }

private:
  mutable comm::MeshOp mesh; ///< accessors of operations are not const
};

} // namespace braid
#endif // BRAID_ANALYSIS_MESHLAYOUTS_H
