//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the executor by programs that it runs.
//
//===----------------------------------------------------------------------===//
#include "Parts.h"
#include "ProgramWriter.h"
#include "Statistics.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace braid::runtime {

/// The least time of a run: how long its thread takes to wake up differs by more than the commands
/// take.
static Result<double> secondsOfRun(ProgramWriter &writer, int runs) {
  ASSIGN_OR_RETURN(const ProgramWriter::Ready ready, writer.load({}));
  double least = std::numeric_limits<double>::infinity();
  RETURN_IF_ERROR(ready.execution->run());
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(ready.execution->run());
    least = std::min(
        least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
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
// Interference
//===----------------------------------------------------------------------===//

/// The times of rank 0's computation and collectives in the last run.
struct Spans {
  std::vector<std::pair<double, double>> compute, communication; ///< begin and end
};

static Result<Spans> traced(const ProgramWriter::Ready &ready, const std::string &operation) {
  for (int i = 0; i < 2; ++i)
    RETURN_IF_ERROR(ready.execution->run());
  ASSIGN_OR_RETURN(const std::vector<Execution::Span> all, ready.execution->spans());
  Spans spans;
  for (const Execution::Span &span : all) {
    if (span.rank != 0)
      continue;
    if (span.operation == operation)
      spans.compute.emplace_back(span.beginSeconds, span.endSeconds);
    else if (!span.collective.empty())
      spans.communication.emplace_back(span.beginSeconds, span.endSeconds);
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

Result<cost::Interference> measureInterference(const std::string &name, int64_t ranks,
                                               const std::string &kind, bool quick) {
  const bool multiplies = kind == "matmul";
  // About as long on both queues.
  const int computations = quick ? 2 : multiplies ? 40 : 60, collectives = quick ? 2 : 20;
  const int64_t elements = quick ? 1024 : 1 << 20;        // 4 MiB
  const int64_t copied = quick ? 1024 : int64_t(1) << 18; // 1 MiB, out of many
  const uint64_t pool = quick ? 2 : 32;
  constexpr double kEver = 1e12;
  WorldOptions options;
  options.transport = name;
  options.trace = true;
  options.pin = true;
  // Only computation, only collectives, and both.
  Spans spans[3];
  for (int which = 0; which < 3; ++which) {
    ProgramWriter writer(ranks);
    const bool computes = which != 1, communicates = which != 0;
    std::vector<uint32_t> events;
    for (int i = 0; communicates && i < collectives; ++i)
      events.push_back(writer.start(
          CollectiveKind::allReduce, "c" + std::to_string(i), writer.symmetric(0, {elements}),
          writer.symmetric(static_cast<uint64_t>(elements) * sizeof(float), {elements})));
    auto place = [&](int i) {
      return writer.local(static_cast<uint64_t>(i) % pool * static_cast<uint64_t>(copied) *
                              sizeof(float),
                          {copied});
    };
    for (int i = 0; computes && i < computations; ++i)
      if (multiplies)
        writer.matmul(256, quick ? 64 : 512, quick ? 64 : 512);
      else
        writer.copy(place(i), place(i + 1));
    for (uint32_t event : events)
      writer.wait(event);
    ASSIGN_OR_RETURN(const ProgramWriter::Ready ready, writer.load(options));
    ASSIGN_OR_RETURN(spans[which], traced(ready, multiplies ? "matmul" : "copy"));
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
  result.kind = kind;
  result.computeSlowdown = slowdown(both.compute, spans[0].compute);
  result.communicationSlowdown = slowdown(both.communication, spans[1].communication);
  return result;
}

} // namespace braid::runtime
