//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The way from one form of a value to another on which a rank sends the fewest bytes. Without MLIR.
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

/// For each dimension the axes that cut it, major first, by their number.
using Cuts = std::vector<std::vector<int>>;

/// What a way costs; what comes first decides.
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
    Slice,    ///< `dim` is cut over `axes`, which were not in use
    Gather,   ///< the minor axes of `dim`, `axes`, are joined
    Exchange, ///< they go to the end of dimension `to`
    Permute   ///< parts stay as they are and change places, over `axes`
  } kind;
  size_t dim = 0, to = 0;
  std::vector<int> axes;
  Cuts after;
};

struct ReshardPath {
  size_t from = 0; ///< which of the forms it begins with
  ReshardCost cost;
  std::vector<ReshardStep> steps;
};

/// One value of `shape` on a mesh of axes of the given sizes.
class Resharder {
public:
  /// `exclusive` are pairs of axes that are not in use together: overlapping parts of one.
  Resharder(std::vector<int64_t> axisSizes, std::vector<std::pair<int, int>> exclusive,
            std::vector<int64_t> shape, int64_t elementBytes)
      : axisSizes(std::move(axisSizes)), exclusive(std::move(exclusive)), shape(std::move(shape)),
        elementBytes(elementBytes) {}

  /// The cheapest way from one of `from`, the first of equals.
  std::optional<ReshardPath> cheapest(const std::vector<Cuts> &from, const Cuts &to) const;
  /// Where a part is after `Permute`: pairs of positions over the step's axes.
  std::vector<int64_t> permutation(const Cuts &before, const ReshardStep &step) const;

  SaturatingCount localBytes(const Cuts &cuts) const;
  /// Number of parts over these axes.
  int64_t parts(const std::vector<int> &axes) const;
  /// Whether an axis can be used beside those in use.
  bool isFree(const Cuts &cuts, int axis) const;
  /// Whether the parts of a dimension can be cut into n.
  bool divides(const Cuts &cuts, size_t dim, int64_t n) const {
    return shape[dim] % (parts(cuts[dim]) * n) == 0;
  }

private:
  struct Edge {
    ReshardStep step;
    ReshardCost cost;
  };
  std::vector<Edge> edges(const Cuts &cuts) const;
  void addPermutations(const Cuts &cuts, std::vector<Edge> &edges) const;

  std::vector<int64_t> axisSizes;
  std::vector<std::pair<int, int>> exclusive;
  std::vector<int64_t> shape;
  int64_t elementBytes;
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_RESHARD_H
