//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Operations that act alike on every slice of a dimension, so that gathers may move across them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_SLICEWISE_H
#define BRAID_LIB_TRANSFORMS_SLICEWISE_H

#include "braid/Transforms/ShardingUtils.h"

#include "mlir/IR/PatternMatch.h"

namespace braid {

/// The dimension along which each operand and result of an operation is sliced; none for operands
/// without it.
struct SliceDims {
  llvm::SmallVector<std::optional<int64_t>> operands, results;
};

/// The dimensions to slice `op` along the first factor of dimension `dim` of operand or result
/// `tensor`, in n slices (1: any number). Fails and reports the reason when the operation does not
/// act alike on slices.
mlir::FailureOr<SliceDims> matchSliceDims(mlir::RewriterBase &rewriter, mlir::OpOperand &tensor,
                                          int64_t dim, int64_t n);
mlir::FailureOr<SliceDims> matchSliceDims(mlir::RewriterBase &rewriter, mlir::OpResult tensor,
                                          int64_t dim, int64_t n);

/// Builds the operation on other operands before it, with results of `types`. Emits an error when
/// it cannot be built although its sharding rule allows these operands.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> rebuild(mlir::Operation *op,
                                                        mlir::OpBuilder &builder,
                                                        mlir::ValueRange operands,
                                                        mlir::TypeRange types);

/// The gather whose only result is `value`, or null.
comm::AllGatherOp gatherOf(mlir::Value value);
/// Whether the gather is along this dimension over this group.
bool gathers(comm::AllGatherOp gather, int64_t dim, comm::GroupAttr group);

/// Sets the function's type to that of its block's arguments and its return.
void updateType(mlir::func::FuncOp func);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SLICEWISE_H
