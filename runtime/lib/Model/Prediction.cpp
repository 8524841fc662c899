//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Prediction.h"

#include "braid/Runtime/Calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::runtime {

/// More runs than this do not change a median by much.
static constexpr size_t kMostSamples = 1000;
/// Of a process of a job, which gives the times of each rank to that of rank 0.
static constexpr size_t kMostMeetings = 200;

static void keep(std::map<std::string, std::vector<double>> &samples, const std::string &identity,
                 double seconds) {
  if (std::vector<double> &ofOne = samples[identity]; ofOne.size() < kMostSamples)
    ofOne.push_back(seconds);
}

void PredictionFigures::take(const std::string &identity, const Meetings &ofRun) {
  const double seconds = secondsOf(ofRun);
  keep(collectives.samples, identity, seconds);
  if (std::all_of(ofRun.begin(), ofRun.end(), [](const Meeting &one) { return one.isAwake(); }))
    keep(awakeSamples, identity, seconds);
}

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
                       std::vector<const RankProgram *> itsPrograms, bool isOfJob)
    : ranks(itsRanks), isOfJob(isOfJob), programs(std::move(itsPrograms)) {
  its.ranks = static_cast<int64_t>(programs.size());
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
  std::map<std::string, double> calls, operations;
  std::map<std::string, std::pair<double, int64_t>> messages; // seconds, and how many
  std::map<std::string, Meetings> meetings;
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
          auto &[seconds, count] = messages[info.identity()];
          seconds += static_cast<double>(times.communicationNs - times.peerWaitNs) * 1e-9;
          ++count;
          continue;
        }
        const SpinLimits &spins = workers.control.spins();
        const int64_t spinNs = info.exposedByForm ? spins.idle.ns : spins.events.ns;
        join(meetings[info.identity()], {op->collective.group->ranks.front(),
                                         span.beginNs,
                                         span.beginNs,
                                         spinNs,
                                         {span.endNs}});
      }
  }
  for (const auto &[call, seconds] : calls)
    keep(its.calls.samples, call, seconds);
  for (const auto &[operation, seconds] : operations)
    keep(its.operations.samples, operation, seconds);
  for (const auto &[identity, message] : messages)
    keep(its.collectives.samples, identity, message.first / static_cast<double>(message.second));
  for (auto &[identity, ofRun] : meetings)
    if (!isOfJob)
      its.take(identity, ofRun);
    else if (std::vector<Meetings> &runs = its.meetings[identity]; runs.size() < kMostMeetings)
      runs.push_back(std::move(ofRun));
}

void Prediction::clear() {
  its.calls.samples.clear();
  its.operations.samples.clear();
  its.collectives.samples.clear();
  its.awakeSamples.clear();
  its.meetings.clear();
}

} // namespace braid::runtime
