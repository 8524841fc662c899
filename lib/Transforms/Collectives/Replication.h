//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tells which values of a per-rank module are the same on all ranks of a group.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_REPLICATION_H
#define BRAID_LIB_TRANSFORMS_REPLICATION_H

#include "braid/Transforms/ShardingUtils.h"

#include "mlir/Analysis/DataFlowFramework.h"

namespace braid {

class ReplicationAnalysis;

/// Computes for every value the axes along which it may differ, by sparse data-flow analysis over
/// the calls of the module. Parameters and the entry's operands differ along the axes of their
/// shardings. An all_reduce or all_gather makes values equal along the axes of its group;
/// reduce_scatter, part and assemble make them different. Other results differ like the operands
/// and captured values of their operation. Rewrites report their changes, so that one analysis
/// serves all rewrites of a pass.
class Replication {
public:
  Replication(mlir::ModuleOp module, comm::MeshOp mesh);

  /// Whether `value` is known to be the same on all ranks of `group`.
  bool isReplicated(mlir::Value value, comm::GroupAttr group) const;
  /// Whether all values that the regions of `op` capture are.
  bool capturesReplicated(mlir::Operation *op, comm::GroupAttr group) const;

  /// A new operation, whose operands are known.
  void update(mlir::Operation *op);
  /// An operation is about to be erased.
  void forget(mlir::Operation *op);
  /// The value is now this rank's shard of the former value over `group`, or the gathered value.
  void becomesSharded(mlir::Value value, comm::GroupAttr group);
  void becomesReplicated(mlir::Value value, comm::GroupAttr group);

private:
  mlir::DataFlowSolver solver;
  ReplicationAnalysis *analysis; ///< owned by the solver
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_REPLICATION_H
