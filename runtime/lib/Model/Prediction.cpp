//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Prediction.h"

#include "braid/Runtime/Calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace braid::runtime {

/// More runs than this do not change a median by much.
static constexpr size_t kMostSamples = 1000;

/// From the first to the last command of each call, on a rank's compute queue; calls within are
/// part of it. In the order in which calls begin.
static void addCalls(const RankProgram &program, const std::vector<CommandSpan> &spans,
                     std::map<std::string, double> &longest, std::vector<std::string> *order) {
  std::map<std::string, std::pair<double, double>> extents;
  for (const CommandSpan &span : spans) {
    const std::string &calls = program.callsOf.at(span.command->path);
    // "@main/@layer#3/@mlp" is also within "@main/@layer#3"; "@main" is the run.
    for (size_t end = calls.find('/'); end != std::string::npos;) {
      end = calls.find('/', end + 1);
      const std::string call = calls.substr(0, end);
      auto [extent, isNew] = extents.emplace(call, std::pair(span.begin, span.end));
      if (isNew && order && std::find(order->begin(), order->end(), call) == order->end())
        order->push_back(call);
      extent->second.second = std::max(extent->second.second, span.end);
    }
  }
  for (const auto &[call, extent] : extents) {
    double &seconds = longest[call];
    seconds = std::max(seconds, extent.second - extent.first);
  }
}

/// Sums what a rank's compute queue does, by operation: "matmul mlp.up".
static void addOperations(const std::vector<CommandSpan> &spans, double ranks,
                          std::map<std::string, double> &sums, std::vector<std::string> *order) {
  for (const CommandSpan &span : spans) {
    const NamedCommand &command = *span.command;
    if (command.awaitedQueue() || std::strcmp(command.operation, "record") == 0)
      continue;
    const std::string what =
        std::string(command.operation) + (command.name.empty() ? "" : " " + command.name);
    auto [sum, isNew] = sums.emplace(what, 0);
    if (isNew && order)
      order->push_back(what);
    sum->second += (span.end - span.begin) / ranks;
  }
}

Prediction::Prediction(const cost::Machine &machine, const CommandTimes &times, RankRange itsRanks,
                       std::vector<const RankProgram *> itsPrograms)
    : ranks(itsRanks), programs(std::move(itsPrograms)) {
  its.machine = machine.name;
  its.measuredAt = machine.measurement ? machine.measurement->at : "";
  its.warning = cost::differenceFrom(machine, hostProcessor());
  for (const RankProgram *program : programs)
    if (its.notEstimated.empty())
      its.notEstimated = program->notEstimated;
  if (!its.notEstimated.empty())
    return;
  Result<std::vector<std::vector<std::vector<CommandSpan>>>> course = simulate(programs, times);
  if (!course.ok()) {
    its.notEstimated = course.status().message();
    return;
  }
  std::map<std::string, double> ranksOf;
  for (size_t r = 0; r < programs.size(); ++r) {
    addCalls(*programs[r], (*course)[r][kComputeQueue], its.calls.predicted, &its.calls.order);
    addOperations((*course)[r][kComputeQueue], static_cast<double>(programs.size()),
                  its.operations.predicted, &its.operations.order);
    for (const auto &queue : (*course)[r])
      for (const CommandSpan &span : queue) {
        its.runSeconds = std::max(its.runSeconds, span.end);
        if (span.index < 0)
          continue;
        const std::string identity =
            programs[r]->collectives[static_cast<size_t>(span.index)].identity();
        if (++ranksOf[identity] == 1)
          its.collectives.order.push_back(identity);
        its.collectives.predicted[identity] += span.end - span.begin;
      }
  }
  for (auto &[identity, seconds] : its.collectives.predicted)
    seconds /= ranksOf[identity];
}

void Prediction::add(const Workers &workers) {
  if (!its.notEstimated.empty())
    return;
  std::map<std::string, double> calls, operations, collectives, ranksOf;
  auto add = [&](const std::string &identity, double seconds) {
    collectives[identity] += seconds;
    ++ranksOf[identity];
  };
  /// The ranks of a host have one clock.
  struct Meeting {
    int64_t firstArrivalNs = INT64_MAX, lastArrivalNs = 0;
    int64_t spinNs = 0;          ///< how long its ranks spin at most
    std::vector<int64_t> endsNs; ///< by rank
  };
  std::map<std::pair<std::string, const ProcessGroup *>, Meeting> meetings;
  for (size_t r = 0; r < programs.size(); ++r) {
    const Rank &rank = *workers.ranks[ranks.first + static_cast<int64_t>(r)];
    std::vector<CommandSpan> spans;
    for (const TraceSpan &span : rank.trace[kComputeQueue])
      spans.push_back({span.command, -1, static_cast<double>(span.beginNs) * 1e-9,
                       static_cast<double>(span.endNs) * 1e-9});
    addCalls(*programs[r], spans, calls, nullptr);
    addOperations(spans, static_cast<double>(programs.size()), operations, nullptr);
    for (const auto &queue : rank.trace)
      for (const TraceSpan &span : queue) {
        const auto *op =
            std::get_if<CollectiveCommand>(&static_cast<const Command &>(*span.command).op);
        if (!op || span.step >= 0)
          continue;
        const CollectiveInfo &info = programs[r]->collectives[op->index];
        // A send and a recv are told apart from their waits by the transport alone.
        if (isPointToPoint(op->collective.kind)) {
          const CommunicationTimes &times = rank.times.collectives[op->index];
          add(info.identity(),
              static_cast<double>(times.communicationNs - times.peerWaitNs) * 1e-9);
          continue;
        }
        Meeting &meeting = meetings[{info.identity(), op->collective.group}];
        meeting.firstArrivalNs = std::min(meeting.firstArrivalNs, span.beginNs);
        meeting.lastArrivalNs = std::max(meeting.lastArrivalNs, span.beginNs);
        const SpinLimits &spins = workers.control.spins();
        meeting.spinNs = info.exposedByForm ? spins.idle.ns : spins.events.ns;
        meeting.endsNs.push_back(span.endNs);
      }
  }
  // Who waits for longer than it spins sleeps, and wakes up when the last rank has come.
  std::set<std::string> awake, woken;
  for (const auto &[which, meeting] : meetings) {
    const bool sleeps = meeting.lastArrivalNs - meeting.firstArrivalNs > meeting.spinNs;
    (sleeps ? woken : awake).insert(which.first);
    for (int64_t end : meeting.endsNs)
      // A rank that awaits nothing of the last one may have ended before.
      add(which.first,
          static_cast<double>(std::max<int64_t>(0, end - meeting.lastArrivalNs)) * 1e-9);
  }
  auto keep = [](std::map<std::string, std::vector<double>> &samples, const std::string &identity,
                 double seconds) {
    if (std::vector<double> &ofOne = samples[identity]; ofOne.size() < kMostSamples)
      ofOne.push_back(seconds);
  };
  for (const auto &[call, seconds] : calls)
    keep(its.calls.samples, call, seconds);
  for (const auto &[operation, seconds] : operations)
    keep(its.operations.samples, operation, seconds);
  for (const auto &[identity, seconds] : collectives)
    keep(its.collectives.samples, identity, seconds / ranksOf[identity]);
  for (const auto &[identity, seconds] : collectives)
    if (awake.count(identity) > 0 && woken.count(identity) == 0)
      keep(its.awakeSamples, identity, seconds / ranksOf[identity]);
}

void Prediction::clear() {
  its.calls.samples.clear();
  its.operations.samples.clear();
  its.collectives.samples.clear();
  its.awakeSamples.clear();
}

} // namespace braid::runtime
