//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the transports of a host by collectives that each need one figure more than those
// before, and finds the figures with which the schedules take the measured times.
//
//===----------------------------------------------------------------------===//
#include "Parts.h"
#include "ProbeSeries.h"
#include "Statistics.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/ScheduleTime.h"
#include "braid/Runtime/Calibrate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace braid::runtime {

namespace {

double meanSeconds(const Probe &probe, const cost::Network &network) {
  const Result<cost::CollectiveTime> time = cost::timeOfSteps(probe.request(), network);
  if (!time.ok())
    return 0;
  return std::accumulate(time->rankSeconds.begin(), time->rankSeconds.end(), 0.0) /
         static_cast<double>(time->rankSeconds.size());
}

/// The value of a figure with which the probe takes so long; times grow about in proportion to it.
void solve(const Probe &probe, double seconds, cost::Network &network, double &figure) {
  figure = 0;
  double low = meanSeconds(probe, network), lowAt = 0;
  if (seconds <= low)
    return;
  figure = seconds;
  for (int i = 0; i < 4; ++i) {
    const double high = meanSeconds(probe, network);
    if (high <= low || figure <= lowAt)
      return;
    const double next = lowAt + (seconds - low) / (high - low) * (figure - lowAt);
    if (std::abs(next - figure) < 1e-4 * figure)
      return;
    figure = std::max(0.0, next);
  }
}

/// Of collectives that move next to nothing: the start and the messages, by least squares of the
/// relative errors.
void fitStart(const std::vector<Probe> &probes, const std::map<std::string, double> &measured,
              cost::Network &network) {
  network.startSeconds = 0;
  network.messageSeconds = measured.at(probes.front().name()) / 4;
  // Times are about linear in both, but with shared cores the order of ranks depends on them.
  for (int i = 0; i < 4; ++i) {
    double aa = 0, ab = 0, bb = 0, ay = 0,
           by = 0; // of 1 = (start + depth message + rest) / seconds
    const double before = network.messageSeconds;
    network.startSeconds = 0;
    for (const Probe &probe : probes) {
      const double seconds = measured.at(probe.name());
      network.messageSeconds = before;
      const double at = meanSeconds(probe, network);
      network.messageSeconds = 1.01 * before + 1e-9;
      const double depth = (meanSeconds(probe, network) - at) / (network.messageSeconds - before);
      const double a = 1 / seconds, b = depth / seconds, y = 1 - (at - depth * before) / seconds;
      aa += a * a, ab += a * b, bb += b * b, ay += a * y, by += b * y;
    }
    const double determinant = aa * bb - ab * ab;
    double start = ay / aa, message = 0;
    if (determinant > 1e-9 * aa * bb) {
      start = (ay * bb - by * ab) / determinant;
      message = (aa * by - ab * ay) / determinant;
      if (message < 0)
        start = ay / aa, message = 0;
      if (start < 0)
        start = 0, message = by / bb;
    }
    network.startSeconds = std::max(0.0, start);
    network.messageSeconds = std::max(0.0, message);
  }
}

/// The nearest figures, by squares of seconds per byte, that do not shrink where bytes grow.
void makeAscending(std::vector<cost::TransferPoint> &points, double cost::TransferPoint::*figure) {
  struct Block {
    double weight, seconds;
    size_t count;
  };
  std::vector<Block> blocks;
  for (const cost::TransferPoint &point : points) {
    const auto bytes = static_cast<double>(point.bytes);
    blocks.push_back({1 / (bytes * bytes), point.*figure, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].seconds > blocks.back().seconds) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block &block = blocks.back();
      const double weight = block.weight + last.weight;
      block = {weight, (block.weight * block.seconds + last.weight * last.seconds) / weight,
               block.count + last.count};
    }
  }
  size_t i = 0;
  for (const Block &block : blocks)
    for (size_t end = i + block.count; i < end; ++i)
      points[i].*figure = block.seconds;
}

/// The nearest seconds, as above, of points with such fields.
template <typename Point> void makeAscending(Point *begin, Point *end) {
  std::vector<cost::TransferPoint> points;
  for (const Point *point = begin; point != end; ++point) {
    points.emplace_back().bytes = point->bytes;
    points.back().copySeconds = point->seconds;
  }
  makeAscending(points, &cost::TransferPoint::copySeconds);
  for (Point *point = begin; point != end; ++point)
    point->seconds = points[static_cast<size_t>(point - begin)].copySeconds;
}

/// What a core has for itself of the caches.
int64_t ownCacheBytes() {
  int64_t own = int64_t(1) << 20;
  for (const cost::CpuCache &cache : hostProcessor().caches)
    if (cache.sharedByCores == 1)
      own = std::max(own, cache.bytes);
  return own;
}

/// Of the largest cache that the host reports, and at least 32 MiB: to use more than there is does
/// no harm.
int64_t largestCacheBytes() {
  int64_t most = int64_t(32) << 20;
  for (const cost::CpuCache &cache : hostProcessor().caches)
    most = std::max(most, cache.bytes);
  return most;
}

/// all_reduces behind a copy that writes their input, each time when ranks have used other memory
/// before, over those that have not. That memory comes from beyond the caches, as the weights of a
/// model do: what stays in them evicts less. As much of it as a core has of the caches is used
/// behind the copy, as the product does that writes the input of a model's collective. Ranks meet
/// before that, so that none sleeps when the other comes, and the caches have lost the commands of
/// collectives, too.
struct ColdProbes {
  /// The first without other memory; each of the same sizes.
  std::vector<std::vector<Probe>> programs;
  WriteOne write;
  Repeated repeated;

  ColdProbes(const std::string &name, int64_t ranks, bool quick) {
    const int64_t own = quick ? int64_t(1) << 14 : ownCacheBytes();
    // A rank's part of the cache that ranks share, and no more than can be copied often in a
    // second.
    const int64_t shared = quick ? 8 * own
                                 : std::clamp(largestCacheBytes() / ranks, 8 * own,
                                              std::max(8 * own, int64_t(32) << 20));
    const int64_t beyond =
        2 * std::max(2 * shared, std::min(largestCacheBytes(), int64_t(256) << 20));
    std::vector<int64_t> sizes; // of the output
    for (int64_t bytes = quick ? 1 << 10 : 896; bytes <= (quick ? 4 << 10 : 7 << 20); bytes *= 4)
      sizes.push_back(bytes);
    // In turn, as a host has times in which all takes longer.
    for (int64_t between : {int64_t(0), own, 4 * own, shared, 2 * shared}) {
      programs.emplace_back();
      for (int64_t bytes : sizes)
        programs.back().push_back(
            {CollectiveKind::allReduce, ranks, bytes, bytes, name, false, between});
    }
    const auto input = static_cast<uint64_t>((sizes.back() + 4095) / 4096 * 4096);
    int64_t at = 0; // of what is used next
    auto use = [=](ProgramWriter &writer, int64_t bytes) mutable {
      if (bytes == 0)
        return;
      at = at + bytes > beyond ? 0 : at;
      const std::vector<int64_t> half{bytes / 2 / int64_t(sizeof(float))};
      const uint64_t place = input + static_cast<uint64_t>(at);
      writer.copy(writer.local(place, half),
                  writer.local(place + static_cast<uint64_t>(bytes) / 2, half));
      at += bytes;
    };
    write = [=](ProgramWriter &writer, const Probe &probe, const std::string &one) mutable {
      const int64_t behind = std::min(own, probe.between);
      use(writer, probe.between - behind);
      writeInput(writer, probe);
      barrier(writer, one, 3 * input);
      use(writer, behind);
      startAndWait(writer, probe, one);
    };
    if (!quick) {
      repeated.loads = [](const Probe &) { return 4; };
      repeated.runs = [](const Probe &) { return 3; };
      repeated.inRun = [](const Probe &probe) {
        return probe.between > 16 << 20 ? 3 : probe.between > 0 ? 6 : 12;
      };
      repeated.before = [](const Probe &probe) {
        return probe.between > 0 ? 0 : timesToSettle(probe);
      };
    }
  }

  std::vector<cost::ColdPoint> points(const Seconds &seconds) const {
    std::vector<cost::ColdPoint> points;
    for (size_t i = 1; i < programs.size(); ++i) {
      const size_t first = points.size();
      for (size_t size = 0; size < programs[i].size(); ++size) {
        const Probe &cold = programs[i][size];
        points.push_back(
            {cold.between, cold.outputBytes,
             std::max(0.0, seconds.at(cold.name()) - seconds.at(programs[0][size].name()))});
      }
      makeAscending(points.data() + first, points.data() + points.size());
    }
    return points;
  }
};

using K = CollectiveKind;
constexpr K kKinds[] = {K::allGather, K::permute,   K::reduceScatter, K::allToAll,
                        K::allReduce, K::broadcast, K::reduce};

} // namespace

struct TransportMeasurement::State {
  std::string name;
  int64_t ranks;
  std::vector<int64_t> sizes; ///< of input and output, about
  std::vector<Probe> smallest;
  /// Where ranks have a core each.
  std::optional<CoreWatch> watch;
  std::unique_ptr<ProbeSeries> warm;
  std::optional<ColdProbes> coldProbes;
  std::unique_ptr<ProbeSeries> cold;
};

TransportMeasurement::TransportMeasurement(const std::string &name, int64_t ranks, bool quick,
                                           double secondsForCores)
    : state(std::make_unique<State>()) {
  state->name = name;
  state->ranks = ranks;
  std::vector<int64_t> &sizes = state->sizes;
  std::vector<Probe> &smallest = state->smallest;
  for (K kind : kKinds)
    smallest.push_back(probe(kind, ranks, 0, name));
  smallest.push_back({K::allReduce, ranks, 64, 64, name, true});
  // Of ranks that share cores the system decides which one runs when: more points tell no more.
  const bool sharesCores = static_cast<double>(ranks) > usableCores();
  // Between powers of two, and closer where the caches end and copies go around them.
  const int64_t most = quick         ? int64_t(1) << 13
                       : sharesCores ? int64_t(28) << 20
                                     : int64_t(112) << 20;
  for (int64_t bytes = 1792; bytes <= most; bytes *= 2) {
    sizes.push_back(bytes);
    if (!sharesCores && bytes >= int64_t(7) << 20 && bytes < int64_t(28) << 20)
      sizes.push_back(bytes / 10 * 14);
  }
  constexpr int64_t kLarge = int64_t(16) << 20, kLargest = int64_t(60) << 20;
  // A program for each size: what is large is left in the shared caches by what was before it, and
  // what is small waits for its commands where these are more than the nearest cache has room for.
  // Of large collectives each kind has a program of its own: behind another kind sums take up to a
  // fifth longer, for more repetitions than there is time for, and all_gathers a quarter. The
  // largest take no longer there.
  std::vector<std::vector<Probe>> programs{smallest};
  for (int64_t bytes : sizes) {
    const bool isAlone = !sharesCores && bytes > kLarge && bytes < kLargest;
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      if (isAlone || i == 0)
        programs.emplace_back();
      programs.back().push_back(probe(kKinds[i], ranks, bytes, name));
    }
  }
  Repeated repeated;
  if (!quick) {
    repeated.loads = [=](const Probe &probe) {
      if (sharesCores)
        return 2;
      return probe.bytes() > kLargest ? 4 : probe.bytes() > kLarge ? 6 : 8;
    };
    // Loads differ more than repetitions in one do.
    repeated.runs = [=](const Probe &probe) {
      return sharesCores || probe.bytes() <= int64_t(1) << 20 ? 3 : 2;
    };
    repeated.inRun = [=](const Probe &probe) {
      if (probe.bytes() > kLarge)
        return sharesCores ? 1 : 2;
      if (probe.bytes() > (int64_t(1) << 20))
        return sharesCores ? 3 : 4;
      return probe.bytes() > (int64_t(1) << 16) || sharesCores ? 12 : 40;
    };
    repeated.before = timesToSettle;
  }
  if (!sharesCores)
    if (Result<Pinning> pinning = Pinning::create(ranks, 1); pinning.ok())
      state->watch.emplace(std::move(*pinning), std::nullopt, secondsForCores);
  CoreWatch *watch = state->watch ? &*state->watch : nullptr;
  state->warm = std::make_unique<ProbeSeries>(name, ranks, std::move(programs), std::move(repeated),
                                              writeBehindCopy, watch);
  // Where ranks share cores, one uses memory while another one is in the collective.
  if (!sharesCores) {
    const ColdProbes &cold = state->coldProbes.emplace(name, ranks, quick);
    state->cold =
        std::make_unique<ProbeSeries>(name, ranks, cold.programs, cold.repeated, cold.write, watch);
  }
}

TransportMeasurement::~TransportMeasurement() = default;

Status TransportMeasurement::measureHalf() {
  RETURN_IF_ERROR(state->warm->measureHalf());
  return state->cold ? state->cold->measureHalf() : Status();
}

void TransportMeasurement::addEndOverBegin(std::vector<double> &ratios) const {
  state->warm->addEndOverBegin(ratios);
}

double TransportMeasurement::partElsewhere() const { return state->warm->partElsewhere(); }
void TransportMeasurement::awaitCores() {
  if (state->watch)
    state->watch->await();
}
std::optional<double> TransportMeasurement::coreToCoreSeconds() const {
  return state->warm->coreToCoreSeconds();
}

Result<cost::Transport> TransportMeasurement::result(std::vector<double> &errors) const {
  const auto &[name, ranks, sizes, smallest, watch, warm, coldProbes, cold] = *state;
  const Seconds measured = warm->seconds();
  // Each needs one figure more than those before.
  const std::pair<K, double cost::TransferPoint::*> figures[] = {
      {K::permute, &cost::TransferPoint::receiveSeconds},
      {K::allToAll, &cost::TransferPoint::copySeconds},
      {K::reduceScatter, &cost::TransferPoint::reduceSeconds},
      {K::allGather, &cost::TransferPoint::sharedSeconds}};
  cost::Transport transport;
  transport.name = name;
  transport.ranks = ranks;
  cost::Network network;
  network.cores = static_cast<int64_t>(allowedCores().size());
  fitStart(smallest, measured, network);
  transport.startSeconds = network.startSeconds;
  transport.messageSeconds = network.messageSeconds;
  transport.coreToCoreSeconds = warm->coreToCoreSeconds();
  for (int64_t bytes : sizes) {
    cost::TransferPoint &point = transport.transfers.emplace_back();
    point.bytes = bytes;
    for (const auto &[kind, figure] : figures) {
      const Probe one = probe(kind, ranks, bytes, name);
      // Of as many bytes as the probe has.
      network.transfers = {point};
      network.transfers[0].bytes = one.bytes();
      solve(one, measured.at(one.name()), network, network.transfers[0].*figure);
      point.*figure = network.transfers[0].*figure * static_cast<double>(bytes) /
                      static_cast<double>(one.bytes());
    }
  }
  for (const auto &[kind, figure] : figures)
    makeAscending(transport.transfers, figure);
  network.transfers = transport.transfers;
  for (K kind : kKinds) {
    const size_t first = transport.collectives.size();
    auto add = [&](const Probe &one) {
      transport.collectives.push_back({runtime::name(kind), one.bytes(), measured.at(one.name())});
    };
    add(probe(kind, ranks, 0, name));
    for (int64_t bytes : sizes)
      if (const Probe one = probe(kind, ranks, bytes, name);
          one.bytes() > transport.collectives.back().bytes)
        add(one);
    // Where copies and sums begin to go around the caches, more bytes may take less time.
    cost::CollectivePoint *begin = transport.collectives.data() + first,
                          *end = transport.collectives.data() + transport.collectives.size();
    cost::CollectivePoint *past =
        std::find_if(begin, end, [of = ranks](const cost::CollectivePoint &one) {
          return exceedsCaches(one.bytes * of);
        });
    makeAscending(begin, past);
    makeAscending(past, end);
  }
  for (int64_t bytes : sizes) {
    const Probe one = probe(K::allReduce, ranks, bytes, name);
    errors.push_back(meanSeconds(one, network) / measured.at(one.name()) - 1);
  }
  if (cold)
    transport.cold = coldProbes->points(cold->seconds());
  return transport;
}

} // namespace braid::runtime
