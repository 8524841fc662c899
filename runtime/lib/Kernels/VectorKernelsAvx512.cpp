//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#define BRAID_ISA_NAME "avx512"
#define BRAID_VECTOR_BYTES 64
#define BRAID_CODEC codecAvx512
#define BRAID_KEY_ROWS 6
#define BRAID_QUERY_TILES 2
#define BRAID_QUERY_VECTORS 4
#include "VectorKernels.h"
#if defined(__x86_64__)
#include "VectorKernels.inc"

namespace braid::runtime {
const VectorKernels *vectorKernelsAvx512() { return &table; }
} // namespace braid::runtime
#else
namespace braid::runtime {
const VectorKernels *vectorKernelsAvx512() { return nullptr; }
} // namespace braid::runtime
#endif
