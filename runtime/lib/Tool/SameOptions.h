//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Options that all processes of a job must have alike: they say which exchanges there are, and one
// process would wait for another that knows nothing of it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_SAMEOPTIONS_H
#define BRAID_TOOL_SAMEOPTIONS_H

#include "braid/Runtime/Communicator.h"
#include "braid/Runtime/RunOptions.h"

namespace braid::runtime {

/// Called by all processes. An error, the same on all, names a rank and an option that differ from
/// rank 0's.
Status compareOptions(const RunOptions &options, const std::string &entry,
                      Communicator &communicator);

} // namespace braid::runtime
#endif // BRAID_TOOL_SAMEOPTIONS_H
