//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#define BRAID_VECTOR_BYTES 64
#if defined(__x86_64__)
#include "Codec.inc"

namespace braid::runtime {
const CodecKernels codecAvx512 = table;
} // namespace braid::runtime
#endif
