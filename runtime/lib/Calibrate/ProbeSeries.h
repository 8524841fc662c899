//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times of collectives on one host, in programs that do nothing else and are loaded several times.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_PROBESERIES_H
#define BRAID_CALIBRATE_PROBESERIES_H

#include "ProgramWriter.h"
#include "braid/Base/Status.h"
#include "runtime/lib/Collective/Plan.h"
#include "runtime/lib/Sync/CoreDistance.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::runtime {

/// A collective of one value.
struct Probe {
  CollectiveKind kind;
  int64_t ranks, inputBytes, outputBytes;
  std::string transport;
  bool inPlace = false;
  int64_t between = 0; ///< bytes of other memory that a rank uses before

  std::vector<std::pair<int64_t, int64_t>> pairs() const {
    std::vector<std::pair<int64_t, int64_t>> ring;
    for (int64_t r = 0; r < ranks && kind == CollectiveKind::permute; ++r)
      ring.emplace_back(r, (r + 1) % ranks);
    return ring;
  }
  int64_t bytes() const { return inputBytes + outputBytes; }
  std::string name() const {
    return std::string(runtime::name(kind)) + "," + std::to_string(inputBytes) + "," +
           std::to_string(outputBytes) + (inPlace ? ",in place" : "") + "," +
           std::to_string(between);
  }
  /// As the transport runs it.
  ScheduleRequest request() const {
    ScheduleRequest request;
    request.kind = kind;
    request.ranks = ranks;
    request.pairs = pairs();
    request.values = {{0, sizeof(float), inPlace}};
    request.values[0].partBytes = inputBytes / request.inputParts();
    chooseSchedule(request, transport);
    return request;
  }
};

/// Of about so many bytes of input and output, in parts of whole lines of a cache.
Probe probe(CollectiveKind kind, int64_t ranks, int64_t bytes, const std::string &transport);

/// After so many of them in a run, the caches of all cores have what such collectives leave there.
int timesToSettle(const Probe &probe);

/// Writes what ranks do before and in a repetition of a probe.
using WriteOne = std::function<void(ProgramWriter &, const Probe &, const std::string &name)>;

/// A part of a repetition: the input is written.
void writeInput(ProgramWriter &writer, const Probe &probe);
/// A barrier of all ranks before what is named: an all_reduce whose operands lie from `at` on.
void barrier(ProgramWriter &writer, const std::string &before, uint64_t at);
/// The collective itself. Its input and its output do not begin at addresses which a core takes for
/// the same one.
void startAndWait(ProgramWriter &writer, const Probe &probe, const std::string &name);

/// The input was just written, as in a model. Copies of a megabyte and more end at times that
/// differ between ranks, and one that comes first does a part of a broadcast or of a sum alone
/// before the time begins (64 MiB were broadcast in 3.1 ms or in 4.4): a barrier is between.
void writeBehindCopy(ProgramWriter &writer, const Probe &probe, const std::string &name);

/// How often probes are repeated: in programs that are loaded anew, in runs of each, of which the
/// first does not count, in a run, and in a run before they count.
struct Repeated {
  using OfProbe = std::function<int(const Probe &)>;
  OfProbe loads = [](const Probe &) { return 1; };
  OfProbe runs = [](const Probe &) { return 1; };
  OfProbe inRun = [](const Probe &) { return 1; };
  OfProbe before = [](const Probe &) { return 0; };
};

/// By the name of a probe.
using Seconds = std::map<std::string, double>;

/// Times of probes in programs that are loaded several times. Of the runs and repetitions of a load
/// what is typical counts, and of the loads the mean of the faster half: beside other programs a
/// load may be unlucky from its begin to its end. Each of `programs` is one, so that commands stay
/// in the caches. `watch` is null where ranks share cores; otherwise a load is repeated whose cores
/// were not as near to each other as usual.
class ProbeSeries {
public:
  ProbeSeries(std::string transport, int64_t ranks, std::vector<std::vector<Probe>> programs,
              Repeated repeated, WriteOne write, CoreWatch *watch);

  /// Half of the loads, all programs in turn; what is left with the second call.
  Status measureHalf();

  /// Of the loads whose cores were as near to each other as in the median of all, or of all where
  /// a probe has none of these.
  Seconds seconds() const;
  /// The part of the loads whose cores were not as near as in the median.
  double partElsewhere() const;
  /// The median over the loads. None where ranks share cores.
  std::optional<double> coreToCoreSeconds() const;
  /// Adds of each probe with loads in both halves how many times as long it took in the second one.
  void addEndOverBegin(std::vector<double> &ratios) const;

private:
  using Times = std::map<std::string, std::vector<double>>;
  /// Of a probe.
  struct Load {
    double seconds, coreToCore; ///< the second one is 0 where ranks share cores
  };

  Status loadThatCounts(const std::vector<Probe> &probes);
  Status loadOnce(const std::vector<Probe> &probes, Times &times);

  std::string transport;
  int64_t ranks;
  std::vector<std::vector<Probe>> programs;
  Repeated repeated;
  WriteOne write;
  CoreWatch *watch;
  std::map<std::string, std::vector<Load>> ofLoads;
  std::map<std::string, size_t> loadsAtBegin; ///< of the first half
  bool isHalfDone = false;
};

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_PROBESERIES_H
