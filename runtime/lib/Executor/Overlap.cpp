//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Overlap.h"
#include "Commands.h"

#include <algorithm>

namespace braid::runtime {

namespace {

bool computes(const Command &command) {
  return !std::holds_alternative<RecordCommand>(command.op) &&
         !std::holds_alternative<AwaitCommand>(command.op) &&
         !std::holds_alternative<CollectiveCommand>(command.op) &&
         !std::holds_alternative<CollectiveWaitCommand>(command.op);
}

/// The commands of the compute queue during which a command of the communication queue may run:
/// from the one after the record that it waits for to the first that waits for it or for a later
/// command of its queue.
struct Window {
  size_t begin, end;
};

std::vector<Window> windowsOf(const RankProgram &program) {
  const std::vector<Command> &compute = program.queues[0], &communication = program.queues[1];
  std::vector<size_t> recorded(program.numEvents, 0), waited(program.numEvents, compute.size());
  for (size_t i = compute.size(); i-- > 0;) {
    if (auto *op = std::get_if<RecordCommand>(&compute[i].op))
      recorded[op->event] = i + 1;
    else if (auto *op = std::get_if<AwaitCommand>(&compute[i].op))
      waited[op->event] = i;
    else if (auto *op = std::get_if<CollectiveWaitCommand>(&compute[i].op))
      waited[op->event] = i;
  }
  std::vector<Window> windows(communication.size());
  size_t begin = 0, end = compute.size();
  for (size_t i = 0; i < communication.size(); ++i) {
    if (auto *op = std::get_if<AwaitCommand>(&communication[i].op))
      begin = std::max(begin, recorded[op->event]);
    windows[i].begin = begin;
  }
  for (size_t i = communication.size(); i-- > 0;) {
    if (auto *op = std::get_if<RecordCommand>(&communication[i].op))
      end = std::min(end, waited[op->event]);
    else if (auto *op = std::get_if<CollectiveCommand>(&communication[i].op))
      end = std::min(end, waited[op->event]);
    windows[i].end = end;
  }
  return windows;
}

/// Tells whether any command of the compute queue within a window computes.
class Work {
public:
  explicit Work(const std::vector<Command> &compute) : before{0} {
    for (const Command &command : compute)
      before.push_back(before.back() + (computes(command) ? 1 : 0));
  }
  bool isIn(Window window) const {
    return window.begin < window.end && before[window.end] > before[window.begin];
  }

private:
  std::vector<size_t> before; ///< computing commands that come before each
};

} // namespace

void findOverlap(RankProgram &program) {
  std::vector<Command> &compute = program.queues[0];
  const std::vector<Window> windows = windowsOf(program);
  const Work work(compute);
  size_t marked = 0; // windows begin and end in the order of the queue
  for (size_t i = 0; i < windows.size(); ++i) {
    auto *op = std::get_if<CollectiveCommand>(&program.queues[1][i].op);
    if (!op)
      continue;
    const bool overlapped = work.isIn(windows[i]);
    program.collectives[op->index].exposedByForm = !overlapped;
    for (size_t c = std::max(marked, windows[i].begin); c < windows[i].end; ++c)
      compute[c].mayOverlap = computes(compute[c]);
    marked = std::max(marked, windows[i].end);
  }
}

void giveToWaiters(RankProgram &program) {
  std::vector<Command> &compute = program.queues[0], &communication = program.queues[1];
  const std::vector<Window> windows = windowsOf(program);
  const Work work(compute);
  // Groups of one rank wait for no peer, and the remaining work is not worth a thread.
  const bool alone =
      std::all_of(communication.begin(), communication.end(), [](const Command &command) {
        auto *op = std::get_if<CollectiveCommand>(&command.op);
        return !op || (op->collective.group && op->collective.group->ranks.size() == 1);
      });
  program.ownThread = false;
  for (size_t i = 0; i < communication.size(); ++i) {
    communication[i].byWaiter =
        windows[i].end < compute.size() && (alone || !work.isIn(windows[i]));
    if (!communication[i].byWaiter) {
      program.ownThread = true;
    } else {
      Command &waiter = compute[windows[i].end];
      if (waiter.runsFirst.end == 0)
        waiter.runsFirst.begin = i;
      waiter.runsFirst.end = i + 1;
    }
    if (i > 0 && communication[i - 1].byWaiter != communication[i].byWaiter)
      communication[i - 1].thenSets = communication[i].firstAwaits = program.numEvents++;
  }
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
