//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ShardingGraph.h"

#include "AxisPieces.h"

#include <deque>

using namespace mlir;
using namespace braid::comm;

namespace braid {

int ShardingGraph::addNode(RankedTensorType type, ShardingAttr stated, bool fixed) {
  ShardingNode node{type, DimAxes(type.getRank()), {}, static_cast<bool>(stated)};
  node.closed.assign(type.getRank(), fixed);
  if (stated)
    for (auto [d, attr] : llvm::enumerate(stated.getDims())) {
      node.closed[d] = fixed || !attr.getOpen();
      node.dims[d] = joinPieces(mesh, attr.getAxes());
    }
  nodes.push_back(std::move(node));
  users.emplace_back();
  return static_cast<int>(nodes.size()) - 1;
}

size_t ShardingGraph::addEquation(ShardingEquation equation) {
  size_t index = equations.size();
  for (const auto *list : {&equation.operands, &equation.results})
    for (int node : *list)
      if (node != kNoNode && !llvm::is_contained(users[node], index))
        users[node].push_back(index);
  equations.push_back(std::move(equation));
  return index;
}

void ShardingGraph::addEquality(int a, int b) {
  if (a == kNoNode || b == kNoNode)
    return;
  ShardingEquation equation{{}, {a}, {b}, {}};
  TensorFactors tensor;
  for (auto [i, size] : llvm::enumerate(nodes[a].type.getShape()))
    tensor.push_back({equation.rule.addFactor(std::to_string(i), size)});
  equation.rule.operands = equation.rule.results = {tensor};
  addEquation(std::move(equation));
}

TensorState ShardingGraph::state(int node) const {
  TensorState state;
  if (node == kNoNode)
    return state;
  const ShardingNode &of = nodes[node];
  state.type = of.type;
  state.dims = of.dims;
  state.closed = of.closed;
  state.stated = of.stated;
  state.isFree = of.isFree;
  state.proposes = of.stated || !of.isFree;
  state.value = node;
  return state;
}

FactorStrategy ShardingGraph::strategy(const ShardingEquation &equation) const {
  auto states = [&](ArrayRef<int> list) {
    std::vector<TensorState> states;
    for (int node : list)
      states.push_back(state(node));
    return states;
  };
  return {mesh, equation.rule, states(equation.operands), states(equation.results),
          equation.partials};
}

/// Whether a tensor has all shardable factors.
static bool isFull(const ShardingRule &rule, const TensorFactors &tensor) {
  for (auto [f, factor] : llvm::enumerate(rule.factors))
    if (factor.kind == FactorKind::Parallel && factor.size != 1 &&
        llvm::none_of(tensor, [f = static_cast<int64_t>(f)](const DimFactors &factors) {
          return llvm::is_contained(factors, f);
        }))
      return false;
  return true;
}

FactorAxes ShardingGraph::axesOf(const ShardingEquation &equation, Phase phase) const {
  if (phase == Phase::Settled)
    return strategy(equation).settled().axes;
  if (phase == Phase::Agreed)
    return strategy(equation).agreed();
  const ShardingRule &rule = equation.rule;
  if (llvm::any_of(rule.factors, [](const Factor &factor) {
        return factor.kind == FactorKind::Reduction && factor.size != 1;
      }))
    return FactorAxes(rule.factors.size());
  auto states = [&](ArrayRef<int> list, ArrayRef<TensorFactors> tensors) {
    std::vector<TensorState> states;
    for (auto [node, tensor] : llvm::zip_equal(list, tensors)) {
      states.push_back(state(node));
      states.back().proposes &= isFull(rule, tensor);
    }
    return states;
  };
  return FactorStrategy(mesh, rule, states(equation.operands, rule.operands),
                        states(equation.results, rule.results), equation.partials)
      .agreed();
}

void ShardingGraph::writeBack(const ShardingEquation &equation, const FactorAxes &axes,
                              SmallVectorImpl<int> &changed) {
  auto write = [&](const TensorFactors &tensor, int id) {
    if (id == kNoNode)
      return;
    ShardingNode &node = nodes[id];
    for (auto [d, wanted] : llvm::enumerate(dimsOf(mesh, tensor, axes))) {
      std::optional<AxisList> more =
          node.closed[d] ? std::nullopt : axesBeyond(mesh, node.dims[d], wanted);
      if (!more)
        continue;
      for (AxisAttr axis : *more) {
        if (llvm::any_of(node.dims, [&](const AxisList &dim) {
              return llvm::any_of(dim, [&](AxisAttr other) { return overlap(other, axis); });
            }))
          break;
        node.dims[d].push_back(axis);
        node.dims[d] = joinPieces(mesh, node.dims[d]);
        if (!llvm::is_contained(changed, id))
          changed.push_back(id);
      }
    }
  };
  for (auto [tensor, id] : llvm::zip_equal(equation.rule.operands, equation.operands))
    write(tensor, id);
  for (auto [tensor, id] : llvm::zip_equal(equation.rule.results, equation.results))
    write(tensor, id);
}

void ShardingGraph::run(Phase phase) {
  std::deque<size_t> work;
  std::vector<bool> waits(equations.size(), true);
  for (size_t i = 0; i < equations.size(); ++i)
    work.push_back(i);
  SmallVector<int> changed;
  while (!work.empty()) {
    size_t index = work.front();
    work.pop_front();
    waits[index] = false;
    ++visits;
    changed.clear();
    writeBack(equations[index], axesOf(equations[index], phase), changed);
    for (int node : changed)
      for (size_t user : users[node])
        if (!waits[user]) {
          waits[user] = true;
          work.push_back(user);
        }
  }
}

void ShardingGraph::run() {
  for (Phase phase : {Phase::Elementwise, Phase::Agreed, Phase::Settled})
    run(phase);
}

} // namespace braid
