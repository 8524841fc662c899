//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an operation makes of the placements of its operands, or how they contradict it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_ANALYSIS_PLACEMENTTRANSFER_H
#define BRAID_LIB_ANALYSIS_PLACEMENTTRANSFER_H

#include "braid/Analysis/Placement.h"
#include "braid/Analysis/PlacementRule.h"

#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include <variant>

namespace braid {

/// What an operand holds along an axis and must not.
struct Blame {
  unsigned operand;
  SubAxis axis;
  Held held;
};

/// Why an operation contradicts what its operands hold.
struct Contradiction {
  PlacementRule rule;
  std::string message; ///< "expects X, got Y"
  std::string note;    ///< what follows from it; may be empty
  llvm::SmallVector<Blame, 2> blames;
};

/// The placements of each result.
using ResultPlacements = llvm::SmallVector<Placements>;
using Transfer = std::variant<ResultPlacements, Contradiction>;

/// Of a collective other than a send or receive, from the placements of its inputs.
Transfer transferCollective(const MeshLayouts &layouts, comm::CollectiveOpInterface op,
                            llvm::ArrayRef<Placements> inputs);
/// Whether all that is made of an operation's results is what a rank adds itself to the payloads of
/// others (`own` of nn.decode_sum): parts of its rows, in another shape.
bool isOwnAddend(mlir::Operation *op);
/// Of a comm.part without a shift.
Transfer transferSlice(const MeshLayouts &layouts, comm::PartOp op, const Placements &input);
/// Of an operation that computes, from the placements of its operands and captured values; by its
/// sharding rule if it has one.
Transfer transferComputation(const MeshLayouts &layouts, mlir::Operation *op,
                             llvm::ArrayRef<Placements> operands,
                             llvm::ArrayRef<Placements> captured);

/// How the result of an operation depends on the operands of a set.
enum class Dependence {
  None,
  Linear,   ///< partial sums in all of them give partial sums
  Affine,   ///< linear, and something is added that does not depend on them
  Product,  ///< of two that depend on them
  Nonlinear ///< in another way
};
Dependence dependenceOn(mlir::Operation *op, const comm::ShardingRule &rule,
                        llvm::ArrayRef<unsigned> operands);
/// Whether partial maxima (minima, ...) give partial maxima: the operation only moves elements of
/// its one operand, or reduces them in the same way.
bool keepsExtrema(mlir::Operation *op, const comm::ShardingRule &rule, AddendKind kind);

/// A maximum with a sum, or an average with the logarithm of its sum: which result the other one is
/// relative to.
struct PairResults {
  unsigned reference, relative;
  AddendKind referenceKind;
};
std::optional<PairResults> pairResultsOf(mlir::Operation *op);

/// What an elementwise body makes of addends that its operands hold along an axis.
struct MapOutcome {
  enum { Addends, Same, Unknown, Wrong } result;
  AddendKind kind = AddendKind::Sum; ///< of addends
};
MapOutcome mapAddends(nn::MapOp op, llvm::ArrayRef<std::optional<AddendKind>> held);

} // namespace braid
#endif // BRAID_LIB_ANALYSIS_PLACEMENTTRANSFER_H
