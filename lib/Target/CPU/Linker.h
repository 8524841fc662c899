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

/// Reports every undefined function of `object` that `library` does not define either, with the
/// kernel that needs it, and fails if there is one. Kernels must be in sections of their own.
mlir::LogicalResult checkSelfContained(llvm::StringRef object, const llvm::StringSet<> &library,
                                       mlir::Location loc);

/// Links an object file, and the archive members that it needs, to a shared library. Archives may
/// call only the C library and libm.
mlir::FailureOr<std::vector<std::byte>> linkSharedLibrary(llvm::StringRef object,
                                                          llvm::ArrayRef<CPUKernelArchive> archives,
                                                          mlir::Location loc);

} // namespace braid::cpu
#endif // BRAID_LIB_TARGET_CPU_LINKER_H
