//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How one operation is sharded: what its operands and results ask of its factors, and which of them
// wins where they disagree. Knows factors and bytes, and no operation.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_SHARDING_FACTORSTRATEGY_H
#define BRAID_LIB_TRANSFORMS_SHARDING_FACTORSTRATEGY_H

#include "FactorProjection.h"

#include "dialects/Comm/IR/SaturatingCount.h"

namespace braid {

/// An operand or result as an operation sees it.
struct TensorState {
  mlir::RankedTensorType type; ///< null for what is no tensor, which asks for nothing
  DimAxes dims;
  llvm::SmallVector<comm::PartialAttr> partials;
  llvm::SmallVector<bool> closed; ///< dimensions that take no further axes
  bool stated = false;            ///< in the IR
  bool proposes = true;           ///< takes part in the decision
  bool isFree = false;            ///< costs nothing to make in another form
  int value = -1;                 ///< equal for one value as two operands; negative: unknown
};

/// A proposal that was not followed.
struct FactorConflict {
  int64_t factor;
  comm::AxisAttr axis; ///< the first that the factor does not get
  size_t tensor;       ///< that asked for it: operands first, then results
  size_t winner;       ///< that has the axis or the factor instead
  int64_t winnerFactor;
  SaturatingCount bytes;                 ///< that a rank sends as decided
  std::optional<SaturatingCount> others; ///< as proposed, where that was tried
};

struct FactorDecision {
  FactorAxes axes;
  llvm::SmallVector<FactorConflict> conflicts;
};

class FactorStrategy {
public:
  /// `partials` are those stated of the results: reduction factors are sharded over these, and over
  /// no others.
  FactorStrategy(comm::MeshOp mesh, const comm::ShardingRule &rule,
                 llvm::ArrayRef<TensorState> operands, llvm::ArrayRef<TensorState> results,
                 llvm::ArrayRef<comm::PartialAttr> partials = {});

  /// What nothing contradicts.
  FactorAxes agreed() const;
  /// All conflicts settled. What is stated goes before what is not. Of the ways to satisfy
  /// proposals of one rank one after the other the one is taken with which a rank sends the fewest
  /// bytes to bring operands to it and results from it; of equals the one that follows, in this
  /// order, closed dimensions of results, operands, results.
  FactorDecision settled() const;
  /// Bytes that a rank sends when factors are sharded over `axes`.
  SaturatingCount bytes(const FactorAxes &axes) const;

private:
  struct Proposal {
    int64_t factor;
    AxisList axes;
    size_t tensor;
    int order;       ///< among equals, see settled()
    AxisList agreed; ///< the first axes, as far as nothing contradicts
  };
  const comm::TensorFactors &factorsOf(size_t tensor) const;
  bool isResult(size_t tensor) const { return tensor >= numOperands; }
  void collect();
  void preferSums();
  void findAgreed();
  /// Adds what of `wanted` can be added; whether that is all.
  bool insert(int64_t factor, llvm::ArrayRef<comm::AxisAttr> wanted, FactorAxes &axes) const;
  FactorAxes satisfy(llvm::ArrayRef<const Proposal *> order) const;
  bool isSatisfied(const Proposal &proposal, const FactorAxes &axes) const;
  /// Nothing where the result of a reduction is sharded once it is reduced.
  std::optional<FactorConflict> explain(const Proposal &lost, const FactorAxes &axes) const;

  comm::MeshOp mesh;
  const comm::ShardingRule &rule;
  std::vector<TensorState> tensors; ///< operands, then results
  size_t numOperands;
  llvm::ArrayRef<comm::PartialAttr> partials;
  std::vector<Proposal> proposals;
};

/// Bytes that a rank sends to bring a value from one form to another: `partials` are reduced,
/// scattered where an axis is wanted; axes that leave one dimension and arrive at another are
/// exchanged, those that leave only are gathered. An estimate: partitioning finds the way, and may
/// send more where axes stand in another order.
SaturatingCount bytesToReshard(comm::MeshOp mesh, mlir::RankedTensorType type, const DimAxes &from,
                               llvm::ArrayRef<comm::PartialAttr> partials, const DimAxes &to);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SHARDING_FACTORSTRATEGY_H
