//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Happens-before of a procedure's commands, by vector clocks over its queues. Buffer assignment and
// the check of its outcome both ask it; the proof on the serialized program shares nothing with it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_COMMANDORDER_H
#define BRAID_LIB_CONVERSION_COMMANDORDER_H

#include "dialects/RT/IR/RT.h"

#include <array>

namespace braid {

/// A command with its place in the order. A call counts as one command of the compute queue:
/// checkBuffers sees to it that its callee's communication lies within its begin and end.
struct Command {
  /// How many commands of each queue are known to have ended.
  using Clock = std::array<int64_t, 2>;

  mlir::Operation *op;
  rt::Queue queue;
  int64_t index; ///< on its queue, from 0
  Clock before;  ///< what has ended when it begins

  int64_t endedOf(rt::Queue other) const { return before[static_cast<int>(other)]; }
  /// Has ended whenever `other` begins.
  bool isBefore(const Command &other) const { return other.endedOf(queue) > index; }
};

/// The commands of a procedure's body in its order, in which no command precedes one that is
/// before it. What is no command (rt.alloc, rt.view) is left out.
std::vector<Command> orderCommands(mlir::Block &body);

} // namespace braid
#endif // BRAID_LIB_CONVERSION_COMMANDORDER_H
