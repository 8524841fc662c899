//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "HostMemory.h"
#include "SchedulePoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace braid::runtime {

uint64_t availableMemory() {
  uint64_t available = 0, limit = UINT64_MAX, number = 0;
  std::ifstream info("/proc/meminfo");
  for (std::string field, unit; info >> field >> number; std::getline(info, unit))
    if (field == "MemAvailable:" || field == "SwapFree:")
      available += number * 1024;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.rfind("0::", 0) == 0)
      // A group's limit is bounded by those of its ancestors.
      for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
        if (std::ifstream("/sys/fs/cgroup" + path + "/memory.max") >> number) // "max" is none
          limit = std::min(limit, number);
        if (path.find('/') == std::string::npos)
          break;
      }
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

Status HostMemory::place(size_t bytes, int flags, int file) {
  constexpr size_t kHuge = size_t(1) << 21;
  auto failure = [&] {
    return Status::error("cannot allocate " + std::to_string(bytes) + " bytes");
  };
  // A mapping begins at a page, so extra space is reserved for the alignment and the rest unmapped.
  const size_t room = bytes >= kHuge ? bytes + kHuge : bytes;
  void *reserved = bytes > SIZE_MAX / 2 ? MAP_FAILED
                                        : mmap(nullptr, room, PROT_NONE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return failure();
  auto *begin = static_cast<std::byte *>(reserved);
  std::byte *aligned = begin;
  if (bytes >= kHuge)
    aligned += (kHuge - reinterpret_cast<uintptr_t>(begin) % kHuge) % kHuge;
  if (mmap(aligned, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0) == MAP_FAILED) {
    Status status = failure();
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
  return {};
}

Status HostMemory::map(size_t bytes, Sharing sharing) {
  return place(std::max<size_t>(bytes, 1),
               MAP_ANONYMOUS | (sharing == Sharing::forks ? MAP_SHARED : MAP_PRIVATE), -1);
}

Status HostMemory::reserve(size_t bytes) {
  auto failure = [&](int error) {
    return Status::error("cannot allocate " + std::to_string(bytes) +
                         " bytes of shared memory, the system has " +
                         std::to_string(availableMemory()) + " available: " + std::strerror(error));
  };
  bytes = std::max<size_t>(bytes, 1);
  // The system would kill processes to satisfy such a request.
  if (bytes > availableMemory())
    return failure(ENOMEM);
  int file = memfd_create("braid", MFD_CLOEXEC);
  if (file < 0)
    return failure(errno);
  atSchedulePoint("opened shared memory");
  // Writing to a page that cannot be allocated would end the process by a signal.
  int error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  Status status = error != 0 ? failure(error) : place(bytes, MAP_SHARED | MAP_POPULATE, file);
  close(file);
  return status;
}

} // namespace braid::runtime
