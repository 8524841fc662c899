//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "HostMemory.h"
#include "SchedulePoint.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace braid::runtime {

HostMemory::~HostMemory() {
  if (memory)
    munmap(memory, length);
}

/// A file without a name; where the file system has no such files, one that loses its name at once.
static int openNameless(const std::string &directory) {
  int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
    return file;
  std::string name = directory + "/braid-XXXXXX";
  file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0)
    unlink(name.c_str());
  return file;
}

Status HostMemory::allocate(size_t bytes, const char *directory) {
  auto failure = [&](int error) {
    struct statvfs info{};
    std::string available = "an unknown number";
    if (statvfs(directory, &info) == 0)
      available = std::to_string(static_cast<uint64_t>(info.f_bavail) * info.f_frsize);
    return Status::error("cannot allocate " + std::to_string(bytes) + " bytes of shared memory, " +
                         directory + " has " + available + " available: " + std::strerror(error));
  };
  int file = openNameless(directory);
  if (file < 0)
    return failure(errno);
  atSchedulePoint("opened shared memory");
  // Writing to a page that a full file system cannot give would end the process by a signal.
  int error = bytes > static_cast<size_t>(INT64_MAX)
                  ? ENOSPC
                  : posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void *address = MAP_FAILED;
  if (error == 0) {
    address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    error = address == MAP_FAILED ? errno : 0;
  }
  close(file);
  if (error != 0)
    return failure(error);
  memory = static_cast<std::byte *>(address);
  length = bytes;
  return {};
}

} // namespace braid::runtime
