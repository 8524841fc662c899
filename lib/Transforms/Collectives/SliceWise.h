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

/// The operation's name in quotes.
std::string quoted(mlir::Operation *op);

/// The dimensions to slice `op` along the first factor of dimension `dim` of one of its tensors, in
/// n slices (1: any number); `tensor` selects it from the operation's rule. Fails and reports the
/// reason when the operation does not act alike on slices.
mlir::FailureOr<SliceDims>
matchSliceDims(mlir::RewriterBase &rewriter, mlir::Operation *op,
               llvm::function_ref<const comm::TensorFactors &(const comm::ShardingRule &)> tensor,
               int64_t dim, int64_t n);

/// Builds the operation on other operands before it, with results of `types`. Emits an error when
/// it cannot be built although its sharding rule allows these operands.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> rebuild(mlir::Operation *op,
                                                        mlir::OpBuilder &builder,
                                                        mlir::ValueRange operands,
                                                        mlir::TypeRange types);

/// The gather whose only result is `value`, or null.
comm::AllGatherOp gatherOf(mlir::Value value);
/// Whether the operation gathers or slices one value along this dimension over this group.
bool gathers(mlir::Operation *op, int64_t dim, comm::GroupAttr group);
bool slices(mlir::Operation *op, int64_t dim, comm::GroupAttr group);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SLICEWISE_H
