//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which collectives of a queue may be under way at the same time.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "NoAlias.h"
#include "Overlap.h"

#include <algorithm>
#include <set>

namespace braid::runtime {

static Tensor tensorOf(const Collective &c, const CollectiveValue &value, bool isInput,
                       std::byte *symmetric) {
  const StridedView &view = isInput ? value.input : value.output;
  Tensor tensor;
  tensor.data = symmetric + view.offset;
  tensor.dtype = value.dtype;
  tensor.shape = view.shape;
  tensor.strides = view.strides;
  return tensor;
}

/// Whether one of two collectives writes what the other one reads or writes.
static bool haveConflict(const Collective &a, const Collective &b, std::byte *symmetric) {
  for (const CollectiveValue &x : a.values)
    for (const CollectiveValue &y : b.values) {
      const Tensor xIn = tensorOf(a, x, true, symmetric), xOut = tensorOf(a, x, false, symmetric);
      const Tensor yIn = tensorOf(b, y, true, symmetric), yOut = tensorOf(b, y, false, symmetric);
      if (mayOverlap(xOut, yIn) || mayOverlap(xOut, yOut) || mayOverlap(xIn, yOut))
        return true;
    }
  return false;
}

static const Collective *collectiveOf(const Command &command) {
  auto *op = std::get_if<CollectiveCommand>(&command.op);
  // A rank alone has nothing to wait for, and a send or recv is no schedule.
  return op && !isPointToPoint(op->collective.kind) && op->collective.group->ranks.size() > 1
             ? &op->collective
             : nullptr;
}

static bool isHandedOver(const Command &command) {
  return command.firstAwaits != Command::kNoEvent || command.thenSets != Command::kNoEvent;
}

void findInFlight(RankProgram &program, std::byte *symmetric) {
  // Commands whose addresses may change.
  std::set<std::pair<Queue, size_t>> moving;
  for (const std::vector<ArgumentCommand> &uses : program.uses)
    for (const ArgumentCommand &use : uses)
      moving.insert({use.queue, use.command});
  for (Queue q = 1; q < program.queues.size(); ++q) {
    std::vector<Command> &commands = program.queues[q];
    for (size_t i = 0; i < commands.size(); ++i) {
      const Collective *mine = collectiveOf(commands[i]);
      commands[i].besides = 0;
      if (!mine || isHandedOver(commands[i]) || moving.count({q, i}) > 0)
        continue;
      for (size_t j = i; j-- > 0 && commands[i].besides + 1 < kCollectivesInFlight;) {
        const Command &before = commands[j];
        if (isHandedOver(before) || before.byWaiter != commands[i].byWaiter)
          break;
        if (std::holds_alternative<AwaitCommand>(before.op) ||
            std::holds_alternative<CollectiveWaitCommand>(before.op))
          continue;
        const Collective *other = collectiveOf(before);
        if (!other || moving.count({q, j}) > 0 || haveConflict(*other, *mine, symmetric))
          break;
        ++commands[i].besides;
      }
    }
  }
}

} // namespace braid::runtime
