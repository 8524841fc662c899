//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Pads a dimension of activations, the batch or the sequence, where its values are independent of
// each other.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_ROWPADDING_H
#define BRAID_LIB_TRANSFORMS_ROWPADDING_H

#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// A dimension that an axis is to split.
struct RowDim {
  mlir::Value value;
  int64_t dim;
};

/// Pads these dimensions until `ranks` divides them, and with them every dimension that operations
/// tie to one of them. Returns how many values are padded.
mlir::FailureOr<int64_t> padRows(mlir::ModuleOp module, llvm::ArrayRef<RowDim> dims,
                                 llvm::StringRef axis, int64_t ranks);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_ROWPADDING_H
