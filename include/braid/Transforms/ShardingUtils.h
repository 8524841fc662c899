//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the passes over shardings: the mesh of a module and the sharding of a value.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TRANSFORMS_SHARDINGUTILS_H
#define BRAID_TRANSFORMS_SHARDINGUTILS_H

#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// The one mesh of a module; an error when there is none or more than one.
mlir::FailureOr<comm::MeshOp> getModuleMesh(mlir::ModuleOp module);
/// Fails, with an error on the module's mesh, unless that is the one of `text` ("pp=2,tp=4").
mlir::LogicalResult expectMesh(mlir::ModuleOp module, llvm::StringRef text);
/// Size of an axis or sub-axis of a mesh that has been verified to have it.
int64_t axisSize(comm::MeshOp mesh, comm::AxisAttr axis);

/// Whether a function is marked `nn.entry` or, in a module without marks, has no caller.
bool isEntry(mlir::func::FuncOp func);

/// The function of this module that is called; null when the symbol names another operation.
mlir::func::FuncOp calleeOf(mlir::func::CallOp call);

/// `comm.sharding` of an argument or the entry of `comm.shardings` of a result; null when not
/// stated.
comm::ShardingAttr getSharding(mlir::Value value);
/// Values that are no tensors have no sharding; setting one is ignored.
void setSharding(mlir::Value value, comm::ShardingAttr sharding);
comm::ShardingAttr getResultSharding(mlir::func::FuncOp func, unsigned index);

/// Sets the function's type to that of its block's arguments and its return.
void updateType(mlir::func::FuncOp func);

/// An error on `op` with the name in its location, if any.
mlir::InFlightDiagnostic emitNamedError(mlir::Operation *op);

/// A ranked tensor type with another size of dimension `dim`.
mlir::RankedTensorType withDim(mlir::Type type, int64_t dim, int64_t size);

} // namespace braid
#endif // BRAID_TRANSFORMS_SHARDINGUTILS_H
