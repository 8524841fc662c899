//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which products of a model tensor parallelism cuts, and how: column then row.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_LINEARCUTS_H
#define BRAID_LIB_TRANSFORMS_LINEARCUTS_H

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace braid {

/// The dimension of a weight [out, in] that tensor parallelism cuts.
enum class LinearCut : int64_t {
  Column = 0, ///< by outputs: every rank computes some of them
  Row = 1     ///< by inputs: every rank gives addends
};

/// What a dimension of a value comes of, through operations that can be cut along the way.
struct LinearSources {
  llvm::SmallSetVector<mlir::Operation *, 4> products;   ///< by their last dimension
  llvm::SmallSetVector<mlir::Operation *, 1> attentions; ///< on the way to them
};
LinearSources findSources(mlir::Value value, int64_t dim);

/// The products of a function that are cut. A role that is known decides ("attention.query" and
/// others). Of the rest, one is cut by rows when what it takes comes of products that can be cut by
/// columns, each element of it, or each head, from its own: a rank then has what it takes.
llvm::MapVector<nn::LinearOp, LinearCut> findLinearCuts(mlir::func::FuncOp func);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_LINEARCUTS_H
