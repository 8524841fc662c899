//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How large values may be, so that sizes computed from their types do not wrap.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_COMM_BOUNDS_H
#define BRAID_DIALECTS_COMM_BOUNDS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

namespace braid {

/// Elements of a value at most. A thousand times the activations of the largest runs; a value's
/// bytes, and the sum over all operands of an operation, fit 64 bits.
constexpr int64_t kMaxElements = int64_t(1) << 48;

/// The product of numbers that are not negative; the largest number there is where it would not
/// fit.
int64_t saturatingProduct(llvm::ArrayRef<int64_t> factors);

/// Whether a statically shaped type has at most kMaxElements elements. Dimensions of 0 count as 1:
/// the products of the others, which are strides, are as small.
bool isBounded(mlir::ShapedType type);

/// isBounded, else "expects at most 2^48 elements, got TYPE [ID]".
mlir::LogicalResult verifyBounded(mlir::ShapedType type,
                                  llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                  llvm::StringRef id = {});

/// Bytes of an element; 8 of types without a width (index, complex), which no collective carries.
int64_t elementBytes(mlir::ShapedType type);

} // namespace braid
#endif // BRAID_DIALECTS_COMM_BOUNDS_H
