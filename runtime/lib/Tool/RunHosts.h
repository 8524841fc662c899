//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --hosts, and processes that a launcher started.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_RUNHOSTS_H
#define BRAID_TOOL_RUNHOSTS_H

#include "braid/Runtime/RunOptions.h"

namespace braid::runtime {

/// The argument, alone, that makes a tool start the ranks of its host for a launcher.
inline constexpr const char *kStartRanks = "--start-ranks";

/// Runs on other hosts if the options say so, and returns the exit status. Otherwise checks that
/// this process may run the model, prints why not and returns 1, or returns nothing.
std::optional<int> runOnHosts(int argc, const char *const *argv, RunOptions &options,
                              const RunHooks &hooks);

} // namespace braid::runtime
#endif // BRAID_TOOL_RUNHOSTS_H
