//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The control groups (cgroups) that limit this process.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_CONTROLGROUPS_H
#define BRAID_SYNC_CONTROLGROUPS_H

#include <functional>
#include <string>

namespace braid::runtime {

/// Calls `visit` with the folder of each control group that a controller ("cpu") of cgroup v1, or
/// cgroup v2, applies to this process: its own group first, then the ancestors, whose limits
/// apply too. `root` comes before /proc and /sys.
void forEachControlGroup(const std::string &root, const std::string &controller,
                         const std::function<void(const std::string &folder)> &visit);

} // namespace braid::runtime
#endif // BRAID_SYNC_CONTROLGROUPS_H
