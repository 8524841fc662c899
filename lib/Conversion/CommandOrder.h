//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The happens-before order of a procedure's commands, by vector clocks over its queues. Buffer
// assignment and the check of its result use it; the check of the serialized program does not.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_COMMANDORDER_H
#define BRAID_LIB_CONVERSION_COMMANDORDER_H

#include "dialects/RT/IR/RT.h"

#include <array>

namespace braid {

/// A command with its place in the order. A call counts as one command of the compute queue, since
/// checkBuffers ensures that its callee's communication lies within its begin and end.
struct Command {
  /// The number of commands of each queue that must have ended.
  using Clock = std::array<int64_t, 2>;

  mlir::Operation *op;
  rt::Queue queue;
  int64_t index; ///< on its queue, from 0
  Clock before;  ///< commands that have ended when it begins

  int64_t endedOf(rt::Queue other) const { return before[static_cast<int>(other)]; }
  /// Whether it has ended whenever `other` begins.
  bool isBefore(const Command &other) const { return other.endedOf(queue) > index; }
};

/// The commands of a procedure's body, without rt.alloc and rt.view, in the body's order, which
/// respects the happens-before order.
std::vector<Command> orderCommands(mlir::Block &body);

} // namespace braid
#endif // BRAID_LIB_CONVERSION_COMMANDORDER_H
