//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Pipelines/Pipelines.h"

#include "braid/Conversion/Passes.h"
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

LogicalResult buildPhase(OpPassManager &pm, Level level, const PipelineOptions &options,
                         llvm::raw_ostream &errors) {
  switch (level) {
  case Level::NN:
    break;
  case Level::Comm: {
    addVerifyLevel(pm, Level::NN);
    PadForStrategyOptions padding;
    padding.mesh = options.mesh;
    padding.strategy = options.strategy;
    pm.addPass(createPadForStrategy(padding));
    ApplyStrategyOptions strategy;
    strategy.mesh = options.mesh;
    strategy.strategy = options.strategy;
    pm.addPass(createApplyStrategy(strategy));
    pm.addPass(createPropagateShardings());
    pm.addPass(createPartition());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
    if (!options.passes.empty() && failed(parsePassPipeline(options.passes, pm, errors)))
      return failure();
    break;
  }
  case Level::Scheduled:
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

LogicalResult runPhases(ModuleOp module, Level last, const PipelineOptions &asked,
                        const PhaseObserver &observer) {
  PipelineOptions options;
  options.copyOptionValuesFrom(asked);
  // A model that nobody has cut runs on one rank.
  if (options.mesh.empty() && module.getOps<comm::MeshOp>().empty())
    options.mesh = "tp=1";
  if (failed(checkPasses(module, options)))
    return failure();
  int count = llvm::count_if(kLevels, [&](Level level) { return level <= last; });
  if (count == 0) {
    PassManager pm(module.getContext());
    return failure(failed(buildPhase(pm, Level::NN, options)) || failed(pm.run(module)));
  }
  int number = 0;
  for (Level level : kLevels) {
    if (level > last)
      break;
    ++number;
    if (observer.begin)
      observer.begin(level, number, count);
    PassManager pm(module.getContext());
    if (failed(buildPhase(pm, level, options)) || failed(pm.run(module)))
      return failure();
    if (observer.end && failed(observer.end(level, number, module)))
      return failure();
  }
  return success();
}

} // namespace braid
