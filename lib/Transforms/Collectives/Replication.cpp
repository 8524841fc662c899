//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Replication.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

using AxisSet = llvm::SmallSetVector<AxisAttr, 2>;

/// The axes along which a value may differ; empty until the analysis reaches the value.
struct Differing {
  std::optional<AxisSet> axes;

  /// A value still differs along an axis of which the group covers only a sub-axis.
  void remove(GroupAttr group) {
    if (axes)
      axes->set_subtract(group.getAxes());
  }

  static Differing join(const Differing &lhs, const Differing &rhs) {
    Differing both = lhs;
    if (rhs.axes && both.axes)
      both.axes->set_union(*rhs.axes);
    return both.axes ? both : rhs;
  }
  bool operator==(const Differing &other) const { return axes == other.axes; }
  void print(raw_ostream &os) const {
    if (axes)
      llvm::interleaveComma(*axes, os);
    else
      os << "unreached";
  }
};

/// The axes that a sharding names, split or partial.
AxisSet axesOf(ShardingAttr sharding) {
  AxisSet axes;
  if (!sharding)
    return axes;
  for (DimAttr dim : sharding.getDims())
    axes.insert_range(dim.getAxes());
  for (PartialAttr partial : sharding.getPartials())
    axes.insert(partial.getAxis());
  return axes;
}

using AxesLattice = dataflow::Lattice<Differing>;

} // namespace

class ReplicationAnalysis : public dataflow::SparseForwardDataFlowAnalysis<AxesLattice> {
public:
  ReplicationAnalysis(DataFlowSolver &solver, MeshOp mesh) : SparseForwardDataFlowAnalysis(solver) {
    for (Attribute name : mesh.getAxisNames())
      everything.insert(AxisAttr::get(mesh.getContext(), cast<StringAttr>(name).getValue()));
  }

  using SparseForwardDataFlowAnalysis::getLatticeElement;

  LogicalResult initialize(Operation *top) override {
    // The branch taken may depend on the rank, so values passed by branches are not followed.
    top->walk([&](Block *block) {
      if (!block->isEntryBlock())
        for (BlockArgument argument : block->getArguments())
          setToEntryState(getLatticeElement(argument));
    });
    return SparseForwardDataFlowAnalysis::initialize(top);
  }

  LogicalResult visitOperation(Operation *op, ArrayRef<const AxesLattice *>,
                               ArrayRef<AxesLattice *> results) override {
    ProgramPoint *after = getProgramPointAfter(op);
    Differing differing = resultsOf(op, [&](Value value) {
      return static_cast<const AxesLattice *>(getLatticeElementFor(after, value))->getValue();
    });
    for (AxesLattice *result : results)
      propagateIfChanged(result, result->join(differing));
    return success();
  }

  /// The axes along which the results of `op` differ; nothing while one of its inputs is not
  /// reached.
  Differing resultsOf(Operation *op, function_ref<Differing(Value)> lookup) const {
    Differing differing{AxisSet()};
    llvm::SetVector<Value> inputs(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), inputs);
    for (Value input : inputs) {
      Differing of = lookup(input);
      if (!of.axes)
        return of;
      differing = Differing::join(differing, of);
    }
    if (isa<AllReduceOp, AllGatherOp>(op)) {
      differing.remove(cast<CollectiveOpInterface>(op).getGroup());
      return differing;
    }
    op->walk([&](Operation *nested) {
      if (auto parameter = dyn_cast<nn::ParameterOp>(nested))
        differing.axes->set_union(axesOf(parameter.getShardingAttr()));
      else if (auto part = dyn_cast<PartOp>(nested))
        differing.axes->insert_range(part.getGroup().getAxes());
      else if (auto assemble = dyn_cast<AssembleOp>(nested))
        differing.axes->insert_range(assemble.getGroup().getAxes());
      else if (auto scatter = dyn_cast<ReduceScatterOp>(nested))
        differing.axes->insert_range(scatter.getGroup().getAxes());
      else if (auto embedding = dyn_cast<nn::EmbeddingOp>(nested);
               embedding && embedding.getGroup())
        differing.axes->insert_range(embedding.getGroup()->getAxes());
      else if (isa<CollectiveOpInterface, StartOp, WaitOp>(nested) || !isMemoryEffectFree(nested))
        differing.axes->set_union(everything);
    });
    return differing;
  }

protected:
  void setToEntryState(AxesLattice *lattice) override {
    auto argument = dyn_cast<BlockArgument>(lattice->getAnchor());
    auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
    bool known = func && argument.getOwner()->isEntryBlock() && isEntry(func);
    propagateIfChanged(
        lattice, lattice->join(Differing{known ? axesOf(getSharding(argument)) : everything}));
  }

  void visitRegionSuccessors(ProgramPoint *, RegionBranchOpInterface, RegionSuccessor,
                             ArrayRef<dataflow::AbstractSparseLattice *> lattices) override {
    AbstractSparseForwardDataFlowAnalysis::setAllToEntryStates(lattices);
  }

private:
  AxisSet everything; ///< the axes of the mesh
};

Replication::Replication(ModuleOp module, MeshOp mesh) {
  dataflow::loadBaselineAnalyses(solver);
  analysis = solver.load<ReplicationAnalysis>(mesh);
  // These analyses do not fail; values that they did not reach do not count as replicated.
  (void)solver.initializeAndRun(module);
}

bool Replication::isReplicated(Value value, GroupAttr group) const {
  const auto *lattice = solver.lookupState<AxesLattice>(value);
  if (!lattice || !lattice->getValue().axes)
    return false;
  return llvm::none_of(*lattice->getValue().axes, [&](AxisAttr axis) {
    return llvm::any_of(group.getAxes(), [&](AxisAttr other) { return overlap(axis, other); });
  });
}

bool Replication::capturesReplicated(Operation *op, GroupAttr group) const {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::all_of(captured, [&](Value value) { return isReplicated(value, group); });
}

void Replication::update(Operation *op) {
  Differing differing = analysis->resultsOf(
      op, [&](Value value) { return analysis->getLatticeElement(value)->getValue(); });
  for (Value result : op->getResults())
    analysis->getLatticeElement(result)->getValue() = differing;
}

void Replication::forget(Operation *op) {
  for (Value result : op->getResults())
    solver.eraseState(result);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (BlockArgument argument : block.getArguments())
        solver.eraseState(argument);
}

void Replication::becomesSharded(Value value, GroupAttr group) {
  if (auto &axes = analysis->getLatticeElement(value)->getValue().axes)
    axes->insert_range(group.getAxes());
}

void Replication::becomesReplicated(Value value, GroupAttr group) {
  analysis->getLatticeElement(value)->getValue().remove(group);
}

} // namespace braid
