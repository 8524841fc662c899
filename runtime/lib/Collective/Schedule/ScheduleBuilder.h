//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the schedule of one rank while an algorithm goes through the steps of all ranks of the
// group. So an algorithm is written once, for the group, and the ranks agree on their messages. The
// builder finds the dependencies of a step from the bytes that it and earlier steps use.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_SCHEDULE_SCHEDULEBUILDER_H
#define BRAID_COLLECTIVE_SCHEDULE_SCHEDULEBUILDER_H

#include "braid/Collective/Schedule.h"

#include <map>

namespace braid::runtime {

/// Which steps used which bytes of one memory last.
class ByteUses {
public:
  /// Adds the steps that a reader, or a writer, of [begin, end) comes after, and notes it.
  void read(int64_t begin, int64_t end, uint32_t step, std::vector<uint32_t> &after);
  void write(int64_t begin, int64_t end, uint32_t step, std::vector<uint32_t> &after);

private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Extent {
    int64_t end;
    uint32_t writer = kNone;
    std::vector<uint32_t> readers; ///< since the last write
  };
  /// Makes extents that cover [begin, end) and begin and end there.
  void cover(int64_t begin, int64_t end);
  void splitAt(int64_t byte);
  std::map<int64_t, Extent> extents; ///< by their first bytes; they do not overlap
};

class ScheduleBuilder {
public:
  ScheduleBuilder(const ScheduleRequest &request, int64_t position)
      : request(request), position(position), used(static_cast<size_t>(request.ranks)),
        sentTo(static_cast<size_t>(request.ranks)), receivedFrom(sentTo) {
    schedule.position = position;
  }

  /// Whether a step of this rank is recorded.
  bool isMine(int64_t rank) const { return rank == position; }
  /// Memory of a rank for `bytes` of a value.
  Piece scratch(int64_t rank, uint32_t value, int64_t bytes);

  // The steps of any rank; those without bytes do nothing.
  /// Sends a piece; the source is for the receiver's step that takes the message.
  StepSource send(int64_t from, int64_t to, const Piece &piece, bool counted = false);
  /// The source for a message that another collective sends.
  StepSource expect(int64_t from, int64_t to, const Piece &piece);
  void receive(int64_t rank, const StepSource &message, const Piece &into, bool counted = false);
  void transfer(int64_t from, const Piece &piece, int64_t to, const Piece &into) {
    receive(to, send(from, to, piece), into);
  }
  struct Transfer {
    int64_t from;
    Piece piece;
    int64_t to;
    Piece into;
    bool counted = false;
  };
  /// Several that do not depend on each other: a rank sends all of its messages before it waits for
  /// those of others.
  void transferAll(const std::vector<Transfer> &transfers);
  /// Reduces in the order of ranks: a local source counts as this rank's, a message as its
  /// sender's.
  void reduce(int64_t rank, const Piece &into, std::vector<StepSource> sources);
  void copy(int64_t rank, const Piece &from, const Piece &into, bool counted = false);
  void clear(int64_t rank, const Piece &piece);

  static StepSource local(const Piece &piece) { return {-1, 0, piece}; }
  Schedule finish() { return std::move(schedule); }

private:
  /// Appends a step that reads its sources, and `counts` if its rows are counted.
  void append(ScheduleStep step, const std::vector<StepSource> &sources);
  ByteUses &usesOf(const Piece &piece);
  /// The counts that say how many rows a counted piece has: those of the sender's input, or those
  /// that the receiver has got.
  Piece countsOf(const Piece &piece) const;

  const ScheduleRequest &request;
  const int64_t position;
  Schedule schedule;
  std::vector<int64_t> used; ///< scratch bytes by rank
  std::vector<uint32_t> sentTo, receivedFrom;
  std::map<std::pair<Space, uint32_t>, ByteUses> uses; ///< by memory
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_SCHEDULE_SCHEDULEBUILDER_H
