//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "braid/Runtime/Mesh.h"
#include "dialects/NN/IR/NN.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_APPLYSTRATEGY
#include "braid/Transforms/Passes.h.inc"

namespace {

constexpr StringLiteral kMeshName = "mesh";
constexpr StringLiteral kDataAxis = "dp", kTensorAxis = "tp";

struct MeshAxis {
  StringRef name;
  int64_t size;
};

/// Which dimension of a linear layer's weight tensor parallelism cuts; -1 for none.
int64_t weightDim(StringRef role) {
  return llvm::StringSwitch<int64_t>(role)
      .Cases({"attention.query", "attention.key", "attention.value", "mlp.up"}, 0)
      .Cases({"attention.output", "mlp.down"}, 1)
      .Default(-1);
}

struct ApplyStrategy : impl::ApplyStrategyBase<ApplyStrategy> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<MeshOp> op = findOrMakeMesh();
    if (failed(op) || failed(seed(*op)))
      signalPassFailure();
  }

private:
  FailureOr<SmallVector<MeshAxis>> parseMesh();
  FailureOr<MeshOp> findOrMakeMesh();
  LogicalResult seed(MeshOp mesh);
  LogicalResult seedTensorParallel(MeshOp mesh);
  LogicalResult seedDataParallel(MeshOp mesh);
  LogicalResult seedDim(Operation *op, Value value, int64_t dim, StringRef what, MeshOp mesh,
                        StringRef axis);
};

FailureOr<SmallVector<MeshAxis>> ApplyStrategy::parseMesh() {
  auto error = [&] { return getOperation().emitError("mesh '") << mesh << "' "; };
  SmallVector<MeshAxis> axes;
  SmallVector<StringRef> items;
  StringRef(mesh.getValue()).split(items, ',');
  for (StringRef item : items) {
    auto [name, size] = item.split('=');
    MeshAxis axis{name.trim(), 0};
    if (item.count('=') != 1 || axis.name.empty() || size.trim().getAsInteger(10, axis.size))
      return error() << "expects AXIS=SIZE separated by commas, got '" << item << "'";
    if (axis.name != kDataAxis && axis.name != kTensorAxis)
      return error() << "has unknown axis '" << axis.name << "', expects dp or tp";
    if (axis.size < 1)
      return error() << "expects a size of at least 1 for axis '" << axis.name << "', got "
                     << axis.size;
    if (llvm::any_of(axes, [&](const MeshAxis &other) { return other.name == axis.name; }))
      return error() << "names axis '" << axis.name << "' twice";
    axes.push_back(axis);
  }
  return axes;
}

FailureOr<MeshOp> ApplyStrategy::findOrMakeMesh() {
  auto existing = llvm::to_vector(getOperation().getOps<MeshOp>());
  if (mesh.empty())
    return getModuleMesh(getOperation());
  FailureOr<SmallVector<MeshAxis>> axes = parseMesh();
  if (failed(axes))
    return failure();
  Builder attrs(&getContext());
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : *axes) {
    names.push_back(attrs.getStringAttr(axis.name));
    sizes.push_back(axis.size);
  }
  if (!existing.empty()) {
    FailureOr<MeshOp> op = getModuleMesh(getOperation());
    if (failed(op))
      return failure();
    if (op->getAxisNames() != attrs.getArrayAttr(names) || op->getAxisSizes() != ArrayRef(sizes))
      return op->emitOpError("of the module is not the mesh '") << mesh << "' that was asked for";
    return op;
  }
  if (Operation *other = SymbolTable::lookupSymbolIn(getOperation(), kMeshName))
    return other->emitOpError("has the name '") << kMeshName << "' that the mesh is to get";
  OpBuilder builder(&getContext());
  builder.setInsertionPointToStart(getOperation().getBody());
  return MeshOp::create(builder, getOperation().getLoc(), kMeshName, attrs.getArrayAttr(names),
                        sizes, DenseI64ArrayAttr());
}

LogicalResult ApplyStrategy::seedDim(Operation *op, Value value, int64_t dim, StringRef what,
                                     MeshOp mesh, StringRef axis) {
  auto type = cast<RankedTensorType>(value.getType());
  AxisAttr attr = AxisAttr::get(&getContext(), axis);
  int64_t size = axisSize(mesh, attr);
  if (size == 1 || getSharding(value))
    return success();
  if (type.getDimSize(dim) % size != 0)
    return emitNamedError(op) << what << " of size " << type.getDimSize(dim)
                              << " does not divide over axis '" << axis << "' of size " << size;
  FlatSymbolRefAttr symbol = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  setSharding(value, ShardingAttr::replicated(symbol, type.getRank()).withDim(dim, attr));
  ++numSeeds;
  return success();
}

LogicalResult ApplyStrategy::seedTensorParallel(MeshOp mesh) {
  bool any = false;
  WalkResult result = getOperation().walk([&](nn::LinearOp linear) {
    int64_t dim = weightDim(linear.getRole().value_or(""));
    if (dim < 0)
      return WalkResult::advance();
    any = true;
    std::string what =
        ("role '" + *linear.getRole() + "': dimension '" + (dim == 0 ? "out" : "in") + "'").str();
    return WalkResult(seedDim(linear, linear.getWeight(), dim, what, mesh, kTensorAxis));
  });
  if (result.wasInterrupted())
    return failure();
  if (!any)
    return getOperation().emitError(
        "strategy 'tp' finds no nn.linear with one of the roles attention.query, "
        "attention.key, attention.value, attention.output, mlp.up, mlp.down");
  return success();
}

LogicalResult ApplyStrategy::seedDataParallel(MeshOp mesh) {
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    if (!isEntry(func) || func.isExternal())
      continue;
    for (BlockArgument argument : func.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0)
        continue;
      auto name =
          func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), nn::NNDialect::kNameAttrName);
      std::string what = "operand " +
                         (name ? "'" + name.str() + "'" : std::to_string(argument.getArgNumber())) +
                         ": dimension 0";
      if (failed(seedDim(func, argument, 0, what, mesh, kDataAxis)))
        return failure();
    }
  }
  return success();
}

LogicalResult ApplyStrategy::seed(MeshOp mesh) {
  // Local shapes would be cut a second time.
  for (auto func : getOperation().getOps<func::FuncOp>())
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (func.getArgAttr(i, CommDialect::kGlobalTypeAttrName))
        return func.emitOpError("is partitioned already");
  auto has = [&](StringRef axis) {
    return llvm::is_contained(mesh.getAxisNames().getAsValueRange<StringAttr>(), axis);
  };
  SmallVector<StringRef> parts;
  bool automatic = strategy == "auto";
  if (automatic)
    parts = {kTensorAxis, kDataAxis};
  else
    StringRef(strategy.getValue()).split(parts, ',');
  for (StringRef part : parts) {
    part = part.trim();
    if (part != kTensorAxis && part != kDataAxis)
      return getOperation().emitError("strategy '")
             << strategy << "' expects tp, dp or auto, got '" << part << "'";
    if (!has(part)) {
      if (automatic)
        continue;
      return mesh.emitOpError("has no axis '") << part << "' for strategy '" << strategy << "'";
    }
    if (failed(part == kTensorAxis ? seedTensorParallel(mesh) : seedDataParallel(mesh)))
      return failure();
  }
  return success();
}

} // namespace
} // namespace braid
