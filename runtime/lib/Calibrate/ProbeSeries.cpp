//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProbeSeries.h"

#include "Statistics.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <chrono>

namespace braid::runtime {

Probe probe(CollectiveKind kind, int64_t ranks, int64_t bytes, const std::string &transport) {
  constexpr int64_t kLine = 64;
  const bool scatters = kind == CollectiveKind::reduceScatter || kind == CollectiveKind::allToAll;
  const bool gathers = kind == CollectiveKind::allGather || kind == CollectiveKind::allToAll;
  const int64_t inputs = scatters ? ranks : 1, outputs = gathers ? ranks : 1;
  const int64_t part = std::max(kLine, bytes / (inputs + outputs) / kLine * kLine);
  return {kind, ranks, inputs * part, outputs * part, transport};
}

/// The median, or of few, which take long and may be interrupted, the lower quartile.
static double typical(std::vector<double> numbers) {
  constexpr size_t kFew = 12;
  const size_t count = numbers.size();
  const auto at =
      numbers.begin() + static_cast<std::ptrdiff_t>(count < kFew ? (count + 1) / 4 : count / 2);
  std::nth_element(numbers.begin(), at, numbers.end());
  return *at;
}

/// In the identities of barriers, which are not measured.
constexpr const char *kBarrier = "/barrier ";

/// How collectives begin and end in runs: by name, the times from the arrival of the last rank to
/// the end, mean over ranks.
static Status addTimes(const Execution &execution, int64_t ranks,
                       std::map<std::string, std::vector<double>> &times) {
  ASSIGN_OR_RETURN(const std::vector<Execution::Span> spans, execution.spans());
  struct Meeting {
    double lastArrival = 0;
    std::vector<double> ends;
  };
  std::map<std::string, Meeting> meetings;
  for (const Execution::Span &span : spans) {
    if (span.collective.empty() || span.collective.find(kBarrier) != std::string::npos)
      continue;
    Meeting &meeting = meetings[span.collective];
    meeting.lastArrival = std::max(meeting.lastArrival, span.beginSeconds);
    meeting.ends.push_back(span.endSeconds);
  }
  for (const auto &[identity, meeting] : meetings) {
    // "@main/all_gather,64,128.3"
    std::string name = identity.substr(identity.find('/') + 1);
    name.resize(name.rfind('.'));
    double sum = 0; // a rank that awaits nothing of the last one may have ended before
    for (double end : meeting.ends)
      sum += std::max(0.0, end - meeting.lastArrival);
    times[name].push_back(sum / static_cast<double>(ranks));
  }
  return {};
}

int timesToSettle(const Probe &probe) {
  return static_cast<int>(std::min<int64_t>(60, (int64_t(32) << 20) / probe.bytes()));
}

void writeInput(ProgramWriter &writer, const Probe &probe) {
  const std::vector<int64_t> input{probe.inputBytes / int64_t(sizeof(float))};
  writer.copy(writer.local(0, input), writer.symmetric(0, input));
}

/// Where a probe's memory ends, but for that of barriers.
static uint64_t endOf(const Probe &probe) {
  return static_cast<uint64_t>(probe.inputBytes + probe.outputBytes + 3 * 4096) / 4096 * 4096;
}

void barrier(ProgramWriter &writer, const std::string &before, uint64_t at) {
  writer.wait(writer.start(CollectiveKind::allReduce, "barrier " + before,
                           writer.symmetric(at, {16}), writer.symmetric(at + 4096, {16})));
}

void startAndWait(ProgramWriter &writer, const Probe &probe, const std::string &name) {
  const std::vector<int64_t> input{probe.inputBytes / int64_t(sizeof(float))},
      output{probe.outputBytes / int64_t(sizeof(float))};
  const auto behind =
      static_cast<uint64_t>(probe.inPlace ? 0 : (probe.inputBytes + 4095) / 4096 * 4096 + 2048);
  writer.wait(writer.start(probe.kind, name, writer.symmetric(0, input),
                           writer.symmetric(behind, output), probe.pairs()));
}

void writeBehindCopy(ProgramWriter &writer, const Probe &probe, const std::string &name) {
  constexpr int64_t kBarrierFrom = int64_t(1) << 20;
  writeInput(writer, probe);
  if (std::max(probe.inputBytes, probe.outputBytes) >= kBarrierFrom)
    barrier(writer, name, endOf(probe));
  startAndWait(writer, probe, name);
}

ProbeSeries::ProbeSeries(std::string transport, int64_t ranks,
                         std::vector<std::vector<Probe>> programs, Repeated repeated,
                         WriteOne write, CoreWatch *watch)
    : transport(std::move(transport)), ranks(ranks), programs(std::move(programs)),
      repeated(std::move(repeated)), write(std::move(write)), watch(watch) {}

Status ProbeSeries::measureHalf() {
  int most = 0;
  for (const std::vector<Probe> &probes : programs)
    most = std::max(most, repeated.loads(probes.back()));
  const bool isFirst = !std::exchange(isHalfDone, true);
  for (const auto &[name, ofName] : ofLoads)
    loadsAtBegin[name] = ofName.size();
  for (int load = 0; load < most; ++load)
    for (const std::vector<Probe> &probes : programs) {
      const int loads = repeated.loads(probes.back()), half = (loads + 1) / 2;
      if (load < (isFirst ? half : loads - half))
        RETURN_IF_ERROR(loadThatCounts(probes));
    }
  return {};
}

Seconds ProbeSeries::seconds() const {
  const std::optional<double> usual = coreToCoreSeconds();
  Seconds result;
  for (const auto &[name, ofName] : ofLoads) {
    std::vector<double> counted, all;
    for (const Load &load : ofName) {
      all.push_back(load.seconds);
      if (usual && CoreWatch::areAlike(load.coreToCore, *usual))
        counted.push_back(load.seconds);
    }
    result[name] = meanOfFasterHalf(counted.empty() ? all : counted);
  }
  return result;
}

double ProbeSeries::partElsewhere() const {
  const std::optional<double> usual = coreToCoreSeconds();
  double elsewhere = 0, count = 0;
  for (const auto &[name, ofName] : ofLoads)
    for (const Load &load : ofName) {
      elsewhere += usual && !CoreWatch::areAlike(load.coreToCore, *usual) ? 1 : 0;
      ++count;
    }
  return count > 0 ? elsewhere / count : 0;
}

std::optional<double> ProbeSeries::coreToCoreSeconds() const {
  std::vector<double> distances;
  for (const auto &[name, ofName] : ofLoads)
    for (const Load &load : ofName)
      distances.push_back(load.coreToCore);
  return watch && !distances.empty() ? std::optional(median(distances)) : std::nullopt;
}

void ProbeSeries::addEndOverBegin(std::vector<double> &ratios) const {
  for (const auto &[name, ofName] : ofLoads) {
    const auto begin = loadsAtBegin.find(name);
    if (begin == loadsAtBegin.end() || begin->second >= ofName.size())
      continue;
    std::vector<double> seconds;
    for (const Load &load : ofName)
      seconds.push_back(load.seconds);
    ratios.push_back(endOverBegin(seconds, begin->second));
  }
}

Status ProbeSeries::loadThatCounts(const std::vector<Probe> &probes) {
  Times times;
  for (bool counts = false; !counts;) {
    if (watch)
      watch->await();
    const auto begin = std::chrono::steady_clock::now();
    times.clear();
    RETURN_IF_ERROR(loadOnce(probes, times));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    counts = !watch || watch->counts(taken.count());
  }
  for (const auto &[name, ofName] : times)
    ofLoads[name].push_back({typical(ofName), watch ? watch->last() : 0});
  return {};
}

Status ProbeSeries::loadOnce(const std::vector<Probe> &probes, Times &times) {
  ProgramWriter writer(ranks);
  const int runs = repeated.runs(probes.back());
  // The first ones of a run find their threads asleep.
  const Probe first{CollectiveKind::allGather, ranks, 64, 64 * ranks, transport};
  for (int i = 0; i < (runs == 1 ? 1 : 20); ++i)
    writeBehindCopy(writer, first, "first." + std::to_string(i));
  for (int i = 0; i < repeated.before(probes.back()); ++i)
    writeBehindCopy(writer, probes.back(), "before." + std::to_string(i));
  for (const Probe &probe : probes)
    for (int i = 0; i < repeated.inRun(probe); ++i)
      write(writer, probe, probe.name() + "." + std::to_string(i));
  WorldOptions options;
  options.transport = transport;
  options.trace = true;
  options.pin = true;
  ASSIGN_OR_RETURN(const ProgramWriter::Ready ready, writer.load(options));
  for (int run = 0; run < runs; ++run) {
    RETURN_IF_ERROR(ready.execution->run());
    if (run > 0 || runs == 1)
      RETURN_IF_ERROR(addTimes(*ready.execution, ranks, times));
  }
  return {};
}

} // namespace braid::runtime
