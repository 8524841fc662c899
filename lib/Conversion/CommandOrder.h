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

namespace braid {

/// A command with its place in the order. A call counts as one command of the compute queue, since
/// checkBuffers ensures that what its callee does on other queues lies within its begin and end.
struct Command {
  mlir::Operation *op;
  unsigned queue; ///< its number in CommandOrder::queues
  int64_t index;  ///< on its queue, from 0
  /// The number of commands of each queue that have ended when it begins.
  llvm::SmallVector<int64_t, 4> before;

  bool isCompute() const { return queue == 0; }
  /// Whether it has ended whenever `other` begins.
  bool isBefore(const Command &other) const { return other.before[queue] > index; }
};

struct CommandOrder {
  /// Those that commands stand on: first the compute queue, which is always there.
  llvm::SmallVector<rt::QueueAttr, 4> queues;
  /// The commands of a procedure's body, without rt.alloc and rt.view, in the body's order, which
  /// respects the happens-before order.
  std::vector<Command> commands;
};

CommandOrder orderCommands(mlir::Block &body);

} // namespace braid
#endif // BRAID_LIB_CONVERSION_COMMANDORDER_H
