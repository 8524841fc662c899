//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches of library kernels (braid/Base/LibraryKernels.h) with addresses, and how the CPU runs
// them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_LIBRARY_H
#define BRAID_KERNELS_LIBRARY_H

#include "Matmul.h"
#include "Tensor.h"
#include "VectorKernels.h"
#include "braid/Base/LibraryKernels.h"
#include "runtime/lib/Sync/Team.h"

namespace braid::runtime {

/// One rank's launch.
struct LibraryArguments : LibraryCall {
  std::vector<std::byte *> data; ///< by the descriptor's operands
  int64_t part = 0;              ///< of `parts`, this rank's

  size_t place(const char *operand) const;
  bool has(const char *operand) const { return LibraryCall::has(place(operand)); }
  Tensor tensor(const char *operand) const;
};

/// What the queue's thread and its team have for a command.
struct ExecutionContext {
  RunControl &control;
  QueueState &self;
  Team &team;
  const VectorKernels &kernels;
  /// Scratch memory of each member, 64-byte aligned.
  std::vector<std::vector<std::byte>> &scratch;
};

/// A launch with everything made that can be made in advance.
class LibraryRun {
public:
  virtual ~LibraryRun() = default;
  /// Failures are reported through the context's control.
  virtual void run(const NamedCommand &source, ExecutionContext &context) const = 0;
};
using LibraryCommand = std::shared_ptr<const LibraryRun>;

/// What launches are resolved for.
struct CpuResources {
  int64_t threads = 1;
  int64_t queryBlock = 1;         ///< of the VectorKernels in use
  MatmulCache *matmuls = nullptr; ///< for matmuls
};
Result<LibraryCommand> resolveLibrary(const LibraryArguments &arguments,
                                      const CpuResources &resources);

/// What floating-point operands of library kernels may be: all f32, or all of one type of f32, f16
/// and bf16, of which only devices have kernels.
enum class Storage { f32, halves };
/// That floating-point operands are so stored, with contiguous last dimensions; gives their type.
Result<DType> storedType(const LibraryArguments &arguments, Storage storage);

} // namespace braid::runtime
#endif // BRAID_KERNELS_LIBRARY_H
