//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows what ranks hold of every value through a per-rank program of tensors, and refuses
// a program that contradicts itself.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_PLACEMENTCHECK_H
#define BRAID_ANALYSIS_PLACEMENTCHECK_H

#include "braid/Analysis/Placement.h"
#include "braid/Analysis/PlacementRule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// Checks a per-rank program from its entries; an error with notes at the first contradiction.
///
/// The entry's arguments, parameters and results are as their shardings declare; constants are the
/// same on all ranks. A collective changes what ranks hold but not the global value. An operation
/// with a sharding rule computes shards from shards, and partial sums from a contraction whose
/// factor is cut or where it is linear in partial sums. Where an axis varies, nothing is checked.
///
/// Accepted programs therefore compute, along all axes that do not vary, what the operations
/// compute on the global values. A program that partitioning makes from global operations, by their
/// rules and with collectives between them, is never refused. What a rank holds on its own account
/// varies: what a receive or a permutation other than of parts gives, and parameters and arguments
/// cut along an axis of stages, over which a program sends to some ranks only.
///
/// A function is followed once for each tuple of its arguments' placements, so cost is that of the
/// distinct layers, not of their calls.
mlir::LogicalResult checkPlacements(mlir::ModuleOp module, comm::MeshOp mesh,
                                    llvm::ArrayRef<mlir::func::FuncOp> entries,
                                    SkippedRules skip = {});

} // namespace braid
#endif // BRAID_ANALYSIS_PLACEMENTCHECK_H
