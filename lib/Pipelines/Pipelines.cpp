//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Pipelines/Pipelines.h"

#include "braid/Conversion/Passes.h"
#include "braid/Transforms/ShardingUtils.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace braid {

namespace {
constexpr Level kLevels[] = {Level::Comm, Level::Scheduled, Level::Kernels, Level::RT};

void addVerifyLevel(OpPassManager &pm, Level level) {
  VerifyLevelOptions options;
  options.level = level;
  pm.addPass(createVerifyLevel(options));
}
} // namespace

std::optional<Level> symbolizeLevel(StringRef name) {
  return llvm::StringSwitch<std::optional<Level>>(name)
      .Case("nn", Level::NN)
      .Case("comm", Level::Comm)
      .Case("scheduled", Level::Scheduled)
      .Case("kernels", Level::Kernels)
      .Case("rt", Level::RT)
      .Default(std::nullopt);
}

/// From nn to comm.
static void addPartitioning(OpPassManager &pm, const PipelineOptions &options) {
  std::string strategy = options.strategy;
  if (strategy.empty())
    strategy = "auto";
  PadForStrategyOptions padding;
  padding.mesh = options.mesh;
  padding.strategy = strategy;
  pm.addPass(createPadForStrategy(padding));
  ApplyStrategyOptions seeds;
  seeds.mesh = options.mesh;
  seeds.strategy = strategy;
  pm.addPass(createApplyStrategy(seeds));
  pm.addPass(createPropagateShardings());
  pm.addPass(createPartition());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

LogicalResult buildPhase(OpPassManager &pm, Level level, const PipelineOptions &options,
                         Level first, llvm::raw_ostream &errors) {
  switch (level) {
  case Level::NN:
    break;
  case Level::Comm:
    addVerifyLevel(pm, first);
    // What was written as the program of a rank stays as it is written.
    if (first == Level::NN)
      addPartitioning(pm, options);
    if (!options.passes.empty() && failed(parsePassPipeline(options.passes, pm, errors)))
      return failure();
    break;
  case Level::Scheduled:
    if (first < Level::Scheduled)
      pm.addPass(createStartCollectives());
    break;
  case Level::Kernels:
    pm.addPass(createFormKernels());
    break;
  case Level::RT:
    pm.addPass(createLowerToRT());
    pm.addPass(createAssignBuffers());
    break;
  }
  addVerifyLevel(pm, level);
  return success();
}

void registerPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "braid-pipeline", "every phase from nn to the level that stop-after names",
      [](OpPassManager &pm, const PipelineOptions &options) {
        std::optional<Level> last = symbolizeLevel(options.stopAfter);
        if (!last)
          llvm::report_fatal_error(llvm::Twine("braid-pipeline: unknown level '") +
                                       options.stopAfter +
                                       "' in stop-after; expects comm, scheduled, kernels or rt",
                                   /*gen_crash_diag=*/false);
        for (Level level : kLevels)
          if (level <= *last && failed(buildPhase(pm, level, options)))
            llvm::report_fatal_error("braid-pipeline: expects passes to be a pass pipeline",
                                     /*gen_crash_diag=*/false);
      });
}

/// One message, before any work is done.
static LogicalResult checkPasses(ModuleOp module, const PipelineOptions &options) {
  PassManager pm(module.getContext());
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (options.passes.empty() || succeeded(parsePassPipeline(options.passes, pm, errors)))
    return success();
  // The parser's message names itself first, and shows the text below.
  StringRef message = StringRef(text).split("error: ").second.split('\n').first;
  return emitError(UnknownLoc::get(module.getContext()))
         << "expects a pass pipeline, got '" << options.passes << "': " << message;
}

/// What cannot be asked of a module of level `first`.
static LogicalResult checkStart(ModuleOp module, Level first, Level last,
                                const PipelineOptions &options) {
  StringRef level = stringifyLevel(first);
  if (first > Level::Scheduled)
    return module.emitError("expects a module of level nn, comm or scheduled, got one of level ")
           << level;
  if (first > last)
    return module.emitError("the module is at level ")
           << level << ", past level " << stringifyLevel(last) << " that was asked for";
  if (first == Level::NN)
    return success();
  if (!options.strategy.empty())
    return module.emitError("--strategy '")
           << options.strategy << "' says how to partition a module of level nn, got one of level "
           << level << ", which is partitioned";
  if (first == Level::Scheduled && !options.passes.empty())
    return module.emitError("--passes '")
           << options.passes << "' run before collectives are started, got a module of level "
           << level << ", where they are";
  if (options.mesh.empty())
    return failure(failed(getModuleMesh(module)));
  return expectMesh(module, options.mesh);
}

LogicalResult runPhases(ModuleOp module, Level last, const PipelineOptions &asked,
                        const PhaseObserver &observer) {
  FailureOr<Level> first = detectLevel(module);
  if (failed(first) || failed(checkStart(module, *first, last, asked)))
    return failure();
  PipelineOptions options;
  options.copyOptionValuesFrom(asked);
  // A model that nobody has cut runs on one rank.
  if (options.mesh.empty() && module.getOps<comm::MeshOp>().empty())
    options.mesh = "tp=1";
  if (failed(checkPasses(module, options)))
    return failure();
  auto isAhead = [&](Level level) { return level >= *first && level <= last; };
  int number = 0;
  for (Level level : llvm::make_filter_range(kLevels, isAhead)) {
    ++number;
    if (observer.begin)
      observer.begin(level, number, llvm::count_if(kLevels, isAhead));
    PassManager pm(module.getContext());
    if (failed(buildPhase(pm, level, options, *first)) || failed(pm.run(module)))
      return failure();
    if (observer.end && failed(observer.end(level, number, module)))
      return failure();
  }
  return success();
}

} // namespace braid
