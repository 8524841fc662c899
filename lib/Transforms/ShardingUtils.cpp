//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/ShardingUtils.h"

#include "StrategyOptions.h"

#include "braid/Runtime/Mesh.h"
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

LogicalResult projectDim(Operation *op, MeshOp mesh, const ShardingRule &rule,
                         const DimFactors &factors, ArrayRef<AxisAttr> dim, FactorAxes &axes) {
  size_t f = 0;
  int64_t rest = factors.empty() ? 1 : rule.factors[factors[0]].size;
  for (AxisAttr axis : dim) {
    int64_t size = axisSize(mesh, axis);
    while (f < factors.size() && rest == 1 && size != 1)
      if (++f < factors.size())
        rest = rule.factors[factors[f]].size;
    if (f == factors.size())
      return success();
    const Factor &factor = rule.factors[factors[f]];
    if (factor.kind == FactorKind::Whole)
      return success();
    if (rest % size != 0)
      return emitNamedError(op) << "dimension '" << factor.name << "' of size " << factor.size
                                << " does not divide over axis '" << axis.getName() << "' of size "
                                << size;
    rest /= size;
    axes[factors[f]].push_back(axis);
  }
  return success();
}

DimAxes dimsOf(const TensorFactors &tensor, const FactorAxes &axes) {
  DimAxes dims;
  for (const DimFactors &factors : tensor) {
    dims.emplace_back();
    for (int64_t factor : factors)
      llvm::append_range(dims.back(), axes[factor]);
  }
  return dims;
}

DimAxes dimsOf(ShardingAttr sharding) {
  DimAxes dims;
  for (DimAttr dim : sharding.getDims())
    dims.emplace_back(dim.getAxes());
  return dims;
}

void dropInexpressible(MeshOp mesh, const ShardingRule &rule, FactorAxes &axes) {
  // Dropping a factor may expose another; every round drops one at least.
  for (bool changed = true; changed;) {
    changed = false;
    auto check = [&](const TensorFactors &tensor) {
      for (const DimFactors &factors : tensor) {
        bool complete = true;
        for (int64_t factor : factors) {
          if (!complete && !axes[factor].empty()) {
            axes[factor].clear();
            changed = true;
          }
          int64_t shards = 1;
          for (AxisAttr axis : axes[factor])
            shards *= axisSize(mesh, axis);
          complete &= shards == rule.factors[factor].size;
        }
      }
    };
    llvm::for_each(rule.operands, check);
    llvm::for_each(rule.results, check);
  }
}

ShardingAttr makeSharding(MeshOp mesh, const DimAxes &dims, ArrayRef<PartialAttr> partials) {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimAttr> attrs;
  for (const AxisList &dim : dims)
    attrs.push_back(DimAttr::get(context, dim));
  return ShardingAttr::get(context, FlatSymbolRefAttr::get(mesh.getSymNameAttr()), attrs, partials);
}

} // namespace braid
