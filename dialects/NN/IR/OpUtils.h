//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Helpers shared by the definitions of operations.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_NN_OPUTILS_H
#define BRAID_DIALECTS_NN_OPUTILS_H

#include "dialects/Comm/IR/SaturatingCount.h"
#include "dialects/NN/IR/NN.h"

namespace braid::nn {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }
inline int64_t elements(mlir::Value value) { return typeOf(value).getNumElements(); }
inline int64_t bytes(mlir::Value value) { return elements(value) * elementBytes(typeOf(value)); }

/// "[2, 3]"
inline std::string text(llvm::ArrayRef<int64_t> shape) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << "[";
  llvm::interleaveComma(shape, os);
  os << "]";
  return result;
}

/// "expects WHAT of shape [2, 3], got [3, 2] [ID]" when they differ.
inline mlir::LogicalResult verifyShape(mlir::Operation *op, llvm::StringRef what,
                                       llvm::ArrayRef<int64_t> expected,
                                       llvm::ArrayRef<int64_t> got, llvm::StringRef id) {
  if (expected == got)
    return mlir::success();
  return op->emitOpError("expects ")
         << what << " of shape " << text(expected) << ", got " << text(got) << " [" << id << "]";
}

inline mlir::LogicalResult verifySameElementType(mlir::Operation *op, mlir::ValueRange values,
                                                 llvm::StringRef id) {
  mlir::Type expected = typeOf(values.front()).getElementType();
  for (mlir::Value value : values)
    if (mlir::Type got = typeOf(value).getElementType(); got != expected)
      return op->emitOpError("expects one element type, got ")
             << expected << " and " << got << " [" << id << "]";
  return mlir::success();
}

/// FLOPs of an activation function of one value.
int64_t flopsOf(ActivationKind kind);

} // namespace braid::nn
#endif // BRAID_DIALECTS_NN_OPUTILS_H
