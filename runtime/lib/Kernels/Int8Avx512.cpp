//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#define BRAID_ISA_NAME "avx512"
#define BRAID_VECTOR_BYTES 64
#define BRAID_TILE_ROWS 6
#define BRAID_TILE_COLUMNS 4
#include "Int8.h"
#if defined(__x86_64__)
#include "Int8.inc"

namespace braid::runtime {
const Int8Kernels *int8KernelsAvx512() { return &table; }
} // namespace braid::runtime
#else
namespace braid::runtime {
const Int8Kernels *int8KernelsAvx512() { return nullptr; }
} // namespace braid::runtime
#endif
