//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds the sequence of slices and collectives that reshards a value and with which a rank sends
// the fewest bytes. Without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_RESHARD_H
#define BRAID_LIB_TRANSFORMS_RESHARD_H

#include "braid/Analysis/Layout.h"
#include "braid/Cost/CommunicationCost.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

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
  CommunicationCost cost;
  std::vector<ReshardStep> steps;
  int64_t reached = 0; ///< layouts that the search looked at
};

/// One value of `shape` on a mesh of axes of the given sizes.
///
/// Let T be the bytes of a shard in the layout that is asked for. Every path with a permute or two
/// all-to-alls sends at least T: the gathers send T less the smallest shard, a permute such a
/// shard, two all-to-alls half of one each. One permute between slices and gathers sends T if there
/// are enough ranks to split each dimension as finely as both layouts do. The search therefore
/// looks for paths below T with at most one all-to-all, where slices are only in their final place
/// or on top of sub-axes that move there, and uses the permute otherwise. The result is the
/// cheapest if all sub-axes belong to common factorizations. Without enough ranks, or with crossing
/// sub-axes, it is the cheapest of the visited paths: with all-to-alls before and after one
/// permute, and with slices over sub-axes wanted anywhere. It never sends more than gathering all
/// that is not in its place, also where the search stops after `maxReached` layouts. In a sample of
/// pairs of layouts on meshes of up to 12 ranks it sends at most a sixth more than the best path
/// where axes are powers of 2, and at most twice as much otherwise.
class Resharder {
public:
  Resharder(std::vector<int64_t> axisSizes, std::vector<int64_t> shape, int64_t elementBytes)
      : axisSizes(std::move(axisSizes)), shape(std::move(shape)), elementBytes(elementBytes) {}

  static constexpr int64_t kMaxReached = 1000;

  /// The cheapest path from one of `from`, the first of equals. None when the target layout does
  /// not divide the shape.
  std::optional<ReshardPath> cheapest(const std::vector<Layout> &from, const Layout &to,
                                      int64_t maxReached = kMaxReached) const;
  SaturatingCount localBytes(const Layout &layout) const;
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
