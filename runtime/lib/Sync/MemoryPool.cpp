//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MemoryPool.h"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>

namespace braid::runtime {

MemoryPool::~MemoryPool() {
  for (const Chunk &chunk : chunks)
    munmap(chunk.data, chunk.bytes);
}

void *MemoryPool::allocate(size_t bytes) {
  constexpr size_t kLine = 64, kChunk = size_t(1) << 16;
  if (bytes > SIZE_MAX / 2)
    throw std::bad_alloc();
  bytes = std::max(kLine, (bytes + kLine - 1) / kLine * kLine);
  if (chunks.empty() || chunks.back().bytes - chunks.back().used < bytes) {
    size_t size = std::max(bytes, kChunk);
    // Unnamed shared memory, which is freed with the last process, however that ends.
    int flags = MAP_ANONYMOUS | (kind == Sharing::forks ? MAP_SHARED : MAP_PRIVATE);
    chunks.reserve(chunks.size() + 1);
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    chunks.push_back({static_cast<std::byte *>(memory), size, 0});
  }
  Chunk &chunk = chunks.back();
  void *result = chunk.data + chunk.used;
  chunk.used += bytes;
  return result;
}

} // namespace braid::runtime
