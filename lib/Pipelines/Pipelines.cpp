//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Pipelines/Pipelines.h"

#include "braid/Conversion/Passes.h"
#include "braid/Schedule/Passes.h"
#include "braid/Transforms/ShardingUtils.h"
#include "braid/Transforms/TablePasses.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace braid {

namespace {
constexpr Level kLevels[] = {Level::Comm, Level::Kernels, Level::Scheduled, Level::RT};

void addVerifyLevel(OpPassManager &pm, Level level) {
  VerifyLevelOptions options;
  options.level = level;
  pm.addPass(createVerifyLevel(options));
}
} // namespace

std::optional<Level> symbolizeLevel(StringRef name) {
  for (Level level : {Level::NN, Level::Comm, Level::Kernels, Level::Scheduled, Level::RT})
    if (stringifyLevel(level) == name)
      return level;
  return std::nullopt;
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
  pm.addPass(createDelayBiases());
  pm.addPass(createPropagateShardings());
  StoreParametersOptions storing;
  storing.strategy = strategy;
  pm.addPass(createStoreParameters(storing));
  pm.addPass(createPartition());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

LogicalResult buildPhase(OpPassManager &pm, Level level, const PipelineOptions &options,
                         Level first, llvm::raw_ostream &errors) {
  if (level == std::max(first, Level::Comm)) {
    addVerifyLevel(pm, first);
    pm.addPass(createConvertTensorParts());
    if (first > Level::Comm && first < Level::RT) {
      pm.addPass(createIdentifyCollectives());
      pm.addPass(createCheckPlacements());
    }
  }
  FormKernelsOptions forming;
  forming.fuseCodecs = options.fuseCodecs;
  forming.target = options.target;
  switch (level) {
  case Level::NN:
    break;
  case Level::Comm:
    // A hand-written per-rank program stays as it is.
    if (first == Level::NN)
      addPartitioning(pm, options);
    pm.addPass(createIdentifyCollectives());
    if (!options.passes.empty()) {
      if (failed(parsePassPipeline(options.passes, pm, errors)))
        return failure();
      pm.addPass(createIdentifyCollectives());
    }
    if (!options.quantize.empty() && options.quantize != kEncodingTable) {
      QuantizeCollectivesOptions quantize;
      quantize.encodings = options.quantize;
      quantize.machine = options.machine;
      quantize.transport = options.transport;
      quantize.hosts.assign(options.hosts.begin(), options.hosts.end());
      quantize.threads = options.threads;
      pm.addPass(createQuantizeCollectives(quantize));
    }
    // Of the collectives that payloads, or their errors, take the place of.
    pm.addPass(createCheckPlacements());
    if (options.quantize == kEncodingTable)
      pm.addPass(createTabulateEncodings());
    else
      pm.addPass(createExpandEncoded());
    if (!options.quantizeMatmuls.empty()) {
      QuantizeMatmulsOptions quantize;
      quantize.matmuls = options.quantizeMatmuls;
      pm.addPass(createQuantizeMatmuls(quantize));
    }
    break;
  case Level::Kernels:
    pm.addPass(createFormKernels(forming));
    break;
  case Level::Scheduled:
    // The starts and waits of a program that is scheduled by hand stay.
    if (first == Level::Scheduled) {
      pm.addPass(createFormKernels(forming));
      break;
    }
    {
      StartCollectivesOptions placing;
      placing.policy = options.policy;
      pm.addPass(createStartCollectives(placing));
    }
    break;
  case Level::RT:
    if (first != Level::RT)
      pm.addPass(createLowerToRT());
    pm.addPass(createAssignBuffers());
    break;
  }
  addVerifyLevel(pm, level);
  return success();
}

namespace {
llvm::cl::OptionEnumValue choice(Level level, StringRef what) {
  return {stringifyLevel(level), static_cast<int>(level), what};
}

/// With the defaults that `braid compile` derives from the module and its options.
struct RegisteredOptions : PipelineOptions {
  Option<Level> from{*this, "from", llvm::cl::desc("level of the module"),
                     llvm::cl::init(Level::NN),
                     llvm::cl::values(choice(Level::NN, "an unpartitioned model"),
                                      choice(Level::Comm, "a program of a rank"),
                                      choice(Level::Kernels, "one with its kernels"),
                                      choice(Level::Scheduled, "one that starts collectives"),
                                      choice(Level::RT, "the executor's commands"))};
  Option<Level> stopAfter{
      *this, "stop-after", llvm::cl::desc("last level"), llvm::cl::init(Level::RT),
      llvm::cl::values(choice(Level::Comm, "partitioned"),
                       choice(Level::Kernels, "kernels and their launches, on tensors"),
                       choice(Level::Scheduled, "collectives started"),
                       choice(Level::RT, "the executor's commands"))};
};
} // namespace

/// Appends the passes for `text`, the options of braid-pipeline, to `pm`.
static LogicalResult buildRegistered(OpPassManager &pm, StringRef text,
                                     function_ref<LogicalResult(const Twine &)> error) {
  RegisteredOptions options;
  if (failed(options.parseFromString(text)))
    return failure();
  Level first = options.from, last = options.stopAfter;
  if (first > last)
    return error("braid-pipeline: expects stop-after at level " + stringifyLevel(first) +
                 ", that of from, or past it, got " + stringifyLevel(last));
  for (Level level : kLevels)
    if (level >= first && level <= last && failed(buildPhase(pm, level, options, first)))
      return failure();
  return success();
}

void registerPipelines() {
  registerPassPipeline("braid-pipeline",
                       "Every phase of braid compile: from nn to rt, or as from and stop-after say",
                       buildRegistered,
                       [](function_ref<void(const mlir::detail::PassOptions &)> visit) {
                         visit(RegisteredOptions());
                       });
}

/// One message, before any work is done.
static LogicalResult checkPasses(ModuleOp module, const PipelineOptions &options) {
  PassManager pm(module.getContext());
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (options.passes.empty() || succeeded(parsePassPipeline(options.passes, pm, errors)))
    return success();
  // The parser's message begins with its own name and shows the text below.
  StringRef message = StringRef(text).split("error: ").second.split('\n').first;
  return emitError(UnknownLoc::get(module.getContext()))
         << "expects a pass pipeline, got '" << options.passes << "': " << message;
}

/// Rejects options that do not apply to a module of level `first`.
static LogicalResult checkStart(ModuleOp module, Level first, Level last,
                                const PipelineOptions &options) {
  StringRef level = stringifyLevel(first);
  if (first > last)
    return module.emitError("the module is at level ")
           << level << ", past level " << stringifyLevel(last) << " that was asked for";
  if (first == Level::NN)
    return success();
  if (!options.strategy.empty())
    return module.emitError("--strategy '")
           << options.strategy << "' applies to a module of level nn, got one of level " << level
           << ", which is partitioned";
  if (first > Level::Comm && !options.quantize.empty())
    return module.emitError("--quantize '")
           << options.quantize << "' encodes collectives at level comm, got a module of level "
           << level;
  if (first > Level::Comm && !options.quantizeMatmuls.empty())
    return module.emitError("--quantize-matmuls '")
           << options.quantizeMatmuls << "' takes matmuls at level comm, got a module of level "
           << level;
  if (first > Level::Comm && !options.passes.empty())
    return module.emitError("--passes '")
           << options.passes << "' run at level comm, got a module of level " << level;
  if (options.mesh.empty())
    return failure(failed(getModuleMesh(module)));
  return expectMesh(module, options.mesh);
}

LogicalResult runPhases(ModuleOp module, Level last, const PipelineOptions &options,
                        const PhaseObserver &observer) {
  FailureOr<Level> first = detectLevel(module);
  if (failed(first) || failed(checkStart(module, *first, last, options)))
    return failure();
  if (failed(checkPasses(module, options)))
    return failure();
  auto isAhead = [&](Level level) { return level >= *first && level <= last; };
  int number = 0;
  for (Level level : llvm::make_filter_range(kLevels, isAhead)) {
    ++number;
    if (observer.begin)
      observer.begin(level, number, llvm::count_if(kLevels, isAhead));
    PassManager pm(module.getContext());
    if (failed(buildPhase(pm, level, options, *first)) ||
        (observer.instrument && failed(observer.instrument(pm))) || failed(pm.run(module)))
      return failure();
    if (observer.end && failed(observer.end(level, number, module)))
      return failure();
  }
  return success();
}

} // namespace braid
