//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The order in which one thread gives the commands of all ranks to their streams. A stream must not
// be told to wait for an event before that is recorded, so the queues are merged so that all that a
// command waits for comes before it. What meets in a collective is known here, before anything
// runs.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_ORDER_H
#define BRAID_CUDA_ORDER_H

#include "../Exec/Executor.h"

namespace braid::runtime::cuda {

struct Place {
  int64_t rank;
  int queue; ///< as numbered in Queue
  size_t index;
};

/// One command, or a collective with the commands of all ranks of its group, by position. A send
/// and its receive are a step each.
struct Step {
  std::vector<Place> places;
};

/// Error when ranks come to different collectives, or never come to an end.
Result<std::vector<Step>> orderCommands(const std::vector<const RankProgram *> &programs);

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_ORDER_H
