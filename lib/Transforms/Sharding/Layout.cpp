//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Layout.h"

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

void appendJoined(SubAxes &axes, SubAxis part) {
  if (part.size() == 1)
    return;
  if (!axes.empty() && axes.back().axis == part.axis && axes.back().end == part.begin)
    axes.back().end = part.end;
  else
    axes.push_back(part);
}

void appendJoined(SubAxes &axes, const SubAxes &parts) {
  for (const SubAxis &part : parts)
    appendJoined(axes, part);
}

SubAxes commonPrefix(const SubAxes &a, const SubAxes &b) {
  SubAxes prefix;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].axis != b[i].axis || a[i].begin != b[i].begin)
      break;
    int64_t end = std::gcd(a[i].end, b[i].end);
    appendJoined(prefix, {a[i].axis, a[i].begin, end});
    if (end != a[i].end || end != b[i].end)
      break;
  }
  return prefix;
}

SubAxes withoutPrefix(const SubAxes &axes, const SubAxes &prefix) {
  SubAxes rest(axes.begin() + static_cast<std::ptrdiff_t>(prefix.size()), axes.end());
  if (!prefix.empty())
    if (const SubAxis &part = axes[prefix.size() - 1]; part.end != prefix.back().end)
      rest.insert(rest.begin(), {part.axis, prefix.back().end, part.end});
  return rest;
}

SubAxes joinSubAxes(const SubAxes &axes) {
  SubAxes joined;
  appendJoined(joined, axes);
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

int64_t shards(const SubAxes &axes) {
  int64_t n = 1;
  for (const SubAxis &axis : axes)
    n *= axis.size();
  return n;
}

bool isFree(const Layout &layout, const SubAxis &axis) {
  for (const SubAxes &dim : layout)
    for (const SubAxis &other : dim)
      if (!other.isDisjoint(axis))
        return false;
  return true;
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

std::vector<int64_t> permutation(const Layout &before, const Layout &after) {
  SubAxes group = permuteGroup(before, after);
  /// Which shard of each dimension the rank at a position has, as far as the group decides it.
  auto shardOf = [&](const std::vector<Digit> &digits, int64_t position) {
    std::vector<int64_t> shard(before.size());
    for (const Digit &digit : digits) {
      const SubAxis &part = digit.part;
      int64_t minor = 1, value = 0;
      for (const SubAxis &axis : llvm::reverse(group)) {
        if (axis.axis == part.axis && part.begin % axis.begin == 0 && axis.end % part.end == 0)
          value = position / minor % axis.size() / (axis.end / part.end) % part.size();
        minor *= axis.size();
      }
      shard[digit.dim] = shard[digit.dim] * part.size() + value;
    }
    return shard;
  };
  std::vector<Digit> from = digitsOf(before), to = digitsOf(after);
  int64_t n = shards(group);
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

} // namespace braid
