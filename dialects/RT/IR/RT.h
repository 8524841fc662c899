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
/// What the commands that order the queues read and write, so that they keep their place.
struct QueueResource : mlir::SideEffects::Resource::Base<QueueResource> {
  llvm::StringRef getName() final { return "queues"; }
};
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

/// Every planned buffer begins at a multiple of this.
constexpr int64_t kBufferAlignment = 64;
/// Bytes of contiguous memory of this type.
int64_t sizeInBytes(mlir::ShapedType type);
/// Row-major without gaps and from its first byte.
bool isContiguous(mlir::MemRefType type);
/// The buffer or argument that a chain of views looks at.
mlir::Value getRoot(mlir::Value memory);
/// The queue that runs a command; compute for calls, which stand in both queues' streams and order
/// what they do on the other within their own begin and end.
Queue queueOf(mlir::Operation *command);
/// The size of a group whose mesh is known and has its axes, or an error on the operation.
mlir::FailureOr<int64_t> groupRanks(mlir::Operation *op, comm::GroupAttr group,
                                    mlir::SymbolTableCollection &symbols);
/// The memory that a command reads and writes, without the frames of callees.
void getAccesses(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &reads,
                 llvm::SmallVectorImpl<mlir::Value> &writes);

} // namespace braid::rt
#endif // BRAID_DIALECTS_RT_RT_H
