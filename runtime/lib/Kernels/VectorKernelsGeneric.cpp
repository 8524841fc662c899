//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#define BRAID_ISA_NAME "generic"
#define BRAID_VECTOR_BYTES 16
#define BRAID_CODEC codecGeneric
#define BRAID_KEY_ROWS 4
#define BRAID_QUERY_TILES 4
#define BRAID_QUERY_VECTORS 2
#include "VectorKernels.inc"

namespace braid::runtime {
const VectorKernels *vectorKernelsGeneric() { return &table; }
} // namespace braid::runtime
