//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Int8.h"
#include "CpuFeatures.h"

namespace braid::runtime {

const Int8Kernels &int8Kernels() {
  static const Int8Kernels &best = []() -> const Int8Kernels & {
    const Int8Kernels *avx512 = int8KernelsAvx512();
    if (avx512 && hostHasFeature("avx512f") && hostHasFeature("avx512bw") &&
        hostHasFeature("avx512dq") && hostHasFeature("avx512vl"))
      return hostHasFeature("avx512vnni") ? *int8KernelsVnni() : *avx512;
    const Int8Kernels *avx2 = int8KernelsAvx2();
    if (avx2 && hostHasFeature("avx2"))
      return *avx2;
    return *int8KernelsGeneric();
  }();
  return best;
}

} // namespace braid::runtime
