//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandOrder.h"

using namespace mlir;
using namespace braid;

CommandOrder braid::orderCommands(Block &body) {
  auto isCommand = [](Operation &op) { return !isa<rt::AllocOp, rt::ViewOp>(op); };
  CommandOrder order;
  DenseMap<Attribute, unsigned> numbers;
  auto number = [&](rt::QueueAttr queue) {
    auto [it, inserted] = numbers.try_emplace(queue, order.queues.size());
    if (inserted)
      order.queues.push_back(queue);
    return it->second;
  };
  number(rt::QueueAttr::get(body.getParentOp()->getContext(), rt::QueueKind::Compute));
  for (Operation &op : llvm::make_filter_range(body, isCommand))
    number(rt::queueOf(&op));

  using Clock = SmallVector<int64_t, 4>;
  SmallVector<Clock, 4> now(order.queues.size(), Clock(order.queues.size(), 0));
  DenseMap<Value, Clock> events;
  for (Operation &op : llvm::make_filter_range(body, isCommand)) {
    const unsigned queue = number(rt::queueOf(&op));
    Clock &clock = now[queue];
    // A wait adds the clock of its event.
    if (isa<rt::AwaitOp, rt::WaitOp>(op))
      for (auto [mine, theirs] : llvm::zip(clock, events.lookup(op.getOperand(0))))
        mine = std::max(mine, theirs);
    order.commands.push_back({&op, queue, clock[queue], clock});
    ++clock[queue];
    if (isa<rt::RecordOp, rt::StartOp>(op))
      events[op.getResult(0)] = clock;
  }
  return order;
}
