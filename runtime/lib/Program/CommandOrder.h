//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One order of the commands of all ranks in which whatever a command waits for comes before it. If
// there is none, the ranks wait for each other for ever.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_PROGRAM_COMMANDORDER_H
#define BRAID_RUNTIME_LIB_PROGRAM_COMMANDORDER_H

#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

namespace braid::runtime {

struct Place {
  int64_t rank;
  int queue;    ///< as numbered in Queue
  size_t index; ///< in the queue with all calls expanded
};

/// One command, or a collective with the commands of all ranks of its group, by position. A send
/// and its receive are a step each.
struct Step {
  std::vector<Place> places;
};

/// The order of the procedure `root` of a verified program. Error when ranks wait for each other:
/// it names who waits for whom, and where.
Result<std::vector<Step>> orderCommands(const program::Program &program, uint32_t root,
                                        const Mesh &mesh);
/// Whether there is such an order, of a procedure that has passed verifyEvents.
Status verifyOrder(const program::Program &program, uint32_t root, const Mesh &mesh);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_PROGRAM_COMMANDORDER_H
