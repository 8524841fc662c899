//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles a module to a bundle in memory: the phases, the kernels for each instruction set or GPU
// architecture, the program. `braid compile` writes the bundle, `braid run` passes it to the
// loader, embedders do either.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_PIPELINES_COMPILE_H
#define BRAID_PIPELINES_COMPILE_H

#include "braid/Pipelines/Pipelines.h"
#include "braid/Runtime/Bundle.h"
#include "braid/Target/CUDA/CUDACompiler.h"

#include <string>
#include <vector>

namespace braid {

struct CompileOptions {
  std::string mesh;            ///< "dp=2,tp=2"; empty: the module's own, or one rank
  std::string strategy;        ///< empty: auto
  std::string passes;          ///< run on the partitioned module; see PipelineOptions
  std::string quantize;        ///< how collectives are encoded; see PipelineOptions
  std::string quantizeMatmuls; ///< which matmuls multiply 8-bit integers; see PipelineOptions
  /// For `quantize`: the machine that will run the program and says where encodings are faster, a
  /// file or a name (empty: none is asked), how its ranks reach each other (empty: as the hosts
  /// say), how many each host has (empty: one host has all), and their threads.
  std::string machine, transport;
  std::vector<int64_t> ranksOfHosts;
  int64_t threads = 1;
  bool fuseCodecs = true;        ///< see PipelineOptions
  std::vector<std::string> isas; ///< empty: x86-64-v3 and the host's own
  /// Unless empty, the kernels are compiled for these GPUs and for no CPU.
  std::vector<std::string> cudaArchitectures;
  CUDACompileOptions cuda;
  bool stripModule = false; ///< leave the module out
  /// What `quantize` was chosen under, and the relative L2 distance that checks then allow.
  std::optional<runtime::ErrorBudget> errorBudget;
  std::optional<double> checkTolerance;
  bool compileKernels = true; ///< false: only the interpreter will run it
};

/// Times and by-products of a compilation.
struct CompileRecord {
  std::vector<std::pair<std::string, double>> phases; ///< Seconds, in order.
  /// By architecture, without the code, which is in the bundle.
  std::vector<std::pair<std::string, CUDABinary>> cuda;
};

/// Compiles `module` (of any level) and leaves it at the rt level.
/// Errors are emitted as diagnostics on its context.
mlir::FailureOr<runtime::Bundle> compileToBundle(
    mlir::ModuleOp module, const CompileOptions &options, const PhaseObserver &observer = {},
    llvm::function_ref<void(llvm::StringRef)> progress = nullptr, CompileRecord *record = nullptr);

/// The module that a bundle was compiled from; null, with a diagnostic, when it has none.
mlir::OwningOpRef<mlir::ModuleOp> readBundledModule(const runtime::Bundle &bundle,
                                                    mlir::MLIRContext *context);

} // namespace braid
#endif // BRAID_PIPELINES_COMPILE_H
