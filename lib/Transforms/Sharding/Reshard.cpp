//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Reshard.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace braid {

namespace {

std::vector<int64_t> primeFactors(int64_t n) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p)
      primes.push_back(p);
  if (n > 1)
    primes.push_back(n);
  return primes;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0)
      divisors.insert(divisors.end(), {d, n / d});
  std::sort(divisors.begin(), divisors.end());
  divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
  return divisors;
}

/// Appends and joins with what is there where the part continues it.
void push(SubAxes &axes, SubAxis part) {
  if (part.size() == 1)
    return;
  if (!axes.empty() && axes.back().axis == part.axis && axes.back().end == part.begin)
    axes.back().end = part.end;
  else
    axes.push_back(part);
}

void push(SubAxes &axes, const SubAxes &parts) {
  for (const SubAxis &part : parts)
    push(axes, part);
}

/// The major sub-axes that two dimensions are split over alike.
SubAxes commonPrefix(const SubAxes &a, const SubAxes &b) {
  SubAxes prefix;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].axis != b[i].axis || a[i].begin != b[i].begin)
      break;
    int64_t end = std::gcd(a[i].end, b[i].end);
    push(prefix, {a[i].axis, a[i].begin, end});
    if (end != a[i].end || end != b[i].end)
      break;
  }
  return prefix;
}

/// What follows `prefix`, which `axes` begins with.
SubAxes withoutPrefix(const SubAxes &axes, const SubAxes &prefix) {
  SubAxes rest(axes.begin() + static_cast<std::ptrdiff_t>(prefix.size()), axes.end());
  if (!prefix.empty())
    if (const SubAxis &part = axes[prefix.size() - 1]; part.end != prefix.back().end)
      rest.insert(rest.begin(), {part.axis, prefix.back().end, part.end});
  return rest;
}

/// A prime part of a sub-axis, and which digit of a dimension's shard number it is: all that is
/// major to it counts `major` shards.
struct Digit {
  SubAxis part;
  size_t dim;
  int64_t major;
  bool operator==(const Digit &other) const {
    return part == other.part && dim == other.dim && major == other.major;
  }
};

std::vector<Digit> digitsOf(const Layout &layout) {
  std::vector<Digit> digits;
  for (size_t d = 0; d < layout.size(); ++d) {
    int64_t major = 1;
    for (const SubAxis &axis : layout[d]) {
      int64_t begin = axis.begin;
      for (int64_t p : primeFactors(axis.size())) {
        digits.push_back({{axis.axis, begin, begin * p}, d, major});
        begin *= p;
        major *= p;
      }
    }
  }
  return digits;
}

/// The ranks among which shards change places: all digits that are not the same in both layouts.
/// Parts that cross are covered by the smallest range that holds both.
SubAxes permuteGroup(const Layout &before, const Layout &after) {
  SubAxes group;
  std::vector<Digit> from = digitsOf(before), to = digitsOf(after);
  auto add = [&](const std::vector<Digit> &digits, const std::vector<Digit> &others) {
    for (const Digit &digit : digits) {
      if (std::find(others.begin(), others.end(), digit) != others.end())
        continue;
      SubAxis part = digit.part;
      for (size_t i = 0; i < group.size();) {
        if (group[i].isDisjoint(part)) {
          ++i;
          continue;
        }
        part.begin = std::gcd(part.begin, group[i].begin);
        part.end = std::lcm(part.end, group[i].end);
        group.erase(group.begin() + static_cast<std::ptrdiff_t>(i));
        i = 0;
      }
      group.push_back(part);
    }
  };
  add(from, to);
  add(to, from);
  std::sort(group.begin(), group.end());
  return joinSubAxes(group);
}

} // namespace

SubAxes joinSubAxes(const SubAxes &axes) {
  SubAxes joined;
  push(joined, axes);
  return joined;
}

bool isMajorOf(const SubAxes &axes, const SubAxes &all) { return commonPrefix(axes, all) == axes; }

SubAxes splitWhere(SubAxis axis, const SubAxes &others) {
  std::set<int64_t> points;
  for (const SubAxis &other : others)
    if (other.axis == axis.axis)
      points.insert({other.begin, other.end});
  SubAxes parts;
  for (int64_t point : points) {
    // Where parts cross, none is common to both.
    if (point <= axis.begin || point >= axis.end || point % axis.begin != 0 ||
        axis.end % point != 0)
      continue;
    parts.push_back({axis.axis, axis.begin, point});
    axis.begin = point;
  }
  parts.push_back(axis);
  return parts;
}

int64_t Resharder::shards(const SubAxes &axes) {
  int64_t n = 1;
  for (const SubAxis &axis : axes)
    n *= axis.size();
  return n;
}

SaturatingCount Resharder::localBytes(const Layout &layout) const {
  SaturatingCount bytes = elementBytes;
  for (size_t d = 0; d < shape.size(); ++d)
    bytes *= shape[d] / shards(layout[d]);
  return bytes;
}

bool Resharder::isFree(const Layout &layout, const SubAxis &axis) {
  for (const SubAxes &dim : layout)
    for (const SubAxis &other : dim)
      if (!other.isDisjoint(axis))
        return false;
  return true;
}

std::vector<int64_t> Resharder::permutation(const Layout &before, const ReshardStep &step) {
  /// Which shard of each dimension the rank at a position has, as far as the group decides it.
  auto shardOf = [&](const std::vector<Digit> &digits, int64_t position) {
    std::vector<int64_t> shard(before.size());
    for (const Digit &digit : digits) {
      const SubAxis &part = digit.part;
      int64_t minor = 1, value = 0;
      for (const SubAxis &axis : llvm::reverse(step.axes)) {
        if (axis.axis == part.axis && part.begin % axis.begin == 0 && axis.end % part.end == 0)
          value = position / minor % axis.size() / (axis.end / part.end) % part.size();
        minor *= axis.size();
      }
      shard[digit.dim] = shard[digit.dim] * part.size() + value;
    }
    return shard;
  };
  std::vector<Digit> from = digitsOf(before), to = digitsOf(step.after);
  int64_t n = shards(step.axes);
  std::map<std::vector<int64_t>, std::vector<int64_t>> holders;
  std::vector<std::vector<int64_t>> wanted;
  for (int64_t position = 0; position < n; ++position) {
    holders[shardOf(from, position)].push_back(position);
    wanted.push_back(shardOf(to, position));
  }
  std::vector<int64_t> sources(static_cast<size_t>(n), -1);
  // Whoever has what it wants keeps it.
  for (int64_t position = 0; position < n; ++position) {
    std::vector<int64_t> &own = holders[wanted[static_cast<size_t>(position)]];
    if (auto it = std::find(own.begin(), own.end(), position); it != own.end()) {
      sources[static_cast<size_t>(position)] = position;
      own.erase(it);
    }
  }
  std::vector<int64_t> pairs;
  for (int64_t position = 0; position < n; ++position) {
    int64_t &source = sources[static_cast<size_t>(position)];
    if (source < 0) {
      std::vector<int64_t> &others = holders[wanted[static_cast<size_t>(position)]];
      source = others.front();
      others.erase(others.begin());
    }
    pairs.push_back(source);
    pairs.push_back(position);
  }
  return pairs;
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
    ReshardCost cost;
    size_t source;
    const std::pair<const Layout, Node> *before;
    std::vector<ReshardStep> steps; ///< from `before` to here
    bool isDone = false, hasMoved = false;
  };
  using Entry = std::pair<const Layout, Node>;
  struct Best {
    ReshardCost cost;
    const Entry *before;
    std::vector<ReshardStep> steps;
  };

  static void slice(Layout &layout, size_t dim, const SubAxes &axes, Node &node) {
    if (axes.empty())
      return;
    push(layout[dim], axes);
    node.steps.push_back({ReshardStep::Slice, dim, 0, axes, layout});
    node.cost = node.cost + ReshardCost{0, 0, 1};
  }

  /// Slices in their final place cost nothing and leave less to send.
  void sliceInPlace(Layout &layout, Node &node) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t d = 0; d < to.size(); ++d) {
        SubAxes prefix = commonPrefix(layout[d], to[d]), added;
        if (prefix != layout[d])
          continue;
        Layout next = layout;
        for (const SubAxis &part : withoutPrefix(to[d], prefix))
          if (!sliceParts(next, d, part, added))
            break;
        changed |= !added.empty();
        slice(layout, d, added, node);
      }
    }
  }

  /// Slices over as much of `part` as is free, major first; true when it is all of it.
  static bool sliceParts(Layout &layout, size_t dim, SubAxis part, SubAxes &added) {
    while (part.size() > 1) {
      SubAxis next = part;
      for (int64_t p : primeFactors(part.size()))
        if (next = {part.axis, part.begin, part.begin * p}; Resharder::isFree(layout, next))
          break;
      if (!Resharder::isFree(layout, next))
        return false;
      push(layout[dim], next);
      push(added, next);
      part.begin = next.end;
    }
    return true;
  }

  /// What is left to receive: a rank lacks all of its shard but what it has of it. Ranks have the
  /// same on average; digits that are the same by chance are counted only where they are
  /// independent, so that it is never too much.
  SaturatingCount leastBytes(const Layout &layout) const {
    std::vector<Digit> digits = digitsOf(layout);
    SaturatingCount common = resharder.localBytes(layout);
    int64_t chance = 1;
    // Digits of elements that are equal to each other, by number of their class.
    std::vector<std::pair<Digit, int>> classes;
    int numClasses = 0;
    auto classOf = [&](const Digit &digit) {
      for (auto &[other, number] : classes)
        if (other.dim == digit.dim && other.major == digit.major &&
            other.part.size() == digit.part.size())
          return number;
      for (auto &[other, number] : classes)
        if (other.dim == digit.dim && other.major % (digit.major * digit.part.size()) != 0 &&
            digit.major % (other.major * other.part.size()) != 0)
          return -1;
      classes.emplace_back(digit, numClasses);
      return numClasses++;
    };
    for (const Digit &want : targetDigits) {
      const Digit *have = nullptr;
      bool isFree = true;
      for (const Digit &digit : digits) {
        isFree &= digit.part.isDisjoint(want.part);
        if (digit.part == want.part)
          have = &digit;
      }
      if (isFree) {
        chance *= want.part.size();
      } else if (have && !(*have == want)) {
        int a = classOf(*have), b = classOf(want);
        if (a < 0 || b < 0 || a == b)
          continue;
        chance *= want.part.size();
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
    ReshardCost least =
        node.cost + ReshardCost{isThere ? SaturatingCount(0) : leastBytes(layout), !isThere, 0};
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

  /// Gathers all that is not in its place.
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
    node.steps.push_back({ReshardStep::Permute, 0, 0, permuteGroup(layout, after), after});
    node.cost = node.cost + ReshardCost{resharder.localBytes(layout), 1, 0};
    layout = after;
  }

  void gather(Layout &layout, size_t dim, const SubAxes &axes, const SubAxes &rest,
              Node &node) const {
    SaturatingCount bytes = resharder.localBytes(layout);
    layout[dim] = rest;
    node.steps.push_back({ReshardStep::Gather, dim, 0, axes, layout});
    node.cost = node.cost + ReshardCost{bytes * (Resharder::shards(axes) - 1), 1, 0};
  }

  /// Splits each dimension of `layout` into as many shards more as `factors` says, over what is
  /// free, preferably as `like` does; `factors` keeps what there are no ranks for. Small factors
  /// first, so that few dimensions go without.
  void refine(Layout &layout, std::vector<int64_t> &factors, const Layout &like,
              std::vector<SubAxes> &added) const {
    std::vector<size_t> order(layout.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::pair(factors[a], a) < std::pair(factors[b], b);
    });
    added.assign(layout.size(), {});
    for (size_t d : order)
      for (const SubAxis &part : like[d])
        takeFree(layout, d, part, factors[d], added[d]);
    for (size_t d : order)
      for (size_t a = 0; a < resharder.axisSizes.size(); ++a)
        takeFree(layout, d, {static_cast<int>(a), 1, resharder.axisSizes[a]}, factors[d], added[d]);
  }

  /// Splits `dim` over parts of `of` that are free and whose sizes divide `factor`, which keeps the
  /// rest.
  static void takeFree(Layout &layout, size_t dim, const SubAxis &of, int64_t &factor,
                       SubAxes &added) {
    if (factor == 1)
      return;
    for (int64_t offset : divisors(of.size()))
      for (int64_t p : primeFactors(std::gcd(factor, of.size() / offset))) {
        SubAxis next{of.axis, of.begin * offset, of.begin * offset * p};
        if (factor % p != 0 || !Resharder::isFree(layout, next))
          continue;
        push(layout[dim], next);
        push(added, next);
        factor /= p;
      }
  }

  /// Takes sub-axes of size `n` in all away from the minor end of a dimension, where the order of
  /// its prime parts changes if it must.
  static SubAxes popMinor(SubAxes &axes, int64_t n) {
    SubAxes left, minor;
    std::vector<Digit> digits = digitsOf({axes});
    for (const Digit &digit : llvm::reverse(digits)) {
      bool isTaken = n % digit.part.size() == 0;
      SubAxes &list = isTaken ? minor : left;
      list.insert(list.begin(), digit.part);
      if (isTaken)
        n /= digit.part.size();
    }
    axes = joinSubAxes(left);
    return joinSubAxes(minor);
  }

  static void dropMinor(SubAxes &axes, const SubAxes &minor) {
    for (const SubAxis &part : llvm::reverse(minor)) {
      axes.back().end = part.begin;
      if (axes.back().begin == axes.back().end)
        axes.pop_back();
    }
  }

  /// Slices, permutes, exchanges what dimensions have too much and others lack, and gathers the
  /// rest.
  void finishByPermute(const Entry &entry) {
    size_t rank = to.size();
    Layout layout = entry.first, sliced = layout, there = to;
    std::vector<int64_t> lacks(rank), excess(rank), early(rank, 1);
    for (size_t d = 0; d < rank; ++d)
      lacks[d] = Resharder::shards(to[d]) /
                 std::gcd(Resharder::shards(layout[d]), Resharder::shards(to[d]));
    std::vector<SubAxes> slices, gathers, earlyGathers;
    refine(sliced, lacks, to, slices);
    for (size_t d = 0; d < rank; ++d) {
      excess[d] = Resharder::shards(sliced[d]) * lacks[d] / Resharder::shards(to[d]);
      if (lacks[d] > 1) // What it has too much makes way for what it lacks.
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
    // From the goal backwards to what the permute has to give.
    refine(there, excess, sliced, gathers);
    Layout ordered = there;
    for (size_t i = moves.size(); i-- > 0;) {
      moves[i].axes = popMinor(there[moves[i].to], moves[i].n);
      push(there[moves[i].from], moves[i].axes);
    }
    refine(there, early, sliced, earlyGathers);
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
      push(there[move.to], move.axes);
      node.steps.push_back({ReshardStep::AllToAll, move.from, move.to, move.axes, there});
      node.cost = node.cost + ReshardCost{bytes / move.n * (move.n - 1), 1, 0};
    }
    permute(there, ordered, node);
    for (size_t d = 0; d < rank; ++d)
      if (!gathers[d].empty())
        gather(there, d, gathers[d], to[d], node);
    improve(node, entry);
  }

  /// Whether axes that come after what `dim` of the layout is split over are in their place there.
  bool continues(const Layout &layout, size_t dim, const SubAxes &axes) const {
    SubAxes prefix = commonPrefix(layout[dim], to[dim]);
    if (prefix != layout[dim])
      return false;
    push(prefix, axes.front());
    return commonPrefix(prefix, to[dim]) != layout[dim];
  }

  void expand(const Entry &entry) {
    const Layout &layout = entry.first;
    const Node &node = entry.second;
    SaturatingCount bytes = resharder.localBytes(layout);
    auto step = [&](ReshardStep step, ReshardCost cost) {
      Layout after = step.after;
      reach(std::move(after), {node.cost + cost, node.source, &entry, {std::move(step)}});
    };
    // See Resharder: there is nothing to gain then from a second one, or one to elsewhere.
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
            push(left, rest[j]);
          push(left, {rest[i].axis, rest[i].begin, rest[i].end / size});
          int64_t n = Resharder::shards(axes);
          ReshardStep gather{ReshardStep::Gather, d, 0, axes, layout};
          gather.after[d] = left;
          for (size_t e = 0; e < to.size(); ++e) {
            if (e == d || !resharder.divides(layout, e, n) ||
                (isOnly && (node.hasMoved || !continues(layout, e, axes))))
              continue;
            ReshardStep move{ReshardStep::AllToAll, d, e, axes, gather.after};
            push(move.after[e], axes);
            step(std::move(move), {bytes / n * (n - 1), 1, 0});
          }
          // Gathering all of a dimension is for the end, unless it frees what is wanted elsewhere.
          if (!isOnly || left != prefix ||
              llvm::any_of(axes, [&](const SubAxis &axis) { return !Resharder::isFree(to, axis); }))
            step(std::move(gather), {bytes * (n - 1), 1, 0});
        }
    }
  }

  /// Slices over what follows `top` where that belongs: it moves there together with it. Where more
  /// than one thing moves, over whatever is wanted somewhere.
  void sliceOnTop(const Entry &entry, size_t dim, const SubAxis &top, bool onlyWhatFollows) {
    auto sliceOver = [&](const SubAxis &part) {
      for (int64_t p : primeFactors(part.size())) {
        SubAxis next{part.axis, part.begin, part.begin * p};
        if (!Resharder::isFree(entry.first, next) || !resharder.divides(entry.first, dim, p))
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
        // Of parts that cross, what completes the smallest range that holds both.
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
  std::map<std::tuple<decltype(ReshardCost().key()), int64_t>, Entry *> open;
  int64_t order = 0, reached = 0;
  std::optional<Best> best;
};

std::optional<ReshardPath> Resharder::cheapest(const std::vector<Layout> &from, const Layout &to,
                                               int64_t maxReached) const {
  std::vector<Layout> joined;
  for (const Layout &layout : from) {
    Layout &own = joined.emplace_back();
    for (const SubAxes &axes : layout)
      own.push_back(joinSubAxes(axes));
  }
  Layout goal;
  for (size_t d = 0; d < to.size(); ++d) {
    goal.push_back(joinSubAxes(to[d]));
    if (shape[d] % shards(goal[d]) != 0)
      return std::nullopt;
  }
  return ReshardSearch(*this, goal, maxReached).run(joined);
}

} // namespace braid
