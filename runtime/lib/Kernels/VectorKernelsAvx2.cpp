//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#define BRAID_ISA_NAME "avx2"
#define BRAID_VECTOR_BYTES 32
#define BRAID_CODEC codecAvx2
#define BRAID_KEY_ROWS 6
#define BRAID_QUERY_TILES 4
#define BRAID_QUERY_VECTORS 2
#include "VectorKernels.h"
#if defined(__x86_64__)
#include "VectorKernels.inc"

namespace braid::runtime {
const VectorKernels *vectorKernelsAvx2() { return &table; }
} // namespace braid::runtime
#else
namespace braid::runtime {
const VectorKernels *vectorKernelsAvx2() { return nullptr; }
} // namespace braid::runtime
#endif
