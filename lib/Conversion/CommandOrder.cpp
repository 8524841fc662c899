//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandOrder.h"

using namespace mlir;
using namespace braid;

std::vector<Command> braid::orderCommands(Block &body) {
  std::vector<Command> commands;
  std::array<Command::Clock, 2> now = {};
  DenseMap<Value, Command::Clock> events;
  for (Operation &op : body) {
    if (isa<rt::AllocOp, rt::ViewOp>(op))
      continue;
    rt::Queue queue = rt::queueOf(&op);
    Command::Clock &clock = now[static_cast<int>(queue)];
    // A wait adds the clock of its event.
    if (isa<rt::AwaitOp, rt::WaitOp>(op))
      for (auto [mine, theirs] : llvm::zip(clock, events.lookup(op.getOperand(0))))
        mine = std::max(mine, theirs);
    int64_t &count = clock[static_cast<int>(queue)];
    commands.push_back({&op, queue, count, clock});
    ++count;
    if (isa<rt::RecordOp, rt::StartOp>(op))
      events[op.getResult(0)] = clock;
  }
  return commands;
}
