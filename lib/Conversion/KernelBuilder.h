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

#include "braid/Analysis/CodecFusion.h"
#include "dialects/RT/IR/RT.h"

namespace braid {

/// Row operations that become one kernel, in their order, with the codecs at its border, and the
/// kernel's interface.
struct KernelGroup {
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> inputs;  ///< in the order of first use
  llvm::SmallVector<bool> rowValues;      ///< whether an input has one element for each row
  llvm::SmallVector<mlir::Value> outputs; ///< used outside, in the order of definition
  mlir::RankedTensorType domain;          ///< shape of every operation's result
  /// The operation that decodes an input, or that encodes an output; null for other values.
  llvm::SmallVector<mlir::Operation *> decodes, encodes;

  /// Fills inputs and outputs from ops.
  void findInterface();
  /// Whether leading dimensions can be collapsed: no input has some but not all of them.
  bool flattensRows() const;
  /// The launch's row count.
  int64_t getRows() const;
  /// The place in `inputs` of an operand that no operation of the group computes.
  size_t inputOf(mlir::OpOperand &operand) const;
  /// Names of the operations, as in add_add_layer_norm.
  std::string getName() const;
};

/// Whether kernels are formed of the operation.
bool isRowOperation(mlir::Operation *op);

/// nn.decode and nn.decode_sum, which may stand before the row operations of a kernel, and
/// nn.encode, which may stand behind them.
bool isDecode(mlir::Operation *op);
inline bool isEncode(mlir::Operation *op) { return mlir::isa<nn::EncodeOp>(op); }
/// What an encode or a decode is at the border of a kernel.
RowCodec rowCodecOf(mlir::Operation *codec);
/// The rows and columns that an operation of a kernel works on.
mlir::RankedTensorType domainOf(mlir::Operation *op);

/// Checks that all results of `op` have one shape of at least one dimension (one row then), and
/// that each operand's shape is that one or the end of it, or has the rows alone.
mlir::LogicalResult verifyRowOperation(mlir::Operation *op);

/// Builds the kernel, fused and cleaned up. The symbol's name is not yet unique.
mlir::FailureOr<rt::KernelOp> buildKernel(mlir::OpBuilder &builder, const KernelGroup &group);

/// Declares the operation as a kernel without a body; `rows` is the launch's row count. The
/// symbol's name is not yet unique.
mlir::FailureOr<rt::KernelOp> declareKernel(mlir::OpBuilder &builder,
                                            nn::LibraryKernelOpInterface op, int64_t &rows);

/// Whether the kernels compute the same function of the same types.
bool areEquivalent(rt::KernelOp a, rt::KernelOp b);

} // namespace braid
#endif // BRAID_LIB_CONVERSION_KERNELBUILDER_H
