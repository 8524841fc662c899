//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How many cores this process may use, which may be fewer than the machine has.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_USABLECORES_H
#define BRAID_SYNC_USABLECORES_H

#include <cstdint>
#include <string>

namespace braid::runtime {

/// The least of the calling thread's affinity and of the processor time that its control groups
/// (cgroup v1 or v2) grant, which need not be whole cores. `root` comes before /proc and /sys.
double usableCores(const std::string &root = "");

/// How long a thread that waits looks around before it sleeps, in nanoseconds: where threads that
/// may run at once outnumber the cores, the one waited for needs the core.
int64_t spinFor(int64_t runnableThreads, double cores);

} // namespace braid::runtime
#endif // BRAID_SYNC_USABLECORES_H
