//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Large memory, private to a process or shared with the processes that it forks.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_HOSTMEMORY_H
#define BRAID_SYNC_HOSTMEMORY_H

#include "MemoryPool.h"
#include "braid/Base/Status.h"

#include <cstddef>

namespace braid::runtime {

/// The least distance between the arenas of two ranks: arenas at equal offsets within a page would
/// compete for the same cache sets when ranks access equal offsets. It is more than a page, so that
/// ranks share no page.
constexpr size_t kArenaSkew = 4096 + 256;

/// The largest request that can be satisfied, in bytes: the system's free memory, swap included,
/// bounded by the limits of this process's control groups.
uint64_t availableMemory();

/// Bytes of a process that lie in huge pages, without files; 0 where the system does not report
/// them. `process` is a process id, or "self".
int64_t hugePageBytes(const std::string &process);

/// Zeroed memory, aligned for the widest vectors. From 2 MiB on it is aligned to huge pages, which
/// are requested. It has no name in the file system, so that nothing is left behind however the
/// processes end.
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

  /// Memory whose pages are allocated on first write, by the process that writes them.
  Status map(size_t bytes, Sharing sharing = Sharing::process);
  /// Memory for this process and those that it forks later, all reserved at once, so that a later
  /// use never runs out of memory. Needs no file system.
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
