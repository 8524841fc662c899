//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Orders the commands of all ranks so that each comes after those that it waits for. If there is no
// such order, the ranks deadlock.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_PROGRAM_COMMANDORDER_H
#define BRAID_RUNTIME_LIB_PROGRAM_COMMANDORDER_H

#include "braid/Base/RankSet.h"
#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

namespace braid::runtime {

struct Place {
  int64_t rank;
  Queue queue;
  size_t index; ///< in the queue of the rank with all calls expanded
};

/// One command; for a collective, the commands of all ranks of its group, by position. A send and
/// its recv are separate steps; between them are fewer than kMessagesInFlight sends of the same
/// sender, target and tag.
struct Step {
  std::vector<Place> places;
};

/// A command that comes after others apart from what the program says.
struct OrderedAfter {
  Place command;
  std::vector<Place> others;
};

/// Orders the commands of the procedure `root` of a verified program. The error for a deadlock
/// names the ranks that wait for each other, and the commands.
Result<std::vector<Step>> orderCommands(const program::Program &program, uint32_t root,
                                        const Manifest &manifest,
                                        const std::vector<OrderedAfter> &also = {});
/// Checks that a procedure that has passed verifyEvents has such an order.
Status verifyOrder(const program::Program &program, uint32_t root, const Mesh &mesh,
                   const RankRoles &roles);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_PROGRAM_COMMANDORDER_H
