//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides the sharding of one operation's factors from the proposals of its operands and results.
// Knows factors and bytes, but no operations.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_SHARDING_FACTORSTRATEGY_H
#define BRAID_LIB_TRANSFORMS_SHARDING_FACTORSTRATEGY_H

#include "FactorProjection.h"

#include "dialects/Comm/IR/SaturatingCount.h"

namespace braid {

/// An operand or result of an operation.
struct TensorState {
  mlir::RankedTensorType type; ///< null for a value that is no tensor
  Layout dims;
  SubAxes partials;               ///< axes over which the value is not reduced yet
  llvm::SmallVector<bool> closed; ///< dimensions that take no further axes
  bool stated = false;            ///< in the IR
  bool proposes = true;           ///< takes part in the decision
  bool isFree = false;            ///< costs nothing to make in another form
  int value = -1;                 ///< equal for one value as two operands; negative: unknown
};

/// A proposal that was not followed.
struct FactorConflict {
  int64_t factor;
  SubAxis axis;  ///< the first that the factor does not get
  size_t tensor; ///< the tensor that asks for it: operands first, then results
  size_t winner; ///< the tensor that has the axis or the factor instead
  int64_t winnerFactor;
  SaturatingCount bytes;                 ///< a rank sends with the decision
  std::optional<SaturatingCount> others; ///< and with the proposal, where that was tried
};

struct FactorDecision {
  FactorAxes axes;
  llvm::SmallVector<FactorConflict> conflicts;
};

class FactorStrategy {
public:
  /// `partials` are those stated for the results: reduction factors are sharded over these and no
  /// others.
  FactorStrategy(const comm::ShardingRule &rule, llvm::ArrayRef<TensorState> operands,
                 llvm::ArrayRef<TensorState> results, SubAxes partials = {});

  /// The axes without a conflict.
  FactorAxes agreed() const;
  /// Resolves all conflicts. Stated proposals take precedence. Among proposals of equal precedence,
  /// the order is chosen with which a rank sends the fewest bytes to reshard operands and results;
  /// on ties closed dimensions of results win, then operands, then results.
  FactorDecision settled() const;
  /// Bytes that a rank sends when factors are sharded over `axes`.
  SaturatingCount bytes(const FactorAxes &axes) const;

private:
  struct Proposal {
    int64_t factor;
    SubAxes axes;
    size_t tensor;
    int order;      ///< among equals, see settled()
    SubAxes agreed; ///< the first axes, as far as nothing contradicts
  };
  const comm::TensorFactors &factorsOf(size_t tensor) const;
  bool isResult(size_t tensor) const { return tensor >= numOperands; }
  void collect();
  void preferSums();
  void findAgreed();
  /// Adds the axes of `wanted` that can be added. Returns whether these are all.
  static bool insert(int64_t factor, const SubAxes &wanted, FactorAxes &axes);
  FactorAxes satisfy(llvm::ArrayRef<const Proposal *> order) const;
  bool isSatisfied(const Proposal &proposal, const FactorAxes &axes) const;
  /// Empty where the result of a reduction is sharded after the reduction.
  std::optional<FactorConflict> explain(const Proposal &lost, const FactorAxes &axes) const;

  const comm::ShardingRule &rule;
  std::vector<TensorState> tensors; ///< operands, then results
  size_t numOperands;
  SubAxes partials;
  std::vector<Proposal> proposals;
};

/// Estimates the bytes that a rank sends to reshard a value: `partials` are reduced, or scattered
/// where the axis is wanted; axes that move from one dimension to another are exchanged, axes that
/// disappear are gathered. Partitioning may send more where axes are in another order.
SaturatingCount bytesToReshard(mlir::RankedTensorType type, const Layout &from,
                               const SubAxes &partials, const Layout &to);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SHARDING_FACTORSTRATEGY_H
