//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "VectorKernels.h"
#include "CpuFeatures.h"

namespace braid::runtime {

const VectorKernels &vectorKernels() {
  static const VectorKernels &best = []() -> const VectorKernels & {
    const VectorKernels *avx512 = vectorKernelsAvx512();
    if (avx512 && hostHasFeature("avx512f") && hostHasFeature("avx512bw") &&
        hostHasFeature("avx512dq") && hostHasFeature("avx512vl") && hostHasFeature("f16c"))
      return *avx512;
    const VectorKernels *avx2 = vectorKernelsAvx2();
    if (avx2 && hostHasFeature("avx2") && hostHasFeature("fma") && hostHasFeature("f16c"))
      return *avx2;
    return *vectorKernelsGeneric();
  }();
  return best;
}

} // namespace braid::runtime
