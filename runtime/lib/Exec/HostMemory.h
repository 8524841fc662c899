//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Memory that the processes of a host share, accounted to /dev/shm.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_HOSTMEMORY_H
#define BRAID_EXEC_HOSTMEMORY_H

#include "braid/Runtime/Status.h"

#include <cstddef>

namespace braid::runtime {

/// Zeroed memory for this process and those that it forks later. It has no name in the file system,
/// so that nothing is left behind whatever ends the processes.
class HostMemory {
public:
  HostMemory() = default;
  ~HostMemory();
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;

  /// All of it is reserved at once: a use later on never finds the system out of memory.
  /// `directory` is where shared memory is mounted.
  Status allocate(size_t bytes, const char *directory = "/dev/shm");
  std::byte *data() const { return memory; }

private:
  std::byte *memory = nullptr;
  size_t length = 0;
};

} // namespace braid::runtime
#endif // BRAID_EXEC_HOSTMEMORY_H
