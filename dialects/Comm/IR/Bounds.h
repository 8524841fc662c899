//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Bounds the size of values, so that sizes computed from their types do not overflow.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_COMM_BOUNDS_H
#define BRAID_DIALECTS_COMM_BOUNDS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

namespace braid {

/// The most elements a value may have: a thousand times the activations of the largest runs. The
/// bytes of a value, and their sum over all operands of an operation, fit 64 bits.
constexpr int64_t kMaxElements = int64_t(1) << 48;

/// The product of non-negative numbers, saturated at the largest int64_t.
int64_t saturatingProduct(llvm::ArrayRef<int64_t> factors);

/// Whether a statically shaped type has at most kMaxElements elements. Dimensions of size 0 count
/// as 1, so that strides, which are products of the others, are bounded too.
bool isBounded(mlir::ShapedType type);

/// isBounded, else "expects at most 2^48 elements, got TYPE [ID]".
mlir::LogicalResult verifyBounded(mlir::ShapedType type,
                                  llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                  llvm::StringRef id);

/// Bytes of an element. Types without a width (index, complex) count 8; no collective carries them.
int64_t elementBytes(mlir::ShapedType type);

} // namespace braid
#endif // BRAID_DIALECTS_COMM_BOUNDS_H
