//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The order of the steps of all ranks of a group: a graph of their beginnings and ends.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_SCHEDULE_STEPORDER_H
#define BRAID_COLLECTIVE_SCHEDULE_STEPORDER_H

#include "braid/Collective/Schedule.h"

#include <map>
#include <string>

namespace braid::runtime {

/// A step of the group.
struct StepAt {
  int64_t rank;
  uint32_t step;
  bool operator<(const StepAt &o) const { return rank != o.rank ? rank < o.rank : step < o.step; }
  bool operator==(const StepAt &o) const { return rank == o.rank && step == o.step; }
};
/// "step 3 (send) of position 1"
std::string text(const std::vector<Schedule> &schedules, StepAt at);

/// Who sends and who takes each message; by the number of the message.
struct PairMessages {
  std::vector<StepAt> sends, takes;
};

/// A send begins when its piece may be read, and ends when the message is taken. Other steps are
/// one moment.
class StepOrder {
public:
  /// An error of the rules "messages" and "progress". `inTurn`: each rank runs its steps in their
  /// order, and no message waits for room.
  Status build(const std::vector<Schedule> &schedules, int64_t messagesInFlight, bool inTurn);

  /// All moments in a legal order.
  struct Moment {
    StepAt at;
    bool isEnd; ///< of a send; true for other steps
  };
  std::vector<Moment> moments() const;
  /// Whether `a` ends before `b` begins, in all legal orders.
  bool isBefore(StepAt a, StepAt b) const;
  /// The step that sends what `taker` takes from the source.
  StepAt senderOf(StepAt taker, const StepSource &source) const;

private:
  Status findMessages(const std::vector<Schedule> &schedules);
  std::string cycle(const std::vector<Schedule> &schedules,
                    const std::vector<uint32_t> &open) const;
  uint32_t begin(StepAt at) const { return first[static_cast<size_t>(at.rank)] + 2 * at.step; }
  uint32_t end(StepAt at) const { return begin(at) + 1; }
  StepAt stepOf(uint32_t node) const;
  void addEdge(uint32_t from, uint32_t to) { before[to].push_back(from); }

  std::vector<uint32_t> first;               ///< by rank: the node of its first step's beginning
  std::vector<std::vector<uint32_t>> before; ///< by node: what precedes it
  std::vector<uint32_t> order, place;        ///< nodes in a legal order, and where a node is in it
  std::map<std::pair<int64_t, int64_t>, PairMessages> pairs; ///< by sender and receiver
  mutable std::vector<uint32_t> seen; ///< by node: the last search that visited it
  mutable uint32_t search = 0;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_SCHEDULE_STEPORDER_H
