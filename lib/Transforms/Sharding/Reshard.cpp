//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Reshard.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace braid {

using runtime::CollectiveKind;

SaturatingCount Resharder::localBytes(const Layout &layout) const {
  SaturatingCount bytes = elementBytes;
  for (size_t d = 0; d < shape.size(); ++d)
    bytes *= shape[d] / shards(layout[d]);
  return bytes;
}

/// A* search from layout to layout.
class ReshardSearch {
public:
  ReshardSearch(const Resharder &resharder, const Layout &to, int64_t maxReached)
      : resharder(resharder), to(to), maxReached(maxReached), targetDigits(digitsOf(to)),
        targetBytes(resharder.localBytes(to)) {}

  ReshardPath run(const std::vector<Layout> &from) {
    for (size_t i = 0; i < from.size(); ++i)
      reach(from[i], {{}, i, nullptr, {}});
    ReshardPath path;
    while (!open.empty() && (!best || reached < maxReached)) {
      auto [key, at] = *open.begin();
      open.erase(open.begin());
      if (at->second.isDone)
        continue;
      if (best && !(std::get<0>(key) < best->cost.key()))
        break;
      at->second.isDone = true;
      finishByGathers(*at);
      finishByPermute(*at);
      expand(*at);
    }
    path.reached = reached;
    path.from = best->before->second.source;
    path.cost = best->cost;
    path.steps = std::move(best->steps);
    for (const Entry *at = best->before; at; at = at->second.before)
      path.steps.insert(path.steps.begin(), at->second.steps.begin(), at->second.steps.end());
    return path;
  }

private:
  struct Node {
    CommunicationCost cost;
    size_t source;
    const std::pair<const Layout, Node> *before;
    std::vector<ReshardStep> steps; ///< from `before` to here
    bool isDone = false, hasMoved = false;
  };
  using Entry = std::pair<const Layout, Node>;
  struct Best {
    CommunicationCost cost;
    const Entry *before;
    std::vector<ReshardStep> steps;
  };

  static void slice(Layout &layout, size_t dim, const SubAxes &axes, Node &node) {
    if (axes.empty())
      return;
    appendMerged(layout[dim], axes);
    node.steps.push_back({ReshardStep::Slice, dim, 0, axes, layout});
    node.cost = node.cost + sliceCost();
  }

  /// Slices in their final place are free and leave less to send.
  void sliceInPlace(Layout &layout, Node &node) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t d = 0; d < to.size(); ++d) {
        SubAxes prefix = commonPrefix(layout[d], to[d]), added;
        if (prefix != layout[d])
          continue;
        Layout next = layout;
        for (const SubAxis &subAxis : withoutPrefix(to[d], prefix))
          if (!sliceFree(next, d, subAxis, added))
            break;
        changed |= !added.empty();
        slice(layout, d, added, node);
      }
    }
  }

  /// Slices over the free sub-axes of `subAxis`, major first. Returns whether all of it was free.
  static bool sliceFree(Layout &layout, size_t dim, SubAxis subAxis, SubAxes &added) {
    while (subAxis.size() > 1) {
      SubAxis next = subAxis;
      for (int64_t p : primeFactors(subAxis.size()))
        if (next = {subAxis.axis, subAxis.begin, subAxis.begin * p}; isFree(layout, next))
          break;
      if (!isFree(layout, next))
        return false;
      appendMerged(layout[dim], next);
      appendMerged(added, next);
      subAxis.begin = next.end;
    }
    return true;
  }

  /// A lower bound of the bytes still to receive: a rank's shard less what it already has.
  /// Ranks are equal on average; digits that coincide by chance count only where they are
  /// independent, so that the bound stays a lower one.
  SaturatingCount leastBytes(const Layout &layout) const {
    std::vector<Digit> digits = digitsOf(layout);
    SaturatingCount common = resharder.localBytes(layout);
    int64_t chance = 1;
    // Equal digits, by number of their equivalence class.
    std::vector<std::pair<Digit, int>> classes;
    int numClasses = 0;
    auto classOf = [&](const Digit &digit) {
      for (auto &[other, number] : classes)
        if (other.dim == digit.dim && other.major == digit.major &&
            other.axis.size() == digit.axis.size())
          return number;
      for (auto &[other, number] : classes)
        if (other.dim == digit.dim && other.major % (digit.major * digit.axis.size()) != 0 &&
            digit.major % (other.major * other.axis.size()) != 0)
          return -1;
      classes.emplace_back(digit, numClasses);
      return numClasses++;
    };
    for (const Digit &want : targetDigits) {
      const Digit *have = nullptr;
      bool isFree = true;
      for (const Digit &digit : digits) {
        isFree &= digit.axis.isDisjoint(want.axis);
        if (digit.axis == want.axis)
          have = &digit;
      }
      if (isFree) {
        chance *= want.axis.size();
      } else if (have && !(*have == want)) {
        int a = classOf(*have), b = classOf(want);
        if (a < 0 || b < 0 || a == b)
          continue;
        chance *= want.axis.size();
        for (auto &[digit, number] : classes)
          if (number == b)
            number = a;
      }
    }
    SaturatingCount shared = (common + (chance - 1)) / chance;
    return targetBytes < shared ? SaturatingCount(0) : targetBytes - shared;
  }

  void reach(Layout layout, Node node) {
    ++reached;
    node.hasMoved = node.before && node.before->second.hasMoved;
    for (const ReshardStep &step : node.steps)
      node.hasMoved |= step.kind == ReshardStep::AllToAll;
    sliceInPlace(layout, node);
    bool isThere = layout == to;
    CommunicationCost least =
        node.cost +
        CommunicationCost{isThere ? SaturatingCount(0) : leastBytes(layout), !isThere, 0};
    if (best && !(least < best->cost))
      return;
    auto [it, isNew] = nodes.try_emplace(std::move(layout), node);
    if (!isNew) {
      if (!(node.cost < it->second.cost))
        return;
      it->second = std::move(node);
    }
    if (isThere)
      best = Best{it->second.cost, &*it, {}};
    else
      open.emplace(std::tuple(least.key(), order++), &*it);
  }

  void improve(const Node &node, const Entry &before) {
    if (!best || node.cost < best->cost)
      best = Best{node.cost, &before, node.steps};
  }

  /// Gathers all sub-axes that are not in their place.
  void finishByGathers(const Entry &entry) {
    Layout layout = entry.first;
    Node node{entry.second.cost, 0, nullptr, {}};
    for (size_t d = 0; d < to.size(); ++d) {
      SubAxes prefix = commonPrefix(layout[d], to[d]), rest = withoutPrefix(layout[d], prefix);
      if (!rest.empty())
        gather(layout, d, rest, prefix, node);
      sliceInPlace(layout, node);
    }
    sliceInPlace(layout, node);
    improve(node, entry);
  }

  void permute(Layout &layout, const Layout &after, Node &node) const {
    if (layout == after)
      return;
    SubAxes group = permuteGroup(layout, after);
    node.cost = node.cost + collectiveCost(CollectiveKind::permute, resharder.localBytes(layout),
                                           shards(group));
    node.steps.push_back({ReshardStep::Permute, 0, 0, std::move(group), after});
    layout = after;
  }

  void gather(Layout &layout, size_t dim, const SubAxes &axes, const SubAxes &rest,
              Node &node) const {
    SaturatingCount bytes = resharder.localBytes(layout);
    layout[dim] = rest;
    node.steps.push_back({ReshardStep::Gather, dim, 0, axes, layout});
    node.cost = node.cost + collectiveCost(CollectiveKind::allGather, bytes, shards(axes));
  }

  /// Splits each dimension of `layout` further by `factors` over free sub-axes, preferably those of
  /// `like`, and returns these; `factors` keeps the remainder without ranks. Small factors come
  /// first, so that few dimensions remain.
  std::vector<SubAxes> refine(Layout &layout, std::vector<int64_t> &factors,
                              const Layout &like) const {
    std::vector<size_t> order(layout.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::pair(factors[a], a) < std::pair(factors[b], b);
    });
    std::vector<SubAxes> added(layout.size());
    for (size_t d : order)
      for (const SubAxis &subAxis : like[d])
        takeFree(layout, d, subAxis, factors[d], added[d]);
    for (size_t d : order)
      for (size_t a = 0; a < resharder.axisSizes.size(); ++a)
        takeFree(layout, d, {static_cast<int>(a), 1, resharder.axisSizes[a]}, factors[d], added[d]);
    return added;
  }

  /// Splits `dim` over free sub-axes of `of` whose sizes divide `factor`, which keeps the rest.
  static void takeFree(Layout &layout, size_t dim, const SubAxis &of, int64_t &factor,
                       SubAxes &added) {
    if (factor == 1)
      return;
    for (int64_t offset : divisors(of.size()))
      for (int64_t p : primeFactors(std::gcd(factor, of.size() / offset))) {
        SubAxis next{of.axis, of.begin * offset, of.begin * offset * p};
        if (factor % p != 0 || !isFree(layout, next))
          continue;
        appendMerged(layout[dim], next);
        appendMerged(added, next);
        factor /= p;
      }
  }

  /// Removes sub-axes of total size `n` from the minor end of a dimension, reordering its prime
  /// factors if necessary.
  static SubAxes popMinor(SubAxes &axes, int64_t n) {
    SubAxes left, minor;
    std::vector<Digit> digits = digitsOf({axes});
    for (const Digit &digit : llvm::reverse(digits)) {
      bool isTaken = n % digit.axis.size() == 0;
      SubAxes &list = isTaken ? minor : left;
      list.insert(list.begin(), digit.axis);
      if (isTaken)
        n /= digit.axis.size();
    }
    axes = mergeSubAxes(left);
    return mergeSubAxes(minor);
  }

  static void dropMinor(SubAxes &axes, const SubAxes &minor) {
    for (const SubAxis &subAxis : llvm::reverse(minor)) {
      axes.back().end = subAxis.begin;
      if (axes.back().begin == axes.back().end)
        axes.pop_back();
    }
  }

  /// Slices, permutes, exchanges surplus sub-axes of some dimensions for missing ones of others,
  /// and gathers the rest.
  void finishByPermute(const Entry &entry) {
    size_t rank = to.size();
    Layout layout = entry.first, sliced = layout, there = to;
    std::vector<int64_t> lacks(rank), excess(rank), early(rank, 1);
    for (size_t d = 0; d < rank; ++d)
      lacks[d] = shards(to[d]) / std::gcd(shards(layout[d]), shards(to[d]));
    std::vector<SubAxes> slices = refine(sliced, lacks, to);
    for (size_t d = 0; d < rank; ++d) {
      excess[d] = shards(sliced[d]) * lacks[d] / shards(to[d]);
      if (lacks[d] > 1) // A surplus sub-axis makes room for a missing one.
        std::swap(excess[d], early[d]);
    }
    struct Move {
      size_t from, to;
      int64_t n;
      SubAxes axes = {};
    };
    std::vector<Move> moves;
    for (size_t e = 0; e < rank; ++e)
      while (lacks[e] > 1) {
        Move move{0, e, 1};
        for (size_t d = 0; d < rank; ++d)
          if (int64_t n = std::gcd(excess[d], lacks[e]); n > move.n)
            move = {d, e, n};
        if (move.n == 1)
          return;
        excess[move.from] /= move.n;
        lacks[e] /= move.n;
        moves.push_back(move);
      }
    // Backwards from the goal to the layout that the permute has to produce.
    std::vector<SubAxes> gathers = refine(there, excess, sliced);
    Layout ordered = there;
    for (size_t i = moves.size(); i-- > 0;) {
      moves[i].axes = popMinor(there[moves[i].to], moves[i].n);
      appendMerged(there[moves[i].from], moves[i].axes);
    }
    std::vector<SubAxes> earlyGathers = refine(there, early, sliced);
    for (size_t d = 0; d < rank; ++d)
      if (excess[d] > 1 || early[d] > 1)
        return;

    Node node{entry.second.cost, 0, nullptr, {}};
    for (size_t d = 0; d < rank; ++d)
      slice(layout, d, slices[d], node);
    permute(layout, there, node);
    for (size_t d = 0; d < rank; ++d)
      if (!earlyGathers[d].empty()) {
        SubAxes left = there[d];
        dropMinor(left, earlyGathers[d]);
        gather(there, d, earlyGathers[d], left, node);
      }
    SaturatingCount bytes = resharder.localBytes(there);
    for (const Move &move : moves) {
      dropMinor(there[move.from], move.axes);
      appendMerged(there[move.to], move.axes);
      node.steps.push_back({ReshardStep::AllToAll, move.from, move.to, move.axes, there});
      node.cost = node.cost + collectiveCost(CollectiveKind::allToAll, bytes, move.n);
    }
    permute(there, ordered, node);
    for (size_t d = 0; d < rank; ++d)
      if (!gathers[d].empty())
        gather(there, d, gathers[d], to[d], node);
    improve(node, entry);
  }

  /// Whether axes appended to dimension `dim` of the layout are in their final place.
  bool continues(const Layout &layout, size_t dim, const SubAxes &axes) const {
    SubAxes prefix = commonPrefix(layout[dim], to[dim]);
    if (prefix != layout[dim])
      return false;
    appendMerged(prefix, axes.front());
    return commonPrefix(prefix, to[dim]) != layout[dim];
  }

  void expand(const Entry &entry) {
    const Layout &layout = entry.first;
    const Node &node = entry.second;
    SaturatingCount bytes = resharder.localBytes(layout);
    auto step = [&](ReshardStep step, CommunicationCost cost) {
      Layout after = step.after;
      reach(std::move(after), {node.cost + cost, node.source, &entry, {std::move(step)}});
    };
    // A second one, or one to elsewhere, cannot improve the path then (see Resharder).
    bool isOnly = best && !(targetBytes < best->cost.bytes);
    for (size_t d = 0; d < to.size(); ++d) {
      SubAxes prefix = commonPrefix(layout[d], to[d]), rest = withoutPrefix(layout[d], prefix);
      if (rest.empty())
        continue;
      if (!isOnly || !node.hasMoved)
        sliceOnTop(entry, d, rest.back(), isOnly);
      SubAxes minor;
      for (size_t i = rest.size(); i-- > 0; minor.insert(minor.begin(), rest[i]))
        for (int64_t size : divisors(rest[i].size())) {
          if (size == 1)
            continue;
          SubAxes axes{{rest[i].axis, rest[i].end / size, rest[i].end}}, left = prefix;
          axes.insert(axes.end(), minor.begin(), minor.end());
          for (size_t j = 0; j < i; ++j)
            appendMerged(left, rest[j]);
          appendMerged(left, {rest[i].axis, rest[i].begin, rest[i].end / size});
          int64_t n = shards(axes);
          ReshardStep gather{ReshardStep::Gather, d, 0, axes, layout};
          gather.after[d] = left;
          for (size_t e = 0; e < to.size(); ++e) {
            if (e == d || !resharder.divides(layout, e, n) ||
                (isOnly && (node.hasMoved || !continues(layout, e, axes))))
              continue;
            ReshardStep move{ReshardStep::AllToAll, d, e, axes, gather.after};
            appendMerged(move.after[e], axes);
            step(std::move(move), collectiveCost(CollectiveKind::allToAll, bytes, n));
          }
          // Entire dimensions are gathered last, unless that frees sub-axes that are wanted
          // elsewhere.
          if (!isOnly || left != prefix ||
              llvm::any_of(axes, [&](const SubAxis &axis) { return !isFree(to, axis); }))
            step(std::move(gather), collectiveCost(CollectiveKind::allGather, bytes, n));
        }
    }
  }

  /// Slices over the sub-axes that follow `top` in its target, so that they move together. Where
  /// several sub-axes move, slices over all that are wanted somewhere.
  void sliceOnTop(const Entry &entry, size_t dim, const SubAxis &top, bool onlyWhatFollows) {
    auto sliceOver = [&](const SubAxis &subAxis) {
      for (int64_t p : primeFactors(subAxis.size())) {
        SubAxis next{subAxis.axis, subAxis.begin, subAxis.begin * p};
        if (!isFree(entry.first, next) || !resharder.divides(entry.first, dim, p))
          continue;
        Layout layout = entry.first;
        Node node{entry.second.cost, entry.second.source, &entry, {}};
        slice(layout, dim, {next}, node);
        reach(std::move(layout), std::move(node));
      }
    };
    for (const SubAxes &axes : to)
      for (size_t i = 0; i < axes.size(); ++i) {
        if (!onlyWhatFollows)
          sliceOver(axes[i]);
        if (axes[i].isDisjoint(top))
          continue;
        // For crossing sub-axes, the sub-axis that completes the smallest range that contains both.
        if (int64_t end = std::lcm(axes[i].end, top.end); end != top.end)
          sliceOver({top.axis, top.end, end});
        else if (i + 1 < axes.size())
          sliceOver(axes[i + 1]);
      }
  }

  const Resharder &resharder;
  const Layout &to;
  int64_t maxReached;
  std::vector<Digit> targetDigits;
  SaturatingCount targetBytes;
  std::map<Layout, Node> nodes;
  std::map<std::tuple<decltype(CommunicationCost().key()), int64_t>, Entry *> open;
  int64_t order = 0, reached = 0;
  std::optional<Best> best;
};

std::optional<ReshardPath> Resharder::cheapest(const std::vector<Layout> &from, const Layout &to,
                                               int64_t maxReached) const {
  auto merged = [](Layout layout) {
    for (SubAxes &axes : layout)
      axes = mergeSubAxes(axes);
    return layout;
  };
  std::vector<Layout> starts;
  for (const Layout &layout : from)
    starts.push_back(merged(layout));
  Layout goal = merged(to);
  for (size_t d = 0; d < goal.size(); ++d)
    if (shape[d] % shards(goal[d]) != 0)
      return std::nullopt;
  return ReshardSearch(*this, goal, maxReached).run(starts);
}

} // namespace braid
