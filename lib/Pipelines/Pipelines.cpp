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

void buildPhase(OpPassManager &pm, Level level, const PipelineOptions &options) {
  switch (level) {
  case Level::NN:
    break;
  case Level::Comm: {
    addVerifyLevel(pm, Level::NN);
    ApplyStrategyOptions strategy;
    strategy.mesh = options.mesh;
    strategy.strategy = options.strategy;
    pm.addPass(createApplyStrategy(strategy));
    pm.addPass(createPropagateShardings());
    pm.addPass(createPartition());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
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
          if (level <= *last)
            buildPhase(pm, level, options);
      });
}

LogicalResult runPhases(ModuleOp module, Level last, const PipelineOptions &asked,
                        const PhaseObserver &observer) {
  PipelineOptions options;
  options.copyOptionValuesFrom(asked);
  // A model that nobody has cut runs on one rank.
  if (options.mesh.empty() && module.getOps<comm::MeshOp>().empty())
    options.mesh = "tp=1";
  int count = llvm::count_if(kLevels, [&](Level level) { return level <= last; });
  if (count == 0) {
    PassManager pm(module.getContext());
    buildPhase(pm, Level::NN, options);
    return pm.run(module);
  }
  int number = 0;
  for (Level level : kLevels) {
    if (level > last)
      break;
    ++number;
    if (observer.begin)
      observer.begin(level, number, count);
    PassManager pm(module.getContext());
    buildPhase(pm, level, options);
    if (failed(pm.run(module)))
      return failure();
    if (observer.end && failed(observer.end(level, number, module)))
      return failure();
  }
  return success();
}

} // namespace braid
