//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TARGET_CPU_LINKER_H
#define BRAID_LIB_TARGET_CPU_LINKER_H

#include "braid/Target/CPU/KernelProvider.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LogicalResult.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <cstddef>
#include <vector>

namespace braid::cpu {

/// Reports every function outside of `object` and of `library` that it needs, with the kernel that
/// needs it, and fails if there is one. Kernels stand in sections of their own.
mlir::LogicalResult checkSelfContained(llvm::StringRef object, const llvm::StringSet<> &library,
                                       mlir::Location loc);

/// Links an object file, and what it needs of archives, to a shared library. Archives may call the
/// C library and libm, nothing else.
mlir::FailureOr<std::vector<std::byte>> linkSharedLibrary(llvm::StringRef object,
                                                          llvm::ArrayRef<CPUKernelArchive> archives,
                                                          mlir::Location loc);

} // namespace braid::cpu
#endif // BRAID_LIB_TARGET_CPU_LINKER_H
