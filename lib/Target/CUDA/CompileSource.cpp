//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Target/CUDA/CUDACompiler.h"

#include "Compilers.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace braid;
using namespace braid::cuda;

/// Reads the output of `ptxas -v`:
///   ptxas info    : Compiling entry function 'add' for 'sm_90a'
///   ptxas info    : Function properties for add
///       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
///   ptxas info    : Used 26 registers, used 1 barriers, 64 bytes smem
static std::vector<CUDAUsage> readUsage(StringRef log) {
  std::vector<CUDAUsage> all;
  llvm::Regex entry("Compiling entry function '([^']*)'"),
      stack("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads"),
      registers("Used ([0-9]+) registers"), shared("([0-9]+) bytes smem");
  auto number = [](StringRef digits) {
    int64_t value = 0;
    digits.getAsInteger(10, value);
    return value;
  };
  SmallVector<StringRef> lines, parts;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    if (entry.match(line, &parts)) {
      all.emplace_back();
      all.back().function = parts[1].str();
    }
    if (all.empty())
      continue;
    CUDAUsage &usage = all.back();
    if (stack.match(line, &parts)) {
      usage.stackBytes = number(parts[1]);
      usage.spillStoreBytes = number(parts[2]);
      usage.spillLoadBytes = number(parts[3]);
    }
    if (registers.match(line, &parts))
      usage.registers = number(parts[1]);
    if (shared.match(line, &parts))
      usage.sharedBytes = number(parts[1]);
  }
  llvm::sort(all, [](const CUDAUsage &a, const CUDAUsage &b) { return a.function < b.function; });
  return all;
}

/// Null when there is none.
static std::unique_ptr<Compiler> findCompiler(std::optional<CUDACompilerKind> kind,
                                              std::string &searched) {
  std::unique_ptr<Compiler> compiler;
  if (kind != CUDACompilerKind::NVCC)
    compiler = findNVRTC(searched);
  if (!compiler && kind != CUDACompilerKind::NVRTC)
    compiler = findNVCC(searched);
  return compiler;
}

std::string braid::describeCUDACompiler(std::string &searched) {
  std::unique_ptr<Compiler> compiler = findCompiler(std::nullopt, searched);
  return compiler ? compiler->name() + ", " + compiler->path() : "";
}

FailureOr<CUDABinary> braid::compileCUDA(StringRef source, StringRef architecture, Location loc,
                                         const CUDACompileOptions &options) {
  std::string searched;
  std::unique_ptr<Compiler> compiler = findCompiler(options.compiler, searched);
  if (!compiler)
    return emitError(loc) << "found no compiler for CUDA; scripts/setup.sh installs PyPI's "
                             "nvidia-cuda-nvrtc, and CUDA_HOME or BRAID_NVRTC say where another "
                             "one is:"
                          << searched,
           failure();
  CUDABinary binary;
  binary.compiler = compiler->name();

  std::string identity = compiler->identity();
  SmallVector<StringRef> parts{identity, architecture, source};
  for (const Header &header : kernelHeaders())
    parts.append({header.name, header.text});
  std::string key = Cache::key(parts);
  Cache cache(options.cacheDirectory);
  bool keeps = !options.cacheDirectory.empty();
  Compiled compiled;
  binary.cached = keeps && cache.read(key, compiled);
  if (!binary.cached) {
    runtime::Result<Compiled> made = compiler->compile(source, architecture);
    if (!made.ok())
      return emitError(loc) << binary.compiler << " does not compile the kernels for "
                            << architecture << ": " << made.status().message();
    compiled = std::move(*made);
    if (keeps)
      if (runtime::Status status = cache.write(key, compiled); !status.ok())
        emitWarning(loc) << "cannot cache the machine code: " << status.message();
  }
  binary.usage = readUsage(compiled.log);
  binary.cubin = std::move(compiled.cubin);
  return binary;
}
