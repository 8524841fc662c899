//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#define BRAID_ISA_NAME "generic"
#define BRAID_VECTOR_BYTES 16
#define BRAID_TILE_ROWS 4
#define BRAID_TILE_COLUMNS 2
#include "Int8.inc"

namespace braid::runtime {
const Int8Kernels *int8KernelsGeneric() { return &table; }
} // namespace braid::runtime
