//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_COMM_COMM_H
#define BRAID_DIALECTS_COMM_COMM_H

#include "braid/Base/Algorithm.h"
#include "braid/Base/Encoding.h"
#include "dialects/Comm/IR/Bounds.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace braid::runtime {
struct Mesh;
struct Sharding;
struct AxisRef;
struct RankSet;
} // namespace braid::runtime

namespace braid::comm {
/// The resource that collectives read and write, which keeps their order.
struct ChannelResource : mlir::SideEffects::Resource::Base<ChannelResource> {
  llvm::StringRef getName() final { return "communication channel"; }
};

/// Of tensors; the largest number where there would be more.
int64_t totalBytes(mlir::TypeRange types);
} // namespace braid::comm

#include "dialects/Comm/IR/CommDialect.h.inc"
#include "dialects/Comm/IR/CommEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Comm/IR/CommAttrs.h.inc"
#include "dialects/Comm/IR/ShardingRule.h"

#include "dialects/Comm/IR/CommInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Comm/IR/CommTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Comm/IR/CommOps.h.inc"

namespace braid::comm {

/// Converts a mesh for code without MLIR.
runtime::Mesh toRuntime(MeshOp mesh);
runtime::AxisRef toRuntime(AxisAttr axis);
std::vector<runtime::AxisRef> toRuntime(GroupAttr group);
/// Converts the dimensions; partial axes have no counterpart.
runtime::Sharding toRuntime(ShardingAttr sharding);
/// All ranks without a place.
runtime::RankSet toRuntime(PlaceAttr place);
/// The storage type of elements; none for types that bundles cannot hold.
std::optional<runtime::DType> toRuntime(mlir::Type elementType);

/// Why a collective cannot have a #comm.encoding; empty if it can.
std::string encodingObstacle(CollectiveOpInterface op);

/// Whether no value can be split over both axes: they share a factor of one mesh axis, or belong to
/// no common factorization of it (2 and 3 of 6).
bool overlap(AxisAttr a, AxisAttr b);
/// Number of ranks of a group. The group must have been verified.
int64_t groupSize(mlir::Operation *from, GroupAttr group);
/// Checks that the group names a mesh and axes of it. An error on `op` ends with `[id]`.
mlir::LogicalResult verifyGroup(mlir::Operation *op, GroupAttr group,
                                mlir::SymbolTableCollection &symbols, llvm::StringRef id);
/// Checks that `position` is a position of the group; `what` names it in the error.
mlir::LogicalResult verifyPosition(mlir::Operation *op, GroupAttr group, const llvm::Twine &what,
                                   int64_t position, llvm::StringRef id);
/// Checks that `pairs` alternates sources and targets, that each position is at most once a source
/// and at most once a target, and, with a `selfId`, that none sends to itself.
mlir::LogicalResult verifyPairs(mlir::Operation *op, llvm::ArrayRef<int64_t> pairs,
                                llvm::StringRef sizeId, llvm::StringRef onceId,
                                llvm::StringRef selfId = {});
/// Checks comm.place_c2 and comm.place_c3.
mlir::LogicalResult verifyPlace(mlir::Operation *op, PlaceAttr place,
                                llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
/// Checks that a sharding splits over no axis that the place names. An error ends with `[id]`.
mlir::LogicalResult verifyShardingOn(PlaceAttr place, ShardingAttr sharding, llvm::StringRef id,
                                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
/// The ranks that run a call (`comm.on`); null: all that run its function.
PlaceAttr placeOf(mlir::Operation *call);
/// The mesh that a symbol names, or null.
MeshOp lookupMesh(mlir::Operation *from, mlir::FlatSymbolRefAttr mesh);

/// Checks comm.sharding_c2 to comm.sharding_c5 for a value of type `type`.
mlir::LogicalResult verifySharding(mlir::Operation *op, mlir::Type type, ShardingAttr sharding,
                                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
/// The per-rank type of a value of global type `type`; failure when a dimension does not divide.
mlir::FailureOr<mlir::RankedTensorType>
localType(mlir::Operation *from, mlir::RankedTensorType type, ShardingAttr sharding);

} // namespace braid::comm
#endif // BRAID_DIALECTS_COMM_COMM_H
