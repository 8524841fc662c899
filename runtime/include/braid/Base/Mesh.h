//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The grid of ranks: named axes, coordinates, groups, and the shard of a tensor that a rank holds.
// Compiler, interpreter and runtime share this definition.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_MESH_H
#define BRAID_BASE_MESH_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::runtime {

/// An axis of a mesh, or a sub-axis: the middle one of an axis of size n viewed as [pre, size, n /
/// (pre * size)]. Size 0 means the full axis.
struct AxisRef {
  std::string name;
  int64_t pre = 1;
  int64_t size = 0;
  bool operator==(const AxisRef &o) const {
    return name == o.name && pre == o.pre && size == o.size;
  }
};

/// Axes per dimension, major first; a dimension without axes is replicated. An empty `dims` means a
/// replicated tensor of any rank.
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
  /// Checks for unique non-empty names, positive sizes, at most kMaxRanks ranks and a valid order.
  Status verify() const;
  static constexpr int64_t kMaxRanks = int64_t(1) << 24;
  /// Checks that the axes exist, that sub-axes divide them, and that no two in the list overlap.
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

/// (position + shift) mod count, from 0 to count - 1; `count` is at least 1.
int64_t shiftedPosition(int64_t position, int64_t shift, int64_t count);

/// The shard of a tensor of `globalShape` that a rank holds, as a box. Error when a dimension does
/// not divide or an axis is used twice.
struct Box {
  std::vector<int64_t> offsets, sizes;
};
Result<Box> localBox(const Mesh &mesh, int64_t rank, const std::vector<int64_t> &globalShape,
                     const Sharding &sharding);

} // namespace braid::runtime
#endif // BRAID_BASE_MESH_H
