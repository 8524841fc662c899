//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The placements of a function's values for given arguments, and where a placement came from.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_ANALYSIS_PLACEMENTCONTEXT_H
#define BRAID_LIB_ANALYSIS_PLACEMENTCONTEXT_H

#include "PlacementTransfer.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>

namespace braid {

/// The placements of a value: of one tensor or scalar, or of each value that a handle is for.
using Placed = std::vector<Placements>;

/// A function, followed for these arguments.
struct FunctionContext {
  mlir::func::FuncOp func;
  std::vector<Placed> arguments, results;
  llvm::DenseMap<mlir::Value, Placed> values;
  /// Of the calls inside.
  llvm::DenseMap<mlir::Operation *, FunctionContext *> callees;
  bool done = false;
};

/// A function that is being followed, and the call that led there; null for an entry.
struct Frame {
  FunctionContext *context;
  mlir::Operation *call = nullptr;
  const Frame *caller = nullptr;
};

/// Adds a note where `value` came to hold this along the axis.
void noteOrigin(mlir::InFlightDiagnostic &diag, const MeshLayouts &layouts, const Frame &frame,
                mlir::Value value, const Blame &blame);

} // namespace braid
#endif // BRAID_LIB_ANALYSIS_PLACEMENTCONTEXT_H
