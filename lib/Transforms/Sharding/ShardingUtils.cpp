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
  if (axesOf(*mesh) == *axes)
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

func::FuncOp calleeOf(func::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
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

void updateType(func::FuncOp func) {
  Block &block = func.getBody().front();
  func.setType(FunctionType::get(func.getContext(), block.getArgumentTypes(),
                                 block.getTerminator()->getOperandTypes()));
}

InFlightDiagnostic emitNamedError(Operation *op) {
  InFlightDiagnostic diag = op->emitOpError();
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    diag << "'" << name.getName().getValue() << "': ";
  return diag;
}

RankedTensorType withDim(Type type, int64_t dim, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = size;
  return tensor.clone(shape);
}

} // namespace braid
