//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Pipelines/Compile.h"

#include "braid/Cost/Machine.h"
#include "braid/Target/Bundle/Bundle.h"
#include "braid/Target/CPU/CPUTarget.h"
#include "braid/Target/CUDA/CUDATarget.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

#include <chrono>

using namespace mlir;

namespace braid {

namespace {

/// Adds up the seconds between marks under the phase that ends.
class Stopwatch {
public:
  explicit Stopwatch(CompileRecord *record) : record(record) {}
  void mark(llvm::Twine phase) {
    auto now = std::chrono::steady_clock::now();
    if (record)
      record->phases.emplace_back(phase.str(), std::chrono::duration<double>(now - last).count());
    last = now;
  }

private:
  CompileRecord *record;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

runtime::Bytes toBytes(StringRef text) {
  const auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return runtime::Bytes(begin, begin + text.size());
}

/// Adds the kernels for each architecture: code, launch table and source.
LogicalResult addCUDAKernels(runtime::BundleContents &bundle, ModuleOp module,
                             const CompileOptions &options, CompileRecord *record) {
  FailureOr<CUDASource> source = emitCUDA(module);
  if (failed(source))
    return failure();
  for (const std::string &architecture : options.cudaArchitectures) {
    FailureOr<CUDABinary> binary =
        compileCUDA(source->text, architecture, module.getLoc(), options.cuda);
    if (failed(binary))
      return failure();
    runtime::KernelLibrary library = runtime::cudaKernelLibrary(architecture);
    runtime::CudaLaunchTable table{architecture, source->kernels};
    bundle.members[library.member] = std::move(binary->cubin);
    bundle.members[library.launchesMember] = toBytes(table.toJson());
    bundle.members[library.sourceMember] = toBytes(source->text);
    bundle.manifest.kernels.push_back(std::move(library));
    if (record)
      record->cuda.emplace_back(architecture, std::move(*binary));
  }
  bundle.manifest.transports.emplace_back("nccl");
  return success();
}

} // namespace

FailureOr<runtime::Bundle> compileToBundle(ModuleOp module, const CompileOptions &options,
                                           const PhaseObserver &observer,
                                           llvm::function_ref<void(StringRef)> progress,
                                           CompileRecord *record) {
  Stopwatch watch(record);
  runtime::Bytes bytecode;
  if (!options.stripModule) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (failed(writeBytecodeToFile(module, os)))
      return failure();
    bytecode = toBytes(text);
  }

  PipelineOptions pipeline;
  pipeline.mesh = options.mesh;
  pipeline.strategy = options.strategy;
  pipeline.passes = options.passes;
  pipeline.quantize = options.quantize;
  pipeline.machine = options.machine;
  pipeline.transport = options.transport;
  pipeline.hosts = options.ranksOfHosts;
  pipeline.threads = options.threads;
  pipeline.fuseCodecs = options.fuseCodecs;
  pipeline.target = options.cudaArchitectures.empty() ? KernelTarget::CPU : KernelTarget::CUDA;
  pipeline.quantizeMatmuls = options.quantizeMatmuls;
  PhaseObserver timed;
  timed.begin = observer.begin;
  timed.instrument = observer.instrument;
  auto end = [&](Level level, int number, ModuleOp m) -> LogicalResult {
    watch.mark(stringifyLevel(level));
    return observer.end ? observer.end(level, number, m) : success();
  };
  timed.end = end;
  if (failed(runPhases(module, Level::RT, pipeline, timed)))
    return failure();

  if (progress)
    progress("compiling kernels");
  FailureOr<std::vector<CPUKernelLibrary>> libraries = std::vector<CPUKernelLibrary>();
  bool forCUDA = !options.cudaArchitectures.empty();
  if (options.compileKernels && !forCUDA) {
    CPUTargetOptions target;
    if (!options.isas.empty())
      target.isas = options.isas;
    libraries = compileKernelsForCPU(module, target);
    if (failed(libraries))
      return failure();
  }
  if (!forCUDA)
    watch.mark("kernels_cpu");

  if (progress)
    progress("building the bundle");
  FailureOr<runtime::BundleContents> contents =
      buildBundle(module, *libraries, std::move(bytecode));
  if (failed(contents))
    return failure();
  // A tolerance says that something is encoded.
  if (!options.machine.empty() && contents->manifest.checkTolerance) {
    std::vector<int64_t> ofHosts = options.ranksOfHosts;
    if (ofHosts.empty())
      ofHosts = {contents->manifest.mesh.numRanks()};
    const auto machine = cost::openMachine(options.machine);
    if (!machine.ok())
      return module.emitError() << machine.status().message();
    contents->manifest.encodedFor = {machine->name, std::move(ofHosts)};
  }
  contents->manifest.errorBudget = options.errorBudget;
  if (options.checkTolerance)
    contents->manifest.checkTolerance = options.checkTolerance;
  if (forCUDA) {
    if (progress)
      progress("compiling kernels for CUDA");
    if (failed(addCUDAKernels(*contents, module, options, record)))
      return failure();
    watch.mark("kernels_cuda");
  }
  runtime::Result<runtime::Bundle> bundle = runtime::Bundle::create(std::move(*contents));
  if (!bundle.ok())
    return module.emitError("cannot make a ") << bundle.status().message();
  watch.mark("bundle");
  return std::move(*bundle);
}

OwningOpRef<ModuleOp> readBundledModule(const runtime::Bundle &bundle, MLIRContext *context) {
  const runtime::Bytes *bytes = bundle.manifest().moduleMember.empty()
                                    ? nullptr
                                    : bundle.find(bundle.manifest().moduleMember);
  if (!bytes) {
    emitError(UnknownLoc::get(context))
        << "the bundle carries no module (it was compiled with --strip)";
    return {};
  }
  StringRef text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  // The bytecode reader requires an aligned buffer, which a member of an archive in memory need not
  // be.
  return parseSourceString<ModuleOp>(text, ParserConfig(context), bundle.manifest().moduleMember);
}

} // namespace braid
