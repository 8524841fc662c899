//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The number of cores that this process may use, which may be fewer than the machine's.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_USABLECORES_H
#define BRAID_SYNC_USABLECORES_H

#include <cstdint>
#include <string>

namespace braid::runtime {

/// The minimum of the calling thread's affinity and of the processor time of its control groups
/// (cgroup v1 or v2), which may be fractional. `root` comes before /proc and /sys.
double usableCores(const std::string &root = "");

/// How long a waiting thread spins before it sleeps, in nanoseconds: where runnable threads
/// outnumber the cores, the awaited thread needs the core.
int64_t spinFor(int64_t runnableThreads, double cores);

} // namespace braid::runtime
#endif // BRAID_SYNC_USABLECORES_H
