//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "UsableCores.h"
#include "Cores.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

namespace braid::runtime {

/// The first words of a file.
static bool read(const std::string &path, std::string &first, std::string &second) {
  std::ifstream file(path);
  return static_cast<bool>(file >> first) && (file >> second || true);
}

/// Calls `look` with the folder of a group and of each one above it.
template <typename Look> static void upwards(const std::string &base, std::string path, Look look) {
  for (;;) {
    look(base + path);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return;
    path.resize(slash);
  }
}

double usableCores(const std::string &root) {
  const std::vector<int> allowed = allowedCores();
  double cores = allowed.empty() ? std::max(1U, std::thread::hardware_concurrency())
                                 : static_cast<double>(allowed.size());
  auto limit = [&](const std::string &quota, const std::string &period) {
    const double time = std::strtod(quota.c_str(), nullptr); // 0 of "max"
    const double of = std::strtod(period.c_str(), nullptr);
    if (time > 0 && of > 0)
      cores = std::min(cores, time / of);
  };
  const std::string groups = root + "/sys/fs/cgroup";
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) { // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    std::istringstream words(line);
    std::string number, controllers, path, a, b;
    if (!std::getline(words, number, ':') || !std::getline(words, controllers, ':') ||
        !std::getline(words, path))
      continue;
    path = path == "/" ? "" : path;
    if (controllers.empty())
      upwards(groups, path, [&](const std::string &folder) {
        if (read(folder + "/cpu.max", a, b))
          limit(a, b);
      });
    else if (("," + controllers + ",").find(",cpu,") != std::string::npos)
      upwards(groups + "/" + controllers, path, [&](const std::string &folder) {
        std::string unused;
        if (read(folder + "/cpu.cfs_quota_us", a, unused) &&
            read(folder + "/cpu.cfs_period_us", b, unused))
          limit(a, b);
      });
  }
  return cores;
}

int64_t spinFor(int64_t runnableThreads, double cores) {
  // About the time of a wake-up by the kernel; or just enough to see a change in progress.
  return static_cast<double>(runnableThreads) <= cores ? 50000 : 1000;
}

} // namespace braid::runtime
