//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/ScheduleTime.h"

#include "Interpolation.h"
#include "ScheduleSimulation.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace braid::cost {

using runtime::CollectiveKind;
using runtime::Schedule;
using runtime::ScheduleRequest;

static Result<Network> networkOfGpus(const Gpu &gpu, int64_t ranksOfHost, bool hasSeveralHosts) {
  Network network;
  network.startSeconds = gpu.launchSeconds;
  constexpr int64_t kBytes = int64_t(1) << 30;
  const double copy = 2 * kBytes / gpu.memoryBytesPerSecond;
  TransferPoint point{kBytes, copy, copy, copy, 0};
  if (ranksOfHost > 1) {
    if (!gpu.nvlink)
      return Status::error("the machine file has no NVLink between GPUs of a host");
    const NvLink &nvlink = *gpu.nvlink;
    network.messageSeconds = nvlink.latencySeconds;
    point.receiveSeconds = kBytes / (static_cast<double>(nvlink.links) * nvlink.linkBytesPerSecond *
                                     nvlink.efficiency);
    point.reduceSeconds = std::max(copy, point.receiveSeconds);
  }
  network.transfers = {point};
  if (hasSeveralHosts && gpu.network) {
    // A card serves some of the host's GPUs, so a host has several.
    network.between = gpu.network->link;
    const int64_t cards = (ranksOfHost + gpu.network->gpus - 1) / gpu.network->gpus;
    network.between.bytesPerSecond *= gpu.network->efficiency * static_cast<double>(cards);
  }
  return network;
}

static ColdTimes coldTimes(const std::vector<ColdPoint> &points) {
  ColdTimes times;
  for (const ColdPoint &point : points) {
    const auto between = static_cast<double>(point.betweenBytes);
    if (times.empty() || times.back().first != between)
      times.push_back({between, {}});
    times.back().second.emplace_back(static_cast<double>(point.bytes), point.seconds);
  }
  return times;
}

static void addMeasured(const Transport &transport, Network &network) {
  constexpr int kKinds = static_cast<int>(runtime::CollectiveKind::recv) + 1;
  for (const CollectivePoint &point : transport.collectives)
    for (int number = 0; number < kKinds; ++number) {
      const auto kind = static_cast<runtime::CollectiveKind>(number);
      if (point.kind != name(kind))
        continue;
      auto of = std::find_if(network.measured.begin(), network.measured.end(),
                             [&](const auto &one) { return one.kind == kind; });
      if (of == network.measured.end())
        of = network.measured.insert(of, {kind, {}});
      of->seconds.emplace_back(static_cast<double>(point.bytes), point.seconds);
    }
  network.cold = coldTimes(transport.cold);
}

Result<Network> networkOf(const Machine &machine, const std::string &transport, int64_t ranks,
                          const runtime::Topology &topology) {
  std::map<int64_t, int64_t> ranksOf; // by host
  int64_t ranksOfHost = 0;
  for (int64_t r = 0; r < ranks; ++r)
    ranksOfHost = std::max(ranksOfHost, ++ranksOf[topology.placeOf(r).host]);
  const bool hasSeveralHosts = ranksOf.size() > 1;
  if (machine.gpu)
    return networkOfGpus(*machine.gpu, ranksOfHost, hasSeveralHosts);
  const Transport *found = machine.findTransport(transport, ranksOfHost);
  // What a rank does alone it does like one of few.
  for (const Transport &other : machine.transports)
    if (ranksOfHost == 1 && other.name == transport && (!found || other.ranks < found->ranks))
      found = &other;
  if (!found && ranksOfHost > 1)
    return Status::error("the machine file has no transport ", runtime::inQuotes(transport), " of ",
                         ranksOfHost, " ranks");
  Network network;
  if (found) {
    network.startSeconds = found->startSeconds;
    network.messageSeconds = found->messageSeconds;
    network.transfers = found->transfers;
    network.transport = transport;
    if (found->ranks == ranksOfHost)
      addMeasured(*found, network);
  }
  network.cores = machine.processor ? machine.processor->cores : 0;
  if (hasSeveralHosts && !machine.links.empty())
    network.between = machine.links.front();
  network.coldBetween = coldTimes(network.between.cold);
  return network;
}

Result<CollectiveTime> timeOfSteps(const ScheduleRequest &request, const Network &network) {
  std::vector<Schedule> schedules;
  for (int64_t position = 0; position < request.ranks; ++position) {
    ASSIGN_OR_RETURN(Schedule schedule, makeSchedule(request, position));
    schedules.push_back(std::move(schedule));
  }
  for (int64_t r = 1; r < request.ranks; ++r)
    if (!request.topology.sameHost(0, r) && network.between.bytesPerSecond <= 0)
      return Status::error("the machine file has no link between hosts");
  // Where ranks share cores, each of them may come last; of many, one stands for all.
  const auto n = static_cast<size_t>(request.ranks);
  const bool sharesCores = network.cores > 0 && request.ranks > network.cores;
  const size_t first = sharesCores && n <= 8 ? 0 : n - 1;
  CollectiveTime mean;
  mean.rankSeconds.resize(n);
  const double part = 1 / static_cast<double>(n - first);
  for (size_t last = first; last < n; ++last) {
    ASSIGN_OR_RETURN(const CollectiveTime time,
                     ScheduleSimulation(request, network, schedules, last).run());
    mean.seconds += part * time.seconds;
    mean.hostBytesSent = time.hostBytesSent;
    for (size_t r = 0; r < n; ++r)
      mean.rankSeconds[r] += part * time.rankSeconds[r];
  }
  return mean;
}

/// Of a rank's inputs and outputs together.
static int64_t bytesOf(const ScheduleRequest &request) {
  int64_t bytes = 0;
  for (const runtime::ScheduleValue &value : request.values)
    bytes += value.partBytes * (request.inputParts() + request.outputParts());
  return bytes;
}

/// The collective of one value whose time is in a table.
static ScheduleRequest measuredAs(const ScheduleRequest &request, const Network &network) {
  constexpr int64_t kElement = 4;
  ScheduleRequest measured;
  measured.kind =
      request.kind == CollectiveKind::allToAllV ? CollectiveKind::allToAll : request.kind;
  measured.ranks = request.ranks;
  for (int64_t r = 0; r < request.ranks && request.kind == CollectiveKind::permute; ++r)
    measured.pairs.emplace_back(r, (r + 1) % request.ranks);
  const int64_t part = bytesOf(request) / (measured.inputParts() + measured.outputParts());
  measured.values = {{std::max(kElement, part / kElement * kElement), kElement, false}};
  chooseSchedule(measured, network.transport);
  return measured;
}

/// Below the first point as long as it, as such collectives wait for messages; beyond the last at
/// its rate.
static double measuredSeconds(const std::vector<std::pair<double, double>> &points, double bytes) {
  const auto &[most, seconds] = points.back();
  return bytes > most ? seconds * bytes / most
                      : secondsAt(points, std::max(bytes, points.front().first));
}

Result<CollectiveTime> timeOf(const ScheduleRequest &request, const Network &network) {
  ASSIGN_OR_RETURN(CollectiveTime time, timeOfSteps(request, network));
  const CollectiveKind kind =
      request.kind == CollectiveKind::allToAllV ? CollectiveKind::allToAll : request.kind;
  auto table = std::find_if(network.measured.begin(), network.measured.end(),
                            [&](const auto &one) { return one.kind == kind; });
  if (table == network.measured.end() || request.ranks < 2 || bytesOf(request) == 0)
    return time;
  for (int64_t r = 1; r < request.ranks; ++r)
    if (!request.topology.sameHost(0, r))
      return time;
  const ScheduleRequest like = measuredAs(request, network);
  ASSIGN_OR_RETURN(const CollectiveTime steps, timeOfSteps(like, network));
  const double mean = std::accumulate(steps.rankSeconds.begin(), steps.rankSeconds.end(), 0.0) /
                      static_cast<double>(request.ranks);
  const double measured = measuredSeconds(table->seconds, static_cast<double>(bytesOf(like)));
  if (mean <= 0 || measured <= 0)
    return time;
  time.seconds *= measured / mean;
  for (double &seconds : time.rankSeconds)
    seconds *= measured / mean;
  return time;
}

ScheduleRequest readInPlace(ScheduleRequest request) {
  for (runtime::ScheduleValue &value : request.values)
    value.partBytes = std::min(value.partBytes, value.elementBytes);
  return request;
}

/// Of `bytes` written behind `between` others.
static double secondsAt(const ColdTimes &times, double bytes, double between) {
  std::vector<std::pair<double, double>> points;
  for (const auto &[others, seconds] : times)
    points.emplace_back(
        others, secondsAt(seconds, std::clamp(bytes, seconds.front().first, seconds.back().first)));
  return points.empty() ? 0 : secondsAt(points, std::min(between, points.back().first));
}

double coldSeconds(const ScheduleRequest &request, const Network &network, double betweenBytes) {
  double bytes = 0; // that a rank writes; values in place were just written
  for (const runtime::ScheduleValue &value : request.values)
    bytes += value.inPlace ? 0 : static_cast<double>(value.partBytes * request.outputParts());
  return secondsAt(network.cold, bytes, betweenBytes) +
         secondsAt(network.coldBetween, bytes, betweenBytes);
}

} // namespace braid::cost
