//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How much memory a planned procedure needs at least, as a measure of its plan. Shares no code with
// the planner.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_LIVEPEAK_H
#define BRAID_LIB_CONVERSION_LIVEPEAK_H

#include "dialects/RT/IR/RT.h"

#include <array>

namespace braid {

/// Of each arena, by rt::Space.
using ArenaBytes = std::array<int64_t, 2>;

/// Of the payloads that collectives of a procedure hand on and launches of it decode: operand and
/// result. Ranks that see each other's memory decode them where they lie in the operands of their
/// senders, and not from the result (runtime/lib/Executor/ReadInPlace.h): an operand lives as long
/// as the result.
llvm::SmallVector<std::pair<rt::AllocOp, rt::AllocOp>> decodedPayloads(rt::ProcedureOp procedure);

/// The most bytes that hold values at the same time in one legal execution: commands run in the
/// order of the block, and a collective ends when something waits for it. No plan for the same
/// execution has fewer. Bytes of an input that a kernel's result reuses count once, and sizes are
/// rounded up to the alignment of buffers. Where ranks run different commands, the most of any
/// rank.
class LivePeaks {
public:
  /// Of a procedure with its callees; all have frames.
  ArenaBytes of(rt::ProcedureOp procedure);

private:
  ArenaBytes onRank(rt::ProcedureOp procedure, int64_t rank);

  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, ArenaBytes> known; ///< by rank
};

} // namespace braid
#endif // BRAID_LIB_CONVERSION_LIVEPEAK_H
