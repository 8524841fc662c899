//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Host.h"

#include "runtime/lib/Sync/Cores.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
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

static std::optional<int> numberOf(const std::string &text) {
  int number = 0;
  const char *end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

int64_t numaNodeOf(const std::vector<int> &processors,
                   const std::map<int64_t, std::string> &processorsOfNodes) {
  for (const auto &[node, list] : processorsOfNodes) {
    std::set<int> own;
    std::istringstream ranges(list);
    for (std::string range; std::getline(ranges, range, ',');) {
      const std::optional<int> first = numberOf(range.substr(0, range.find('-'))),
                               last = numberOf(range.substr(range.find('-') + 1));
      constexpr int kMost = 1 << 16;
      if (first && last)
        for (int i = *first; i <= std::min(*last, kMost); ++i)
          own.insert(i);
    }
    if (!processors.empty() && std::all_of(processors.begin(), processors.end(),
                                           [&](int one) { return own.count(one) != 0; }))
      return node;
  }
  return 0;
}

int64_t numaNode() {
  std::map<int64_t, std::string> lists;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    const std::optional<int> node =
        name.rfind("node", 0) == 0 ? numberOf(name.substr(4)) : std::nullopt;
    if (!node)
      continue;
    std::ifstream file(entry.path() / "cpulist");
    std::getline(file, lists[*node]);
  }
  return numaNodeOf(allowedCores(), lists);
}

std::string hostName() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 && *name ? name : "unnamed host";
}

} // namespace braid::runtime::net
