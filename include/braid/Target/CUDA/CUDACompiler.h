//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles CUDA C++ to machine code with NVRTC in process, or with nvcc where there is no NVRTC.
// Neither needs a GPU.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TARGET_CUDA_CUDACOMPILER_H
#define BRAID_TARGET_CUDA_CUDACOMPILER_H

#include "braid/Runtime/Files.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LogicalResult.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

enum class CUDACompilerKind { NVRTC, NVCC };

struct CUDACompileOptions {
  /// Only this compiler; by default NVRTC, or nvcc where there is none.
  std::optional<CUDACompilerKind> compiler;
  /// The folder that caches machine code by a hash of its inputs. Processes may share it. Empty for
  /// no cache.
  std::string cacheDirectory = runtime::cacheDirectory();
};

/// The resources of a function, as the assembler reports them.
struct CUDAUsage {
  std::string function;
  int64_t registers = 0;                                           ///< Of a thread.
  int64_t stackBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0; ///< Of a thread.
  int64_t sharedBytes = 0;                                         ///< Of a block, static.
};

struct CUDABinary {
  runtime::Bytes cubin;
  std::vector<CUDAUsage> usage; ///< In the order of the functions' names.
  std::string compiler;         ///< "NVRTC 13.0", "nvcc 13.0"
  bool cached = false;          ///< Read from the cache.
};

/// Compiles `source`, which may include the headers of runtime/kernels/cuda as <braid/...>. Reports
/// at `loc` the compiler's errors, or the places searched for one.
mlir::FailureOr<CUDABinary> compileCUDA(llvm::StringRef source, llvm::StringRef architecture,
                                        mlir::Location loc, const CUDACompileOptions &options = {});

/// The compiler that compileCUDA uses, and its path: "NVRTC 13.0, /usr/lib/libnvrtc.so.13". Empty
/// when there is none; `searched` then lists the places searched, one per line.
std::string describeCUDACompiler(std::string &searched);

} // namespace braid
#endif // BRAID_TARGET_CUDA_CUDACOMPILER_H
