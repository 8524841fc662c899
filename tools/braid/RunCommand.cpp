//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `braid run`: braid-run's command line, plus compiling a module in memory and the interpreters.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "MlirOptions.h"
#include "QuantizeBudget.h"
#include "Session.h"
#include "braid/Base/EncodingTable.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"
#include "braid/Interpreter/Evaluate.h"
#include "braid/Runtime/KernelLibrary.h"
#include "braid/Runtime/RunOptions.h"
#include "braid/Runtime/Safetensors.h"
#include "braid/Schedule/Passes.h"
#include "braid/Transforms/TablePasses.h"
#include "dialects/Comm/IR/Comm.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace braid::tool {

namespace {

using Tensors = std::map<std::string, runtime::HostTensor>;

/// The program of a rank on values: a model is partitioned, and its collectives are started.
LogicalResult prepareForRanks(ModuleOp module, const PipelineOptions &options) {
  FailureOr<Level> level = detectLevel(module);
  if (failed(level) || (*level <= Level::Comm && failed(runPhases(module, Level::Comm, options))))
    return failure();
  if (*level >= Level::Scheduled)
    return success();
  PassManager pm(module.getContext());
  pm.addPass(createStartCollectives());
  return pm.run(module);
}

/// The options that only `braid run` has, and their effects.
class Runner {
public:
  std::string mesh, strategy, passes, quantize, isas; ///< empty: not given
  BudgetArgs budget;
  std::string quantizeMatmuls;
  std::string dialectPlugins, passPlugins; ///< paths with commas between them

  runtime::Result<std::shared_ptr<const runtime::Bundle>> open(const runtime::RunOptions &options) {
    // A bundle also carries a module, which --check reference reads.
    if (!session.load({split(dialectPlugins), split(passPlugins)}))
      return runtime::Status::error("cannot do without the plugins");
    if (isBundle(options.model)) {
      if (!mesh.empty() && options.target != "reference")
        return runtime::Status::error("'", options.model,
                                      "' is compiled already: --mesh requires a module");
      // --target reference partitions the module that the bundle carries.
      const char *compiling = !isas.empty()                   ? "--isa"
                              : options.target == "reference" ? nullptr
                              : !strategy.empty()             ? "--strategy"
                              : !passes.empty()               ? "--passes"
                              : !quantize.empty()             ? "--quantize"
                              : !budget.bound.empty()         ? "--quantize-budget"
                              : !quantizeMatmuls.empty()      ? "--quantize-matmuls"
                                                              : nullptr;
      if (compiling)
        return runtime::Status::error("'", options.model, "' is compiled already: ", compiling,
                                      " requires a module");
      ASSIGN_OR_RETURN(runtime::Bundle bundle, runtime::Bundle::read(options.model));
      return std::make_shared<const runtime::Bundle>(std::move(bundle));
    }
    if (options.target == "cuda")
      return runtime::Status::error("--target cuda expects a bundle with kernels for GPUs, as "
                                    "`braid compile --target cuda:sm_90a -o` writes it, got '",
                                    options.model, "'");
    OwningOpRef<ModuleOp> module = session.readModule(options.model);
    if (!module)
      return runtime::Status::error("cannot compile '", options.model, "'");
    CompileOptions compile;
    compile.mesh = mesh;
    if (mesh.empty() && options.world.ranks > 1 && module->getOps<comm::MeshOp>().empty())
      compile.mesh = "tp=" + std::to_string(options.world.ranks);
    compile.strategy = strategy;
    compile.passes = passes;
    compile.quantize = quantize;
    compile.quantizeMatmuls = quantizeMatmuls;
    if ((!quantize.empty() || !budget.bound.empty()) && options.world.machine)
      RETURN_IF_ERROR(placeRanks(options, compile));
    if (!budget.bound.empty()) {
      std::unique_ptr<runtime::WeightSource> weights;
      if (options.randomWeights) {
        weights = runtime::WeightSource::random(*options.randomWeights);
      } else if (!options.weights.empty()) {
        ASSIGN_OR_RETURN(weights, runtime::openSafetensors(options.weights));
      }
      RETURN_IF_ERROR(chooseUnderBudget(*module, budget, weights.get(), options.entry, compile));
      quantize = compile.quantize; // of --target reference, too
    } else if (!budget.calibration.empty() || !budget.candidates.empty()) {
      return runtime::Status::error(budget.calibration.empty() ? "--quantize-candidates"
                                                               : "--calibration",
                                    " expects --quantize-budget");
    }
    compile.compileKernels = options.target != "reference";
    compile.isas = isas.empty() ? std::vector<std::string>{"host"} : split(isas);
    Progress progress;
    PhaseObserver observer;
    auto begin = [&](Level level, int number, int count) {
      progress.step(llvm::Twine("compiling [") + llvm::Twine(number) + "/" + llvm::Twine(count) +
                    "] to level " + stringifyLevel(level));
    };
    PassInstruments instruments;
    auto instrument = [&](PassManager &manager) { return instruments.apply(manager); };
    observer.begin = begin;
    observer.instrument = instrument;
    FailureOr<runtime::Bundle> bundle =
        compileToBundle(*module, compile, observer, [&](StringRef what) { progress.step(what); });
    if (failed(bundle))
      return runtime::Status::error("cannot compile '", options.model, "'");
    // Ranks are forked from this process, which must have no threads at that point.
    if (options.world.transport == "shm")
      session.context().disableMultithreading();
    return std::make_shared<const runtime::Bundle>(std::move(*bundle));
  }

  runtime::Result<Tensors> evaluate(const runtime::ReferenceRequest &request) {
    OwningOpRef<ModuleOp> module = readBundledModule(request.bundle, &session.context());
    if (!module)
      return runtime::Status::error("the reference interpreter expects a bundle with its module");
    if (FailureOr<Level> level = detectLevel(*module); failed(level) || *level == Level::RT)
      return runtime::Status::error(
          "the reference interpreter computes values, and a module of level "
          "rt has memory: expects one of an earlier level, or --target "
          "program-interpreter");
    if (request.partitioned) {
      PipelineOptions pipeline;
      pipeline.mesh = mesh.empty() ? meshOption(request.bundle.manifest().mesh) : mesh;
      pipeline.strategy = strategy;
      pipeline.passes = passes;
      pipeline.quantize = quantize;
      pipeline.quantizeMatmuls = quantizeMatmuls;
      if (failed(prepareForRanks(*module, pipeline)))
        return runtime::Status::error("cannot partition the module");
    }
    Progress progress;
    progress.step(request.partitioned ? "interpreting every rank" : "interpreting the module");
    interp::EvaluateOptions options;
    options.entry = request.entry.name;
    options.weights = request.weights;
    // Only a program of ranks has a table of encodings.
    const bool hasTable = request.partitioned && quantize == kEncodingTable;
    for (const auto &[name, value] : request.inputs)
      if (hasTable || !StringRef(name).starts_with(runtime::EncodingTable::kPrefix))
        options.inputs.push_back({name, interp::Tensor::fromHost(value)});
    for (const auto &[name, value] : request.states)
      options.inputs.push_back({name, interp::Tensor::fromHost(value)});
    if (double seconds = request.options.world.timeLimitSeconds; seconds > 0)
      options.grid.timeLimit = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    runtime::Result<interp::Evaluation> evaluation = interp::evaluate(*module, options);
    RETURN_IF_ERROR(evaluation.status());
    Tensors results;
    for (interp::NamedTensor &result : evaluation->results)
      results.emplace(result.name, result.value.toHost());
    return results;
  }

  /// Interprets the bundle's program on memory: first checks that hold for all orders, then some
  /// orders.
  runtime::Result<Tensors> interpretProgram(const runtime::ReferenceRequest &request) {
    const runtime::Bundle &bundle = request.bundle;
    std::shared_ptr<const runtime::KernelLibraryHandle> library;
    auto kernels = [&](const std::string &symbol) -> runtime::Result<runtime::KernelFunction> {
      if (!library) {
        ASSIGN_OR_RETURN(library, runtime::KernelLibraryHandle::load(bundle));
      }
      return library->find(symbol);
    };
    ASSIGN_OR_RETURN(auto interpreter,
                     interp::ProgramInterpreter::create(bundle.program(), bundle.manifest(),
                                                        request.entry, kernels));
    if (runtime::Status status = provedOrder(interpreter->program()); !status.ok())
      return status;
    if (request.weights)
      if (runtime::Status status = interpreter->loadWeights(*request.weights); !status.ok())
        return status;
    for (const auto &[name, value] : request.inputs)
      if (runtime::Status status = interpreter->setInput(name, value); !status.ok())
        return status;
    for (const auto &[name, value] : request.states)
      if (runtime::Status status = interpreter->setState(name, value); !status.ok())
        return status;
    Progress progress;
    const int64_t count = request.options.schedules.value_or(10);
    const uint64_t seed = request.options.scheduleSeed.value_or(1);
    auto results = interpreter->runSchedules(seed, count, [&](int64_t i) {
      progress.step(llvm::Twine("[") + llvm::Twine(i + 1) + "/" + llvm::Twine(count) + "] order");
    });
    if (results.ok())
      llvm::outs() << "program interpreter: " << count << (count == 1 ? " order" : " orders")
                   << " of " << interpreter->program().of(0).numCommands() << " commands on "
                   << bundle.manifest().mesh.numRanks() << " ranks, seeds from " << seed
                   << ": all values there when they are read, the same results in each\n";
    llvm::outs().flush();
    return results;
  }

private:
  /// For the times that say where encodings are faster.
  static runtime::Status placeRanks(const runtime::RunOptions &options, CompileOptions &compile) {
    compile.machine = options.machine;
    compile.threads = options.world.threadsPerRank;
    compile.transport = options.world.transport;
    if (!options.launch)
      return {};
    const runtime::LaunchInfo &launch = *options.launch;
    // All processes must come to the same program.
    const int64_t ofHost = launch.localSize.value_or(0);
    if (ofHost < 1 || launch.size % ofHost != 0)
      return runtime::Status::error(
          "--quantize with --machine expects to know how many ranks each host has, the same of "
          "all: ",
          launch.describe(), "; `braid compile --machine FILE --hosts` takes any");
    compile.ranksOfHosts.assign(static_cast<size_t>(launch.size / ofHost), ofHost);
    return {};
  }

  /// Checks on the order of commands, for every legal order.
  static runtime::Status provedOrder(const interp::ProgramRoles &program) {
    std::vector<std::string> faults = interp::checkOrder(program);
    if (!faults.empty())
      return runtime::Status::error(llvm::join(faults, "\n"), runtime::Code::checkFailed);
    size_t waits = 0;
    const interp::ExpandedProgram &first = program.of(0); // all ranks have the same commands
    for (runtime::Queue queue = 0; queue < first.numQueues(); ++queue)
      for (const interp::ProgramCommand &command : first.commands(queue))
        waits += command.waits;
    llvm::outs() << "order: no two commands that share memory are unordered; " << waits
                 << " waits\n";
    for (const interp::RedundantWait &wait : interp::findRedundantWaits(program))
      llvm::outs() << "redundant: " << wait.what << ": "
                   << (wait.implied ? "what it waits for has always happened already"
                                    : "it orders no commands that share memory")
                   << "\n";
    return {};
  }

  static std::vector<std::string> split(const std::string &list) {
    SmallVector<StringRef> names;
    llvm::SplitString(list, names, ",");
    return {names.begin(), names.end()};
  }

  static bool isBundle(const std::string &path) {
    if (StringRef(path).ends_with(".braid"))
      return true;
    auto buffer = llvm::MemoryBuffer::getFileSlice(path, 4, 0);
    return buffer && (*buffer)->getBuffer().starts_with("PK");
  }

  static std::string meshOption(const runtime::Mesh &mesh) {
    std::string text;
    for (const runtime::Mesh::Axis &axis : mesh.axes)
      text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
    return text;
  }

  CompilerSession session;
};

} // namespace

int runRun(int argc, const char *const *argv) {
  Runner runner;
  runtime::RunHooks hooks;
  hooks.program = "braid run";
  hooks.modelHelp =
      "module of level nn, comm, kernels, scheduled or rt (compiled in memory first) or bundle "
      "(.braid)";
  hooks.examples =
      "Examples:\n"
      "  braid run minilm.mlir --ranks 2 --weights path/to/all-MiniLM-L6-v2 \\\n"
      "      --input input_ids=ids.npy --check reference --output results\n"
      "  braid run minilm.braid --random-weights 7 --random-inputs 7 --repeat 10 --report r.json\n"
      "  braid run minilm.braid --random-weights 7 --random-inputs 7 \\\n"
      "      --target program-interpreter --schedules 100 --check reference";
  hooks.extraOptions = {
      {"--mesh",
       "grid of ranks for a module: axes and sizes such as dp=2,tp=2 (default: the module's own, "
       "else tp=RANKS)",
       &runner.mesh},
      {"--strategy",
       "how the axes of a module of level nn are used: auto, none (as the module states), or a "
       "list "
       "of tp or tp-sp, vocab, dp and fsdp (default: auto)",
       &runner.strategy},
      {"--passes",
       "passes to run on the partitioned module, before its collectives are started "
       "(`braid-opt --help` lists them)",
       &runner.passes},
      {"--quantize",
       "how collectives travel: a list of PATTERN=ENCODING, such as '*=int8:128' or "
       "'mlp.down=int4:128+spikes/int8:128'; with --machine only where that is faster; `braid "
       "compile --help` has more",
       &runner.quantize, /*mayBeEmpty=*/false},
      {"--quantize-budget",
       "choose the encodings: the cheapest that keep a promise on the result over the batches of "
       "--calibration, such as cosine>=0.999, relative-l2<=0.02, kl<=0.01 or perplexity<=+1%; with "
       "--machine those that take the least time",
       &runner.budget.bound, /*mayBeEmpty=*/false},
      {"--calibration",
       "with --quantize-budget: ids of tokens (.npy), or a directory with NAME.npy for each input",
       &runner.budget.calibration, /*mayBeEmpty=*/false},
      {"--quantize-candidates", "with --quantize-budget: the encodings to choose from, with commas",
       &runner.budget.candidates, /*mayBeEmpty=*/false},
      {"--quantize-matmuls",
       "which linear operations multiply 8-bit integers: a list of PATTERN=int8, such as '*=int8' "
       "or "
       "'*=int8,lm_head=none'",
       &runner.quantizeMatmuls, /*mayBeEmpty=*/false},
      {"--load-dialect-plugin",
       "shared libraries with dialects whose operations the module, or the one that a bundle "
       "carries, may have",
       &runner.dialectPlugins},
      {"--load-pass-plugin", "shared libraries with passes that --passes may name",
       &runner.passPlugins},
      {"--isa", "instruction sets to compile kernels for (default: host)", &runner.isas}};
  hooks.open = [&](const runtime::RunOptions &options) { return runner.open(options); };
  hooks.reference = [&](const runtime::ReferenceRequest &request) {
    return runner.evaluate(request);
  };
  hooks.interpretProgram = [&](const runtime::ReferenceRequest &request) {
    return runner.interpretProgram(request);
  };
  return runtime::runMain(argc, argv, hooks);
}

} // namespace braid::tool
