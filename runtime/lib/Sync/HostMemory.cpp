//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "HostMemory.h"
#include "ControlGroups.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25 // Linux 6.1
#endif

namespace braid::runtime {

constexpr size_t kHuge = size_t(1) << 21;

uint64_t availableMemory() {
  uint64_t available = 0, limit = UINT64_MAX, number = 0;
  std::ifstream info("/proc/meminfo");
  for (std::string field, unit; info >> field >> number; std::getline(info, unit))
    if (field == "MemAvailable:" || field == "SwapFree:")
      available += number * 1024;
  forEachControlGroup("", "memory", [&](const std::string &folder) {
    if (std::ifstream(folder + "/memory.max") >> number) // "max" is no limit
      limit = std::min(limit, number);
  });
  return available == 0 ? limit : std::min(available, limit);
}

int64_t hugePageBytes(const std::string &process) {
  int64_t sum = 0;
  std::ifstream file("/proc/" + process + "/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    for (const char *field : {"AnonHugePages:", "ShmemPmdMapped:"})
      if (line.rfind(field, 0) == 0)
        sum += std::strtoll(line.c_str() + std::strlen(field), nullptr, 10) * 1024;
  return sum;
}

HostMemory::~HostMemory() {
  if (memory)
    munmap(memory, length);
}

static Status cannotAllocate(size_t bytes, int error) {
  return Status::error("cannot allocate " + std::to_string(bytes) + " bytes, the system has " +
                       std::to_string(availableMemory()) + " available: " + std::strerror(error));
}

Status HostMemory::map(size_t bytes, Sharing sharing) {
  const bool shared = sharing == Sharing::forks;
  // The system would kill processes to satisfy a larger request when its pages are used.
  if (shared && bytes > availableMemory())
    return cannotAllocate(bytes, ENOMEM);
  return mapAligned(bytes, MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1);
}

Status HostMemory::mapFile(int descriptor, size_t bytes) {
  return mapAligned(bytes, MAP_SHARED, descriptor);
}

Status HostMemory::mapAligned(size_t bytes, int flags, int descriptor) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes > SIZE_MAX / 2)
    return cannotAllocate(bytes, ENOMEM);
  // A mapping begins at a page, so extra space is reserved for the alignment and the rest unmapped.
  // Shared memory has huge pages only where offset and address are aligned alike, so it is mapped
  // without that space.
  const size_t room = bytes >= kHuge ? bytes + kHuge : bytes;
  void *reserved =
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return cannotAllocate(bytes, errno);
  auto *begin = static_cast<std::byte *>(reserved);
  std::byte *aligned = begin;
  if (bytes >= kHuge)
    aligned += (kHuge - reinterpret_cast<uintptr_t>(begin) % kHuge) % kHuge;
  if (mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | flags, descriptor, 0) ==
      MAP_FAILED) {
    Status status = cannotAllocate(bytes, errno);
    munmap(begin, room);
    return status;
  }
  std::byte *end = aligned + (bytes + 4095) / 4096 * 4096;
  if (aligned != begin)
    munmap(begin, static_cast<size_t>(aligned - begin));
  if (end < begin + room)
    munmap(end, static_cast<size_t>(begin + room - end));
  if (bytes >= kHuge)
    madvise(aligned, bytes, MADV_HUGEPAGE); // the report shows the outcome
  memory = aligned;
  length = bytes;
  isShared = (flags & MAP_SHARED) != 0;
  return {};
}

/// Puts each aligned block of 2 MiB that lies in a range of shared memory in a huge page. A request
/// (MADV_HUGEPAGE) has no effect where the system's `shmem_enabled` is "never", as on most. Writing
/// the first small page of a block first decides that the huge one is on this thread's NUMA node.
static void collapse(std::byte *begin, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::byte *const end = begin + bytes;
  std::byte *const first = begin + (kHuge - reinterpret_cast<uintptr_t>(begin) % kHuge) % kHuge;
  std::byte *last = first;
  for (; end - last >= static_cast<ptrdiff_t>(kHuge); last += kHuge)
    if (madvise(last, page, MADV_POPULATE_WRITE) != 0)
      break;
  // Blocks for which this fails stay in small pages. A run's report has `huge_page_bytes`.
  if (last != first)
    madvise(first, static_cast<size_t>(last - first), MADV_COLLAPSE);
}

Status HostMemory::touch(size_t begin, size_t bytes) const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::byte *first = memory + begin / page * page;
  const size_t room = begin % page + bytes;
  if (isShared && room >= kHuge)
    collapse(first, room);
  if (bytes == 0 || madvise(first, room, MADV_POPULATE_WRITE) == 0)
    return {};
  if (errno != EINVAL)
    return cannotAllocate(bytes, errno);
  // Linux before 5.14 lacks MADV_POPULATE_WRITE. A write allocates a page as well; it ends the
  // process where memory is short.
  for (size_t at = 0; at < room; at += page) {
    volatile std::byte &byte = first[at];
    const std::byte value = byte;
    byte = value;
  }
  return {};
}

} // namespace braid::runtime
