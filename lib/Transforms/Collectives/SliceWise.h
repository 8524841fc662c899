//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Operations that act alike on every slice of a dimension, which gathers may pass.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_SLICEWISE_H
#define BRAID_LIB_TRANSFORMS_SLICEWISE_H

#include "braid/Transforms/ShardingUtils.h"

#include "mlir/IR/PatternMatch.h"

namespace braid {

/// The dimension along which each operand and result of an operation is cut together; none for
/// operands that do not have it.
struct SliceDims {
  llvm::SmallVector<std::optional<int64_t>> operands, results;
};

/// The slices of `op` along the factor that dimension `dim` of operand or result `tensor` begins
/// with, in n parts (1: any number). Fails, and notifies of the reason, when the operation is not
/// slice-wise over it.
mlir::FailureOr<SliceDims> matchSliceDims(mlir::RewriterBase &rewriter, mlir::OpOperand &tensor,
                                          int64_t dim, int64_t n);
mlir::FailureOr<SliceDims> matchSliceDims(mlir::RewriterBase &rewriter, mlir::OpResult tensor,
                                          int64_t dim, int64_t n);

/// The operation on other operands, before it; its results get `types`. Emits an error when it
/// cannot be built although its sharding rule allows these operands.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> rebuild(mlir::Operation *op,
                                                        mlir::OpBuilder &builder,
                                                        mlir::ValueRange operands,
                                                        mlir::TypeRange types);

/// The gather whose one value `value` is; null for another value.
comm::AllGatherOp gatherOf(mlir::Value value);
/// Whether the gather joins along this dimension over this group.
bool gathers(comm::AllGatherOp gather, int64_t dim, comm::GroupAttr group);

/// Makes the function's type that of its block's arguments and its return.
void updateType(mlir::func::FuncOp func);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SLICEWISE_H
