//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Predicted and measured times of the collectives of one host, by kind and size: a line of JSON for
// each. A program writes the input of a collective and runs it, several times; the prediction of
// its report compares both. Where the machine file says how near cores were to each other, programs
// are run when they are as near, and "elsewhere" says how many were not, after a minute of waiting.
// predictions.py makes tables of these lines.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/Machine.h"
#include "runtime/lib/Calibrate/Statistics.h"
#include "runtime/lib/Sync/CoreDistance.h"
#include "test/unit/Runtime/ProgramBuilder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using Json = nlohmann::ordered_json;

namespace {

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "collective times: error: %s\n", message.c_str());
  std::exit(1);
}

constexpr struct {
  const char *name;
  fb::CollectiveKind kind;
} kKinds[] = {{"all_reduce", fb::CollectiveKind::all_reduce},
              {"reduce_scatter", fb::CollectiveKind::reduce_scatter},
              {"all_gather", fb::CollectiveKind::all_gather},
              {"all_to_all", fb::CollectiveKind::all_to_all},
              {"broadcast", fb::CollectiveKind::broadcast},
              {"reduce", fb::CollectiveKind::reduce},
              {"permute", fb::CollectiveKind::permute}};

/// A barrier, an all_reduce of so many elements, comes before collectives of so many bytes.
constexpr int64_t kBarrierFrom = int64_t(1) << 20, kBarrierElements = 16;

/// Of one load of a program.
struct Times {
  double predicted = 0, median = 0, least = 0;
};

/// `bytes` are those of the larger of a rank's input and output.
Times measure(const std::string &transport, int64_t ranks, const char *name,
              fb::CollectiveKind kind, int64_t bytes, int64_t between,
              const std::shared_ptr<const braid::cost::Machine> &machine) {
  // Threads have slept before a run, and its first millisecond is slower than the rest.
  const auto repetitions = static_cast<int>(
      std::clamp<int64_t>((int64_t(64) << 20) / std::max<int64_t>(bytes, 1), 2, 300));
  const bool hasBarrier = bytes >= kBarrierFrom;
  ProgramBuilder b({{"r", ranks}});
  const int64_t part = bytes / 4 / ranks, whole = part * ranks;
  const int64_t inputs = kind == fb::CollectiveKind::all_gather ? part : whole;
  const int64_t outputs = kind == fb::CollectiveKind::reduce_scatter ? part : whole;
  auto room = [](int64_t elements) {
    return static_cast<uint64_t>(elements * 4 + 4095) / 4096 * 4096 + 2048;
  };
  const int64_t half = between / 8; // elements that are read, and as many that are written
  // As weights, that memory is more than caches hold.
  const int64_t places = half > 0 ? std::max<int64_t>(1, (int64_t(64) << 20) / between) : 1;
  const uint64_t bytesOfPlace = 2 * room(half);
  // In huge pages, as models.
  auto arena = [](uint64_t needed) { return std::max(needed, uint64_t(8) << 20); };
  auto p =
      b.procedure("main", 0, arena(room(inputs) + static_cast<uint64_t>(places) * bytesOfPlace),
                  arena(room(inputs) + room(outputs) + 2 * room(kBarrierElements)),
                  (hasBarrier ? 4 : 2) * static_cast<uint32_t>(repetitions));
  const V source = local(0, DType::f32, {inputs}), input = symmetric(0, DType::f32, {inputs}),
          output = symmetric(room(inputs), DType::f32, {outputs});
  const uint64_t behind = room(inputs) + room(outputs);
  const V met = symmetric(behind, DType::f32, {kBarrierElements}),
          sum = symmetric(behind + room(kBarrierElements), DType::f32, {kBarrierElements});
  for (int i = 0; i < repetitions; ++i) {
    const auto event = (hasBarrier ? 4 : 2) * static_cast<uint32_t>(i);
    const uint64_t place = room(inputs) + static_cast<uint64_t>(i % places) * bytesOfPlace;
    if (half > 0)
      p.copy("between", local(place, DType::f32, {half}),
             local(place + room(half), DType::f32, {half}));
    // As in a model, the input was just written.
    p.copy("write", source, input);
    // The copies of ranks are milliseconds apart, and one that comes first does a part of its own
    // before the time begins. As the calibration does.
    if (hasBarrier) {
      p.start("x", fb::CollectiveKind::all_reduce, {"r"}, {met}, {sum}, 0, event + 2, event + 3,
              "barrier." + std::to_string(i));
      p.wait("x", event + 3);
    }
    p.start("x", kind, {"r"}, {input}, {output}, 0, event, event + 1,
            std::string(name) + "." + std::to_string(i));
    if (kind == fb::CollectiveKind::permute)
      for (int64_t r = 0; r < ranks; ++r) {
        for (int64_t position : {r, (r + 1) % ranks})
          p.last().pairs.push_back(static_cast<uint32_t>(position));
      }
    p.wait("x", event + 1);
  }
  WorldOptions options;
  options.transport = transport;
  options.trace = true;
  options.pin = true;
  options.machine = machine;
  Result<std::unique_ptr<Session>> session = b.session(options);
  if (!session.ok())
    fail(session.status().message());
  for (int round = -1; round < 3; ++round) {
    if (Status status = (*session)->run(); !status.ok())
      fail(status.message());
    if (round < 0)
      (*session)->resetStatistics();
  }
  const Json prediction = Json::parse((*session)->report())["prediction"];
  if (prediction.contains("missing"))
    fail(prediction["missing"]);
  Times times;
  std::vector<double> medians, least;
  for (const Json &c : prediction["collectives"]) {
    if (c["identity"].get<std::string>().find("/barrier.") != std::string::npos)
      continue;
    times.predicted = c["predicted_s"];
    medians.push_back(c["measured_s"]);
    least.push_back(c["least_measured_s"]);
  }
  times.median = median(medians);
  times.least = *std::min_element(least.begin(), least.end());
  return times;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 8) {
    std::fprintf(stderr,
                 "usage: BraidCollectiveTimes MACHINE shm|threads RANKS LOADS BETWEEN "
                 "KIND|all BYTES...\nBETWEEN: bytes that a rank uses between two collectives\n");
    return 1;
  }
  Result<braid::cost::Machine> machine = braid::cost::openMachine(argv[1]);
  if (!machine.ok())
    fail(machine.status().message());
  const auto shared = std::make_shared<const braid::cost::Machine>(std::move(*machine));
  const int64_t ranks = std::strtol(argv[3], nullptr, 10);
  const int loads = std::max(1, static_cast<int>(std::strtol(argv[4], nullptr, 10)));
  const int64_t between = std::strtoll(argv[5], nullptr, 10);
  std::vector<std::pair<size_t, int64_t>> rows; // of a kind, bytes
  for (size_t kind = 0; kind < std::size(kKinds); ++kind)
    for (int i = 7; i < argc; ++i)
      if (std::string(argv[6]) == "all" || std::string(argv[6]) == kKinds[kind].name)
        rows.emplace_back(kind, std::strtoll(argv[i], nullptr, 10));
  if (rows.empty())
    fail(std::string("there is no kind '") + argv[6] + "'");
  // In turn, so that a disturbance of the machine does not fall on one of them alone.
  std::vector<std::vector<Times>> times(rows.size());
  std::vector<int> elsewhere(rows.size());
  std::optional<CoreWatch> watch;
  const braid::cost::Transport *transport = shared->findTransport(argv[2], ranks);
  constexpr double kMostSeconds = 60;
  if (transport && transport->coreToCoreSeconds) {
    Result<Pinning> pinning = Pinning::create(ranks, 1);
    if (!pinning.ok())
      fail(pinning.status().message());
    watch.emplace(std::move(*pinning), transport->coreToCoreSeconds, kMostSeconds);
  }
  using Clock = std::chrono::steady_clock;
  for (int load = 0; load < loads; ++load)
    for (size_t row = 0; row < rows.size(); ++row)
      for (bool counts = false; !counts;) {
        if (watch)
          watch->await();
        const Clock::time_point begin = Clock::now();
        const Times one = measure(argv[2], ranks, kKinds[rows[row].first].name,
                                  kKinds[rows[row].first].kind, rows[row].second, between, shared);
        const std::chrono::duration<double> taken = Clock::now() - begin;
        counts = !watch || watch->counts(taken.count());
        if (!counts)
          continue;
        times[row].push_back(one);
        if (watch && !CoreWatch::areAlike(watch->last(), *transport->coreToCoreSeconds))
          ++elsewhere[row];
      }
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<double> medians;
    double least = times[row][0].least;
    for (const Times &one : times[row]) {
      medians.push_back(one.median);
      least = std::min(least, one.least);
    }
    const Json line = {{"transport", argv[2]},
                       {"ranks", ranks},
                       {"kind", kKinds[rows[row].first].name},
                       {"bytes", rows[row].second},
                       {"predicted_s", times[row][0].predicted},
                       {"median_s", median(medians)},
                       {"faster_half_s", meanOfFasterHalf(medians)},
                       {"least_s", least},
                       {"elsewhere", elsewhere[row]}};
    std::printf("%s\n", line.dump().c_str());
  }
  return 0;
}
