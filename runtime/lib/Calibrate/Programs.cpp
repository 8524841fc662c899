//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the executor and the transports by programs that it runs.
//
//===----------------------------------------------------------------------===//
#include "Parts.h"
#include "ProgramWriter.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/ScheduleTime.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

namespace braid::runtime {

using Json = nlohmann::json;

static double quantileOf(std::vector<double> numbers, size_t parts, size_t part) {
  const size_t at = numbers.size() * part / parts;
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(at),
                   numbers.end());
  return numbers[at];
}
static double median(std::vector<double> numbers) { return quantileOf(std::move(numbers), 2, 1); }
/// A rank that the system stops for a moment holds up the others: the upper half tells of that.
static double lowerQuartile(std::vector<double> numbers) {
  return quantileOf(std::move(numbers), 4, 1);
}

/// The median time of a run.
static Result<double> secondsOfRun(ProgramWriter &writer, int runs) {
  ASSIGN_OR_RETURN(const ProgramWriter::Ready ready, writer.load({}));
  std::vector<double> times;
  RETURN_IF_ERROR(ready.execution->run());
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(ready.execution->run());
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(times);
}

Result<cost::Overheads> measureOverheads(bool quick) {
  const int count = quick ? 10 : 2000, runs = quick ? 1 : 21;
  cost::Overheads overheads;
  double alone = 0;
  struct Case {
    double *seconds;
    void (*repeat)(ProgramWriter &writer, uint32_t kernel);
    double each; ///< of what is measured, in a repetition
  };
  const Case cases[] = {
      {&alone, nullptr, 1},
      {&overheads.commandSeconds, [](auto &w, uint32_t kernel) { w.launchNothing(kernel); }, 1},
      {&overheads.callSeconds, [](auto &w, uint32_t kernel) { w.callOfNothing(kernel); }, 1},
      {&overheads.eventSeconds, [](auto &w, uint32_t) { w.eventThereAndBack(); }, 2}};
  for (const Case &c : cases) {
    ProgramWriter writer(1);
    const uint32_t kernel = writer.nothing();
    if (c.repeat)
      for (int i = 0; i < count; ++i)
        c.repeat(writer, kernel);
    ASSIGN_OR_RETURN(const double seconds, secondsOfRun(writer, runs));
    *c.seconds = c.repeat ? std::max(0.0, seconds - alone) / (count * c.each) : seconds;
  }
  // A call launches the kernel, too.
  overheads.callSeconds = std::max(0.0, overheads.callSeconds - overheads.commandSeconds);
  return overheads;
}

//===----------------------------------------------------------------------===//
// Transports
//===----------------------------------------------------------------------===//

/// Bytes from one rank to another, from which those of a collective follow.
static std::vector<int64_t> partSizes(bool quick) {
  if (quick)
    return {64, 4096};
  std::vector<int64_t> sizes;
  for (int64_t bytes = 64; bytes <= int64_t(16) << 20; bytes *= 4)
    sizes.push_back(bytes);
  return sizes;
}

Result<cost::Transport> measureTransport(const std::string &name, int64_t ranks, bool quick,
                                         std::vector<double> &errors) {
  struct Kind {
    CollectiveKind kind;
    const char *name;
    int64_t inputParts, outputParts;
  };
  const Kind kinds[] = {{CollectiveKind::allGather, "all_gather", 1, ranks},
                        {CollectiveKind::reduceScatter, "reduce_scatter", ranks, 1},
                        {CollectiveKind::allReduce, "all_reduce", ranks, ranks}};
  ProgramWriter writer(ranks);
  const std::vector<int64_t> sizes = partSizes(quick);
  const auto largest = static_cast<uint64_t>(sizes.back() * ranks);
  auto repeats = [&](int64_t bytes) { return quick ? 1 : bytes <= 1 << 16 ? 25 : 9; };
  for (const Kind &kind : kinds)
    for (int64_t bytes : sizes)
      for (int i = 0; i < repeats(bytes); ++i) {
        const int64_t elements = bytes / int64_t(sizeof(float));
        // The inputs were just written, as in a model.
        const std::vector<int64_t> input{kind.inputParts * elements},
            output{kind.outputParts * elements};
        writer.copy(writer.local(0, input), writer.symmetric(0, input));
        writer.wait(writer.start(kind.kind,
                                 std::string(kind.name) + "." + std::to_string(bytes) + "." +
                                     std::to_string(i),
                                 writer.symmetric(0, input), writer.symmetric(largest, output)));
      }
  WorldOptions options;
  options.transport = name;
  ASSIGN_OR_RETURN(const ProgramWriter::Ready ready, writer.load(options));
  for (int i = 0; i < (quick ? 1 : 4); ++i) {
    RETURN_IF_ERROR(ready.execution->run());
    if (i == 0)
      ready.execution->resetStatistics();
  }
  if (quick)
    RETURN_IF_ERROR(ready.execution->run());
  std::map<std::string, std::vector<double>> times; // by kind and bytes
  const Json report = Json::parse(ready.execution->report());
  for (const Json &collective : report["collectives"]) {
    std::string identity = collective["identity"]; // "@main/all_gather.64.3"
    identity = identity.substr(identity.find('/') + 1);
    times[identity.substr(0, identity.rfind('.'))].push_back(
        collective["comm_s"].get<double>() - collective["peer_wait_s"].get<double>());
  }
  // Fewer bytes take no longer than more.
  auto secondsOf = [&](const char *kind, int64_t bytes) {
    double least = std::numeric_limits<double>::infinity();
    for (int64_t more : sizes)
      if (more >= bytes)
        least = std::min(least,
                         lowerQuartile(times.at(std::string(kind) + "." + std::to_string(more))));
    return least;
  };
  cost::Transport transport;
  transport.name = name;
  transport.ranks = ranks;
  // Of next to no bytes: an all_reduce awaits two messages one after the other, an all_gather one.
  const int64_t least = sizes.front();
  const double one = secondsOf("all_gather", least), two = secondsOf("all_reduce", least);
  transport.messageSeconds = std::clamp(two - one, 0.0, one);
  transport.startSeconds = one - transport.messageSeconds;
  for (size_t i = 1; i < sizes.size(); ++i) {
    const int64_t bytes = sizes[i];
    // A rank copies its own part while the messages come, then those of the others; or it adds
    // theirs to its own.
    const auto parts = static_cast<double>(ranks), others = parts - 1;
    const double gather = secondsOf("all_gather", bytes) - transport.startSeconds,
                 scatter = secondsOf("reduce_scatter", bytes) - one;
    const double each = gather / parts;
    const double copied =
        each >= transport.messageSeconds ? each : (gather - transport.messageSeconds) / others;
    transport.transfers.push_back({bytes, std::max(0.0, copied), std::max(0.0, scatter / others)});
  }
  for (size_t i = transport.transfers.size() - 1; i-- > 0;) {
    cost::TransferPoint &point = transport.transfers[i], &next = transport.transfers[i + 1];
    point.copySeconds = std::min(point.copySeconds, next.copySeconds);
    point.reduceSeconds = std::min(point.reduceSeconds, next.reduceSeconds);
  }
  cost::Machine machine;
  machine.transports = {transport};
  ASSIGN_OR_RETURN(const cost::Network network, cost::networkOf(machine, name, ranks));
  for (int64_t bytes : sizes) {
    ScheduleRequest request;
    request.kind = CollectiveKind::allReduce;
    request.ranks = ranks;
    request.values = {{ranks * bytes, sizeof(float), false}};
    ASSIGN_OR_RETURN(const cost::CollectiveTime predicted, cost::timeOf(request, network));
    errors.push_back(predicted.seconds / secondsOf("all_reduce", bytes) - 1);
  }
  return transport;
}

//===----------------------------------------------------------------------===//
// Interference
//===----------------------------------------------------------------------===//

/// The times of rank 0's matmuls and collectives in the last run.
struct Spans {
  std::vector<std::pair<double, double>> compute, communication; ///< begin and end
};

static Result<Spans> traced(const ProgramWriter::Ready &ready) {
  for (int i = 0; i < 2; ++i)
    RETURN_IF_ERROR(ready.execution->run());
  ASSIGN_OR_RETURN(const std::string text, ready.execution->trace());
  const Json trace = Json::parse(text);
  Spans spans;
  for (const Json &event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["pid"] != 0)
      continue;
    const double begin = event["ts"];
    const std::pair<double, double> span{begin, begin + event["dur"].get<double>()};
    if (event["args"]["operation"] == "matmul")
      spans.compute.push_back(span);
    else if (event["cat"] == "communication")
      spans.communication.push_back(span);
  }
  return spans;
}

static double medianDuration(const std::vector<std::pair<double, double>> &spans, double from,
                             double to) {
  std::vector<double> durations;
  for (const auto &[begin, end] : spans)
    if (begin >= from && end <= to)
      durations.push_back(end - begin);
  return durations.empty() ? 0 : median(durations);
}

Result<cost::Interference> measureInterference(const std::string &name, int64_t ranks, bool quick) {
  const int matmuls = quick ? 2 : 40, collectives = quick ? 2 : 80;
  const int64_t elements = quick ? 1024 : 1 << 18; // 1 MiB
  constexpr double kEver = 1e18;
  WorldOptions options;
  options.transport = name;
  options.trace = true;
  // Only products, only collectives, and both.
  Spans spans[3];
  for (int which = 0; which < 3; ++which) {
    ProgramWriter writer(ranks);
    const bool computes = which != 1, communicates = which != 0;
    std::vector<uint32_t> events;
    for (int i = 0; communicates && i < collectives; ++i)
      events.push_back(writer.start(
          CollectiveKind::allReduce, "c" + std::to_string(i), writer.symmetric(0, {elements}),
          writer.symmetric(static_cast<uint64_t>(elements) * sizeof(float), {elements})));
    for (int i = 0; computes && i < matmuls; ++i)
      writer.matmul(256, quick ? 64 : 512, quick ? 64 : 512);
    for (uint32_t event : events)
      writer.wait(event);
    ASSIGN_OR_RETURN(const ProgramWriter::Ready ready, writer.load(options));
    ASSIGN_OR_RETURN(spans[which], traced(ready));
  }
  const auto &both = spans[2];
  const double from = std::max(both.compute.front().first, both.communication.front().first),
               to = std::min(both.compute.back().second, both.communication.back().second);
  auto slowdown = [&](const auto &beside, const auto &alone) {
    const double slowed = medianDuration(beside, from, to), own = medianDuration(alone, 0, kEver);
    return slowed == 0 || own == 0 ? 1.0 : std::clamp(slowed / own, 1.0, 100.0);
  };
  cost::Interference result;
  result.transport = name;
  result.ranks = ranks;
  result.computeSlowdown = slowdown(both.compute, spans[0].compute);
  result.communicationSlowdown = slowdown(both.communication, spans[1].communication);
  return result;
}

} // namespace braid::runtime
