//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/Layout.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace braid {

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

void appendMerged(SubAxes &axes, SubAxis axis) {
  if (axis.size() == 1)
    return;
  if (!axes.empty() && axes.back().axis == axis.axis && axes.back().end == axis.begin)
    axes.back().end = axis.end;
  else
    axes.push_back(axis);
}

void appendMerged(SubAxes &axes, const SubAxes &more) {
  for (const SubAxis &axis : more)
    appendMerged(axes, axis);
}

SubAxes commonPrefix(const SubAxes &a, const SubAxes &b) {
  SubAxes prefix;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].axis != b[i].axis || a[i].begin != b[i].begin)
      break;
    int64_t end = std::gcd(a[i].end, b[i].end);
    appendMerged(prefix, {a[i].axis, a[i].begin, end});
    if (end != a[i].end || end != b[i].end)
      break;
  }
  return prefix;
}

SubAxes withoutPrefix(const SubAxes &axes, const SubAxes &prefix) {
  SubAxes rest(axes.begin() + static_cast<std::ptrdiff_t>(prefix.size()), axes.end());
  if (!prefix.empty())
    if (const SubAxis &last = axes[prefix.size() - 1]; last.end != prefix.back().end)
      rest.insert(rest.begin(), {last.axis, prefix.back().end, last.end});
  return rest;
}

std::optional<SubAxes> axesBeyond(const SubAxes &prefix, const SubAxes &axes) {
  return isMajorOf(prefix, axes) ? std::optional(withoutPrefix(axes, prefix)) : std::nullopt;
}

SubAxes mergeSubAxes(const SubAxes &axes) {
  SubAxes merged;
  appendMerged(merged, axes);
  return merged;
}

bool isMajorOf(const SubAxes &axes, const SubAxes &all) { return commonPrefix(axes, all) == axes; }

SubAxes splitWhere(SubAxis axis, const SubAxes &others) {
  std::set<int64_t> points;
  for (const SubAxis &other : others)
    if (other.axis == axis.axis)
      points.insert({other.begin, other.end});
  SubAxes split;
  for (int64_t point : points) {
    // Crossing sub-axes have no common sub-axis.
    if (point <= axis.begin || point >= axis.end || point % axis.begin != 0 ||
        axis.end % point != 0)
      continue;
    split.push_back({axis.axis, axis.begin, point});
    axis.begin = point;
  }
  split.push_back(axis);
  return split;
}

int64_t shards(const SubAxes &axes) {
  int64_t n = 1;
  for (const SubAxis &axis : axes)
    n *= axis.size();
  return n;
}

bool isFree(const SubAxes &axes, const SubAxis &axis) {
  return llvm::all_of(axes, [&](const SubAxis &other) { return other.isDisjoint(axis); });
}

bool isFree(const Layout &layout, const SubAxis &axis) {
  return llvm::all_of(layout, [&](const SubAxes &dim) { return isFree(dim, axis); });
}

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

SubAxes permuteGroup(const Layout &before, const Layout &after) {
  SubAxes group;
  std::vector<Digit> from = digitsOf(before), to = digitsOf(after);
  auto add = [&](const std::vector<Digit> &digits, const std::vector<Digit> &others) {
    for (const Digit &digit : digits) {
      if (llvm::is_contained(others, digit))
        continue;
      SubAxis range = digit.axis;
      auto crosses = [&](const SubAxis &other) { return !other.isDisjoint(range); };
      for (auto it = llvm::find_if(group, crosses); it != group.end();
           it = llvm::find_if(group, crosses)) {
        range.begin = std::gcd(range.begin, it->begin);
        range.end = std::lcm(range.end, it->end);
        group.erase(it);
      }
      group.push_back(range);
    }
  };
  add(from, to);
  add(to, from);
  std::sort(group.begin(), group.end());
  return mergeSubAxes(group);
}

std::vector<int64_t> permutation(const Layout &before, const Layout &after) {
  SubAxes group = permuteGroup(before, after);
  /// Which shard of each dimension the rank at a position has, as far as the group decides it.
  auto shardOf = [&](const std::vector<Digit> &digits, int64_t position) {
    std::vector<int64_t> shard(before.size());
    for (const Digit &digit : digits) {
      int64_t minor = 1, value = 0, size = digit.axis.size();
      for (const SubAxis &axis : llvm::reverse(group)) {
        if (axis.contains(digit.axis))
          value = position / minor % axis.size() / (axis.end / digit.axis.end) % size;
        minor *= axis.size();
      }
      shard[digit.dim] = shard[digit.dim] * size + value;
    }
    return shard;
  };
  std::vector<Digit> from = digitsOf(before), to = digitsOf(after);
  int64_t n = shards(group);
  std::map<std::vector<int64_t>, std::vector<int64_t>> holders;
  for (int64_t position = 0; position < n; ++position)
    holders[shardOf(from, position)].push_back(position);
  std::vector<int64_t> pairs;
  auto assign = [&](int64_t position, bool keep) {
    std::vector<int64_t> &own = holders[shardOf(to, position)];
    auto source = keep ? llvm::find(own, position) : own.begin();
    if (source == own.end())
      return;
    pairs[2 * static_cast<size_t>(position)] = *source;
    own.erase(source);
  };
  // A rank that already has its shard keeps it.
  for (int64_t position = 0; position < n; ++position) {
    pairs.insert(pairs.end(), {-1, position});
    assign(position, /*keep=*/true);
  }
  for (int64_t position = 0; position < n; ++position)
    if (pairs[2 * static_cast<size_t>(position)] < 0)
      assign(position, /*keep=*/false);
  return pairs;
}

} // namespace braid
