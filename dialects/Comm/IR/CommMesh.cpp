//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/DType.h"
#include "braid/Base/RankSet.h"
#include "dialects/Comm/IR/Comm.h"

using namespace mlir;

namespace braid::comm {

runtime::AxisRef toRuntime(AxisAttr axis) {
  return {axis.getName().str(), axis.getPre(), axis.getSize()};
}

std::vector<runtime::AxisRef> toRuntime(GroupAttr group) {
  std::vector<runtime::AxisRef> axes;
  for (AxisAttr axis : group.getAxes())
    axes.push_back(toRuntime(axis));
  return axes;
}

runtime::Sharding toRuntime(ShardingAttr sharding) {
  runtime::Sharding result;
  for (DimAttr dim : sharding.getDims()) {
    result.dims.emplace_back();
    for (AxisAttr axis : dim.getAxes())
      result.dims.back().push_back(toRuntime(axis));
  }
  return result;
}

// Attributes may be verified before their mesh, so this and its users accept a malformed mesh.
runtime::Mesh toRuntime(MeshOp mesh) {
  runtime::Mesh result;
  result.name = mesh.getSymName().str();
  for (auto [name, size] :
       llvm::zip(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes()))
    result.axes.push_back({name.str(), size});
  if (std::optional<ArrayRef<int64_t>> order = mesh.getOrder())
    result.order.assign(order->begin(), order->end());
  return result;
}

std::optional<runtime::DType> toRuntime(Type elementType) {
  if (elementType.isF32())
    return runtime::DType::f32;
  if (elementType.isF16())
    return runtime::DType::f16;
  if (elementType.isBF16())
    return runtime::DType::bf16;
  if (elementType.isF64())
    return runtime::DType::f64;
  if (elementType.isSignlessInteger(32))
    return runtime::DType::i32;
  if (elementType.isSignlessInteger(64))
    return runtime::DType::i64;
  if (elementType.isSignlessInteger(8))
    return runtime::DType::i8;
  return std::nullopt;
}

MeshOp lookupMesh(Operation *from, FlatSymbolRefAttr mesh) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(from, mesh);
}

int64_t groupSize(Operation *from, GroupAttr group) {
  return *toRuntime(lookupMesh(from, group.getMesh())).numShards(toRuntime(group));
}

runtime::RankSet toRuntime(PlaceAttr place) {
  runtime::RankSet ranks;
  if (place)
    for (CoordinatesAttr named : place.getAxes())
      ranks.axes.push_back({named.getAxis().str(), named.getCoordinates().vec()});
  return ranks;
}

PlaceAttr placeOf(Operation *call) {
  return call->getAttrOfType<PlaceAttr>(CommDialect::kOnAttrName);
}

LogicalResult verifyPlace(Operation *op, PlaceAttr place,
                          function_ref<InFlightDiagnostic()> emitError) {
  MeshOp meshOp = lookupMesh(op, place.getMesh());
  if (!meshOp)
    return emitError() << "references unknown mesh " << place.getMesh() << " [comm.place_c2]";
  runtime::Mesh mesh = toRuntime(meshOp);
  if (!mesh.verify().ok())
    return failure(); // The mesh's own verifier reports it.
  for (CoordinatesAttr named : place.getAxes())
    if (runtime::Result<int64_t> size = mesh.axisSize({named.getAxis().str()}); !size.ok())
      return emitError() << size.status().message() << " [comm.place_c2]";
  if (runtime::Status status = toRuntime(place).verify(mesh); !status.ok())
    return emitError() << status.message() << " [comm.place_c3]";
  return success();
}

LogicalResult verifyShardingOn(PlaceAttr place, ShardingAttr sharding, StringRef id,
                               function_ref<InFlightDiagnostic()> emitError) {
  const runtime::RankSet ranks = toRuntime(place);
  if (sharding)
    for (DimAttr dim : sharding.getDims())
      for (AxisAttr axis : dim.getAxes())
        if (ranks.along(axis.getName().str()))
          return emitError() << "expects no sharding over axis '" << axis.getName()
                             << "', along which only some ranks have the value [" << id << "]";
  return success();
}

LogicalResult verifySharding(Operation *op, Type type, ShardingAttr sharding,
                             function_ref<InFlightDiagnostic()> emitError) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return emitError() << "expects a ranked tensor for a sharding, got " << type
                       << " [comm.sharding_c2]";
  if (tensor.hasStaticShape() && failed(verifyBounded(tensor, emitError, "comm.sharding_c5")))
    return failure();
  if (static_cast<int64_t>(sharding.getDims().size()) != tensor.getRank())
    return emitError() << "expects a sharding of " << tensor.getRank() << " dimensions, got "
                       << sharding.getDims().size() << " [comm.sharding_c2]";
  MeshOp meshOp = lookupMesh(op, sharding.getMesh());
  if (!meshOp)
    return emitError() << "references unknown mesh " << sharding.getMesh() << " [comm.sharding_c3]";
  runtime::Mesh mesh = toRuntime(meshOp);
  if (!mesh.verify().ok())
    return failure(); // The mesh's own verifier reports it.
  runtime::Sharding dims = toRuntime(sharding);
  for (PartialAttr partial : sharding.getPartials())
    if (runtime::Result<int64_t> size = mesh.axisSize(toRuntime(partial.getAxis())); !size.ok())
      return emitError() << size.status().message() << " [comm.sharding_c3]";
  for (auto [i, axes] : llvm::enumerate(dims.dims)) {
    runtime::Result<int64_t> shards = mesh.numShards(axes);
    if (!shards.ok())
      return emitError() << shards.status().message() << " [comm.sharding_c3]";
    if (tensor.getDimSize(i) % *shards != 0) {
      InFlightDiagnostic diag = emitError();
      diag << "dimension " << i << " of size " << tensor.getDimSize(i) << " does not divide over ";
      llvm::interleaveComma(sharding.getDims()[i].getAxes(), diag,
                            [&](AxisAttr axis) { diag << "'" << axis.getName() << "'"; });
      return diag << " (" << *shards << " shards) [comm.sharding_c4]";
    }
  }
  return success();
}

FailureOr<RankedTensorType> localType(Operation *from, RankedTensorType type,
                                      ShardingAttr sharding) {
  runtime::Mesh mesh = toRuntime(lookupMesh(from, sharding.getMesh()));
  std::vector<int64_t> shape(type.getShape().begin(), type.getShape().end());
  runtime::Result<runtime::Box> box = runtime::localBox(mesh, 0, shape, toRuntime(sharding));
  if (!box.ok())
    return failure();
  return RankedTensorType::get(box->sizes, type.getElementType());
}

} // namespace braid::comm
