//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/ShardingUtils.h"

#include "StrategyOptions.h"

#include "braid/Base/Mesh.h"
#include "dialects/NN/IR/NN.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {

FailureOr<MeshOp> getModuleMesh(ModuleOp module) {
  MeshOp mesh;
  for (MeshOp candidate : module.getOps<MeshOp>()) {
    if (mesh)
      return candidate.emitOpError("expects one mesh in a module, got a second beside '")
             << mesh.getSymName() << "'";
    mesh = candidate;
  }
  if (!mesh)
    return module.emitError("expects a comm.mesh in the module (braid-apply-strategy makes one)");
  return mesh;
}

LogicalResult expectMesh(ModuleOp module, StringRef text) {
  FailureOr<MeshOp> mesh = getModuleMesh(module);
  if (failed(mesh))
    return failure();
  FailureOr<SmallVector<MeshAxis>> axes = parseMesh(module, text, /*anyAxis=*/true);
  if (failed(axes))
    return failure();
  auto names = mesh->getAxisNames().getAsValueRange<StringAttr>();
  auto isSame = [](auto pair) {
    auto [name, size, axis] = pair;
    return name == axis.name && size == axis.size;
  };
  if (mesh->getAxisSizes().size() == axes->size() &&
      llvm::all_of(llvm::zip_equal(names, mesh->getAxisSizes(), *axes), isSame))
    return success();
  return mesh->emitOpError("of the module is not the mesh '") << text << "' that was asked for";
}

int64_t axisSize(MeshOp mesh, AxisAttr axis) { return *toRuntime(mesh).axisSize(toRuntime(axis)); }

bool isEntry(func::FuncOp func) {
  if (func->hasAttr(nn::NNDialect::kEntryAttrName))
    return true;
  auto module = func->getParentOfType<ModuleOp>();
  if (llvm::any_of(module.getOps<func::FuncOp>(),
                   [](func::FuncOp f) { return f->hasAttr(nn::NNDialect::kEntryAttrName); }))
    return false;
  std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(func, module);
  return uses && uses->empty();
}

ShardingAttr getSharding(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
    if (!func)
      return {};
    return func.getArgAttrOfType<ShardingAttr>(arg.getArgNumber(), CommDialect::kShardingAttrName);
  }
  auto result = cast<OpResult>(value);
  auto all = result.getOwner()->getAttrOfType<ArrayAttr>(CommDialect::kShardingsAttrName);
  if (!all || result.getResultNumber() >= all.size())
    return {};
  return dyn_cast<ShardingAttr>(all[result.getResultNumber()]);
}

void setSharding(Value value, ShardingAttr sharding) {
  if (!isa<RankedTensorType>(value.getType()))
    return;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    if (auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp()))
      func.setArgAttr(arg.getArgNumber(), CommDialect::kShardingAttrName, sharding);
    return;
  }
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  SmallVector<Attribute> all(op->getNumResults(), UnitAttr::get(op->getContext()));
  if (auto old = op->getAttrOfType<ArrayAttr>(CommDialect::kShardingsAttrName))
    all.assign(old.begin(), old.end());
  all[result.getResultNumber()] = sharding;
  op->setAttr(CommDialect::kShardingsAttrName, ArrayAttr::get(op->getContext(), all));
}

ShardingAttr getResultSharding(func::FuncOp func, unsigned index) {
  return func.getResultAttrOfType<ShardingAttr>(index, CommDialect::kShardingAttrName);
}

InFlightDiagnostic emitNamedError(Operation *op) {
  InFlightDiagnostic diag = op->emitOpError();
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    diag << "'" << name.getName().getValue() << "': ";
  return diag;
}

DimAxes dimsOf(ShardingAttr sharding) {
  DimAxes dims;
  for (DimAttr dim : sharding.getDims())
    dims.emplace_back(dim.getAxes());
  return dims;
}

ShardingAttr makeSharding(MeshOp mesh, const DimAxes &dims, ArrayRef<PartialAttr> partials) {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimAttr> attrs;
  for (const AxisList &dim : dims)
    attrs.push_back(DimAttr::get(context, dim));
  return ShardingAttr::get(context, FlatSymbolRefAttr::get(mesh.getSymNameAttr()), attrs, partials);
}

} // namespace braid
