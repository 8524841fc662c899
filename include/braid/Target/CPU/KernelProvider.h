//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Precompiled kernels: a dialect provides them to the CPU target, which links them into the bundles
// of models that use the dialect's operations (nn::LibraryKernelOpInterface).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TARGET_CPU_KERNELPROVIDER_H
#define BRAID_TARGET_CPU_KERNELPROVIDER_H

#include "mlir/IR/DialectInterface.h"

namespace braid {

/// An object file or a static library for x86-64 Linux, of position-independent code. It must run
/// on every host of the bundle: its instruction set is not recorded.
struct CPUKernelArchive {
  llvm::StringRef name;  ///< for messages
  llvm::StringRef bytes; ///< as long-lived as the dialect
};

/// An interface of dialects: addInterfaces<...>() in Dialect::initialize.
class CPUKernelProvider : public mlir::DialectInterface::Base<CPUKernelProvider> {
public:
  explicit CPUKernelProvider(mlir::Dialect *dialect) : Base(dialect) {}
  /// Functions of this form (braid_kernel.h): void(void *const *operands, scalars...).
  virtual CPUKernelArchive getKernels() const = 0;
};

} // namespace braid

/// The data that CMake's braid_embed_kernels puts into this library; for use at file scope.
#define BRAID_EMBEDDED_KERNELS(name)                                                               \
  extern "C" __attribute__((visibility("hidden"))) const char name##_begin[], name##_end[];
#define BRAID_GET_EMBEDDED_KERNELS(name) llvm::StringRef(name##_begin, name##_end - name##_begin)

#endif // BRAID_TARGET_CPU_KERNELPROVIDER_H
