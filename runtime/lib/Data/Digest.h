//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_DATA_DIGEST_H
#define BRAID_RUNTIME_LIB_DATA_DIGEST_H

#include <cstddef>
#include <string>

namespace braid::runtime {

/// The SHA-256 of `size` bytes as 64 hexadecimal digits; empty if it cannot be computed.
std::string sha256(const void *data, size_t size);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_DATA_DIGEST_H
