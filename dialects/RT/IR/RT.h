//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_RT_RT_H
#define BRAID_DIALECTS_RT_RT_H

#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace braid::runtime {
struct LibraryCall;
} // namespace braid::runtime

namespace braid::rt {
/// The resource that commands that order the queues read and write, which keeps their order.
struct QueueResource : mlir::SideEffects::Resource::Base<QueueResource> {
  llvm::StringRef getName() final { return "queues"; }
};
} // namespace braid::rt

namespace braid::rt {
/// Whether memory of this type is walked with known strides from its first byte on.
bool hasStaticStrides(mlir::MemRefType type);
} // namespace braid::rt

#include "dialects/RT/IR/RTDialect.h.inc"
#include "dialects/RT/IR/RTEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/RT/IR/RTAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/RT/IR/RTTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/RT/IR/RTOps.h.inc"

namespace braid::rt {

/// Alignment of every planned buffer, in bytes.
constexpr int64_t kBufferAlignment = 64;
/// Bytes of contiguous memory of this type.
int64_t sizeInBytes(mlir::ShapedType type);
/// Whether memory is row-major without gaps.
bool isContiguous(mlir::MemRefType type);
/// In elements.
llvm::SmallVector<int64_t> getStrides(mlir::MemRefType type);
/// The type of a view that walks memory with these strides; it has no layout where they are those
/// of contiguous memory.
mlir::MemRefType viewType(llvm::ArrayRef<int64_t> shape, mlir::Type elementType,
                          llvm::ArrayRef<int64_t> strides, mlir::Attribute space);
/// The type of memory of type `source` seen in another shape with as many elements (rt.view_c2);
/// null where no strides walk it.
mlir::MemRefType reshapedType(mlir::MemRefType source, llvm::ArrayRef<int64_t> shape);
/// The buffer or argument under a chain of views and subviews.
mlir::Value getRoot(mlir::Value memory);
/// The queue that runs a command. Calls stand in every queue's stream; compute is returned, since a
/// callee orders what its other queues do within its own begin and end.
QueueAttr queueOf(mlir::Operation *command);
/// The buffers and arguments that a command writes, except for the frames of callees.
llvm::SmallVector<mlir::Value> getWrittenRoots(mlir::Operation *op);

} // namespace braid::rt
#endif // BRAID_DIALECTS_RT_RT_H
