//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The requests that tests of schedules go through: kinds, algorithms, groups, sizes and topologies.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_SCHEDULETESTING_H
#define BRAID_TEST_SCHEDULETESTING_H

#include "Testing.h"
#include "braid/Collective/Schedule.h"

namespace braid::runtime::testing {

constexpr ScheduleAlgorithm kScheduleAlgorithms[] = {
    ScheduleAlgorithm::direct, ScheduleAlgorithm::oneShot,
    ScheduleAlgorithm::ring,   ScheduleAlgorithm::recursiveDoubling,
    ScheduleAlgorithm::tree,   ScheduleAlgorithm::hierarchical};
constexpr int64_t kChunk = 512; ///< 128 elements of 4 bytes

/// The ranks in one place; two on each host; uneven hosts with uneven NUMA nodes, ranks of one host
/// not side by side.
inline std::vector<Topology> scheduleTopologies(int64_t ranks) {
  Topology pairs, uneven;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    pairs.places.push_back({rank / 2, 0});
    uneven.places.push_back({7 - rank % 5 / 2, rank % 3 / 2});
  }
  return {{}, pairs, uneven};
}

inline std::string requestText(const ScheduleRequest &r) {
  std::string text = std::string(name(r.kind)) + " by " + name(r.algorithm) + " of " +
                     std::to_string(r.ranks) + " ranks, root " + std::to_string(r.root) +
                     ", chunks of " + std::to_string(r.chunkBytes);
  for (const ScheduleValue &value : r.values)
    text += ", " + std::to_string(value.partBytes) + " bytes of " +
            std::to_string(value.elementBytes) + (value.inPlace ? " in place" : "");
  if (!r.topology.places.empty())
    text += ", first ranks on hosts " + std::to_string(r.topology.places[0].host) + " and " +
            std::to_string(r.topology.places.back().host);
  return text;
}

/// A group's pairs for a permute, a send or a recv: each second rank to its next one, and for a
/// permute the last to itself.
inline std::vector<std::pair<int64_t, int64_t>> schedulePairs(CollectiveKind kind, int64_t ranks) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t rank = 0; rank + 1 < ranks; rank += 2)
    pairs.emplace_back(rank, rank + 1);
  if (kind == CollectiveKind::permute && ranks % 2 == 1)
    pairs.emplace_back(ranks - 1, ranks - 1);
  if (kind == CollectiveKind::permute && ranks > 3)
    pairs.emplace_back(3, 0);
  return pairs;
}

/// Calls visit(request) for every request of a kind and a number of ranks.
template <typename Visit>
void forEachRequest(CollectiveKind kind, int64_t ranks, const std::vector<int64_t> &elements,
                    Visit visit) {
  for (ScheduleAlgorithm algorithm : kScheduleAlgorithms)
    for (const Topology &topology : scheduleTopologies(ranks)) {
      if (!checkAlgorithm(algorithm, kind, ranks).ok() ||
          (algorithm != ScheduleAlgorithm::hierarchical && !topology.places.empty()))
        continue;
      for (int64_t count : elements)
        for (bool inPlace : {false, true}) {
          if (inPlace && kind != CollectiveKind::allReduce)
            continue;
          ScheduleRequest request;
          request.kind = kind;
          request.algorithm = algorithm;
          request.ranks = ranks;
          request.topology = topology;
          request.chunkBytes = kChunk;
          request.root = (ranks - 1) / 2;
          request.values = {{count * 4, 4, inPlace}};
          if (isPointToPoint(kind) || kind == CollectiveKind::permute)
            request.pairs = schedulePairs(kind, ranks);
          // An all_to_all_v has a count for each part.
          if (kind == CollectiveKind::allToAllV)
            request.values.push_back({4, 4, false});
          visit(request);
        }
    }
}

inline std::vector<Schedule> schedulesOf(const ScheduleRequest &request) {
  std::vector<Schedule> all;
  for (int64_t position = 0; position < request.ranks; ++position) {
    Result<Schedule> schedule = makeSchedule(request, position);
    if (!schedule.ok()) {
      ADD_FAILURE() << schedule.status().message();
      return {};
    }
    all.push_back(std::move(*schedule));
  }
  return all;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_SCHEDULETESTING_H
