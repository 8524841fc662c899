//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The factor form of an operation, as in einsum notation: every dimension of every operand and
// result is a product of factors (major first), and a factor that occurs in operands but in no
// result is reduced. Follows the formulation of Shardy's op sharding rules (openxla.org/shardy).
// Included by Comm.h, after the enums that it uses.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_COMM_SHARDINGRULE_H
#define BRAID_DIALECTS_COMM_SHARDINGRULE_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace braid::comm {

enum class FactorKind {
  Parallel,  ///< may be sharded: each rank computes its shard of the results
  Reduction, ///< may be sharded: the results are then partial, to be combined by Factor::reduce
  Replicated ///< must not be sharded (a normalized dimension, say)
};

/// What an operation computes where a program written per rank gives it shards of a replicated
/// factor.
enum class OnShards {
  Wrong,   ///< not the operation on the unpartitioned values
  Unknown, ///< whatever the program makes of it
  Shard    ///< the shard of the result; propagation leaves the factor whole for another reason
};

struct Factor {
  std::string name; ///< for messages: "batch", "head", ...
  int64_t size = 1;
  FactorKind kind = FactorKind::Parallel;
  ReduceKind reduce = ReduceKind::Sum; ///< of a reduction factor
  OnShards onShards = OnShards::Wrong; ///< of a replicated factor
};

/// Factor indices of one dimension, major first. Empty for a dimension without a factor (size 1, or
/// broadcast).
using DimFactors = llvm::SmallVector<int64_t, 2>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

struct ShardingRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 4> operands, results;
  /// True when the operation is linear in the operands that `partialOperands` names, so that
  /// partial operands give a partial result. All of these operands must then be partial over the
  /// same axes.
  bool linear = false;
  /// Operands that may be partial when `linear`; the others must be reduced. A partial value flows
  /// through only where this operation is its one user.
  llvm::SmallVector<int64_t, 2> partialOperands;
  /// The result is the sum of the operands in `partialOperands`, which have its shape. Where all of
  /// them are partial, the result stays partial rather than sharded, so that one reduction serves
  /// all.
  bool sum = false;
  /// Results that are complete on every rank although a reduction factor is sharded: buildLocal
  /// reduces them, since it needs them for the others.
  llvm::SmallVector<int64_t, 1> completeResults;
  /// Operands in each of which the operation is linear while the others stay the same. Propagation
  /// reduces them before; a program written by hand may pass partial sums through one of them.
  llvm::SmallVector<int64_t, 2> linearIn;

  int64_t addFactor(llvm::StringRef name, int64_t size, FactorKind kind = FactorKind::Parallel) {
    factors.push_back({name.str(), size, kind});
    return static_cast<int64_t>(factors.size()) - 1;
  }
};

/// The default of ShardingRuleOpInterface::buildLocal.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> cloneWithTypes(mlir::Operation *op,
                                                               mlir::OpBuilder &builder,
                                                               mlir::ValueRange operands,
                                                               mlir::TypeRange resultTypes);

} // namespace braid::comm
#endif // BRAID_DIALECTS_COMM_SHARDINGRULE_H
