//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The cores that this process may use, and how threads are pinned to them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_CORES_H
#define BRAID_SYNC_CORES_H

#include "Counter.h"
#include "braid/Base/Status.h"

#include <cstdint>
#include <vector>

namespace braid::runtime {

/// The cores that the calling thread may use, in increasing order; empty where the system does not
/// report them.
std::vector<int> allowedCores();

/// The number of cores that this process may use, which may be fewer than the machine's: the
/// minimum of the calling thread's affinity and of the processor time of its control groups, which
/// may be fractional. `root` comes before /proc and /sys.
double usableCores(const std::string &root = "");

/// How a waiting thread spins before it sleeps. Where runnable threads outnumber the cores
/// (`usableCores`), the awaited thread may need the core, so that the waiting one yields it. Under
/// a quota of processor time, of which there is less than of the `allowed` cores, polling takes
/// this time from those that compute, unless it is enough for nearly all threads at once.
SpinLimit spinFor(int64_t runnableThreads, double usable, size_t allowed);
SpinLimit spinFor(int64_t runnableThreads);

/// The same for threads that nothing but what they wait for can make use of their cores: where each
/// has one, it spins for longer than ranks are apart and a wake-up by the kernel takes.
SpinLimit spinOnOwnCores(int64_t threads, double usable, size_t allowed);
SpinLimit spinOnOwnCores(int64_t threads);

/// Assigns a core to each thread that computes. The thread that communicates for a rank may use all
/// of the rank's cores.
class Pinning {
public:
  /// Pins nothing.
  Pinning() = default;
  /// Uses the allowed cores in turn. Fails where the system does not report them.
  static Result<Pinning> create(int64_t ranks, int64_t threadsPerRank);

  /// Pins the calling thread to the core of a member of a rank's team.
  void pinMember(int64_t rank, int64_t member) const;
  /// Pins the calling thread to all cores of a rank.
  void pinRank(int64_t rank) const;
  const std::vector<int> &cores() const { return all; }

private:
  void pin(int64_t first, int64_t count) const;

  std::vector<int> all; ///< threadsPerRank for each rank
  int64_t threads = 1;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_CORES_H
