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

#include "MemoryPlan.h"

#include "llvm/ADT/MapVector.h"
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
  /// `signatures` has those of all callees.
  ProcedureLowering(mlir::func::FuncOp function, LibraryKernels &kernels,
                    const llvm::StringMap<Signature> &signatures)
      : function(function), kernels(kernels), signatures(signatures) {}

  /// Builds a procedure of the function's name before the function, which is not changed.
  mlir::LogicalResult run();
  /// After `run`.
  const Signature &getSignature() const { return plan->getSignature(); }
  unsigned numCopies = 0;

private:
  mlir::LogicalResult checkFunction();
  mlir::LogicalResult buildSignature();
  void nameArguments();
  mlir::LogicalResult describeEntry(llvm::ArrayRef<nn::ParameterOp> parameters);
  mlir::LogicalResult lower(mlir::Operation &op);
  mlir::LogicalResult lowerReturn(mlir::func::ReturnOp op);
  mlir::LogicalResult lowerStart(comm::StartOp op);
  mlir::LogicalResult lowerWait(comm::WaitOp op);
  mlir::LogicalResult lowerLaunch(rt::LaunchOp op);
  mlir::LogicalResult launchLibrary(mlir::Location loc, const nn::KernelCall &call,
                                    mlir::ValueRange results);
  mlir::LogicalResult lowerCall(mlir::func::CallOp op);
  mlir::LogicalResult lowerReshape(mlir::Operation *op);
  mlir::LogicalResult lowerPart(mlir::Operation *op, const PartPlace &place);
  mlir::LogicalResult lowerJoin(mlir::Operation *op, llvm::ArrayRef<PartPlace> places);

  /// The memory that holds a value.
  mlir::Value memory(mlir::Value value) const { return memory(Stored(value, 0)); }
  mlir::Value memory(Stored value) const { return buffers.lookup(value); }
  /// Memory for a value that is about to be computed.
  mlir::Value define(Stored value, mlir::RankedTensorType type);
  mlir::Value define(mlir::Value value);
  /// The memory that the plan gives a value elsewhere; null where no strides walk it there.
  mlir::Value defineAt(const MemoryPlan::Destination &destination, mlir::RankedTensorType type);
  mlir::Value alloc(mlir::Location loc, mlir::RankedTensorType type, rt::Space space);
  /// Memory in another shape; null where no strides walk it.
  mlir::Value view(mlir::Location loc, mlir::Value memory, llvm::ArrayRef<int64_t> shape);
  mlir::Value subview(mlir::Location loc, mlir::Value memory, const PartPlace &place,
                      llvm::ArrayRef<int64_t> shape);
  /// A copy, with a remark that says why it is needed.
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to, llvm::StringRef why);
  /// The memory itself or, where it is not contiguous (or not symmetric but needs to be), a copy.
  mlir::Value contiguous(mlir::Location loc, mlir::Value memory, llvm::StringRef why);
  mlir::Value symmetric(mlir::Location loc, mlir::Value memory, llvm::StringRef why);

  mlir::func::FuncOp function;
  LibraryKernels &kernels;
  const llvm::StringMap<Signature> &signatures;
  std::optional<MemoryPlan> plan;
  rt::ProcedureOp procedure;
  mlir::OpBuilder builder{function.getContext()};
  llvm::DenseMap<Stored, mlir::Value> buffers;
  llvm::DenseMap<mlir::Value, mlir::Value> events; ///< of handles
  /// Values whose memory is where the plan wanted it.
  llvm::DenseSet<Stored> inPlace;
  llvm::SmallVector<mlir::BlockArgument> resultArguments;
  comm::PlaceAttr place; ///< of the copies that the current operation needs; null: all ranks
};

} // namespace braid
#endif // BRAID_LIB_CONVERSION_PROCEDURELOWERING_H
