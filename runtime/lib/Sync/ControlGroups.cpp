//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ControlGroups.h"

#include <fstream>

namespace braid::runtime {

void forEachControlGroup(const std::string &root, const std::string &controller,
                         const std::function<void(const std::string &folder)> &visit) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) { // "4:cpu,cpuacct:/a/b", or "0::/a/b" of v2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() &&
        ("," + controllers + ",").find("," + controller + ",") == std::string::npos)
      continue;
    const std::string base =
        root + "/sys/fs/cgroup" + (controllers.empty() ? "" : "/") + controllers;
    std::string path = line.substr(second + 1);
    if (path == "/")
      path.clear();
    for (;; path.resize(path.rfind('/'))) {
      visit(base + path);
      if (path.find('/') == std::string::npos)
        break;
    }
  }
}

} // namespace braid::runtime
