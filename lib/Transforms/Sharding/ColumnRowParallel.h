//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensor parallelism of a model's matmuls: column-parallel, then row-parallel.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_COLUMNROWPARALLEL_H
#define BRAID_LIB_TRANSFORMS_COLUMNROWPARALLEL_H

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace braid {

/// The dimension of a weight [out, in] that tensor parallelism shards.
enum class ParallelStyle : int64_t {
  Column = 0, ///< by outputs: every rank computes some of them
  Row = 1     ///< by inputs: every rank computes partial sums
};

/// The origin of a value's dimension, through operations that can be sharded along it.
struct LinearSources {
  llvm::SmallSetVector<mlir::Operation *, 4> matmuls;    ///< by their last dimension
  llvm::SmallSetVector<mlir::Operation *, 1> attentions; ///< on the way to them
};
LinearSources findSources(mlir::Value value, int64_t dim);

/// The matmuls of a function to shard. A known role decides ("attention.query" and others). Of the
/// others, a matmul is row-parallel when its input derives from column-parallel matmuls elementwise
/// or headwise, so that a rank has its shard of the input.
llvm::MapVector<nn::LinearOp, ParallelStyle> findColumnRowParallel(mlir::func::FuncOp func);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_COLUMNROWPARALLEL_H
