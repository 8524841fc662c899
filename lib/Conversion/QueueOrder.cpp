//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "QueueOrder.h"

#include "braid/Analysis/HappensBefore.h"

using namespace mlir;
using namespace braid;

namespace {

/// A command that reads what others have written, and the last such writer of each queue.
struct Unordered {
  Operation *reader = nullptr;
  SmallVector<Operation *> writers;
};

/// Whether a record behind the operation comes after the command.
bool canRecordBehind(const OrderedCommand &writer) {
  return writer.top == writer.op || writer.queue == 0;
}

/// The first command that is not ordered after all writers of what it reads.
Unordered findFirst(const HappensBefore &order) {
  llvm::DenseMap<Value, SmallVector<std::pair<const OrderedCommand *, const MemoryUse *>>> writes;
  for (const OrderedCommand &command : order.commands()) {
    SmallVector<const OrderedCommand *, 4> last(order.queues().size(), nullptr);
    for (const MemoryUse &use : command.uses)
      if (use.reads && !use.frame)
        for (auto [writer, written] : writes.lookup(use.region.root))
          if (writer->top != command.top && !writer->isBefore(command) &&
              canRecordBehind(*writer) && mayOverlap(written->region, use.region))
            last[writer->queue] = writer;
    Unordered found;
    for (const OrderedCommand *writer : last)
      if (writer)
        found.writers.push_back(writer->top);
    if (!found.writers.empty()) {
      found.reader = command.top;
      return found;
    }
    for (const MemoryUse &use : command.uses)
      if (use.writes && !use.frame)
        writes[use.region.root].emplace_back(&command, &use);
  }
  return {};
}

} // namespace

LogicalResult braid::orderQueues(rt::ProcedureOp procedure) {
  if (failed(HappensBefore::checkSize(procedure)))
    return failure();
  OpBuilder builder(procedure);
  while (true) {
    const HappensBefore order(procedure);
    const Unordered found = findFirst(order);
    if (!found.reader)
      return success();
    const rt::QueueAttr waiting = rt::queueOf(found.reader);
    for (Operation *writer : found.writers) {
      // A collective sets an event itself.
      if (auto start = dyn_cast<rt::StartOp>(writer)) {
        builder.setInsertionPoint(found.reader);
        rt::WaitOp::create(builder, writer->getLoc(), start.getDone(), waiting);
        continue;
      }
      builder.setInsertionPointAfter(writer);
      Value written =
          rt::RecordOp::create(builder, writer->getLoc(), rt::queueOf(writer), IntegerAttr());
      builder.setInsertionPoint(found.reader);
      rt::AwaitOp::create(builder, writer->getLoc(), written, waiting);
    }
  }
}
