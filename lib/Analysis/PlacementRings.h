//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Placements of rings: ranks pass parts of a value on and compute with the part that they hold, so
// that what they hold at a step belongs to another part on each rank, and `comm.assemble` puts it
// there.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_ANALYSIS_PLACEMENTRINGS_H
#define BRAID_LIB_ANALYSIS_PLACEMENTRINGS_H

#include "PlacementContext.h"

namespace braid {

/// The placements of the value that a ring assembles, or why it contradicts itself: a part that is
/// put to another place than it comes from. Nullopt where the operands are not the same function of
/// parts of one value that have travelled.
std::optional<std::variant<Placements, Contradiction>>
assembledByRing(const MeshLayouts &layouts, comm::AssembleOp op, const FunctionContext &context);

/// Whether results of the operation go, through other computations, into comm.assemble only.
bool isOfRing(mlir::Operation *op);

} // namespace braid
#endif // BRAID_LIB_ANALYSIS_PLACEMENTRINGS_H
