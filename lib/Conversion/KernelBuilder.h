//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds an rt.kernel from row operations of the nn dialect.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_KERNELBUILDER_H
#define BRAID_LIB_CONVERSION_KERNELBUILDER_H

#include "dialects/RT/IR/RT.h"

namespace braid {

/// Row operations that become one kernel, in the order they stand in, and how the world sees them.
struct KernelGroup {
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> inputs;  ///< in the order of first use
  llvm::SmallVector<mlir::Value> outputs; ///< needed outside, in the order of definition
  mlir::RankedTensorType domain;          ///< shape of every operation's result

  /// Fills inputs and outputs from ops.
  void findInterface();
  /// Leading dimensions can be taken together: no input has some but not all of them.
  bool flattensRows() const;
  /// The launch's row count.
  int64_t getRows() const;
  /// Names of the operations, as in add_add_layer_norm.
  std::string getName() const;
};

/// An operation that kernels are formed of.
bool isRowOperation(mlir::Operation *op);

/// Checks that `op` fits a kernel at all: one result shape of at least two dimensions, operands
/// that have it or its end.
mlir::LogicalResult verifyRowOperation(mlir::Operation *op);

/// Builds the kernel at the builder's place, fused and cleaned up. The symbol's name is not yet
/// unique.
mlir::FailureOr<rt::KernelOp> buildKernel(mlir::OpBuilder &builder, const KernelGroup &group);

/// The operation as a kernel without a body, at the builder's place; `rows` is what a launch gives
/// it. The symbol's name is not yet unique.
mlir::FailureOr<rt::KernelOp> declareKernel(mlir::OpBuilder &builder,
                                            nn::LibraryKernelOpInterface op, int64_t &rows);

/// The same function of the same types, whatever the names.
bool areEquivalent(rt::KernelOp a, rt::KernelOp b);

} // namespace braid
#endif // BRAID_LIB_CONVERSION_KERNELBUILDER_H
