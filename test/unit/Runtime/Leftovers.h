//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Resources that sessions with ranks as processes must not leave behind.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_LEFTOVERS_H
#define BRAID_TEST_UNIT_RUNTIME_LEFTOVERS_H

#include <filesystem>
#include <fstream>
#include <string>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

namespace braid::runtime::testing {

/// Children that the calling thread has or, on the main thread, has adopted; zombies too.
inline std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  std::ifstream file("/proc/self/task/" + std::to_string(gettid()) + "/children");
  for (pid_t pid; file >> pid;)
    pids.push_back(pid);
  return pids;
}

/// Named shared memory.
inline std::vector<std::string> segments() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.is_regular_file() && entry.path().filename().string().rfind("braid", 0) == 0)
      names.push_back(entry.path());
  return names;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_LEFTOVERS_H
