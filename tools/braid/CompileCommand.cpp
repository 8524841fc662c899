//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "MlirOptions.h"
#include "QuantizeBudget.h"
#include "Session.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/Machine.h"
#include "braid/Pipelines/Compile.h"
#include "braid/Runtime/Calibrate.h"
#include "braid/Runtime/Files.h"
#include "braid/Runtime/Launch.h"
#include "braid/Runtime/Safetensors.h"
#include "braid/Target/CPU/CPUTarget.h"
#include "braid/Target/CUDA/CUDATarget.h"
#include "braid/Transforms/TablePasses.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace braid::tool {

namespace {

constexpr llvm::StringLiteral kRemarkCategories[] = {"padding", "sharding", "communication",
                                                     "kernels", "buffers",  "cpu"};

void printModule(ModuleOp module, bool locations, llvm::raw_ostream &os) {
  OpPrintingFlags flags;
  flags.printNameLocAsPrefix();
  flags.enableDebugInfo(locations);
  module.print(os, flags);
  os << "\n";
}

/// Prints remarks of the requested categories; "all" stands for every one. Returns an error in the
/// categories, or empty.
std::string enableRemarks(MLIRContext &context, const std::vector<std::string> &categories) {
  if (categories.empty())
    return {};
  // MLIR takes any text as a regular expression, and one without a match prints nothing.
  for (const std::string &category : categories)
    if (category != "all" && !llvm::is_contained(kRemarkCategories, category))
      return "unknown category '" + category + "' in --remarks; expects " +
             llvm::join(llvm::ArrayRef(kRemarkCategories), ", ") + " or all";
  std::string names =
      llvm::is_contained(categories, "all") ? std::string(".*") : llvm::join(categories, "|");
  // RemarkCategories::all only widens the kinds that have a filter of their own.
  remark::RemarkCategories filter{names, names, names, names, names};
  if (failed(remark::enableOptimizationRemarks(
          context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(), filter,
          /*printAsEmitRemarks=*/true)))
    return "cannot print remarks";
  return {};
}

/// The GPU architectures of "cuda:sm_80,sm_90a"; none of "cpu". Sets `error` for an unknown name.
std::vector<std::string> readTarget(llvm::StringRef target, std::string &error) {
  std::string known = llvm::join(getCUDAArchitectures(), ", ");
  llvm::SmallVector<llvm::StringRef> names;
  std::vector<std::string> architectures;
  if (target == "cpu")
    return architectures;
  if (target == "cuda")
    error = "target 'cuda' expects an architecture, as cuda:sm_90a: one of " + known;
  else if (!target.consume_front("cuda:"))
    error = "unknown target '" + target.str() + "'; expects cpu or cuda:ARCHITECTURE";
  else
    target.split(names, ',');
  for (llvm::StringRef name : names) {
    if (!llvm::is_contained(getCUDAArchitectures(), name))
      error = "unknown architecture '" + name.str() + "' in --target; expects one of " + known;
    else if (!llvm::is_contained(architectures, name))
      architectures.push_back(name.str());
  }
  return architectures;
}

/// The machine that says where encodings are faster, and where its ranks are. Returns an error, or
/// empty.
std::string readMachine(const CompileArgs &args, bool forCUDA, CompileOptions &options) {
  if (args.machine.empty())
    return args.hosts.empty() && args.transport.empty()
               ? ""
               : (args.hosts.empty() ? "--transport" : "--hosts") +
                     std::string(" expects --machine, whose times say where encodings are faster");
  if (args.quantize.empty() && args.budget.bound.empty())
    return "--machine expects --quantize or --quantize-budget: it says where encodings are faster";
  if (args.quantize == kEncodingTable)
    return "--machine says where encodings are faster, and '--quantize table' leaves the choice to "
           "the run (`braid run --encodings`): leave one of them out";
  options.machine = args.machine == "host" ? cost::defaultMachinePath() : args.machine;
  if (options.machine.empty())
    return "--machine host: no folder for caches is known";
  const auto machine = cost::openMachine(options.machine);
  if (!machine.ok())
    return "--machine: " + machine.status().message();
  if (forCUDA != machine->gpu.has_value())
    return "--machine expects " + std::string(forCUDA ? "a GPU" : "a processor") +
           " for --target " + args.target + ", got '" + machine->name + "'";
  if (const std::string other = cost::differenceFrom(*machine, runtime::hostProcessor());
      !other.empty())
    llvm::errs() << "braid: warning: --machine: " << other << "\n";
  options.transport = args.transport;
  if (args.hosts.empty())
    return "";
  const auto hosts = runtime::parseHosts(args.hosts);
  if (!hosts.ok())
    return "--hosts: " + hosts.status().message();
  for (const runtime::HostRanks &host : *hosts)
    options.ranksOfHosts.push_back(host.ranks);
  return "";
}

/// Dumps the module after each phase into numbered files.
class Dumper {
public:
  explicit Dumper(const std::string &directory, bool locations)
      : directory(directory), locations(locations) {}
  LogicalResult dump(Level level, int number, ModuleOp module) {
    if (directory.empty())
      return success();
    if (std::error_code error = llvm::sys::fs::create_directories(directory))
      return LogicalResult(
          failure(fail("cannot create directory '" + directory + "': " + error.message())));
    std::string path =
        llvm::formatv("{0}/{1}_{2}.mlir", directory, number, stringifyLevel(level)).str();
    return success(
        writeText(path, [&](llvm::raw_ostream &os) { printModule(module, locations, os); }));
  }

private:
  std::string directory;
  bool locations;
};

/// The compiler's resource report on an architecture's kernels.
llvm::json::Value describeCUDA(const CUDABinary &binary) {
  llvm::json::Array kernels;
  for (const CUDAUsage &usage : binary.usage)
    kernels.push_back(llvm::json::Object{{"function", usage.function},
                                         {"registers_per_thread", usage.registers},
                                         {"stack_bytes_per_thread", usage.stackBytes},
                                         {"spill_store_bytes_per_thread", usage.spillStoreBytes},
                                         {"spill_load_bytes_per_thread", usage.spillLoadBytes},
                                         {"shared_bytes_per_block", usage.sharedBytes}});
  return llvm::json::Object{
      {"compiler", binary.compiler}, {"cached", binary.cached}, {"kernels", std::move(kernels)}};
}

bool writeCompileReport(const std::string &path, const CompileRecord &record,
                        const runtime::Bundle &bundle) {
  llvm::json::Object phases;
  double total = 0;
  for (const auto &[name, seconds] : record.phases) {
    phases[name + "_s"] = seconds;
    total += seconds;
  }
  llvm::json::Object members;
  for (const auto &[name, bytes] : bundle.members())
    members[name] = static_cast<int64_t>(bytes.size());
  llvm::json::Object report{
      {"compile_s", total}, {"phases", std::move(phases)}, {"member_bytes", std::move(members)}};
  llvm::json::Object cuda;
  for (const auto &[architecture, binary] : record.cuda)
    cuda[architecture] = describeCUDA(binary);
  if (!cuda.empty())
    report["cuda"] = std::move(cuda);
  return writeText(path, [&](llvm::raw_ostream &os) {
    os << llvm::formatv("{0:2}", llvm::json::Value(std::move(report))) << "\n";
  });
}

/// Encodings under a budget, with the weights that the command names.
runtime::Status chooseEncodings(ModuleOp module, const BudgetArgs &args, CompileOptions &options) {
  std::unique_ptr<runtime::WeightSource> weights;
  if (args.randomWeights) {
    weights = runtime::WeightSource::random(*args.randomWeights);
  } else if (!args.weights.empty()) {
    ASSIGN_OR_RETURN(weights, runtime::openSafetensors(args.weights));
  }
  return chooseUnderBudget(module, args, weights.get(), /*entry=*/{}, options);
}

} // namespace

int runCompile(const CompileArgs &args) {
  std::string error;
  std::vector<std::string> architectures = readTarget(args.target, error);
  if (!error.empty())
    return fail(error);
  bool forCUDA = !architectures.empty(), emitsLLVM = args.emit == "llvm",
       emitsCUDA = args.emit == "cuda";
  std::optional<Level> last = emitsLLVM || emitsCUDA ? Level::RT : symbolizeLevel(args.emit);
  if (!args.emit.empty() && !last)
    return fail("unknown level '" + args.emit +
                "' in --emit; expects nn, comm, kernels, scheduled, rt, llvm or cuda");
  if (forCUDA ? emitsLLVM : emitsCUDA)
    return fail("--emit=" + args.emit + " expects --target " +
                (emitsCUDA ? "cuda:ARCHITECTURE" : "cpu") + ", got " + args.target);
  if (forCUDA && !args.isas.empty())
    return fail("--isa expects --target cpu, got " + args.target);
  CompileOptions options;
  if (std::string error = readMachine(args, forCUDA, options); !error.empty())
    return fail(error);
  if (args.emit.empty() && args.output.empty())
    return fail("expects -o FILE.braid, or --emit=LEVEL to print IR");
  if (!args.emit.empty() && (!args.report.empty() || args.stripModule))
    return fail(std::string(args.stripModule ? "--strip" : "--report") +
                " applies to a bundle, which --emit does not make");
  if (args.printLocations && args.emit.empty() && args.dumpDirectory.empty())
    return fail("--print-locations expects --emit or --dump-ir");
  // Checked before the work, so that a failing command leaves no bundle behind.
  for (const std::string &path : {args.output, args.report})
    if (runtime::Status status = runtime::checkWritable(path == "-" ? "" : path); !status.ok())
      return fail(status.message());

  CompilerSession session;
  if (!session.load(args.plugins))
    return kInvalid;
  if (std::string error = enableRemarks(session.context(), args.remarks); !error.empty())
    return fail(error);
  OwningOpRef<ModuleOp> module = session.readModule(args.model);
  if (!module)
    return kInvalid;

  Progress progress;
  Dumper dumper(args.dumpDirectory, args.printLocations);
  PhaseObserver observer;
  auto begin = [&](Level level, int number, int count) {
    progress.step(llvm::Twine("[") + llvm::Twine(number) + "/" + llvm::Twine(count) +
                  "] to level " + stringifyLevel(level));
  };
  auto end = [&](Level level, int number, ModuleOp m) { return dumper.dump(level, number, m); };
  PassInstruments instruments;
  auto instrument = [&](PassManager &manager) { return instruments.apply(manager); };
  observer.begin = begin;
  observer.instrument = instrument;
  observer.end = end;

  options.mesh = args.mesh;
  options.strategy = args.strategy;
  options.passes = args.passes;
  options.quantize = args.quantize;
  options.quantizeMatmuls = args.quantizeMatmuls;
  if (!args.budget.bound.empty())
    if (runtime::Status status = chooseEncodings(*module, args.budget, options); !status.ok())
      return fail(status.message());

  if (!args.emit.empty()) {
    PipelineOptions phases;
    phases.mesh = args.mesh;
    phases.strategy = args.strategy;
    phases.passes = args.passes;
    phases.quantize = options.quantize;
    phases.quantizeMatmuls = args.quantizeMatmuls;
    phases.machine = options.machine;
    phases.transport = options.transport;
    phases.hosts = options.ranksOfHosts;
    phases.target = forCUDA ? KernelTarget::CUDA : KernelTarget::CPU;
    if (failed(runPhases(*module, *last, phases, observer)))
      return kInvalid;
    std::string text;
    if (emitsLLVM) {
      progress.step("compiling kernels");
      CPUTargetOptions target;
      target.isas = args.isas.empty() ? std::vector<std::string>{"host"} : args.isas;
      llvm::raw_string_ostream os(text);
      if (failed(emitLLVMForCPU(*module, target, os)))
        return kInvalid;
    } else if (emitsCUDA) {
      FailureOr<CUDASource> source = emitCUDA(*module);
      if (failed(source))
        return kInvalid;
      text = std::move(source->text);
    } else {
      llvm::raw_string_ostream os(text);
      printModule(*module, args.printLocations, os);
    }
    return writeText(args.output.empty() ? "-" : args.output,
                     [&](llvm::raw_ostream &out) { out << text; })
               ? kDone
               : kInvalid;
  }

  options.isas = args.isas;
  options.cudaArchitectures = std::move(architectures);
  options.stripModule = args.stripModule;
  CompileRecord record;
  FailureOr<runtime::Bundle> bundle = compileToBundle(
      *module, options, observer, [&](StringRef what) { progress.step(what); }, &record);
  if (failed(bundle))
    return kInvalid;
  if (runtime::Status status = bundle->write(args.output); !status.ok())
    return fail(status.message());
  if (!args.report.empty() && !writeCompileReport(args.report, record, *bundle))
    return kInvalid;
  return kDone;
}

} // namespace braid::tool
