//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which schedule a transport runs. Whatever executes, prices or explains a collective asks here.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/LastLevelCache.h"
#include "braid/Collective/Schedule.h"

#include <algorithm>
#include <set>
#include <utility>

namespace braid::runtime {

/// On one host: what a rank has just reduced is still in a cache when the others read it, and ranks
/// that share a core do not wait for each other often.
static constexpr int64_t kHostChunkBytes = int64_t(1) << 20;
/// The longest chunk, and the part of the last-level cache that a chunk of each rank may take, as
/// the inputs of the next chunks pass through it before the others have read the sums.
static constexpr int64_t kMostHostChunkBytes = int64_t(8) << 20, kCacheOfChunks = 16;
/// Between hosts: with several messages under way a link is never idle, and what is left when the
/// last message comes is short.
static constexpr int64_t kLinkChunkBytes = int64_t(64) << 10;
/// Of parts of so many chunks chunks are longer, as each message takes a processor some 10 us
/// beside what its bytes take. Of two hosts at 1 Gbit/s, 8 MiB in messages of 256 KiB take a fifth
/// less of it than in messages of 64 KiB, and as long. On four hosts, where sums of three messages
/// each are left in the end, 8 MiB in messages of 128 KiB take an eighth less of it and 0.6 %
/// longer; in messages of 256 KiB, 1.8 % longer.
static constexpr int64_t kLongLinkChunkBytes = int64_t(256) << 10, kLongPart = 16;
static constexpr int64_t kLongLinkChunkBytesOfMore = int64_t(128) << 10;
/// Between hosts with several peers each: the longest message of a part that would make fewer than
/// two messages of the length above. In a single one 256 KiB on four hosts took half as long again:
/// a sum was sent back when all of it had come, and messages to one receiver waited for each other.
static constexpr int64_t kShortLinkChunkBytes = int64_t(32) << 10;
/// Of a value, between two ranks: its messages have numbers of 16 bits (MessageTransport.cpp).
static constexpr int64_t kMostMessages = int64_t(1) << 14;
/// An all_reduce of two ranks of up to so many bytes takes one step instead of two. They move as
/// many bytes then as in two steps; more ranks would move more.
static constexpr int64_t kOneShotBytes = int64_t(128) << 10;

/// How many hosts the ranks are on, and whether any has several of them.
static std::pair<int64_t, bool> hostsOf(const ScheduleRequest &request) {
  std::set<int64_t> hosts;
  for (const RankPlace &place : request.topology.places)
    hosts.insert(place.host);
  const auto count = static_cast<int64_t>(hosts.size());
  return {std::max<int64_t>(count, 1), count > 0 && count < request.ranks};
}

/// Of parts that are longer than a chunk: the fewer chunks, the less ranks wait for each other.
/// With a cache of 480 MiB, 64 MiB of four ranks on two cores take 11 % less time in chunks of 4
/// MiB, and 16 to 48 MiB of two ranks on cores of their own 2 to 5 % less in chunks of 8 MiB.
static int64_t longHostChunk(int64_t ranks) {
  int64_t bytes = kHostChunkBytes;
  const int64_t most = lastLevelCacheBytes() / kCacheOfChunks / ranks;
  while (bytes < kMostHostChunkBytes && 2 * bytes <= most)
    bytes *= 2;
  return bytes;
}

void chooseSchedule(ScheduleRequest &request, const std::string &transport) {
  const auto [hosts, hasNeighbours] = hostsOf(request);
  // Without places, ranks of "ucx" may be anywhere.
  const bool hasLinks = transport == "ucx" && (hosts > 1 || request.topology.places.empty());
  request.chunkBytes = hasLinks ? kLinkChunkBytes : kHostChunkBytes;
  request.algorithm = ScheduleAlgorithm::direct;
  int64_t bytes = 0;
  bool inPlace = false;
  for (const ScheduleValue &value : request.values) {
    bytes += value.partBytes;
    inPlace |= value.inPlace;
    while (hasLinks && value.partBytes / request.chunkBytes >= kMostMessages)
      request.chunkBytes *= 2;
  }
  // An all_reduce sums a part on each rank.
  const int64_t part = request.kind == CollectiveKind::allReduce ? bytes / request.ranks : bytes;
  if (hasLinks && request.ranks > 2 && part < 2 * kLinkChunkBytes)
    request.chunkBytes = kShortLinkChunkBytes;
  const int64_t longest = request.ranks > 2 ? kLongLinkChunkBytesOfMore : kLongLinkChunkBytes;
  while (hasLinks && 2 * request.chunkBytes <= std::min(longest, part / kLongPart))
    request.chunkBytes *= 2;
  // Messages are at most as long as the memory that they are staged in.
  if (transport != "ucx" && part > kHostChunkBytes)
    request.chunkBytes = longHostChunk(request.ranks);
  // Of values in place, one step would overwrite what the other rank reads.
  if (request.kind == CollectiveKind::allReduce && !inPlace && request.ranks == 2 &&
      bytes <= kOneShotBytes)
    request.algorithm = ScheduleAlgorithm::oneShot;
  // What several ranks of a host need comes to it once. Sums would be in another order.
  if (hosts > 1 && hasNeighbours && !hasReduction(request.kind) &&
      checkAlgorithm(ScheduleAlgorithm::hierarchical, request.kind, request.ranks).ok())
    request.algorithm = ScheduleAlgorithm::hierarchical;
}

} // namespace braid::runtime
