//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values and the operations between them as a graph of equations over factors, and the worklist
// that spreads shardings through it. Knows nothing of functions: calls and returns are equalities.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_SHARDING_SHARDINGGRAPH_H
#define BRAID_LIB_TRANSFORMS_SHARDING_SHARDINGGRAPH_H

#include "FactorStrategy.h"

#include "braid/Analysis/MeshLayouts.h"
#include "braid/Transforms/ShardingUtils.h"

namespace braid {

/// A tensor value, or a result of a function.
struct ShardingNode {
  mlir::RankedTensorType type;
  Layout dims;
  llvm::SmallVector<bool> closed; ///< takes no further axes
  bool stated = false;
  /// Costs nothing in any sharding, so it proposes only a stated one.
  bool isFree = false;
};

/// For values that are no tensors.
constexpr int kNoNode = -1;

/// An operation, or an equality between two values.
struct ShardingEquation {
  comm::ShardingRule rule;
  llvm::SmallVector<int> operands, results; ///< nodes of the rule's tensors
  SubAxes partials;                         ///< stated of the results
};

class ShardingGraph {
public:
  explicit ShardingGraph(comm::MeshOp mesh) : layouts(mesh) {}

  /// `fixed`: no dimension takes further axes.
  int addNode(mlir::RankedTensorType type, comm::ShardingAttr stated, bool fixed);
  /// The node's value has a stated sharding, whose open dimensions may take further axes.
  void setStated(int number, comm::ShardingAttr stated);
  size_t addEquation(ShardingEquation equation);
  void addEquality(int a, int b);

  /// Propagates to a fixpoint: first through operations that neither reduce nor broadcast, and
  /// backwards through broadcasts, then through all, both only without conflicts. Then conflicts
  /// are resolved and the results propagated. Dimensions only gain axes.
  void run();

  TensorState state(int node) const;

  std::vector<ShardingNode> nodes;
  std::vector<ShardingEquation> equations;
  int64_t visits = 0;

private:
  enum class Phase { Elementwise, Agreed, Settled };
  void run(Phase phase);
  FactorAxes axesOf(const ShardingEquation &equation, Phase phase) const;
  /// Adds the axes to the nodes of an equation, and lists those that changed.
  void writeBack(const ShardingEquation &equation, const FactorAxes &axes,
                 llvm::SmallVectorImpl<int> &changed);

  MeshLayouts layouts;
  std::vector<llvm::SmallVector<size_t, 4>> users; ///< equations of each node
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SHARDING_SHARDINGGRAPH_H
