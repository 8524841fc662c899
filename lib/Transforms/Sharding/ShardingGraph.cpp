//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ShardingGraph.h"

#include <deque>

using namespace mlir;
using namespace braid::comm;

namespace braid {

int ShardingGraph::addNode(RankedTensorType type, ShardingAttr stated, bool fixed) {
  const int number = static_cast<int>(nodes.size());
  ShardingNode node{type, Layout(type.getRank()), {}};
  node.closed.assign(type.getRank(), fixed);
  nodes.push_back(std::move(node));
  users.emplace_back();
  if (stated)
    setStated(number, stated);
  return number;
}

void ShardingGraph::setStated(int number, ShardingAttr stated) {
  ShardingNode &node = nodes[number];
  node.stated = true;
  node.dims = layouts.layout(stated);
  for (auto [closed, dim] : llvm::zip_equal(node.closed, stated.getDims()))
    closed |= !dim.getOpen();
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

/// Whether a tensor has all shardable factors.
static bool hasAllFactors(const ShardingRule &rule, const TensorFactors &tensor) {
  llvm::SmallDenseSet<int64_t> own;
  for (const DimFactors &factors : tensor)
    own.insert(factors.begin(), factors.end());
  for (auto [f, factor] : llvm::enumerate(rule.factors))
    if (factor.kind == FactorKind::Parallel && factor.size != 1 &&
        !own.contains(static_cast<int64_t>(f)))
      return false;
  return true;
}

FactorAxes ShardingGraph::axesOf(const ShardingEquation &equation, Phase phase) const {
  const ShardingRule &rule = equation.rule;
  bool elementwise = phase == Phase::Elementwise;
  if (elementwise && llvm::any_of(rule.factors, [](const Factor &factor) {
        return factor.kind == FactorKind::Reduction && factor.size != 1;
      }))
    return FactorAxes(rule.factors.size());
  auto states = [&](ArrayRef<int> list, ArrayRef<TensorFactors> tensors) {
    std::vector<TensorState> states;
    for (auto [node, tensor] : llvm::zip_equal(list, tensors)) {
      states.push_back(state(node));
      states.back().proposes &= !elementwise || hasAllFactors(rule, tensor);
    }
    return states;
  };
  FactorStrategy strategy(rule, states(equation.operands, rule.operands),
                          states(equation.results, rule.results), equation.partials);
  return phase == Phase::Settled ? strategy.settled().axes : strategy.agreed();
}

void ShardingGraph::writeBack(const ShardingEquation &equation, const FactorAxes &axes,
                              SmallVectorImpl<int> &changed) {
  auto write = [&](const TensorFactors &tensor, int id) {
    if (id == kNoNode)
      return;
    ShardingNode &node = nodes[id];
    for (auto [d, wanted] : llvm::enumerate(dimsOf(tensor, axes))) {
      std::optional<SubAxes> more =
          node.closed[d] ? std::nullopt : axesBeyond(node.dims[d], wanted);
      if (!more)
        continue;
      for (const SubAxis &axis : *more) {
        if (!isFree(node.dims, axis))
          break;
        appendMerged(node.dims[d], axis);
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
