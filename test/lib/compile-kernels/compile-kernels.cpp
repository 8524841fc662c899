//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles the kernels of a module, for tests and measurements: for the CPU to LLVM IR or a shared
// library, for a GPU to CUDA C++.
//
//===----------------------------------------------------------------------===//
#include "braid/InitAll.h"
#include "braid/Target/CPU/CPUTarget.h"
#include "braid/Target/CUDA/CUDATarget.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace braid;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::init("-"), cl::desc("<kernels.mlir>"));
static cl::opt<std::string> output("o", cl::init("-"), cl::desc("Output file"));
static cl::opt<std::string> isa("isa", cl::init("host"), cl::desc("Instruction set"));
static cl::opt<bool> llvmIR("emit-llvm", cl::desc("Write LLVM IR instead of a shared library"));
static cl::opt<bool> cudaSource("emit-cuda", cl::desc("Write CUDA C++ instead"));
static cl::opt<bool> times("time",
                           cl::desc("Print the seconds that compiling took, the second time"));

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Compiles rt.kernel operations\n");
  const bool timed = times; // Linking resets every command line option of the process.
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(input, &context);
  if (!module)
    return 1;
  CPUTargetOptions options;
  options.isas = {isa};
  std::error_code error;
  llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_None);
  if (error) {
    llvm::errs() << "cannot write '" << output << "': " << error.message() << "\n";
    return 1;
  }
  if (cudaSource) {
    auto source = emitCUDA(*module);
    if (failed(source))
      return 1;
    file.os() << source->text;
  } else if (llvmIR) {
    if (failed(emitLLVMForCPU(*module, options, file.os())))
      return 1;
  } else {
    auto libraries = compileKernelsForCPU(*module, options);
    if (failed(libraries))
      return 1;
    if (timed) {
      // The first iteration also initializes LLVM and the dialects.
      auto start = std::chrono::steady_clock::now();
      (void)compileKernelsForCPU(*module, options);
      llvm::outs() << llvm::format(
          "%.4f\n",
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    const std::vector<std::byte> &bytes = libraries->front().bytes;
    file.os().write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }
  file.keep();
  return 0;
}
