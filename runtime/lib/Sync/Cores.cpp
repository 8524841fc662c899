//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Cores.h"
#include "ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <thread>

namespace braid::runtime {

/// A system may have more processors than cpu_set_t holds.
static constexpr int kMostCores = 1 << 16;

std::vector<int> allowedCores() {
  std::vector<cpu_set_t> sets(kMostCores / CPU_SETSIZE);
  const size_t bytes = sets.size() * sizeof(cpu_set_t);
  std::vector<int> cores;
  if (sched_getaffinity(0, bytes, sets.data()) != 0)
    return cores;
  const auto count = static_cast<size_t>(CPU_COUNT_S(bytes, sets.data()));
  for (int core = 0; cores.size() < count; ++core)
    if (CPU_ISSET_S(core, bytes, sets.data()))
      cores.push_back(core);
  return cores;
}

double usableCores(const std::string &root) {
  const std::vector<int> allowed = allowedCores();
  double cores = allowed.empty() ? std::max(1U, std::thread::hardware_concurrency())
                                 : static_cast<double>(allowed.size());
  forEachControlGroup(root, "cpu", [&](const std::string &folder) {
    double quota = 0, period = 0; // microseconds; a quota of "max" or -1 is no limit
    std::ifstream(folder + "/cpu.max") >> quota >> period;
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
    if (quota > 0 && period > 0)
      cores = std::min(cores, quota / period);
  });
  return cores;
}

SpinLimit spinFor(int64_t runnableThreads, double usable, size_t allowed) {
  const bool hasQuota = usable < static_cast<double>(allowed);
  // A thread that polls without a break has a quota's time alone, and is stopped for the rest of
  // each period. To be stopped for a fifth costs less than a wake-up by the kernel for every wait.
  const double share = hasQuota ? 0.8 : 1;
  const bool haveCores = share * static_cast<double>(runnableThreads) <= usable;
  // About the time of a wake-up by the kernel; or just enough to see a change in progress.
  return {haveCores || !hasQuota ? 50000 : 1000, !haveCores && !hasQuota};
}

SpinLimit spinFor(int64_t runnableThreads) {
  return spinFor(runnableThreads, usableCores(), allowedCores().size());
}

SpinLimit spinOnOwnCores(int64_t threads, double usable, size_t allowed) {
  SpinLimit limit = spinFor(threads, usable, allowed);
  const bool hasQuota = usable < static_cast<double>(allowed);
  // A rank that was woken must find the others still awake. Else they fall asleep while it wakes
  // up, it waits for their wake-up in turn, and so on: each collective takes two wake-ups then.
  // A virtual processor takes 100 us for one, and ranks are up to a millisecond apart.
  if (!hasQuota && !limit.yields)
    limit.ns = 1000000;
  return limit;
}

SpinLimit spinOnOwnCores(int64_t threads) {
  return spinOnOwnCores(threads, usableCores(), allowedCores().size());
}

Result<Pinning> Pinning::create(int64_t ranks, int64_t threadsPerRank) {
  Pinning pinning;
  pinning.all = allowedCores();
  pinning.threads = threadsPerRank;
  const auto expected = static_cast<size_t>(ranks * threadsPerRank);
  const size_t cores = pinning.all.size();
  if (cores == 0)
    return Status::error("pinning expects a system that tells which cores this process may use");
  pinning.all.resize(expected);
  for (size_t i = cores; i < expected; ++i)
    pinning.all[i] = pinning.all[i - cores];
  return pinning;
}

void Pinning::pinMember(int64_t rank, int64_t member) const { pin(rank * threads + member, 1); }
void Pinning::pinRank(int64_t rank) const { pin(rank * threads, threads); }

void Pinning::pin(int64_t first, int64_t count) const {
  if (all.empty())
    return;
  std::vector<cpu_set_t> sets(kMostCores / CPU_SETSIZE);
  const size_t bytes = sets.size() * sizeof(cpu_set_t);
  for (int64_t i = first; i < first + count; ++i)
    CPU_SET_S(all[static_cast<size_t>(i)], bytes, sets.data());
  // All were allowed when the session was created; losing one since is no error.
  sched_setaffinity(0, bytes, sets.data());
}

} // namespace braid::runtime
