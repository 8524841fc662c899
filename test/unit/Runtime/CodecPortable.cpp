//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The codec as processors other than x86 have it: compiled without __SSE2__, so that its code for
// them is tested on any machine.
//
//===----------------------------------------------------------------------===//
#define BRAID_VECTOR_BYTES 16
#include "runtime/lib/Kernels/Codec.inc"

namespace braid::runtime::testing {
extern const CodecKernels codecPortable;
const CodecKernels codecPortable = table;
} // namespace braid::runtime::testing
