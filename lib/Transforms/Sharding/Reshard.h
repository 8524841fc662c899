//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The sequence of slices and collectives that brings a value from one sharding to another and on
// which a rank sends the fewest bytes. Without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_RESHARD_H
#define BRAID_LIB_TRANSFORMS_RESHARD_H

#include "dialects/Comm/IR/SaturatingCount.h"

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace braid {

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

/// What a path costs; what comes first decides.
struct ReshardCost {
  SaturatingCount bytes = 0;
  int64_t collectives = 0, slices = 0;
  auto key() const { return std::tuple(bytes, collectives, slices); }
  bool operator<(const ReshardCost &other) const { return key() < other.key(); }
  ReshardCost operator+(const ReshardCost &other) const {
    return {bytes + other.bytes, collectives + other.collectives, slices + other.slices};
  }
};

struct ReshardStep {
  enum Kind {
    Slice,    ///< `dim` is split over `axes`, which were not in use
    Gather,   ///< the minor axes of `dim`, `axes`, are joined
    AllToAll, ///< they move to the minor end of dimension `to`
    Permute   ///< as many shards of each dimension as before, on other ranks of groups over `axes`
  } kind;
  size_t dim = 0, to = 0;
  SubAxes axes;
  Layout after;
};

struct ReshardPath {
  size_t from = 0; ///< which of the layouts it begins with
  ReshardCost cost;
  std::vector<ReshardStep> steps;
  int64_t reached = 0; ///< layouts that the search looked at
};

/// One value of `shape` on a mesh of axes of the given sizes.
///
/// Let T be the bytes of a shard in the layout that is asked for. Whatever needs a permute or two
/// all-to-alls sends at least T: the gathers send T less a shard at its smallest, a permute such a
/// shard, two all-to-alls half of one each. And one permute between slices and gathers sends T,
/// where ranks suffice to split each dimension as finely as both layouts do. So the search looks
/// for paths with at most one all-to-all below T, where slices serve only in their final place or
/// on top of what moves there, and takes the permute otherwise: with sub-axes that are parts of
/// common factorizations the result is the cheapest. Where ranks do not suffice or sub-axes cross,
/// it is the cheapest of the paths looked at: with all-to-alls before and after one permute, and
/// with slices over what is wanted anywhere. It never sends more than the gather of all that is not
/// in its place, also where the search stops after `maxReached` layouts. In a sample of pairs
/// of layouts on meshes of up to 12 ranks it sends at most a sixth more than the best path where
/// axes are powers of 2, and at most twice as much otherwise.
class Resharder {
public:
  Resharder(std::vector<int64_t> axisSizes, std::vector<int64_t> shape, int64_t elementBytes)
      : axisSizes(std::move(axisSizes)), shape(std::move(shape)), elementBytes(elementBytes) {}

  static constexpr int64_t kMaxReached = 1000;

  /// The cheapest path from one of `from`, the first of equals. None when the layout asked for does
  /// not divide the shape.
  std::optional<ReshardPath> cheapest(const std::vector<Layout> &from, const Layout &to,
                                      int64_t maxReached = kMaxReached) const;
  /// Where shards go in a permute: pairs of positions in the group over `axes`.
  static std::vector<int64_t> permutation(const Layout &before, const ReshardStep &step);

  SaturatingCount localBytes(const Layout &layout) const;
  /// Number of shards over these axes.
  static int64_t shards(const SubAxes &axes);
  /// Whether a sub-axis can be used beside those in use.
  static bool isFree(const Layout &layout, const SubAxis &axis);
  /// Whether the shards of a dimension can be split into n.
  bool divides(const Layout &layout, size_t dim, int64_t n) const {
    return shape[dim] % (shards(layout[dim]) * n) == 0;
  }

private:
  friend class ReshardSearch;
  std::vector<int64_t> axisSizes;
  std::vector<int64_t> shape;
  int64_t elementBytes;
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_RESHARD_H
