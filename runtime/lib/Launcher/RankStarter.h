//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Starts the ranks of one host for a launcher, which speaks to it through standard input and
// output. When the input ends, the launcher is gone, and so are soon the ranks; when the starter is
// killed, the kernel kills the ranks. Processes that a rank left behind end with the starter.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LAUNCHER_RANKSTARTER_H
#define BRAID_LAUNCHER_RANKSTARTER_H

namespace braid::runtime {

/// Returns the exit status of the process: 0 if the launcher was told all ends.
int runRankStarter();

} // namespace braid::runtime
#endif // BRAID_LAUNCHER_RANKSTARTER_H
