//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels as CUDA C++.
//
// The source is printed, from the schedule of rows that the CPU target takes too, into skeletons
// written by hand. EmitC would print much the same text with another dialect between: it has no
// warp shuffles, no shared memory and not all of the arithmetic, so that most of a kernel would be
// opaque calls and verbatim text. LLVM's NVPTX path has these, but drops ordering and scope of
// atomics (LLVM 22), which signals between devices need, and whoever writes a skeleton can read,
// compile and profile CUDA C++ by itself.
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

/// The machines that code is made for, by the names of NVIDIA's tools: "sm_80", "sm_90a", "sm_100".
llvm::ArrayRef<llvm::StringRef> getCUDAArchitectures();

struct CUDASource {
  std::string text;
  std::vector<runtime::CudaKernel> kernels; ///< How they are launched, in the module's order.
};

/// Every rt.kernel of `module`, which is left as it is, on top of the skeletons in
/// runtime/kernels/cuda. Reports and fails when a kernel has no CUDA form.
mlir::FailureOr<CUDASource> emitCUDA(mlir::ModuleOp module);

} // namespace braid
#endif // BRAID_TARGET_CUDA_CUDATARGET_H
