//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Large memory: of a process alone, or shared with the processes that it forks.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_HOSTMEMORY_H
#define BRAID_SYNC_HOSTMEMORY_H

#include "MemoryPool.h"
#include "braid/Base/Status.h"

#include <cstddef>

namespace braid::runtime {

/// From one rank's arena to the next one's, at least: arenas at equal offsets within a page would
/// compete for the same sets of a cache when ranks work on the same place of each. It is more than
/// a page, so that ranks share no page either.
constexpr size_t kArenaSkew = 4096 + 256;

/// How much memory a request can be given, in bytes: what the system has left, swap included, and
/// no more than the control groups of this process may ever have.
uint64_t availableMemory();

/// Bytes of a process that lie in huge pages, without files; 0 where the system does not tell.
/// `process` is a process id, or "self".
int64_t hugePageBytes(const std::string &process);

/// Zeroed memory, aligned for the widest vectors. From 2 MiB on it is aligned to huge pages, and
/// the system is asked for them. It has no name in the file system, so that nothing is left behind
/// whatever ends the processes.
class HostMemory {
public:
  HostMemory() = default;
  HostMemory(HostMemory &&other) noexcept { *this = std::move(other); }
  HostMemory &operator=(HostMemory &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(length, other.length);
    return *this;
  }
  ~HostMemory();

  /// Memory whose pages are made where and when they are first written, by the processes that
  /// write them.
  Status map(size_t bytes, Sharing sharing = Sharing::process);
  /// Memory for this process and those that it forks later, all of it reserved at once: a use later
  /// on never finds the system out of memory. Needs no file system.
  Status reserve(size_t bytes);
  std::byte *data() const { return memory; }
  size_t bytes() const { return length; }

private:
  Status place(size_t bytes, int flags, int file);

  std::byte *memory = nullptr;
  size_t length = 0;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_HOSTMEMORY_H
