//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The grid of ranks: named axes, coordinates, groups, and which part of a tensor a rank holds.
// The one definition that compiler, interpreter and runtime share.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_MESH_H
#define BRAID_BASE_MESH_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::runtime {

/// An axis of a mesh, or part of one: an axis of size n seen as [pre, size, n / (pre * size)], of
/// which the middle one is meant. size 0: the whole axis.
struct AxisRef {
  std::string name;
  int64_t pre = 1;
  int64_t size = 0;
  bool operator==(const AxisRef &o) const {
    return name == o.name && pre == o.pre && size == o.size;
  }
};

/// Axes per dimension, major first; a dimension without axes is whole on every rank.
/// An empty `dims` means that nothing is sharded, whatever the rank of the tensor.
struct Sharding {
  std::vector<std::vector<AxisRef>> dims;
};

struct Mesh {
  struct Axis {
    std::string name;
    int64_t size = 1;
  };
  std::string name = "mesh";
  std::vector<Axis> axes; ///< major first: rank = row-major number of the coordinates
  /// order[i] is the device of the i-th coordinate tuple; empty means the identity.
  std::vector<int64_t> order;

  int64_t numRanks() const;
  /// Names present and different, sizes positive, no more than kMaxRanks ranks, a valid order.
  Status verify() const;
  static constexpr int64_t kMaxRanks = int64_t(1) << 24;
  /// Known axes and sub-axes that divide theirs, none of which shares a part with another one of
  /// the list.
  Status verify(const std::vector<AxisRef> &axes) const;
  /// Size of an axis or sub-axis; error when the axis is unknown or the sub-axis does not divide
  /// it.
  Result<int64_t> axisSize(const AxisRef &axis) const;
  Result<int64_t> numShards(const std::vector<AxisRef> &axes) const;
  /// Coordinates of a rank, one per axis.
  std::vector<int64_t> coordinates(int64_t rank) const;
  /// Position of a rank within the group over `axes`, 0 <= position < numShards, first axis major.
  Result<int64_t> groupPosition(int64_t rank, const std::vector<AxisRef> &axes) const;
  /// Ranks of the group that `rank` belongs to, by group position.
  Result<std::vector<int64_t>> group(int64_t rank, const std::vector<AxisRef> &axes) const;
};

/// The box that a rank holds of a tensor of `globalShape`. Error when a dimension does not divide
/// or an axis is used twice.
struct Box {
  std::vector<int64_t> offsets, sizes;
};
Result<Box> localBox(const Mesh &mesh, int64_t rank, const std::vector<int64_t> &globalShape,
                     const Sharding &sharding);

} // namespace braid::runtime
#endif // BRAID_BASE_MESH_H
