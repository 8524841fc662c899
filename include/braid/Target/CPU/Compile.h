//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels to shared libraries, in process.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TARGET_CPU_COMPILE_H
#define BRAID_TARGET_CPU_COMPILE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

#include <string>
#include <vector>

namespace braid::cpu {

struct TargetOptions {
  /// Instruction sets to compile for: names of CPUs and levels as LLVM spells them, or "host".
  /// Names that turn out to mean the same are compiled once.
  std::vector<std::string> isas{"x86-64-v3", "host"};
};

/// What code may use.
struct ISA {
  std::string name;                  ///< "x86-64-v3", "znver4".
  std::string triple;                ///< "x86_64-unknown-linux-gnu".
  std::vector<std::string> features; ///< LLVM names, sorted; the machine must have each of them.
  std::string cpu;  ///< What LLVM selects instructions for; the features add to it.
  std::string tune; ///< What LLVM schedules for.
};

/// Reports at `loc` a name that LLVM does not know.
mlir::FailureOr<ISA> resolveISA(llvm::StringRef name, mlir::Location loc);

/// The kernels of a module for one instruction set.
struct SharedLibrary {
  ISA isa;
  std::vector<char> bytes; ///< An ELF file that exports `void <kernel>(void *const *descriptors)`
                           ///< for each kernel.
};

/// Compiles every rt.kernel of `module`, which is left as it is. Reports and fails when a kernel
/// cannot be compiled, or needs a function that no kernel may call.
mlir::FailureOr<std::vector<SharedLibrary>> compileKernels(mlir::ModuleOp module,
                                                           const TargetOptions &options = {});

/// The optimized LLVM IR of every rt.kernel of `module`, as text.
mlir::FailureOr<std::string> emitLLVM(mlir::ModuleOp module, llvm::StringRef isa = "host");

} // namespace braid::cpu
#endif // BRAID_TARGET_CPU_COMPILE_H
