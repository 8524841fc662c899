//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Host.h"

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::runtime::net {

std::string hostId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  struct stat space{};
  if (stat("/proc/self/ns/net", &space) == 0)
    id += "/" + std::to_string(space.st_dev) + "/" + std::to_string(space.st_ino);
  return id;
}

std::string memoryId() {
  std::string id = hostId() + "/" + std::to_string(geteuid());
  // Users and processes have the same numbers within a namespace only.
  for (const char *name : {"/proc/self/ns/user", "/proc/self/ns/pid"})
    if (struct stat space{}; stat(name, &space) == 0)
      id += "/" + std::to_string(space.st_ino);
  return id;
}

std::string hostName() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 && *name ? name : "unnamed host";
}

} // namespace braid::runtime::net
