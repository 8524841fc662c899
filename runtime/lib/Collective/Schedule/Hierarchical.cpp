//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include <algorithm>

namespace braid::runtime {

Hierarchy::Hierarchy(const ScheduleRequest &request, const std::vector<int64_t> &owners) {
  std::map<int64_t, size_t> hostOf;                     // by number
  std::map<std::pair<int64_t, int64_t>, size_t> nodeOf; // by numbers of host and node
  for (int64_t rank = 0; rank < request.ranks; ++rank) {
    const RankPlace place = request.topology.placeOf(rank);
    const auto [host, newHost] = hostOf.try_emplace(place.host, hosts.size());
    if (newHost)
      hosts.emplace_back();
    auto &nodes = hosts[host->second].nodes;
    const auto [node, newNode] = nodeOf.try_emplace({place.host, place.numaNode}, nodes.size());
    if (newNode)
      nodes.emplace_back();
    nodes[node->second].push_back(rank);
    placeOf.emplace_back(host->second, node->second);
  }
  findMoves(owners);
}

void Hierarchy::findMoves(const std::vector<int64_t> &owners) {
  const auto n = static_cast<int64_t>(placeOf.size());
  for (int64_t owner : owners)
    for (int64_t rank = 0; rank < n; ++rank) {
      const int64_t way[] = {rank, nodeDelegate(rank, owner), hostDelegate(rank, owner), owner};
      for (size_t stage = 0; stage < kStages; ++stage)
        // The first stage is of all ranks, the others of delegates.
        if (way[stage] == rank && way[stage + 1] != rank)
          moves[stage].push_back({owner, rank, way[stage + 1]});
    }
  // A rank begins with its next one. All that send to a rank send for its owners in one order, so
  // that none waits for another's message behind its own.
  for (auto &ofStage : moves)
    std::sort(ofStage.begin(), ofStage.end(), [&](const Move &a, const Move &b) {
      auto key = [&](const Move &move) {
        return std::make_tuple((move.to - move.from + n) % n, move.from, move.owner);
      };
      return key(a) < key(b);
    });
}

int64_t Hierarchy::delegateOf(const std::vector<int64_t> &node, int64_t owner) const {
  return std::binary_search(node.begin(), node.end(), owner)
             ? owner
             : node[static_cast<size_t>(owner) % node.size()];
}

int64_t Hierarchy::nodeDelegate(int64_t rank, int64_t owner) const {
  const auto [host, node] = placeOf[static_cast<size_t>(rank)];
  return delegateOf(hosts[host].nodes[node], owner);
}

int64_t Hierarchy::hostDelegate(int64_t rank, int64_t owner) const {
  const auto [host, node] = placeOf[static_cast<size_t>(rank)];
  if (host == placeOf[static_cast<size_t>(owner)].first)
    return owner;
  const auto &nodes = hosts[host].nodes;
  return delegateOf(nodes[static_cast<size_t>(owner) % nodes.size()], owner);
}

void reduceByHosts(const OwnedBytes &bytes, Round round, const Hierarchy &hierarchy,
                   Partials &partials, ScheduleBuilder &builder) {
  std::map<int64_t, Piece> sums; // of this rank, by owner, where it is not its input
  auto sum = [&](int64_t owner) {
    auto found = sums.find(owner);
    return found == sums.end() ? bytes.input(round, owner) : found->second;
  };
  int64_t self = -1;
  for (int64_t rank = 0; rank < bytes.request.ranks; ++rank)
    if (builder.isMine(rank))
      self = rank;
  for (const auto &moves : hierarchy.moves) {
    std::map<int64_t, std::vector<StepSource>> arriving; // at this rank, by owner
    for (const auto &[owner, from, to] : moves) {
      const StepSource message =
          builder.send(from, to, builder.isMine(from) ? sum(owner) : bytes.input(round, owner));
      if (builder.isMine(to))
        arriving[owner].push_back(message);
    }
    for (auto &[owner, sources] : arriving) {
      sources.push_back(ScheduleBuilder::local(sum(owner)));
      const Piece into = partials.at(self, round, owner);
      builder.reduce(self, into, sources);
      sums[owner] = into;
    }
  }
  if (bytes.isOwner(self) && sums.count(self) == 0)
    builder.copy(self, bytes.input(round, self), bytes.result(round, self));
}

void gatherByHosts(const OwnedBytes &bytes, Round round, const Hierarchy &hierarchy,
                   ScheduleBuilder &builder) {
  // The moves of the reduction, backwards.
  for (size_t stage = Hierarchy::kStages; stage-- > 0;) {
    std::vector<ScheduleBuilder::Transfer> transfers;
    for (const auto &[owner, from, to] : hierarchy.moves[stage]) {
      const Piece gathered = bytes.gathered(round, owner);
      transfers.push_back({to, to == owner ? bytes.given(round, owner) : gathered, from, gathered});
    }
    builder.transferAll(transfers);
  }
}

} // namespace braid::runtime
