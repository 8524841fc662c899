//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#define BRAID_VECTOR_BYTES 16
#include "Codec.inc"

namespace braid::runtime {
const CodecKernels codecGeneric = table;
} // namespace braid::runtime
