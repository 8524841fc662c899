//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The axes that split a value, as numbers. Sub-axes are compared by coordinates: `tp` of 8 ranks is
// `tp:(1)2` followed by `tp:(2)4`. Propagation, the resharding searches and the check of placements
// work on this form. Without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_LAYOUT_H
#define BRAID_ANALYSIS_LAYOUT_H

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace braid {

/// The prime factors of `n`, smallest first.
std::vector<int64_t> primeFactors(int64_t n);
/// The divisors of `n`, smallest first.
std::vector<int64_t> divisors(int64_t n);

/// A sub-axis of a mesh axis of size n, as a range of the divisors of n: the full axis is [1, n),
/// `tp:(2)2` is [2, 4). Two sub-axes are disjoint when the end of one divides the begin of the
/// other. Otherwise no value can be split over both, even where they share no factor (2 and 3 of
/// 6).
struct SubAxis {
  int axis;
  int64_t begin, end;
  int64_t size() const { return end / begin; }
  bool isDisjoint(const SubAxis &other) const {
    return axis != other.axis || other.begin % end == 0 || begin % other.end == 0;
  }
  /// Whether `other` is a sub-axis of this one.
  bool contains(const SubAxis &other) const {
    return axis == other.axis && other.begin % begin == 0 && end % other.end == 0;
  }
  auto key() const { return std::tuple(axis, begin, end); }
  bool operator==(const SubAxis &other) const { return key() == other.key(); }
  bool operator<(const SubAxis &other) const { return key() < other.key(); }
};
/// Functions on lists expect them merged (mergeSubAxes) unless they say otherwise.
using SubAxes = std::vector<SubAxis>;
/// For each dimension the sub-axes that split it, major first.
using Layout = std::vector<SubAxes>;

/// Merges sub-axes of an axis that follow each other and drops those of size 1, so that equal
/// splits compare equal.
SubAxes mergeSubAxes(const SubAxes &axes);
/// Whether `axes` are the major ones of `all`.
bool isMajorOf(const SubAxes &axes, const SubAxes &all);
/// Splits a sub-axis where one of `others` begins or ends; major first.
SubAxes splitWhere(SubAxis axis, const SubAxes &others);
/// Appends sub-axes and merges them with the last one where they continue it.
void appendMerged(SubAxes &axes, SubAxis axis);
void appendMerged(SubAxes &axes, const SubAxes &more);
/// The major sub-axes that two dimensions are split over alike.
SubAxes commonPrefix(const SubAxes &a, const SubAxes &b);
/// The rest of `axes` after `prefix`, which it begins with.
SubAxes withoutPrefix(const SubAxes &axes, const SubAxes &prefix);
/// The rest of `axes` after `prefix`; none when it does not begin with `prefix`.
std::optional<SubAxes> axesBeyond(const SubAxes &prefix, const SubAxes &axes);
/// Number of shards over these axes, merged or not.
int64_t shards(const SubAxes &axes);
/// Whether a sub-axis can be used beside those in use, merged or not.
bool isFree(const SubAxes &axes, const SubAxis &axis);
bool isFree(const Layout &layout, const SubAxis &axis);

/// A prime factor of a sub-axis, and which digit of a dimension's shard number it is: the digits
/// major to it count `major` shards.
struct Digit {
  SubAxis axis;
  size_t dim;
  int64_t major;
  bool operator==(const Digit &other) const {
    return axis == other.axis && dim == other.dim && major == other.major;
  }
};
std::vector<Digit> digitsOf(const Layout &layout);

/// The axes of the groups within which shards move: all digits that differ between the layouts.
/// Crossing sub-axes are covered by the smallest range that contains both.
SubAxes permuteGroup(const Layout &before, const Layout &after);
/// How the shards move in such a group: pairs of a source and a target position.
std::vector<int64_t> permutation(const Layout &before, const Layout &after);

} // namespace braid
#endif // BRAID_ANALYSIS_LAYOUT_H
