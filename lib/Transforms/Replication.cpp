//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Replication.h"

#include "dialects/NN/IR/NN.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {

/// The axes that a sharding names, cut or partial.
static SmallVector<AxisAttr> axesOf(ShardingAttr sharding) {
  SmallVector<AxisAttr> axes;
  if (!sharding)
    return axes;
  for (DimAttr dim : sharding.getDims())
    llvm::append_range(axes, dim.getAxes());
  for (PartialAttr partial : sharding.getPartials())
    axes.push_back(partial.getAxis());
  return axes;
}

Replication::Replication(ModuleOp module, MeshOp mesh) {
  for (Attribute name : mesh.getAxisNames())
    everything.push_back(AxisAttr::get(mesh.getContext(), cast<StringAttr>(name).getValue()));
  DenseSet<Operation *> called;
  module.walk([&](func::CallOp call) {
    if (Operation *callee = SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr()))
      called.insert(callee);
  });
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    for (BlockArgument argument : func.getArguments()) {
      auto stated = func.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(),
                                                        CommDialect::kShardingAttrName);
      differs[argument]; // Reached by calls only, until one says otherwise.
      if (isEntry(func))
        join(argument, axesOf(stated));
      else if (!called.contains(func))
        join(argument, everything);
    }
    // What branches pass on is not followed.
    for (Block &block : llvm::drop_begin(func.getBody()))
      for (BlockArgument argument : block.getArguments())
        join(argument, everything);
  }
  // Axes are only ever added, so this ends.
  do {
    changed = false;
    module.walk([&](Operation *op) {
      if (!isa<ModuleOp, func::FuncOp>(op))
        visit(op);
    });
  } while (changed);
}

void Replication::join(Value value, ArrayRef<AxisAttr> axes) {
  auto [it, isNew] = differs.try_emplace(value);
  changed |= isNew;
  for (AxisAttr axis : axes)
    if (!llvm::is_contained(it->second, axis)) {
      it->second.push_back(axis);
      changed = true;
    }
}

void Replication::visitCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee || callee.isExternal()) {
    for (Value result : call.getResults())
      join(result, everything);
    return;
  }
  for (auto [operand, argument] : llvm::zip_equal(call.getOperands(), callee.getArguments())) {
    Axes axes = differs.lookup(operand);
    join(argument, axes);
  }
  callee.walk([&](func::ReturnOp op) {
    for (auto [value, result] : llvm::zip_equal(op.getOperands(), call.getResults())) {
      Axes axes = differs.lookup(value);
      join(result, axes);
    }
  });
}

void Replication::visit(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return visitCall(call);
  Axes axes;
  auto add = [&](ArrayRef<AxisAttr> more) {
    for (AxisAttr axis : more)
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
  };
  for (Value operand : op->getOperands())
    add(differs.lookup(operand));
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    add(axesOf(parameter.getShardingAttr()));
  else if (isa<AllReduceOp, AllGatherOp>(op))
    // An axis of which the group covers a part only goes on differing.
    llvm::erase_if(axes, [&](AxisAttr axis) {
      return llvm::is_contained(cast<CollectiveOpInterface>(op).getGroup().getAxes(), axis);
    });
  else if (auto slice = dyn_cast<LocalSliceOp>(op))
    add(slice.getGroup().getAxes());
  else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    add(scatter.getGroup().getAxes());
  else if (auto embedding = dyn_cast<nn::EmbeddingOp>(op); embedding && embedding.getGroup())
    add(embedding.getGroup()->getAxes());
  else if (isa<CollectiveOpInterface, StartOp, WaitOp>(op) || !isMemoryEffectFree(op))
    add(everything);
  // Within regions: what an operation's operands and captures differ along, its blocks do.
  if (op->getNumRegions() != 0) {
    op->walk([&](Operation *nested) {
      if (nested != op)
        for (Value operand : nested->getOperands())
          add(differs.lookup(operand));
    });
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          join(argument, axes);
  }
  for (Value result : op->getResults())
    join(result, axes);
}

void Replication::setLike(Value value, Value old) {
  auto it = differs.find(old);
  if (it == differs.end())
    return;
  Axes axes = it->second;
  differs[value] = std::move(axes);
}

bool Replication::isReplicated(Value value, GroupAttr group) const {
  auto it = differs.find(value);
  if (it == differs.end())
    return false;
  return llvm::none_of(it->second, [&](AxisAttr axis) {
    return llvm::any_of(group.getAxes(), [&](AxisAttr other) { return overlap(axis, other); });
  });
}

} // namespace braid
