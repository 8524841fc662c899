//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "QueueOrder.h"

#include "braid/Analysis/HappensBefore.h"

using namespace mlir;
using namespace braid;

namespace {

/// A command, and the event of it that others can wait for: a collective's own, or the one that a
/// call hands out. Null if it takes a record.
struct Earlier {
  Operation *op = nullptr;
  Value event;
};

/// A command that must come after others, and the last of these on each queue.
struct Unordered {
  Operation *later = nullptr;
  SmallVector<Earlier> earlier;

  Unordered() = default;
  Unordered(Operation *later, ArrayRef<Earlier> last) {
    llvm::copy_if(last, std::back_inserter(earlier), [](const Earlier &e) { return e.op; });
    if (!earlier.empty())
      this->later = later;
  }
};

/// The command of a callee that sets the event which a call hands out; null if the callee only
/// passes it on.
Operation *setterOf(OpResult event) {
  auto call = cast<rt::CallOp>(event.getOwner());
  Value inside =
      call.getProcedure().getBody().front().getTerminator()->getOperand(event.getResultNumber());
  if (auto nested = inside.getDefiningOp<rt::CallOp>())
    return setterOf(cast<OpResult>(inside));
  return inside.getDefiningOp();
}

/// How others can wait for a command; none if they cannot, as it is a callee's own affair.
std::optional<Earlier> waitable(const HappensBefore &order, const OrderedCommand &command) {
  if (auto start = dyn_cast<rt::StartOp>(command.top))
    return Earlier{command.top, start.getDone()};
  if (command.top == command.op || command.queue == 0)
    return Earlier{command.top, Value()};
  // All ranks would wait for it, of which only some run the call.
  if (comm::placeOf(command.top))
    return std::nullopt;
  for (OpResult event : command.top->getResults()) {
    Operation *setter = setterOf(event);
    for (const OrderedCommand &other : order.commands())
      if (other.top == command.top && other.op == setter &&
          (other.op == command.op || command.isBefore(other)))
        return Earlier{command.top, event};
  }
  return std::nullopt;
}

/// The first command that is not ordered after all writers of what it reads.
Unordered findReader(const HappensBefore &order) {
  llvm::DenseMap<Value, SmallVector<std::pair<const OrderedCommand *, const MemoryUse *>>> writes;
  for (const OrderedCommand &command : order.commands()) {
    SmallVector<Earlier, 4> last(order.queues().size());
    for (const MemoryUse &use : command.uses)
      if (use.reads && !use.frame)
        for (auto [writer, written] : writes.lookup(use.region.root))
          if (writer->top != command.top && !writer->isBefore(command) &&
              mayOverlap(written->region, use.region))
            if (std::optional<Earlier> earlier = waitable(order, *writer))
              last[writer->queue] = *earlier;
    if (Unordered found(command.top, last); found.later)
      return found;
    for (const MemoryUse &use : command.uses)
      if (use.writes && !use.frame)
        writes[use.region.root].emplace_back(&command, &use);
  }
  return {};
}

/// The end, if something that the procedure has begun may still run then for which it hands out no
/// event. A wait on a communication queue joins nothing.
Unordered findEnd(const HappensBefore &order) {
  SmallVector<const OrderedCommand *> setters; // of the events that are handed out
  for (Value event : order.end().op->getOperands()) {
    Operation *top = event.getDefiningOp();
    Operation *setter = isa_and_nonnull<rt::CallOp>(top) ? setterOf(cast<OpResult>(event)) : top;
    for (const OrderedCommand &command : order.commands())
      if (setter && command.top == top && command.op == setter)
        setters.push_back(&command);
  }
  auto isHandedOut = [&](const OrderedCommand &command) {
    return llvm::any_of(setters, [&](const OrderedCommand *setter) {
      return setter == &command || command.isBefore(*setter);
    });
  };
  SmallVector<Earlier, 4> last(order.queues().size());
  for (const OrderedCommand &command : order.commands())
    if (command.queue != 0 && !command.uses.empty() && !command.isBefore(order.end()) &&
        !isHandedOut(command))
      if (std::optional<Earlier> earlier = waitable(order, command))
        last[command.queue] = *earlier;
  return Unordered(order.end().op, last);
}

} // namespace

LogicalResult braid::orderQueues(rt::ProcedureOp procedure) {
  if (failed(HappensBefore::checkSize(procedure)))
    return failure();
  OpBuilder builder(procedure);
  const SmallVector<int64_t> ranks = HappensBefore::differingRanks(procedure);
  while (true) {
    Unordered found;
    for (int64_t rank : ranks) {
      const HappensBefore order(procedure, rank);
      found = findReader(order);
      if (!found.later)
        found = findEnd(order);
      if (found.later)
        break;
    }
    if (!found.later)
      return success();
    const rt::QueueAttr waiting = rt::queueOf(found.later);
    for (auto [op, event] : found.earlier) {
      builder.setInsertionPoint(found.later);
      if (event) {
        rt::WaitOp::create(builder, op->getLoc(), event, waiting);
        continue;
      }
      builder.setInsertionPointAfter(op);
      Value done = rt::RecordOp::create(builder, op->getLoc(), rt::queueOf(op), IntegerAttr());
      builder.setInsertionPoint(found.later);
      rt::AwaitOp::create(builder, op->getLoc(), done, waiting);
    }
  }
}
