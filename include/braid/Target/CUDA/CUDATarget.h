//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Prints kernels as CUDA C++.
//
// The source is printed from the same row schedule as the CPU target's, into hand-written
// skeletons. EmitC would print much the same text through another dialect: it has no warp shuffles,
// no shared memory and not all of the arithmetic, so that most of a kernel would be opaque calls
// and verbatim text. The nvgpu dialect and LLVM's NVPTX path have these, but drop ordering and
// scope of atomics (LLVM 22), which signals between devices need. A skeleton in CUDA C++ can also
// be read, compiled and profiled by itself.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TARGET_CUDA_CUDATARGET_H
#define BRAID_TARGET_CUDA_CUDATARGET_H

#include "braid/Runtime/CudaKernels.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

#include <string>
#include <vector>

namespace braid {

/// The target architectures, by the names of NVIDIA's tools: "sm_80", "sm_90a", "sm_100".
llvm::ArrayRef<llvm::StringRef> getCUDAArchitectures();

struct CUDASource {
  std::string text;
  std::vector<runtime::CudaKernel> kernels; ///< How they are launched, in the module's order.
};

/// Prints every rt.kernel of `module`, which is not changed, on top of the skeletons in
/// runtime/kernels/cuda. Reports and fails when a kernel has no CUDA form.
mlir::FailureOr<CUDASource> emitCUDA(mlir::ModuleOp module);

} // namespace braid
#endif // BRAID_TARGET_CUDA_CUDATARGET_H
