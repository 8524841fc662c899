//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles kernels to shared libraries, in process.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TARGET_CPU_CPUTARGET_H
#define BRAID_TARGET_CPU_CPUTARGET_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

#include <cstddef>
#include <string>
#include <vector>

namespace braid {

struct CPUTargetOptions {
  /// Instruction sets to compile for: names of CPUs and levels as LLVM spells them, or "host".
  /// Equivalent names are compiled once.
  std::vector<std::string> isas{"x86-64-v3", "host"};
};

/// The features that code may use.
struct CPUInstructionSet {
  std::string name;                  ///< As LLVM spells it: "x86-64-v3", "znver4".
  std::string triple;                ///< "x86_64-unknown-linux-gnu".
  std::vector<std::string> features; ///< LLVM names, sorted; the machine must have each of them.
  std::string level; ///< The processor that instructions are selected for; features add to it.
  std::string tune;  ///< The processor that they are scheduled for.
};

/// Reports at `loc` a name that LLVM does not know.
mlir::FailureOr<CPUInstructionSet> resolveInstructionSet(llvm::StringRef name, mlir::Location loc);

/// All kernels of a module for one instruction set.
struct CPUKernelLibrary {
  CPUInstructionSet isa;
  /// An ELF file that exports `void <kernel>(void *const *descriptors)` for each kernel; see Kernel
  /// in runtime/program.fbs.
  std::vector<std::byte> bytes;
};

/// Compiles every rt.kernel of `module`, which is not changed. Reports and fails when a kernel
/// cannot be compiled, or needs a function that no kernel may call.
mlir::FailureOr<std::vector<CPUKernelLibrary>>
compileKernelsForCPU(mlir::ModuleOp module, const CPUTargetOptions &options = {});

/// Writes the optimized LLVM IR of every rt.kernel of `module`, as text, per instruction set.
mlir::LogicalResult emitLLVMForCPU(mlir::ModuleOp module, const CPUTargetOptions &options,
                                   llvm::raw_ostream &os);

} // namespace braid
#endif // BRAID_TARGET_CPU_CPUTARGET_H
