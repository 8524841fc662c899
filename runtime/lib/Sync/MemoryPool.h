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

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid::runtime {

/// Who sees memory: the threads of this process, or also the processes that it forks later. Forked
/// processes have it at the same address, so that pointers into it mean the same in all of them.
enum class Sharing { process, forks };

/// Memory lives as long as the pool. What was allocated before a fork is shared by it; nothing is
/// allocated after.
class MemoryPool {
public:
  explicit MemoryPool(Sharing sharing) : kind(sharing) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool &) = delete;
  MemoryPool &operator=(const MemoryPool &) = delete;

  Sharing sharing() const { return kind; }
  /// Zeroed and aligned to a cache line. Throws std::bad_alloc.
  void *allocate(size_t bytes);
  /// The same as objects.
  template <typename T, typename... Args> T *create(size_t count, const Args &...args) {
    static_assert(std::is_trivially_destructible_v<T>, "nobody destroys what a pool holds");
    T *objects = static_cast<T *>(allocate(count * sizeof(T)));
    for (size_t i = 0; i < count; ++i)
      new (static_cast<void *>(objects + i)) T(args...);
    return objects;
  }

private:
  struct Chunk {
    std::byte *data;
    size_t bytes, used;
  };
  Sharing kind;
  std::vector<Chunk> chunks;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_MEMORYPOOL_H
