//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses arguments to RunOptions.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_COMMANDLINE_H
#define BRAID_TOOL_COMMANDLINE_H

#include "braid/Runtime/RunOptions.h"

namespace braid::runtime {

/// Fills `options`. For help, version or a wrong argument, prints to stdout or stderr and returns
/// the exit status.
std::optional<int> parseCommandLine(int argc, const char *const *argv, const RunHooks &hooks,
                                    RunOptions &options);

} // namespace braid::runtime
#endif // BRAID_TOOL_COMMANDLINE_H
