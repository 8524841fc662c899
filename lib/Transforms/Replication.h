//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which values of a per-rank module are the same on all ranks of a group.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_REPLICATION_H
#define BRAID_LIB_TRANSFORMS_REPLICATION_H

#include "braid/Transforms/ShardingUtils.h"

namespace braid {

/// For every value the axes that it may differ along. Parameters and the entry's operands differ
/// along the axes that their shardings name; an all_reduce or all_gather makes equal along the axes
/// of its group; reduce_scatter and local_slice make different; whatever else is computed differs
/// as its operands do. One answer per function serves all its calls.
class Replication {
public:
  Replication(mlir::ModuleOp module, comm::MeshOp mesh);
  /// Whether `value` is the same on all ranks of `group`. A value made since is never said to be.
  bool isReplicated(mlir::Value value, comm::GroupAttr group) const;
  /// Notes that `value` equals `old`, on every rank.
  void setLike(mlir::Value value, mlir::Value old);
  /// To be called before a value changes or ceases to be.
  void forget(mlir::Value value) { differs.erase(value); }

private:
  using Axes = llvm::SmallVector<comm::AxisAttr, 2>;
  /// Adds axes to those of `value`.
  void join(mlir::Value value, llvm::ArrayRef<comm::AxisAttr> axes);
  void visit(mlir::Operation *op);
  void visitCall(mlir::func::CallOp call);

  Axes everything; ///< the axes of the mesh
  llvm::DenseMap<mlir::Value, Axes> differs;
  bool changed = false;
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_REPLICATION_H
