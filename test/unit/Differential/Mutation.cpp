//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Mutation.h"

#include "braid/Transforms/ShardingUtils.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>

using namespace mlir;
using namespace braid::comm;

namespace braid::test {
namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Another axis of the mesh of the same size; null where there is none.
GroupAttr otherGroup(Operation *op, GroupAttr group) {
  MeshOp mesh = lookupMesh(op, group.getMesh());
  if (group.getAxes().size() != 1 || !group.getAxes()[0].isFull())
    return {};
  for (auto [name, size] :
       llvm::zip(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes()))
    if (name != group.getAxes()[0].getName() && size == groupSize(op, group))
      return GroupAttr::get(op->getContext(), group.getMesh(),
                            {AxisAttr::get(op->getContext(), name)});
  return {};
}

void takeInputs(Operation *op) {
  op->replaceAllUsesWith(cast<CollectiveOpInterface>(op).getInputs());
  op->erase();
}

void repeat(Operation *op) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  Operation *again = builder.clone(*op);
  again->setOperands(op->getResults());
  for (auto [before, after] : llvm::zip(op->getResults(), again->getResults()))
    before.replaceAllUsesExcept(after, again);
}

void reduceByMaximum(Operation *op) { cast<AllReduceOp>(op).setKind(ReduceKind::Max); }

void broadcastInstead(Operation *op) {
  OpBuilder builder(op);
  auto reduce = cast<AllReduceOp>(op);
  Operation *broadcast =
      BroadcastOp::create(builder, op->getLoc(), op->getResultTypes(), reduce.getInputs(),
                          builder.getI64IntegerAttr(0), reduce.getGroup(), StringAttr());
  op->replaceAllUsesWith(broadcast);
  op->erase();
}

void useOtherGroup(Operation *op) {
  auto group = op->getAttrOfType<GroupAttr>("group");
  op->setAttr("group", otherGroup(op, group));
}

void reverseGroup(Operation *op) {
  auto group = op->getAttrOfType<GroupAttr>("group");
  SmallVector<AxisAttr> axes(group.getAxes());
  std::reverse(axes.begin(), axes.end());
  op->setAttr("group", GroupAttr::get(op->getContext(), group.getMesh(), axes));
}

/// Gathers along another dimension and reshapes to the type that was asked for.
void gatherAlongAnother(Operation *op) {
  auto gather = cast<AllGatherOp>(op);
  OpBuilder builder(op);
  auto from = typeOf(gather.getInputs()[0]), to = typeOf(gather.getOutputs()[0]);
  int64_t other = gather.getDim() == 0 ? 1 : 0;
  auto between = withDim(from, other, from.getDimSize(other) * groupSize(op, gather.getGroup()));
  Value gathered =
      AllGatherOp::create(builder, op->getLoc(), TypeRange{between}, gather.getInputs(),
                          builder.getI64IntegerAttr(other), gather.getGroup(), StringAttr())
          .getResult(0);
  ReassociationIndices all;
  for (int64_t d = 0; d < to.getRank(); ++d)
    all.push_back(d);
  auto flat = RankedTensorType::get({to.getNumElements()}, to.getElementType());
  Value collapsed = tensor::CollapseShapeOp::create(builder, op->getLoc(), flat, gathered,
                                                    SmallVector<ReassociationIndices>{all});
  Value expanded = tensor::ExpandShapeOp::create(builder, op->getLoc(), to, collapsed,
                                                 SmallVector<ReassociationIndices>{all});
  op->getResult(0).replaceAllUsesWith(expanded);
  op->erase();
}

/// The addition of a bias after a reduction; null where none follows.
Operation *biasAfter(Operation *op) {
  if (op->getNumResults() != 1 || !op->getResult(0).hasOneUse())
    return nullptr;
  auto add = dyn_cast<nn::AddOp>(*op->getResult(0).user_begin());
  return add && add.getLhs() == op->getResult(0) ? add : nullptr;
}

void addBiasBefore(Operation *op) {
  Operation *add = biasAfter(op);
  Value sums = op->getOperand(0);
  op->moveBefore(add->getNextNode());
  add->getResult(0).replaceAllUsesWith(op->getResult(0));
  add->setOperand(0, sums);
  op->setOperand(0, add->getResult(0));
}

void sliceInstead(Operation *op) {
  OpBuilder builder(op);
  auto scatter = cast<ReduceScatterOp>(op);
  Value slice =
      PartOp::create(builder, op->getLoc(), op->getResult(0).getType(), scatter.getInputs()[0],
                     scatter.getDim(), /*shift=*/0, scatter.getGroup());
  op->getResult(0).replaceAllUsesWith(slice);
  op->erase();
}

void rotatePairs(Operation *op) {
  auto permute = cast<PermuteOp>(op);
  SmallVector<int64_t> pairs(permute.getPairs());
  for (size_t i = 0; i < pairs.size(); i += 2)
    pairs[i] = permute.getPairs()[(i + 2) % pairs.size()];
  permute.setPairs(pairs);
}

/// A result that is in parts is declared the same on all ranks.
void declareWhole(Operation *op) {
  auto func = cast<func::FuncOp>(op);
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    func.removeResultAttr(i, StringAttr::get(op->getContext(), CommDialect::kShardingAttrName));
    func.removeResultAttr(i, StringAttr::get(op->getContext(), CommDialect::kGlobalTypeAttrName));
    func.removeResultAttr(i, StringAttr::get(op->getContext(), nn::NNDialect::kUnpaddedAttrName));
  }
}

/// A result that is the same on all ranks is declared in parts over the last axis.
void declareParts(Operation *op) {
  auto func = cast<func::FuncOp>(op);
  MeshOp mesh = *func->getParentOfType<ModuleOp>().getOps<MeshOp>().begin();
  auto type = cast<RankedTensorType>(func.getResultTypes()[0]);
  auto axis = AxisAttr::get(op->getContext(),
                            cast<StringAttr>(*std::prev(mesh.getAxisNames().end())).getValue());
  SmallVector<DimAttr> dims(type.getRank(), DimAttr::get(op->getContext(), {}));
  dims[0] = DimAttr::get(op->getContext(), {axis});
  func.setResultAttr(
      0, CommDialect::kShardingAttrName,
      ShardingAttr::get(op->getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims, {}));
  func.setResultAttr(
      0, CommDialect::kGlobalTypeAttrName,
      TypeAttr::get(withDim(type, 0, type.getDimSize(0) * mesh.getAxisSizes().back())));
}

} // namespace

std::vector<Mutation> mutationsOf(ModuleOp module) {
  std::vector<Mutation> mutations;
  size_t number = 0;
  module.walk([&](Operation *op) {
    size_t n = number++;
    auto add = [&](const char *kind, void (*apply)(Operation *)) {
      mutations.push_back({kind, n, apply});
    };
    auto ranks = [&](GroupAttr group) { return groupSize(op, group); };
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (collective && ranks(collective.getGroup()) > 1) {
      GroupAttr group = collective.getGroup();
      if (isa<AllReduceOp>(op)) {
        add("drop an all_reduce", takeInputs);
        add("reduce twice", repeat);
        add("a maximum instead of a sum", reduceByMaximum);
        add("broadcast instead of all_reduce", broadcastInstead);
        if (biasAfter(op))
          add("bias before the reduction", addBiasBefore);
      }
      if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp>(op) && otherGroup(op, group))
        add("over another axis", useOtherGroup);
      if (isa<AllGatherOp, ReduceScatterOp, AllToAllOp>(op) && group.getAxes().size() > 1)
        add("axes in another order", reverseGroup);
      if (isa<AllGatherOp>(op) && op->getNumResults() == 1 &&
          typeOf(op->getResult(0)).getRank() > 1)
        add("gather along another dimension", gatherAlongAnother);
      if (isa<ReduceScatterOp>(op) && op->getNumResults() == 1)
        add("a slice instead of reduce_scatter", sliceInstead);
      if (isa<PermuteOp>(op))
        add("other pairs", rotatePairs);
    }
    if (auto slice = dyn_cast<PartOp>(op); slice && ranks(slice.getGroup()) > 1) {
      if (otherGroup(op, slice.getGroup()))
        add("a slice over another axis", useOtherGroup);
      if (slice.getGroup().getAxes().size() > 1)
        add("a slice with axes in another order", reverseGroup);
    }
    if (auto func = dyn_cast<func::FuncOp>(op); func && isEntry(func)) {
      bool cut = false;
      for (unsigned i = 0; i < func.getNumResults(); ++i)
        if (ShardingAttr sharding = getResultSharding(func, i))
          cut |= !sharding.isReplicated();
      if (cut)
        add("a result in parts declared whole", declareWhole);
      else if (func.getNumResults() == 1 &&
               !func.getResultAttr(0, nn::NNDialect::kUnpaddedAttrName) &&
               cast<RankedTensorType>(func.getResultTypes()[0]).getRank() > 0)
        add("a whole result declared in parts", declareParts);
    }
  });
  return mutations;
}

void applyMutation(ModuleOp module, const Mutation &mutation) {
  size_t number = 0;
  Operation *found = nullptr;
  module.walk([&](Operation *op) {
    if (number++ == mutation.operation)
      found = op;
  });
  mutation.apply(found);
}

} // namespace braid::test
