//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "StepOrder.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime {

std::string text(const std::vector<Schedule> &schedules, StepAt at) {
  const ScheduleStep &step = schedules[static_cast<size_t>(at.rank)].steps[at.step];
  return "step " + std::to_string(at.step) + " (" + name(step.kind) + ") of position " +
         std::to_string(at.rank);
}

Status StepOrder::findMessages(const std::vector<Schedule> &schedules) {
  for (const Schedule &schedule : schedules)
    for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const ScheduleStep &step = schedule.steps[i];
      if (step.kind != StepKind::send)
        continue;
      PairMessages &pair = pairs[{schedule.position, step.peer}];
      if (step.message != pair.sends.size())
        return Status::error("messages: ", text(schedules, {schedule.position, i}),
                             " sends message ", step.message, " to position ", step.peer,
                             ", the next one is ", pair.sends.size());
      pair.sends.push_back({schedule.position, i});
    }
  const StepAt none{-1, 0};
  for (auto &[ranks, pair] : pairs)
    pair.takes.assign(pair.sends.size(), none);
  for (const Schedule &schedule : schedules)
    for (uint32_t i = 0; i < schedule.steps.size(); ++i)
      for (const StepSource &source : schedule.sourcesOf(schedule.steps[i])) {
        if (!source.isMessage())
          continue;
        const StepAt here{schedule.position, i};
        const std::string what = "messages: " + text(schedules, here) + " takes message " +
                                 std::to_string(source.message) + " of position " +
                                 std::to_string(source.peer);
        const auto pair = pairs.find({source.peer, schedule.position});
        if (pair == pairs.end() || source.message >= pair->second.sends.size())
          return Status::error(what, ", which is not sent");
        StepAt &take = pair->second.takes[source.message];
        if (!(take == none))
          return Status::error(what, ", which ", text(schedules, take), " takes too");
        take = here;
        const StepAt sender = pair->second.sends[source.message];
        const ScheduleStep &send = schedules[static_cast<size_t>(sender.rank)].steps[sender.step];
        if (send.piece.bytes != schedule.steps[i].piece.bytes ||
            send.counted != schedule.steps[i].counted)
          return Status::error(what, " as ", schedule.steps[i].piece.bytes,
                               schedule.steps[i].counted ? " counted" : "", " bytes, ",
                               text(schedules, sender), " sends ", send.piece.bytes,
                               send.counted ? " counted" : "", " bytes");
      }
  for (const auto &[ranks, pair] : pairs)
    for (size_t m = 0; m < pair.takes.size(); ++m)
      if (pair.takes[m] == none)
        return Status::error("messages: nothing takes message ", m, " of ",
                             text(schedules, pair.sends[m]), " at position ", ranks.second);
  return {};
}

Status StepOrder::build(const std::vector<Schedule> &schedules, int64_t messagesInFlight,
                        bool inTurn) {
  RETURN_IF_ERROR(findMessages(schedules));
  uint32_t nodes = 0;
  for (const Schedule &schedule : schedules) {
    first.push_back(nodes);
    nodes += 2 * static_cast<uint32_t>(schedule.steps.size());
  }
  before.resize(nodes);
  seen.assign(nodes, 0);
  for (const Schedule &schedule : schedules)
    for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const StepAt at{schedule.position, i};
      addEdge(begin(at), end(at));
      for (uint32_t other : schedule.dependenciesOf(schedule.steps[i]))
        addEdge(end({schedule.position, other}), begin(at));
      if (inTurn && i > 0) {
        // Nothing waits until a message is taken.
        const StepAt last{schedule.position, i - 1};
        const bool sends = schedule.steps[i - 1].kind == StepKind::send;
        addEdge(sends ? begin(last) : end(last), begin(at));
      }
    }
  for (const auto &[ranks, pair] : pairs)
    for (size_t m = 0; m < pair.sends.size(); ++m) {
      addEdge(begin(pair.sends[m]), begin(pair.takes[m]));
      addEdge(end(pair.takes[m]), end(pair.sends[m]));
      if (m > 0) {
        addEdge(begin(pair.sends[m - 1]), begin(pair.sends[m]));
        addEdge(end(pair.takes[m - 1]), begin(pair.takes[m]));
      }
      if (!inTurn && m >= static_cast<size_t>(messagesInFlight))
        addEdge(end(pair.takes[m - static_cast<size_t>(messagesInFlight)]), begin(pair.sends[m]));
    }
  std::vector<std::vector<uint32_t>> after(nodes);
  std::vector<uint32_t> open(nodes, 0);
  for (uint32_t node = 0; node < nodes; ++node) {
    open[node] = static_cast<uint32_t>(before[node].size());
    for (uint32_t other : before[node])
      after[other].push_back(node);
    if (open[node] == 0)
      order.push_back(node);
  }
  place.assign(nodes, 0);
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<uint32_t>(i);
    for (uint32_t next : after[order[i]])
      if (--open[next] == 0)
        order.push_back(next);
  }
  return order.size() == nodes
             ? Status()
             : Status::error("progress: steps wait for each other",
                             inTurn ? " when each rank takes its steps in turn: " : ": ",
                             cycle(schedules, open));
}

StepAt StepOrder::stepOf(uint32_t node) const {
  const auto rank = std::upper_bound(first.begin(), first.end(), node) - first.begin() - 1;
  return {rank, (node - first[static_cast<size_t>(rank)]) / 2};
}

std::string StepOrder::cycle(const std::vector<Schedule> &schedules,
                             const std::vector<uint32_t> &open) const {
  // Each node that is not reached waits for another such node.
  auto waitsFor = [&](uint32_t node) {
    return *std::find_if(before[node].begin(), before[node].end(),
                         [&](uint32_t other) { return open[other] > 0; });
  };
  auto node = static_cast<uint32_t>(
      std::find_if(open.begin(), open.end(), [](uint32_t count) { return count > 0; }) -
      open.begin());
  for (size_t i = 0; i < open.size(); ++i)
    node = waitsFor(node);
  std::string all;
  const uint32_t start = node;
  do {
    const StepAt at = stepOf(node);
    const std::string one = text(schedules, at);
    if (all.size() < one.size() || all.compare(all.size() - one.size(), one.size(), one) != 0)
      all += (all.empty() ? "" : " for ") + one;
    node = waitsFor(node);
  } while (node != start);
  return all;
}

std::vector<StepOrder::Moment> StepOrder::moments() const {
  std::vector<Moment> all;
  for (uint32_t node : order) {
    const StepAt at = stepOf(node);
    all.push_back({at, node == end(at)});
  }
  return all;
}

bool StepOrder::isBefore(StepAt a, StepAt b) const {
  const uint32_t target = end(a);
  ++search;
  std::vector<uint32_t> path{begin(b)};
  while (!path.empty()) {
    const uint32_t node = path.back();
    path.pop_back();
    if (node == target)
      return true;
    if (seen[node] == search || place[node] < place[target])
      continue;
    seen[node] = search;
    path.insert(path.end(), before[node].begin(), before[node].end());
  }
  return false;
}

StepAt StepOrder::senderOf(StepAt taker, const StepSource &source) const {
  return pairs.at({source.peer, taker.rank}).sends[source.message];
}

} // namespace braid::runtime
