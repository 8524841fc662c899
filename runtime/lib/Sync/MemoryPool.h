//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small zeroed objects that several threads, or several processes, use together.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_MEMORYPOOL_H
#define BRAID_SYNC_MEMORYPOOL_H

#include "HostMemory.h"

#include <algorithm>
#include <new>
#include <type_traits>
#include <vector>

namespace braid::runtime {

/// Memory lives as long as the pool. Forked processes share earlier allocations; nothing is
/// allocated after a fork.
class MemoryPool {
public:
  explicit MemoryPool(Sharing sharing) : kind(sharing) {}
  /// In memory of somebody else, and no more than that.
  MemoryPool(Sharing sharing, std::byte *memory, size_t bytes)
      : kind(sharing), given(memory), givenBytes(bytes) {}
  Sharing sharing() const { return kind; }
  /// What is left of somebody else's memory.
  size_t room() const { return givenBytes - used; }
  /// What an allocation of so many bytes takes of a chunk, or of somebody else's memory.
  static size_t roomFor(size_t bytes) {
    constexpr size_t kLine = 64;
    return std::max(kLine, (bytes + kLine - 1) / kLine * kLine);
  }
  /// Zeroed and aligned to a cache line. Throws std::bad_alloc.
  void *allocate(size_t bytes);
  /// The same as objects.
  template <typename T, typename... Args> T *create(size_t count, const Args &...args) {
    static_assert(std::is_trivially_destructible_v<T>, "a pool does not destroy its objects");
    T *objects = static_cast<T *>(allocate(count * sizeof(T)));
    for (size_t i = 0; i < count; ++i)
      new (static_cast<void *>(objects + i)) T(args...);
    return objects;
  }

private:
  Sharing kind;
  std::byte *given = nullptr;
  size_t givenBytes = 0;
  std::vector<HostMemory> chunks;
  size_t used = 0; ///< of the last chunk, or of the given memory
};

} // namespace braid::runtime
#endif // BRAID_SYNC_MEMORYPOOL_H
