//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The steps of the algorithms. Most collectives are built of two halves that take chunk by chunk: a
// *reduction*, in which each owner gets the sum of its bytes, and a *gathering*, in which all ranks
// get the bytes of each owner. An all_reduce is both, with a share of the value for each owner; in
// a reduce and in a broadcast the root alone owns bytes.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_SCHEDULE_ALGORITHMS_H
#define BRAID_COLLECTIVE_SCHEDULE_ALGORITHMS_H

#include "ScheduleBuilder.h"

namespace braid::runtime {

/// A chunk of what each owner has; some owners may have no bytes in it.
struct Round {
  uint32_t value;
  int64_t chunk;
  size_t index; ///< among the rounds of all values
};

/// The bytes of a collective that is made of reductions and gatherings.
class OwnedBytes {
public:
  explicit OwnedBytes(const ScheduleRequest &request);

  std::vector<int64_t> owners; ///< ascending
  std::vector<Round> rounds;

  bool isOwner(int64_t rank) const { return owners.size() > 1 || owners[0] == rank; }
  /// What each rank has for the owner, the sum at the owner, and, where partial sums may be kept in
  /// it, its place in the outputs of others.
  Piece input(Round round, int64_t owner) const;
  Piece result(Round round, int64_t owner) const;
  bool partialsInOutput() const { return request.kind == CollectiveKind::allReduce; }
  /// What the owner gives to all, and where it goes.
  Piece given(Round round, int64_t owner) const;
  Piece gathered(Round round, int64_t owner) const;

  const ScheduleRequest &request;

private:
  /// The bytes of a part that an owner has: a share of it, or all of it.
  std::pair<int64_t, int64_t> rangeOf(uint32_t value, int64_t owner) const;
  Piece chunkOf(Space space, Round round, int64_t owner, bool inOwnersPart) const;
};

/// The length of chunks of a value: whole lines of 64 elements where a chunk has room for one.
int64_t chunkLength(const ScheduleRequest &request, const ScheduleValue &value);

/// Where the partial sum of a rank for an owner is, until the owner has the whole sum. Scratch
/// memory takes turns by round, so that one round is sent while the next one is reduced.
class Partials {
public:
  Partials(const OwnedBytes &bytes, ScheduleBuilder &builder) : bytes(bytes), builder(builder) {}
  Piece at(int64_t rank, Round round, int64_t owner);

private:
  const OwnedBytes &bytes;
  ScheduleBuilder &builder;
  std::map<std::pair<size_t, int64_t>, Piece> slots; ///< of this rank, by turn and owner
};

// Each adds the steps of one round.
void reduceDirect(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder);
void gatherDirect(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder);
void reduceInRing(const OwnedBytes &bytes, Round round, Partials &partials,
                  ScheduleBuilder &builder);
void gatherInRing(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder);
void reduceInTree(const OwnedBytes &bytes, Round round, Partials &partials,
                  ScheduleBuilder &builder);
void gatherInTree(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder);
/// Of a number of ranks that is a power of two.
void gatherByDoubling(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder);

/// How the bytes of ranks go to an owner: to a delegate of the NUMA node, from it to a delegate of
/// the host, and from that to the owner. The owner stands for its own node and host; the delegates
/// for different owners are different ranks.
class Hierarchy {
public:
  Hierarchy(const ScheduleRequest &request, const std::vector<int64_t> &owners);
  struct Move {
    int64_t owner, from, to;
  };
  static constexpr size_t kStages = 3;
  std::vector<Move> moves[kStages];

private:
  struct Host {
    std::vector<std::vector<int64_t>> nodes;
  };
  int64_t nodeDelegate(int64_t rank, int64_t owner) const;
  int64_t hostDelegate(int64_t rank, int64_t owner) const;
  int64_t delegateOf(const std::vector<int64_t> &node, int64_t owner) const;
  void findMoves(const std::vector<int64_t> &owners);

  std::vector<Host> hosts;
  std::vector<std::pair<size_t, size_t>> placeOf; ///< by rank: host and node
};
void reduceByHosts(const OwnedBytes &bytes, Round round, const Hierarchy &hierarchy,
                   Partials &partials, ScheduleBuilder &builder);
void gatherByHosts(const OwnedBytes &bytes, Round round, const Hierarchy &hierarchy,
                   ScheduleBuilder &builder);

// Whole all_reduces, of whole values.
void allReduceAtOnce(const ScheduleRequest &request, ScheduleBuilder &builder);
void allReduceByDoubling(const ScheduleRequest &request, ScheduleBuilder &builder);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_SCHEDULE_ALGORITHMS_H
