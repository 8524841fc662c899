//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MemoryPool.h"

#include <algorithm>

namespace braid::runtime {

void *MemoryPool::allocate(size_t bytes) {
  constexpr size_t kChunk = size_t(1) << 16;
  if (bytes > SIZE_MAX / 2)
    throw std::bad_alloc();
  bytes = roomFor(bytes);
  if (given) {
    if (givenBytes - used < bytes)
      throw std::bad_alloc();
    used += bytes;
    return given + used - bytes;
  }
  if (chunks.empty() || chunks.back().bytes() - used < bytes) {
    HostMemory chunk;
    if (!chunk.map(std::max(bytes, kChunk), kind).ok())
      throw std::bad_alloc();
    chunks.push_back(std::move(chunk));
    used = 0;
  }
  used += bytes;
  return chunks.back().data() + used - bytes;
}

} // namespace braid::runtime
