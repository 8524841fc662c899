//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Reshard.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace braid {

int64_t Resharder::parts(const std::vector<int> &axes) const {
  int64_t n = 1;
  for (int axis : axes)
    n *= axisSizes[axis];
  return n;
}

SaturatingCount Resharder::localBytes(const Cuts &cuts) const {
  SaturatingCount bytes = elementBytes;
  for (size_t d = 0; d < shape.size(); ++d)
    bytes *= shape[d] / parts(cuts[d]);
  return bytes;
}

bool Resharder::isFree(const Cuts &cuts, int axis) const {
  for (const std::vector<int> &dim : cuts)
    for (int other : dim) {
      if (other == axis)
        return false;
      for (auto [a, b] : exclusive)
        if ((a == axis && b == other) || (b == axis && a == other))
          return false;
    }
  return true;
}

/// All other arrangements of the axes in use with as many parts of each dimension: a rank's part is
/// then as large and lies elsewhere.
void Resharder::addPermutations(const Cuts &cuts, std::vector<Edge> &edges) const {
  std::vector<int> rest;
  for (const std::vector<int> &dim : cuts)
    rest.insert(rest.end(), dim.begin(), dim.end());
  if (rest.size() < 2)
    return;
  std::sort(rest.begin(), rest.end());
  Cuts next(cuts.size());
  // Where the axis begins to count in its dimension.
  auto strides = [&](const Cuts &of) {
    std::map<int, std::pair<size_t, int64_t>> places;
    for (size_t d = 0; d < of.size(); ++d) {
      int64_t stride = 1;
      for (size_t i = of[d].size(); i-- > 0; stride *= axisSizes[of[d][i]])
        places[of[d][i]] = {d, stride};
    }
    return places;
  };
  auto before = strides(cuts);
  std::function<void(size_t)> fill = [&](size_t d) {
    if (d == cuts.size()) {
      if (!rest.empty() || next == cuts)
        return;
      ReshardStep step{ReshardStep::Permute, 0, 0, {}, next};
      auto after = strides(next);
      for (const std::vector<int> &dim : cuts)
        for (int axis : dim)
          if (before[axis] != after[axis]) // a rank's coordinate in the others stays
            step.axes.push_back(axis);
      edges.push_back({std::move(step), {localBytes(cuts), 1, 0}});
      return;
    }
    int64_t have = parts(next[d]), want = parts(cuts[d]);
    if (have == want)
      fill(d + 1);
    for (size_t i = 0; i < rest.size(); ++i) {
      int axis = rest[i];
      if (want % (have * axisSizes[axis]) != 0)
        continue;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      next[d].push_back(axis);
      fill(d);
      next[d].pop_back();
      rest.insert(rest.begin() + static_cast<std::ptrdiff_t>(i), axis);
    }
  };
  fill(0);
}

std::vector<Resharder::Edge> Resharder::edges(const Cuts &cuts) const {
  std::vector<Edge> edges;
  auto add = [&](ReshardStep step, ReshardCost cost) { edges.push_back({std::move(step), cost}); };
  SaturatingCount bytes = localBytes(cuts);
  for (size_t d = 0; d < cuts.size(); ++d) {
    for (int axis = 0; axis < static_cast<int>(axisSizes.size()); ++axis) {
      if (!isFree(cuts, axis) || !divides(cuts, d, axisSizes[axis]))
        continue;
      Cuts next = cuts;
      next[d].push_back(axis);
      add({ReshardStep::Slice, d, 0, {axis}, std::move(next)}, {0, 0, 1});
    }
    for (size_t count = 1; count <= cuts[d].size(); ++count) {
      auto first = cuts[d].end() - static_cast<std::ptrdiff_t>(count);
      std::vector<int> minor(first, cuts[d].end());
      int64_t n = parts(minor);
      Cuts joined = cuts;
      joined[d].resize(cuts[d].size() - count);
      add({ReshardStep::Gather, d, 0, minor, joined}, {bytes * (n - 1), n > 1, 0});
      for (size_t e = 0; e < cuts.size(); ++e) {
        if (e == d || !divides(cuts, e, n))
          continue;
        Cuts next = joined;
        next[e].insert(next[e].end(), minor.begin(), minor.end());
        add({ReshardStep::Exchange, d, e, minor, std::move(next)}, {bytes / n * (n - 1), n > 1, 0});
      }
    }
  }
  addPermutations(cuts, edges);
  return edges;
}

std::optional<ReshardPath> Resharder::cheapest(const std::vector<Cuts> &from,
                                               const Cuts &to) const {
  // Dijkstra's algorithm over forms. Of equally cheap ones, those found first go first.
  struct Node {
    ReshardCost cost;
    size_t source;
    std::optional<Cuts> before;
    ReshardStep step;
  };
  std::map<Cuts, Node> best;
  std::map<std::pair<decltype(ReshardCost().key()), int64_t>, Cuts> open;
  std::set<Cuts> done;
  int64_t order = 0;
  auto reach = [&](const Cuts &cuts, Node node) {
    auto [it, isNew] = best.try_emplace(cuts, node);
    if (!isNew && !(node.cost < it->second.cost))
      return;
    open.emplace(std::pair(node.cost.key(), order++), cuts);
    it->second = std::move(node);
  };
  for (size_t i = 0; i < from.size(); ++i)
    reach(from[i], {{}, i, std::nullopt, {}});
  while (!open.empty()) {
    Cuts cuts = open.begin()->second;
    open.erase(open.begin());
    if (!done.insert(cuts).second)
      continue;
    const Node &node = best.at(cuts); // stays where it is
    if (cuts == to) {
      ReshardPath path{node.source, node.cost, {}};
      for (const Node *at = &best.at(cuts); at->before; at = &best.at(*at->before))
        path.steps.push_back(at->step);
      std::reverse(path.steps.begin(), path.steps.end());
      return path;
    }
    for (Edge &edge : edges(cuts)) {
      Cuts next = edge.step.after;
      reach(next, {node.cost + edge.cost, node.source, cuts, std::move(edge.step)});
    }
  }
  return std::nullopt;
}

std::vector<int64_t> Resharder::permutation(const Cuts &before, const ReshardStep &step) const {
  /// Which part of each dimension a rank has, by its coordinates.
  auto partOf = [&](const Cuts &cuts, const std::map<int, int64_t> &coordinates) {
    std::vector<int64_t> part;
    for (const std::vector<int> &dim : cuts) {
      int64_t index = 0;
      for (int axis : dim) {
        auto it = coordinates.find(axis);
        index = index * axisSizes[axis] + (it == coordinates.end() ? 0 : it->second);
      }
      part.push_back(index);
    }
    return part;
  };
  int64_t n = parts(step.axes);
  std::map<std::vector<int64_t>, int64_t> owners;
  std::vector<std::map<int, int64_t>> ranks;
  for (int64_t position = 0; position < n; ++position) {
    std::map<int, int64_t> coordinates;
    int64_t rest = position;
    for (size_t i = step.axes.size(); i-- > 0; rest /= axisSizes[step.axes[i]])
      coordinates[step.axes[i]] = rest % axisSizes[step.axes[i]];
    owners[partOf(before, coordinates)] = position;
    ranks.push_back(std::move(coordinates));
  }
  std::vector<int64_t> pairs;
  for (int64_t position = 0; position < n; ++position) {
    pairs.push_back(owners.at(partOf(step.after, ranks[static_cast<size_t>(position)])));
    pairs.push_back(position);
  }
  return pairs;
}

} // namespace braid
