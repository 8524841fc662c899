//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A set of ranks by coordinates of the mesh: where a call runs, or who has a value.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_RANKSET_H
#define BRAID_BASE_RANKSET_H

#include "braid/Base/Mesh.h"

#include <optional>

namespace braid::runtime {

/// The ranks whose coordinate along each named axis is one of the listed ones. Without axes: all
/// ranks.
struct RankSet {
  struct Axis {
    std::string axis;
    std::vector<int64_t> coordinates; ///< ascending
    bool operator==(const Axis &o) const { return axis == o.axis && coordinates == o.coordinates; }
  };
  std::vector<Axis> axes;

  bool isAll() const { return axes.empty(); }
  bool operator==(const RankSet &o) const { return axes == o.axes; }
  /// The listed coordinates along an axis; null: all of them.
  const std::vector<int64_t> *along(const std::string &axis) const;
  bool contains(const Mesh &mesh, int64_t rank) const {
    return isAll() || containsCoordinates(mesh, mesh.coordinates(rank));
  }
  bool containsCoordinates(const Mesh &mesh, const std::vector<int64_t> &coordinates) const;
  /// Checks that the axes belong to the mesh and are named once, and that each lists some of its
  /// coordinates, but not all, in ascending order.
  Status verify(const Mesh &mesh) const;
};

/// "{pp = [0], tp = [0, 1]}"; "all ranks"
std::string rankSetString(const RankSet &ranks);
/// The ranks that are in both; nullopt where there are none.
std::optional<RankSet> intersection(const RankSet &a, const RankSet &b);
bool isInside(const RankSet &inner, const RankSet &outer);
/// The first axis along which the groups over `axes` of these ranks lack members; null where the
/// groups are complete. The axes were verified.
const AxisRef *incompleteAxis(const Mesh &mesh, const RankSet &ranks,
                              const std::vector<AxisRef> &axes);

/// Ranks that are in the same of some sets play one role.
class RankRoles {
public:
  /// The sets were verified. An error for more ranks than kMaxRanks, if there are any sets.
  static Result<RankRoles> of(const Mesh &mesh, const std::vector<RankSet> &sets);
  size_t count() const { return first.size(); }
  /// The first rank that plays the role.
  int64_t rank(size_t role) const { return first[role]; }

  /// The number of the role that a rank plays.
  size_t roleOf(int64_t rank) const { return roles.empty() ? 0 : roles[static_cast<size_t>(rank)]; }
  static constexpr int64_t kMaxRanks = int64_t(1) << 16;

private:
  std::vector<int64_t> first{0}; ///< by role
  std::vector<size_t> roles;     ///< by rank; empty: all play one
};

} // namespace braid::runtime
#endif // BRAID_BASE_RANKSET_H
