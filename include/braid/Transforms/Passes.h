//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TRANSFORMS_PASSES_H
#define BRAID_TRANSFORMS_PASSES_H

#include "braid/Cost/EncodedChunks.h" // defaults of options

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace braid {

/// The level of a module; braid-verify-level checks which operations each admits.
enum class Level {
  NN,        ///< whole model on one logical device
  Comm,      ///< per-rank shapes, collectives by value
  Kernels,   ///< rt kernels and commands on tensors
  Scheduled, ///< collectives as start and wait
  RT         ///< the executor's commands
};

/// "nn", "comm", "kernels", "scheduled", "rt".
llvm::StringRef stringifyLevel(Level level);

/// The first level that admits all operations of a module. Fails, with a diagnostic, where none
/// does.
mlir::FailureOr<Level> detectLevel(mlir::ModuleOp module);

#define GEN_PASS_DECL
#include "braid/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "braid/Transforms/Passes.h.inc"

} // namespace braid
#endif // BRAID_TRANSFORMS_PASSES_H
