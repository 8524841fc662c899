//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MachineTables.h"

#include "braid/Base/CollectiveKind.h"
#include "braid/Base/Encoding.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

namespace braid::cost {

using runtime::inQuotes;

namespace {

/// Sizes in ascending order.
template <typename Point>
Status checkAscending(const std::string &path, const std::vector<Point> &points) {
  for (size_t i = 1; i < points.size(); ++i)
    if (points[i].bytes <= points[i - 1].bytes)
      return Status::error("field ", inQuotes(path), " expects ascending bytes, got ",
                           points[i].bytes, " behind ", points[i - 1].bytes);
  return {};
}

/// Every combination of the keys, once.
template <typename Point, typename KeyOf>
Status checkGrid(const std::string &path, const std::vector<Point> &points, KeyOf keyOf,
                 const char *names) {
  using Key = decltype(keyOf(points[0]));
  std::set<Key> keys;
  std::vector<std::set<int64_t>> sizes(std::tuple_size_v<Key>);
  for (const Point &point : points) {
    const Key key = keyOf(point);
    if (!keys.insert(key).second)
      return Status::error("field ", inQuotes(path), " has a combination of ", names, " twice");
    size_t i = 0;
    std::apply([&](auto... size) { (sizes[i++].insert(size), ...); }, key);
  }
  size_t combinations = 1;
  for (const std::set<int64_t> &ofOne : sizes)
    combinations *= ofOne.size(); // each is at most points.size(), and stops below
  if (!points.empty() && combinations != points.size())
    return Status::error("field ", inQuotes(path), " expects every combination of its ", names,
                         ", ", combinations, " in all, got ", points.size());
  return {};
}

/// Every encoding at every size, by its own name.
Status checkCodecs(const std::string &path, const std::vector<CodecPoint> &points) {
  std::map<std::string, int64_t> numbers;
  for (size_t i = 0; i < points.size(); ++i) {
    const std::string &name = points[i].encoding;
    const std::string at = path + "[" + std::to_string(i) + "].encoding";
    const Result<runtime::Encoding> encoding = runtime::Encoding::parse(name);
    if (!encoding.ok())
      return Status::error("field ", inQuotes(at), ": ", encoding.status().message());
    if (encoding->str() != name)
      return Status::error("field ", inQuotes(at), " expects ", inQuotes(encoding->str()), ", got ",
                           inQuotes(name));
    numbers.emplace(name, static_cast<int64_t>(numbers.size()));
  }
  return checkGrid(
      path, points,
      [&](const CodecPoint &p) { return std::tuple(numbers[p.encoding], p.elements); },
      "encodings and elements");
}

Status checkCompute(const Machine &machine) {
  for (size_t i = 0; i < machine.compute.size(); ++i) {
    const ComputeRates &rates = machine.compute[i];
    const std::string path = "compute[" + std::to_string(i) + "]";
    if (i > 0 && rates.busyCores <= machine.compute[i - 1].busyCores)
      return Status::error("field 'compute' expects ascending busy_cores, got ", rates.busyCores,
                           " behind ", machine.compute[i - 1].busyCores);
    for (const auto &[name, points] :
         {std::pair(".matmul", &rates.matmul), std::pair(".int8_matmul", &rates.int8Matmul)})
      RETURN_IF_ERROR(checkGrid(
          path + name, *points, [](const MatmulPoint &p) { return std::tuple(p.m, p.n, p.k); },
          "m, n and k"));
    RETURN_IF_ERROR(checkGrid(
        path + ".attention", rates.attention,
        [](const AttentionPoint &p) {
          return std::tuple(p.rows, p.keys, p.headDim, int64_t(p.causal));
        },
        "rows, keys, head_dim and causal"));
    RETURN_IF_ERROR(checkAscending(path + ".memory", rates.memory));
    RETURN_IF_ERROR(checkGrid(
        path + ".weight_reads", rates.weightReads,
        [](const WeightReadPoint &p) { return std::tuple(p.rows, p.bytes); }, "rows and bytes"));
    std::set<std::string> operations;
    for (const OperationRate &rate : rates.rowOperations)
      if (!operations.insert(rate.operation).second)
        return Status::error("field ", inQuotes(path + ".row_operations"), " has ",
                             inQuotes(rate.operation), " twice");
    RETURN_IF_ERROR(checkCodecs(path + ".codecs", rates.codecs));
  }
  return {};
}

/// Those of a table; an all_to_all_v is as an all_to_all whose counts are full.
constexpr runtime::CollectiveKind kCollectiveKinds[] = {
    runtime::CollectiveKind::allReduce, runtime::CollectiveKind::reduceScatter,
    runtime::CollectiveKind::allGather, runtime::CollectiveKind::allToAll,
    runtime::CollectiveKind::reduce,    runtime::CollectiveKind::broadcast,
    runtime::CollectiveKind::permute};

/// Of each kind, sizes in ascending order, and seconds that do not shrink but between two sizes:
/// where copies begin to go around the caches.
Status checkCollectives(const std::string &path, const std::vector<CollectivePoint> &points) {
  std::map<std::string, const CollectivePoint *> last;
  std::map<std::string, int64_t> shrunkAt; ///< by kind: the bytes
  for (size_t i = 0; i < points.size(); ++i) {
    const std::string at = path + ".collectives[" + std::to_string(i) + "]";
    const CollectivePoint &point = points[i];
    if (!std::any_of(std::begin(kCollectiveKinds), std::end(kCollectiveKinds),
                     [&](runtime::CollectiveKind kind) { return point.kind == name(kind); }))
      return Status::error("field ", inQuotes(at + ".kind"), " expects a collective, got ",
                           inQuotes(point.kind));
    const CollectivePoint *&before = last[point.kind];
    if (before && point.bytes <= before->bytes)
      return Status::error("field ", inQuotes(at), " expects ascending bytes of ",
                           inQuotes(point.kind), ", got ", point.bytes, " behind ", before->bytes);
    if (before && point.seconds < before->seconds)
      if (const auto [known, isFirst] = shrunkAt.emplace(point.kind, point.bytes); !isFirst)
        return Status::error("field ", inQuotes(at), " takes less time than fewer bytes do, as do ",
                             known->second, " bytes: expects at most one such size of ",
                             inQuotes(point.kind));
    before = &point;
  }
  return {};
}

/// Every combination in order, and seconds that do not shrink where bytes grow.
Status checkCold(const std::string &path, const std::vector<ColdPoint> &points) {
  RETURN_IF_ERROR(checkGrid(
      path + ".cold", points,
      [](const ColdPoint &p) { return std::tuple(p.betweenBytes, p.bytes); },
      "between_bytes and bytes"));
  for (size_t i = 1; i < points.size(); ++i) {
    const ColdPoint &before = points[i - 1], &point = points[i];
    const std::string at = path + ".cold[" + std::to_string(i) + "]";
    if (std::tuple(point.betweenBytes, point.bytes) < std::tuple(before.betweenBytes, before.bytes))
      return Status::error("field ", inQuotes(at),
                           " expects ascending between_bytes, and bytes for each of them");
    if (point.betweenBytes == before.betweenBytes && point.seconds < before.seconds)
      return Status::error("field ", inQuotes(at), " expects no less time than fewer bytes take");
  }
  return {};
}

Status checkTransports(const Machine &machine) {
  std::set<std::pair<std::string, int64_t>> seen;
  for (size_t i = 0; i < machine.transports.size(); ++i) {
    const Transport &t = machine.transports[i];
    const std::string transport = "transports[" + std::to_string(i) + "]";
    const std::string path = transport + ".transfers";
    if (!seen.emplace(t.name, t.ranks).second)
      return Status::error("field 'transports' has ", inQuotes(t.name), " of ", t.ranks,
                           " ranks twice");
    if (t.transfers.empty())
      return Status::error("field ", inQuotes(path), " expects at least one size, got none");
    RETURN_IF_ERROR(checkAscending(path, t.transfers));
    for (size_t p = 1; p < t.transfers.size(); ++p)
      for (double TransferPoint::*seconds :
           {&TransferPoint::copySeconds, &TransferPoint::receiveSeconds,
            &TransferPoint::reduceSeconds, &TransferPoint::sharedSeconds})
        if (t.transfers[p].*seconds < t.transfers[p - 1].*seconds)
          return Status::error("field ", inQuotes(path + "[" + std::to_string(p) + "]"),
                               " expects no less time than fewer bytes take");
    RETURN_IF_ERROR(checkCollectives(transport, t.collectives));
    RETURN_IF_ERROR(checkCold(transport, t.cold));
  }
  return {};
}

Status checkInterference(const Machine &machine) {
  std::set<std::tuple<std::string, int64_t, std::string>> seen;
  for (size_t i = 0; i < machine.interference.size(); ++i) {
    const Interference &one = machine.interference[i];
    if (one.kind != "matmul" && one.kind != "memory")
      return Status::error("field ", inQuotes("interference[" + std::to_string(i) + "].kind"),
                           " expects 'matmul' or 'memory', got ", inQuotes(one.kind));
    if (!seen.emplace(one.transport, one.ranks, one.kind).second)
      return Status::error("field 'interference' has ", inQuotes(one.kind), " beside ",
                           inQuotes(one.transport), " of ", one.ranks, " ranks twice");
  }
  return {};
}

/// Sizes in ascending order, each as long as a latency may be, and as the one before at least.
Status checkExchanges(const std::string &path, const std::vector<MessagePoint> &points) {
  RETURN_IF_ERROR(checkAscending(path, points));
  constexpr double kLongest = 10;
  for (size_t i = 0; i < points.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    if (points[i].seconds > kLongest)
      return Status::error("field ", inQuotes(at + ".seconds"), " expects 0 to ",
                           shortNumber(kLongest), " seconds, got ", shortNumber(points[i].seconds));
    if (i > 0 && points[i].seconds < points[i - 1].seconds)
      return Status::error("field ", inQuotes(at), " expects no less time than fewer bytes take");
  }
  return {};
}

Status checkLinks(const Machine &machine) {
  for (size_t i = 0; i < machine.links.size(); ++i) {
    const std::string link = "links[" + std::to_string(i) + "]";
    RETURN_IF_ERROR(checkAscending(link + ".messages", machine.links[i].messages));
    RETURN_IF_ERROR(checkExchanges(link + ".exchanges", machine.links[i].exchanges));
    RETURN_IF_ERROR(checkCold(link, machine.links[i].cold));
  }
  return {};
}

} // namespace

std::string shortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

Status checkTables(const Machine &machine) {
  RETURN_IF_ERROR(checkCompute(machine));
  RETURN_IF_ERROR(checkTransports(machine));
  RETURN_IF_ERROR(checkInterference(machine));
  return checkLinks(machine);
}

} // namespace braid::cost
