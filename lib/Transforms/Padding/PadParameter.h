//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Applies the padding of a dimension (Padding.h) to parameters: types and slices.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_PADPARAMETER_H
#define BRAID_LIB_TRANSFORMS_PADPARAMETER_H

#include "Padding.h"

#include "braid/Transforms/ShardingUtils.h"
#include "dialects/NN/IR/NN.h"

namespace braid {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Creates a copy of `parameter` whose elements along `dim` move as `padding` says.
nn::ParameterOp padParameter(nn::ParameterOp parameter, int64_t dim, const DimPadding &padding);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_PADPARAMETER_H
