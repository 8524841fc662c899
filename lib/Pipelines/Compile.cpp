//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Pipelines/Compile.h"

#include "braid/Target/Bundle/Bundle.h"
#include "braid/Target/CPU/CPUTarget.h"

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
  explicit Stopwatch(CompileTimes *times) : times(times) {}
  void mark(llvm::Twine phase) {
    auto now = std::chrono::steady_clock::now();
    if (times)
      times->phases.emplace_back(phase.str(), std::chrono::duration<double>(now - last).count());
    last = now;
  }

private:
  CompileTimes *times;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

runtime::Bytes toBytes(StringRef text) {
  const auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return runtime::Bytes(begin, begin + text.size());
}

} // namespace

FailureOr<runtime::Bundle> compileToBundle(ModuleOp module, const CompileOptions &options,
                                           const PhaseObserver &observer,
                                           llvm::function_ref<void(StringRef)> progress,
                                           CompileTimes *times) {
  Stopwatch watch(times);
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
  PhaseObserver timed;
  timed.begin = observer.begin;
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
  if (options.compileKernels) {
    CPUTargetOptions target;
    if (!options.isas.empty())
      target.isas = options.isas;
    libraries = compileKernelsForCPU(module, target);
    if (failed(libraries))
      return failure();
  }
  watch.mark("kernels_cpu");

  if (progress)
    progress("building the bundle");
  FailureOr<runtime::Bundle> bundle = buildBundle(module, *libraries, std::move(bytecode));
  watch.mark("bundle");
  return bundle;
}

OwningOpRef<ModuleOp> readBundledModule(const runtime::Bundle &bundle, MLIRContext *context) {
  const runtime::Bytes *bytes =
      bundle.manifest.moduleMember.empty() ? nullptr : bundle.find(bundle.manifest.moduleMember);
  if (!bytes) {
    emitError(UnknownLoc::get(context))
        << "the bundle carries no module (it was compiled with --strip)";
    return {};
  }
  StringRef text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  // The bytecode reader wants its buffer aligned, which a member inside of an archive in memory
  // need not be.
  return parseSourceString<ModuleOp>(text, ParserConfig(context), bundle.manifest.moduleMember);
}

} // namespace braid
