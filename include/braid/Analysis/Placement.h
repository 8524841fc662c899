//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the ranks of a mesh hold of one value: per sub-axis the same, parts along a dimension,
// addends of a reduction, or values of which nothing is known.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_PLACEMENT_H
#define BRAID_ANALYSIS_PLACEMENT_H

#include "braid/Analysis/MeshLayouts.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace braid {

/// What the ranks along a sub-axis hold.
enum class Held {
  Same,
  Part,   ///< a shard each
  Addend, ///< partial values of an AddendKind
  Varies  ///< nothing is known: the ranks may hold anything
};

/// How the values of ranks make one. The first three are reductions; the others belong to a maximum
/// with a sum of exponentials (nn.reduce) and to attention with the logarithm of its sums, over
/// parts of what is reduced.
enum class AddendKind {
  Sum,
  Max,
  Min,
  LogSum,  ///< logarithms of sums, of which the sum's logarithm is the value
  Relative ///< sums or averages, each relative to its rank's own maximum or sum
};
inline AddendKind kindOf(comm::ReduceKind kind) {
  return kind == comm::ReduceKind::Sum   ? AddendKind::Sum
         : kind == comm::ReduceKind::Max ? AddendKind::Max
                                         : AddendKind::Min;
}

/// An axis over which ranks hold the addends of a reduction.
struct Addend {
  SubAxis axis;
  AddendKind kind;
  auto key() const { return std::tuple(axis, kind); }
  bool operator==(const Addend &other) const { return key() == other.key(); }
  bool operator<(const Addend &other) const { return key() < other.key(); }
};

/// Describes a value of a per-rank program as a global value and what each rank holds of it. For
/// fixed coordinates on the varying axes there is a global value: the ranks along an axis of
/// `dims[d]` hold its blocks along dimension d, major axis first; what ranks along an addend's axis
/// hold reduces to it; along all other axes the ranks hold the same.
struct Placement {
  Layout dims; ///< one for each dimension; none for scalars
  std::vector<Addend> addends;
  SubAxes varying;
  /// By dimension: whether all elements along it are equal, so that a shard of it looks like this
  /// value. Such a dimension is in `dims` as whole, and may be taken for cut by any axes.
  std::vector<bool> uniform;

  auto key() const { return std::tie(dims, addends, varying, uniform); }
  bool operator==(const Placement &other) const { return key() == other.key(); }
  bool operator<(const Placement &other) const { return key() < other.key(); }

  /// What ranks along `axis` hold, which is a digit that this placement is split by; `dim` or
  /// `kind` of it where they are given.
  Held heldOn(const SubAxis &axis, size_t *dim = nullptr, AddendKind *kind = nullptr) const;
  /// Removes a digit: the ranks along it hold the same.
  void makeSame(const SubAxis &axis);
  void makeVarying(const SubAxis &axis);
  /// Merges digits, so that equal placements compare equal.
  void normalize();
};

/// Descriptions of one value, all of which are true. A reshape may leave open which of two
/// dimensions its axes cut: [8] in 4 parts as [2, 4] is cut {2} by {2}, or, seen as [4, 2], by 4 in
/// the first; the operations that follow tell which one is meant.
using Placements = std::vector<Placement>;

/// The same on all ranks.
inline Placement samePlacement(size_t rank, bool uniform = false) {
  return Placement{Layout(rank), {}, {}, std::vector<bool>(rank, uniform)};
}

/// Common sub-axes of several placements: after the split any two of them are equal or disjoint.
class Digits {
public:
  explicit Digits(llvm::ArrayRef<int64_t> axisSizes) : sizes(axisSizes) {}
  void add(const SubAxes &axes);
  void add(const Placement &placement);
  /// Splits all of them into primes.
  void addPrimes();

  /// The digits of a sub-axis, major first. Where sub-axes of an axis cross (2 and 3 of 6), the
  /// whole axis is one digit.
  SubAxes split(const SubAxis &axis) const;
  SubAxes split(const SubAxes &axes) const;
  /// The placement over digits. Nothing is known along axes whose sub-axes cross.
  Placement split(const Placement &placement) const;
  bool crosses(int axis) const;

private:
  llvm::ArrayRef<int64_t> sizes;
  std::map<int, std::set<int64_t>> points;
};

/// "axis 'tp'", "sub-axis 'tp:(1)2'".
std::string nameOf(const MeshLayouts &layouts, const SubAxis &axis);
/// "partial sums", "partial maxima", ...
llvm::StringRef nameOfPartials(AddendKind kind);
/// "the same value", "parts along dimension 1", "partial sums", "values of which nothing is known".
std::string describeHeld(const Placement &placement, const SubAxis &digit);

} // namespace braid
#endif // BRAID_ANALYSIS_PLACEMENT_H
