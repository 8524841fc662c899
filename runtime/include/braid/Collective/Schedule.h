//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The schedule of a collective: what one rank of a process group sends, receives, reduces and
// copies. One function makes it; whatever executes, prints, checks or prices a collective reads it.
//
// A schedule speaks of the bytes of values in their packed order: whoever executes it maps them to
// strided memory. Ranks are named by their positions in the group. Bytes move in *messages*. The
// messages from one rank to another are numbered from 0, are sent in this order, and are at most a
// chunk long. There are no steps of their own for ranks that see each other's memory: for them a
// send says that the piece may be read, a message is read where it lies, and "the peer has it" is a
// flag. Between hosts a send carries the bytes, and a message to be reduced lands in a buffer of
// the executor. So one schedule serves both, and a group that has both kinds of pairs.
//
// An executor may run each step as soon as the steps that it is after are done and its messages are
// there, and the messages before them have been taken. It has room for at least one message of each
// ordered pair of ranks; then no schedule stops for want of it. Where messages need no room, as
// they are read in place, it may also take the steps in turn (checkSchedules).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_SCHEDULE_H
#define BRAID_COLLECTIVE_SCHEDULE_H

#include "braid/Base/CollectiveKind.h"
#include "braid/Base/Status.h"
#include "braid/Collective/Topology.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace braid::runtime {

/// One value of a collective, the same on all ranks. Inputs and outputs are one part each, except
/// that there is a part for each rank in the input of a reduce_scatter, in the output of an
/// all_gather, and in both of an all_to_all and an all_to_all_v.
struct ScheduleValue {
  int64_t partBytes = 0;
  int64_t elementBytes = 1; ///< no piece splits an element
  bool inPlace = false;     ///< of an all_reduce: the output is the input's memory

  bool operator==(const ScheduleValue &o) const {
    return partBytes == o.partBytes && elementBytes == o.elementBytes && inPlace == o.inPlace;
  }
};

/// Sums in rank order are those of the reference interpreter and of all transports, bit by bit.
/// n: ranks, B: bytes of a part. Steps are the messages that one rank must await one after the
/// other when every part is one chunk; bytes are those that a rank sends.
///
/// direct: a rank sends each other rank what that rank needs, beginning with its next one, and sums
/// in rank order. An all_reduce is a reduce_scatter and an all_gather of shares of 1/n: 2 steps,
/// 2 (n-1)/n B, the least possible. Other kinds: 1 step. (Thakur, Rabenseifner, Gropp:
/// "Optimization of Collective Communication Operations in MPICH", 2005, as pairwise exchange.)
///
/// one_shot: of an all_reduce only. All ranks send all of their values to all, and sum them in rank
/// order: 1 step, (n-1) B.
///
/// ring: partial sums go once around, then the results. all_reduce: 2 (n-1) steps, 2 (n-1)/n B, all
/// to one neighbour. reduce_scatter and all_gather: n-1 steps, (n-1) B. broadcast and reduce: a
/// chain, n-1 steps, B. The sums of a share begin behind its owner. (Patarasuk, Yuan: "Bandwidth
/// optimal all-reduce algorithms for clusters of workstations", 2009.)
///
/// recursive_doubling: all_reduce: log2 n steps, B log2 n; ranks beyond a power of two give theirs
/// to a neighbour first, and have the result from it. all_gather, of 2^k ranks: log2 n steps,
/// (n-1) B. Sums are trees of neighbours. (Thakur et al., as above.)
///
/// tree: binomial trees: broadcast and reduce: log2 n steps, up to B log2 n at the root.
/// all_reduce: a reduce to rank 0 and a broadcast. Sums are by subtree. (Thakur et al., as above.)
///
/// hierarchical: what goes to another host goes once to a delegate there, and from it to the NUMA
/// nodes, to a delegate each, and to their ranks; sums the other way, reduced at each delegate.
/// The delegates of different owners are different ranks. Between hosts an all_reduce sends
/// 2 (H-1)/H B a host of H. Sums are by NUMA node, then by host. (Karonis et al.: "Exploiting
/// hierarchy in parallel computer networks to optimize collective operation performance", 2000.)
///
/// A permute, a send and a recv are direct. An all_to_all moves other bytes to each rank, so it is
/// direct too.
enum class ScheduleAlgorithm : uint8_t {
  direct,
  oneShot,
  ring,
  recursiveDoubling,
  tree,
  hierarchical
};
const char *name(ScheduleAlgorithm algorithm); // "direct", "one_shot", ...
/// By its name; an error lists the names.
Result<ScheduleAlgorithm> scheduleAlgorithm(const std::string &name);

/// An error for an algorithm that does not apply.
Status checkAlgorithm(ScheduleAlgorithm algorithm, CollectiveKind kind, int64_t ranks);

/// Whether sums have the bits of rank order on every topology. Kinds without sums keep all bits.
bool keepsRankOrder(ScheduleAlgorithm algorithm, CollectiveKind kind, int64_t ranks);

/// A collective of a group, as its schedules depend on it.
struct ScheduleRequest {
  CollectiveKind kind = CollectiveKind::allReduce;
  ScheduleAlgorithm algorithm = ScheduleAlgorithm::direct;
  std::vector<ScheduleValue> values; ///< of an all_to_all_v: the last one is the counts
  int64_t ranks = 1;
  int64_t root = 0; ///< of reduce and broadcast: a position
  /// Of permute, send, recv: source and target positions, each position at most once as either.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  Topology topology;
  int64_t chunkBytes = int64_t(256) << 10; ///< no message is longer

  bool operator==(const ScheduleRequest &o) const;
  int64_t inputParts() const;
  int64_t outputParts() const;
};
/// An error that names the field of the request that is wrong.
Status checkRequest(const ScheduleRequest &request);

enum class Space : uint8_t { input, output, scratch };

/// Bytes of a value, or of the memory that the executor lends the schedule.
struct Piece {
  Space space = Space::input;
  uint32_t value = 0; ///< whose bytes these are, also in scratch memory
  int64_t offset = 0, bytes = 0;

  int64_t end() const { return offset + bytes; }
  bool operator==(const Piece &o) const {
    return space == o.space && value == o.value && offset == o.offset && bytes == o.bytes;
  }
};

/// What a step reads: a local piece, or a message.
struct StepSource {
  int64_t peer = -1;    ///< the sender of a message; -1: a local piece
  uint32_t message = 0; ///< its number among those from `peer`
  Piece piece;          ///< local; of a message only the bytes
  bool isMessage() const { return peer >= 0; }
};

enum class StepKind : uint8_t {
  send,    ///< `piece` goes to `peer`; done when the peer has taken it
  receive, ///< `piece` is written with the source, a message
  reduce,  ///< `piece` is written with the sum, maximum or minimum of the sources, in their order;
           ///< the first of them may be the piece itself, or any other
  copy,    ///< `piece` is written with the source, a local piece
  clear    ///< `piece` is written with zeros
};
const char *name(StepKind kind);

struct ScheduleStep {
  StepKind kind = StepKind::copy;
  /// Of an all_to_all_v: only the rows that the sender's counts name are moved, and a receiver
  /// writes zeros for the others. A message is then as long as its rows, at most the piece.
  bool counted = false;
  Piece piece;                              ///< sent, or else written
  int64_t peer = -1;                        ///< of a send: the target
  uint32_t message = 0;                     ///< of a send: its number among those to `peer`
  uint32_t firstSource = 0, numSources = 0; ///< in Schedule::sources
  uint32_t firstDependency = 0, numDependencies = 0; ///< in Schedule::dependencies
};

/// A part of a vector, for loops.
template <typename T> struct Items {
  const T *first;
  size_t count;
  const T *begin() const { return first; }
  const T *end() const { return first + count; }
  size_t size() const { return count; }
  const T &operator[](size_t i) const { return first[i]; }
};

struct Schedule {
  int64_t position = 0;
  std::vector<ScheduleStep> steps; ///< a step comes after all that it is after
  std::vector<StepSource> sources;
  std::vector<uint32_t> dependencies; ///< indices of steps
  int64_t scratchBytes = 0;

  Items<StepSource> sourcesOf(const ScheduleStep &step) const {
    return {sources.data() + step.firstSource, step.numSources};
  }
  Items<uint32_t> dependenciesOf(const ScheduleStep &step) const {
    return {dependencies.data() + step.firstDependency, step.numDependencies};
  }
  int64_t bytesSent() const;
};

/// Sets the algorithm and the chunk with which a transport ("threads", "shm" or "ucx") runs the
/// collective. Sums keep rank order.
void chooseSchedule(ScheduleRequest &request, const std::string &transport);

/// What the rank at `position` does. Errors name what the request lacks, and an algorithm that does
/// not apply.
Result<Schedule> makeSchedule(const ScheduleRequest &request, int64_t position);

/// Checks the schedules of a whole group, given by position:
///   pieces    a piece lies within its value or the scratch memory, is of whole elements and, in a
///             message, at most a chunk long; a step comes after those that it is after
///   messages  each message is sent once and taken once, by the rank that it is for, with its size
///   progress  all steps end: where a message waits until all but `messagesInFlight` of those
///   before
///             it are taken, and where no message waits but each rank takes its steps in turn
///   written   no step reads bytes that nothing has written
///   races     steps on the same bytes, of which one writes, are ordered
///   result    every byte of an output holds what the collective says: from each rank that takes
///             part once, and in rank order where keepsRankOrder() says so
///   once      no byte of an output that holds its result is written again
/// The message begins with the rule's name.
Status checkSchedules(const ScheduleRequest &request, const std::vector<Schedule> &schedules,
                      int64_t messagesInFlight = 1);

/// What a step does, without an end of line: "send     input 0 [0, 64) to 1 as message 0".
std::string stepText(const Schedule &schedule, const ScheduleStep &step,
                     const std::vector<int64_t> &ranks = {});
/// A line for each step; `ranks` (by position) name the peers.
std::string scheduleText(const Schedule &schedule, const std::vector<int64_t> &ranks = {});

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_SCHEDULE_H
