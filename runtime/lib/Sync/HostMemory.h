//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Large memory, private to a process, or shared with the processes that it forks or that have its
// file.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_HOSTMEMORY_H
#define BRAID_SYNC_HOSTMEMORY_H

#include "braid/Base/Status.h"

#include <cstddef>
#include <cstdint>

namespace braid::runtime {

/// Whether memory is visible to the threads of this process only, or also to the processes that it
/// forks later. Forked processes map it at the same address, so that pointers into it stay valid.
enum class Sharing { process, forks };

/// The least distance between the arenas of two ranks: arenas at equal offsets within a page would
/// compete for the same cache sets when ranks access equal offsets. It is more than a page, so that
/// ranks share no page.
constexpr size_t kArenaSkew = 4096 + 256;

/// The largest request that can be satisfied, in bytes: the system's free memory, swap included,
/// bounded by the limits of this process's control groups.
uint64_t availableMemory();

/// Bytes of a process in huge pages, files excluded; 0 where the system does not report them.
/// `process` is a process id, or "self".
int64_t hugePageBytes(const std::string &process);

/// Zeroed memory, aligned for the widest vectors. From 2 MiB on it is aligned to huge pages, which
/// are requested. It has no name in the file system, so nothing is left behind however the
/// processes end.
class HostMemory {
public:
  HostMemory() = default;
  HostMemory(HostMemory &&other) noexcept { *this = std::move(other); }
  HostMemory &operator=(HostMemory &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(length, other.length);
    std::swap(isShared, other.isShared);
    return *this;
  }
  ~HostMemory();

  /// Memory whose pages are allocated when they are touched, on the NUMA node of the thread that
  /// touches them. A request for shared memory fails when it exceeds availableMemory().
  Status map(size_t bytes, Sharing sharing = Sharing::process);
  /// The first bytes of a memory file, shared with whoever maps it, too.
  Status mapFile(int descriptor, size_t bytes);
  /// Allocates the pages of a range now, from the calling thread, and keeps their contents; huge
  /// pages where the system has them. Fails where memory is short, when a first write would end the
  /// process.
  Status touch(size_t begin, size_t bytes) const;
  std::byte *data() const { return memory; }
  size_t bytes() const { return length; }

private:
  /// Maps with these flags of mmap, at a huge page where that is of use.
  Status mapAligned(size_t bytes, int flags, int descriptor);

  std::byte *memory = nullptr;
  size_t length = 0;
  bool isShared = false;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_HOSTMEMORY_H
