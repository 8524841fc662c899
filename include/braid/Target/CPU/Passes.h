//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TARGET_CPU_PASSES_H
#define BRAID_TARGET_CPU_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace braid::cpu {
#define GEN_PASS_DECL
#include "braid/Target/CPU/Passes.h.inc"

struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<int64_t> vectorWidth{*this, "vector-width",
                              llvm::cl::desc("Columns per vector; a power of two"),
                              llvm::cl::init(16)};
  Option<int64_t> accumulators{*this, "accumulators",
                               llvm::cl::desc("Independent vectors that a reduction runs on"),
                               llvm::cl::init(2)};
};

/// rt.kernel to the LLVM dialect, as -braid-cpu-pipeline does.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options);

#define GEN_PASS_REGISTRATION
#include "braid/Target/CPU/Passes.h.inc"
/// -braid-cpu-pipeline.
void registerPipeline();
} // namespace braid::cpu
#endif // BRAID_TARGET_CPU_PASSES_H
