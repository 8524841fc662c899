//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers one scheduled function to one procedure.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_PROCEDURELOWERING_H
#define BRAID_LIB_CONVERSION_PROCEDURELOWERING_H

#include "dialects/NN/IR/NN.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace braid {

/// Declares each library kernel that a module's procedures launch once.
class LibraryKernels {
public:
  explicit LibraryKernels(mlir::ModuleOp module);
  /// The kernel, which is declared before `before` if there is none yet.
  rt::KernelOp get(mlir::Operation *before, mlir::FunctionType type, llvm::StringRef library,
                   mlir::ArrayAttr optional, mlir::ArrayAttr scalars, comm::GroupAttr group);

private:
  llvm::StringSet<> names; ///< of all symbols
  llvm::DenseMap<mlir::Attribute, rt::KernelOp> declared;
};

class ProcedureLowering {
public:
  ProcedureLowering(mlir::func::FuncOp function, LibraryKernels &kernels)
      : function(function), kernels(kernels) {}

  /// Builds a procedure of the function's name before the function, which is not changed.
  mlir::LogicalResult run();
  unsigned numCopies = 0;

private:
  mlir::LogicalResult checkFunction();
  /// Fills `symmetric` and `destinations`.
  void analyze();
  mlir::LogicalResult buildSignature();
  mlir::LogicalResult describeEntry(llvm::ArrayRef<nn::ParameterOp> parameters);
  mlir::LogicalResult lower(mlir::Operation &op);
  mlir::LogicalResult lowerReturn(mlir::func::ReturnOp op);
  mlir::LogicalResult lowerStart(comm::StartOp op);
  mlir::LogicalResult lowerLaunch(rt::LaunchOp op);
  mlir::LogicalResult launchLibrary(mlir::Location loc, const nn::KernelCall &call,
                                    mlir::ValueRange results);
  mlir::LogicalResult lowerCall(mlir::func::CallOp op);

  /// The memory that holds a value.
  mlir::Value memory(mlir::Value value) const { return buffers.lookup(value); }
  /// Memory for a value that is about to be computed.
  mlir::Value define(mlir::Value value);
  mlir::Value alloc(mlir::Location loc, mlir::RankedTensorType type, rt::Space space);
  mlir::Value view(mlir::Location loc, mlir::Value memory, llvm::ArrayRef<int64_t> shape);
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to);

  mlir::func::FuncOp function;
  LibraryKernels &kernels;
  rt::ProcedureOp procedure;
  mlir::OpBuilder builder{function.getContext()};
  mlir::DenseMap<mlir::Value, mlir::Value> buffers;
  mlir::DenseMap<mlir::Value, mlir::Value> events;    ///< of handles
  llvm::DenseSet<mlir::Value> symmetric;              ///< roots that collectives read
  mlir::DenseMap<mlir::Value, unsigned> destinations; ///< roots computed in a result's memory
  llvm::SmallVector<mlir::BlockArgument> resultArguments;
};

} // namespace braid
#endif // BRAID_LIB_CONVERSION_PROCEDURELOWERING_H
