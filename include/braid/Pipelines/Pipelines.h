//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles a module to a bundle in named phases. Each phase ends at a level whose contract
// `braid-verify-level` checks, can be the last one to run, and can be dumped. A module may begin at
// a level before rt: earlier phases are skipped.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_PIPELINES_PIPELINES_H
#define BRAID_PIPELINES_PIPELINES_H

#include "braid/Analysis/CodecFusion.h"
#include "braid/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>

namespace braid {

/// The level with this name (stringifyLevel).
std::optional<Level> symbolizeLevel(llvm::StringRef name);

struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> mesh{
      *this, "mesh",
      llvm::cl::desc(
          "axes and sizes, major first, such as dp=2,tp=4; empty: the module's own mesh, "
          "or one rank")};
  Option<std::string> strategy{
      *this, "strategy",
      llvm::cl::desc("how axes are used: auto (also when empty), none, or a list of tp or tp-sp, "
                     "vocab, dp and fsdp")};
  Option<std::string> passes{
      *this, "passes",
      llvm::cl::desc("passes to run on the partitioned module, before kernels are formed: a "
                     "pass pipeline on the module")};
  Option<std::string> quantize{
      *this, "quantize",
      llvm::cl::desc(
          "how collectives are encoded: the list that braid-quantize-collectives takes")};
  Option<std::string> machine{
      *this, "machine",
      llvm::cl::desc("machine file or name: encode collectives only where that is faster on it")};
  Option<std::string> transport{
      *this, "transport", llvm::cl::desc("by which ranks will reach each other, with a machine")};
  ListOption<int64_t> hosts{*this, "hosts",
                            llvm::cl::desc("ranks of each host, in order, with a machine")};
  Option<int64_t> threads{*this, "threads", llvm::cl::desc("threads of a rank, with a machine"),
                          llvm::cl::init(1)};
  Option<bool> fuseCodecs{*this, "fuse-codecs",
                          llvm::cl::desc("join encodes and decodes with kernels"),
                          llvm::cl::init(true)};
  Option<KernelTarget> target{
      *this, "target", llvm::cl::desc("whose kernels they are joined with"),
      llvm::cl::init(KernelTarget::CPU),
      llvm::cl::values(clEnumValN(KernelTarget::CPU, "cpu", "rows of any length"),
                       clEnumValN(KernelTarget::CUDA, "cuda", "rows that fit a block's memory"))};
  Option<std::string> quantizeMatmuls{
      *this, "quantize-matmuls",
      llvm::cl::desc(
          "which matmuls multiply 8-bit integers: the list that braid-quantize-matmuls takes")};
  Option<std::string> policy{*this, "policy", llvm::cl::desc("how collectives are placed: eager"),
                             llvm::cl::init("eager")};
};

/// Appends the passes that lead to `level` from the one before it, for a module that began at level
/// `first`. Fails, with a message on `errors`, if `options.passes` is no pipeline of registered
/// passes.
mlir::LogicalResult buildPhase(mlir::OpPassManager &pm, Level level, const PipelineOptions &options,
                               Level first = Level::NN, llvm::raw_ostream &errors = llvm::errs());

/// Registers `braid-pipeline` for braid-opt: the passes of runPhases as one pipeline. It does not
/// see the module, so `from` names the module's level.
void registerPipelines();

/// Hooks of a run over phases.
struct PhaseObserver {
  /// Before a phase: its level, its number from 1, the number of phases.
  llvm::function_ref<void(Level, int, int)> begin = nullptr;
  /// Before a phase's passes run, to add timing or printing.
  llvm::function_ref<mlir::LogicalResult(mlir::PassManager &)> instrument = nullptr;
  /// After a phase has been verified.
  llvm::function_ref<mlir::LogicalResult(Level, int, mlir::ModuleOp)> end = nullptr;
};

/// Runs every phase from the module's level up to `last`, in place. A module of a later level than
/// nn is partitioned: its mesh is its own, and it takes no strategy. Errors are emitted
/// as diagnostics.
mlir::LogicalResult runPhases(mlir::ModuleOp module, Level last, const PipelineOptions &options,
                              const PhaseObserver &observer = {});

} // namespace braid
#endif // BRAID_PIPELINES_PIPELINES_H
