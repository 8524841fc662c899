//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels as CUDA C++.
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
