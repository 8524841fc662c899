//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rules that a per-rank program of tensors keeps.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_PLACEMENTRULE_H
#define BRAID_ANALYSIS_PLACEMENTRULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace braid {

/// The rules of braid-check-placements. Every one refuses programs that all others accept.
enum class PlacementRule : unsigned {
  // Which ranks run an operation, and which have its values.
  Called,   ///< some rank runs a call with a place
  Present,  ///< all ranks that run an operation have its operands
  Returned, ///< all ranks have a result that it is declared on
  Complete, ///< all ranks of a collective's groups run it
  Stays,    ///< a state stays on its ranks
  // Of a collective's operand.
  SumOnce,    ///< what is added up is not the same on all ranks
  SumParts,   ///< what is reduced is not parts of more than one index
  ReduceKind, ///< partial sums are added up, partial maxima compared
  GatherOnce, ///< what is put side by side is not the same on all ranks
  GatherDim,  ///< parts are put side by side along their own dimension
  GatherSums, ///< what is put side by side is not partial sums
  GatherAxes, ///< parts are put together over the minor axes of their dimension
  TakePart,   ///< a rank takes its part of what is the same on all ranks
  OneRank,    ///< what one rank sends to all is no partial sum
  // Of an operation that computes, by its factors.
  Alike,     ///< operands have a common factor in the same parts
  TableRows, ///< the rows of a table are cut as its lookup says
  OneFactor, ///< an axis cuts one factor
  Whole,     ///< a factor that must be whole is not cut
  // Of partial sums in an operation that computes.
  SumOrParts, ///< no operand is in parts along the axis of another one's partial sums
  Relative,   ///< a value relative to a rank's own maximum is made relative to a common one
  OneKind,    ///< operands have partial values of one kind
  Extrema,    ///< partial maxima are only moved
  AddedOnce,  ///< what is added to partial sums is partial sums too
  Product,    ///< no product of partial sums is taken
  Linear,     ///< the operation is linear in partial sums
  // Of parts that are put together by rank.
  Shift, ///< parts that travel together are put where they came from
  Ring,  ///< every rank puts the part of a position there
  // Of results.
  Declared,     ///< a result is what its declaration says
  DeclaredAxes, ///< and its axes are in the declared order
};
/// By its name in the option `skip`.
std::optional<PlacementRule> symbolizePlacementRule(llvm::StringRef name);

/// The rules that are left out, which tests do to show that each is needed.
using SkippedRules = llvm::ArrayRef<PlacementRule>;

} // namespace braid
#endif // BRAID_ANALYSIS_PLACEMENTRULE_H
