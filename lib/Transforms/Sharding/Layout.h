//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a value is split over parts of mesh axes, as numbers: the form that searches work on. Without
// MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_LAYOUT_H
#define BRAID_LIB_TRANSFORMS_LAYOUT_H

#include <cstdint>
#include <tuple>
#include <vector>

namespace braid {

/// The prime factors of `n`, smallest first.
std::vector<int64_t> primeFactors(int64_t n);
/// The divisors of `n`, smallest first.
std::vector<int64_t> divisors(int64_t n);

/// Part of a mesh axis of size n, as a range of the divisors of n: the whole axis is [1, n),
/// `tp:(2)2` is [2, 4). Two parts are disjoint when the end of one divides the begin of the other;
/// otherwise no value can be split over both, even where they share no factor (2 and 3 of 6).
struct SubAxis {
  int axis;
  int64_t begin, end;
  int64_t size() const { return end / begin; }
  bool isDisjoint(const SubAxis &other) const {
    return axis != other.axis || other.begin % end == 0 || begin % other.end == 0;
  }
  auto key() const { return std::tuple(axis, begin, end); }
  bool operator==(const SubAxis &other) const { return key() == other.key(); }
  bool operator<(const SubAxis &other) const { return key() < other.key(); }
};
using SubAxes = std::vector<SubAxis>;
/// For each dimension the sub-axes that split it, major first.
using Layout = std::vector<SubAxes>;

/// Joins parts of an axis that follow each other and drops those of size 1, so that equal splits
/// compare equal.
SubAxes joinSubAxes(const SubAxes &axes);
/// Whether `axes` are the major ones of `all`.
bool isMajorOf(const SubAxes &axes, const SubAxes &all);
/// The sub-axis in parts, major first: taken apart where one of `others` begins or ends.
SubAxes splitWhere(SubAxis axis, const SubAxes &others);
/// Appends parts, and joins with what is there where one continues it.
void appendJoined(SubAxes &axes, SubAxis part);
void appendJoined(SubAxes &axes, const SubAxes &parts);
/// The major sub-axes that two dimensions are split over alike.
SubAxes commonPrefix(const SubAxes &a, const SubAxes &b);
/// What follows `prefix`, which `axes` begins with.
SubAxes withoutPrefix(const SubAxes &axes, const SubAxes &prefix);
/// Number of shards over these axes.
int64_t shards(const SubAxes &axes);
/// Whether a sub-axis can be used beside those in use.
bool isFree(const Layout &layout, const SubAxis &axis);

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
std::vector<Digit> digitsOf(const Layout &layout);

/// The ranks among which shards change places: all digits that are not the same in both layouts.
/// Parts that cross are covered by the smallest range that holds both.
SubAxes permuteGroup(const Layout &before, const Layout &after);
/// Where the shards go then: pairs of positions in that group.
std::vector<int64_t> permutation(const Layout &before, const Layout &after);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_LAYOUT_H
