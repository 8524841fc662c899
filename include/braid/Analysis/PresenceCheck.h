//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which ranks run the operations of a per-rank program, and which have its values.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_PRESENCECHECK_H
#define BRAID_ANALYSIS_PRESENCECHECK_H

#include "braid/Analysis/PlacementRule.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace braid {

/// Checks that all ranks that run an operation have its operands, from the entries through calls.
///
/// A call with `comm.on` runs on the ranks of that place that run its caller. Parameters and entry
/// arguments are where their places say, and other values where they are computed. A part of a
/// value (`nn.slice`) is where the value is, and a value of parts (`nn.concat`) where all of them
/// are. A function returns what all ranks have that run it; an entry what the ranks have that its
/// result is declared on. A state stays where it is. All ranks of the groups of a collective run
/// it; a send or a recv is run by any.
mlir::LogicalResult checkPresence(comm::MeshOp mesh, llvm::ArrayRef<mlir::func::FuncOp> entries,
                                  SkippedRules skip = {});

} // namespace braid
#endif // BRAID_ANALYSIS_PRESENCECHECK_H
