//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Overlap.h"
#include "Commands.h"

#include <algorithm>
#include <optional>

namespace braid::runtime {

namespace {

bool computes(const Command &command) {
  return !std::holds_alternative<RecordCommand>(command.op) &&
         !std::holds_alternative<AwaitCommand>(command.op) &&
         !std::holds_alternative<CollectiveCommand>(command.op) &&
         !std::holds_alternative<CollectiveWaitCommand>(command.op);
}

std::optional<uint32_t> setEvent(const Command &command) {
  if (auto *op = std::get_if<RecordCommand>(&command.op))
    return op->event;
  if (auto *op = std::get_if<CollectiveCommand>(&command.op))
    return op->event;
  return std::nullopt;
}
std::optional<uint32_t> awaitedEvent(const Command &command) {
  if (auto *op = std::get_if<AwaitCommand>(&command.op))
    return op->event;
  if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op))
    return op->event;
  return std::nullopt;
}

/// All commands, each after those whose events it awaits. verifyProgram has checked that there is
/// such an order.
std::vector<std::pair<Queue, size_t>> anyOrder(const RankProgram &program) {
  std::vector<std::pair<Queue, size_t>> order;
  std::vector<size_t> next(program.queues.size(), 0);
  std::vector<bool> isSet(program.numEvents, false);
  for (bool moved = true; moved;) {
    moved = false;
    for (Queue q = 0; q < program.queues.size(); ++q)
      for (; next[q] < program.queues[q].size(); ++next[q]) {
        const Command &command = program.queues[q][next[q]];
        if (std::optional<uint32_t> event = awaitedEvent(command); event && !isSet[*event])
          break;
        if (std::optional<uint32_t> event = setEvent(command))
          isSet[*event] = true;
        order.emplace_back(q, next[q]);
        moved = true;
      }
  }
  return order;
}

} // namespace

std::vector<std::vector<Window>> windowsOf(const RankProgram &program) {
  const std::vector<std::pair<Queue, size_t>> order = anyOrder(program);
  const size_t end = program.queues[kComputeQueue].size();
  std::vector<std::vector<Window>> windows(program.queues.size());
  for (Queue q = 1; q < program.queues.size(); ++q)
    windows[q].resize(program.queues[q].size());
  // Compute commands that have ended: of each queue's place, and when an event is set.
  std::vector<size_t> ended(program.queues.size(), 0), endedAt(program.numEvents, 0);
  for (auto [q, i] : order) {
    const Command &command = program.queues[q][i];
    if (q == kComputeQueue)
      ended[q] = i + 1;
    else if (std::optional<uint32_t> event = awaitedEvent(command))
      ended[q] = std::max(ended[q], endedAt[*event]);
    if (std::optional<uint32_t> event = setEvent(command))
      endedAt[*event] = ended[q];
    if (q != kComputeQueue)
      windows[q][i].begin = ended[q];
  }
  // The first compute command that waits: for a queue's place, and for an event.
  std::vector<size_t> waiter(program.queues.size(), end), waiterFor(program.numEvents, end);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    auto [q, i] = *it;
    const Command &command = program.queues[q][i];
    if (std::optional<uint32_t> event = setEvent(command))
      waiter[q] = std::min(waiter[q], waiterFor[*event]);
    if (std::optional<uint32_t> event = awaitedEvent(command))
      waiterFor[*event] = std::min(waiterFor[*event], q == kComputeQueue ? i : waiter[q]);
    if (q != kComputeQueue)
      windows[q][i].end = waiter[q];
  }
  return windows;
}

namespace {

/// Tells whether any command of the compute queue within a window has a property.
class Among {
public:
  template <typename Property>
  Among(const std::vector<Command> &compute, Property property) : before{0} {
    for (const Command &command : compute)
      before.push_back(before.back() + (property(command) ? 1 : 0));
  }
  bool isIn(Window window) const {
    return window.begin < window.end && before[window.end] > before[window.begin];
  }

private:
  std::vector<size_t> before; ///< such commands that come before each
};

} // namespace

void findOverlap(RankProgram &program) {
  std::vector<Command> &compute = program.queues[kComputeQueue];
  const std::vector<std::vector<Window>> windows = windowsOf(program);
  const Among work(compute, computes);
  for (Queue q = 1; q < program.queues.size(); ++q) {
    size_t marked = 0; // windows begin and end in the order of the queue
    for (size_t i = 0; i < windows[q].size(); ++i) {
      const Window window = windows[q][i];
      auto *op = std::get_if<CollectiveCommand>(&program.queues[q][i].op);
      if (!op)
        continue;
      program.collectives[op->index].exposedByForm = !work.isIn(window);
      for (size_t c = std::max(marked, window.begin); c < window.end; ++c)
        compute[c].mayOverlap = computes(compute[c]);
      marked = std::max(marked, window.end);
    }
  }
}

/// By event: the queue that sets it.
static std::vector<Queue> settersOf(const RankProgram &program) {
  std::vector<Queue> setters(program.numEvents, kComputeQueue);
  for (Queue q = 0; q < program.queues.size(); ++q)
    for (const Command &command : program.queues[q])
      if (std::optional<uint32_t> event = setEvent(command))
        setters[*event] = q;
  return setters;
}

static void giveToWaiters(RankProgram &program, Queue queue, const std::vector<Window> &windows,
                          const std::vector<Queue> &setters) {
  std::vector<Command> &compute = program.queues[kComputeQueue], &given = program.queues[queue];
  const Among work(compute, computes);
  // While the compute queue waits for a third queue, this one must go on: peers may wait for it.
  const Among otherWaits(compute, [&](const Command &command) {
    const std::optional<uint32_t> event = awaitedEvent(command);
    return event && setters[*event] != queue;
  });
  // A queue that a third one waits for must go on likewise.
  bool awaitedElsewhere = false;
  for (Queue q = 1; q < program.queues.size(); ++q)
    for (const Command &command : program.queues[q])
      if (std::optional<uint32_t> event = awaitedEvent(command); event && q != queue)
        awaitedElsewhere |= setters[*event] == queue;
  // Groups of one rank wait for no peer, and the remaining work is not worth a thread.
  const bool alone = std::all_of(given.begin(), given.end(), [](const Command &command) {
    auto *op = std::get_if<CollectiveCommand>(&command.op);
    return !op || (op->collective.group && op->collective.group->ranks.size() == 1);
  });
  program.ownThread[queue] = false;
  for (size_t i = 0; i < given.size(); ++i) {
    const Window window = windows[i];
    given[i].byWaiter = window.end < compute.size() && !awaitedElsewhere &&
                        (alone || (!work.isIn(window) && !otherWaits.isIn(window)));
    if (!given[i].byWaiter) {
      program.ownThread[queue] = true;
    } else {
      Command &waiter = compute[window.end];
      if (waiter.runsFirst.end == 0)
        waiter.runsFirst = {queue, i, 0};
      waiter.runsFirst.end = i + 1;
    }
    if (i > 0 && given[i - 1].byWaiter != given[i].byWaiter)
      given[i - 1].thenSets = given[i].firstAwaits = program.numEvents++;
  }
}

void giveToWaiters(RankProgram &program) {
  const std::vector<std::vector<Window>> windows = windowsOf(program);
  const std::vector<Queue> setters = settersOf(program);
  for (Queue q = 1; q < program.queues.size(); ++q)
    giveToWaiters(program, q, windows[q], setters);
}

int64_t coveredNs(Interval span, const std::vector<Interval> &busy) {
  auto endsBefore = [](const Interval &interval, int64_t time) { return interval.endNs <= time; };
  int64_t covered = 0;
  for (auto it = std::lower_bound(busy.begin(), busy.end(), span.beginNs, endsBefore);
       it != busy.end() && it->beginNs < span.endNs; ++it)
    covered += std::min(it->endNs, span.endNs) - std::max(it->beginNs, span.beginNs);
  return covered;
}

} // namespace braid::runtime
