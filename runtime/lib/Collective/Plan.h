//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The schedule of a collective as one rank runs it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_PLAN_H
#define BRAID_COLLECTIVE_PLAN_H

#include "braid/Collective/Schedule.h"

#include <functional>
#include <memory>
#include <mutex>

namespace braid::runtime {

/// How messages go from one rank to another.
enum class PairKind : uint8_t {
  link,   ///< over a link
  direct, ///< they are read where they lie
  staged  ///< they are copied to memory of the sender that both see, and read there (Staging.h)
};

/// Does not change during runs. Collectives that are alike have one plan.
struct CollectivePlan {
  Schedule schedule;
  ScheduleAlgorithm algorithm = ScheduleAlgorithm::direct;
  std::vector<PairKind> pairs;        ///< by position
  bool hasLinks = false;              ///< some are over links
  bool isInTurn = true;               ///< all are direct, so steps wait only for their turn
  std::vector<uint32_t> sends, takes; ///< by position: messages to it and from it
  /// By source of the schedule: the sender's piece of a message that is read where it lies.
  std::vector<Piece> senderPieces;
  /// A message that is not read where it lies.
  struct Message {
    int64_t peer;        ///< a position
    uint32_t number = 0; ///< among those between the two ranks
    int64_t bytes = 0;   ///< that both ranks expect, of it or of what it is a part of
  };
  std::vector<Message> messages;
  /// By step: its first message; a send has one, other steps those of their sources, in order.
  std::vector<uint32_t> firstMessage;
  /// By step: of sends in staged pairs that send the same bytes, the first one.
  std::vector<uint32_t> sameBytes;
  size_t mostSources = 0;     ///< of a step
  int64_t receivedBytes = 0;  ///< of messages over links
  bool exceedsCaches = false; ///< the memory that all ranks use together
};

/// The piece that a peer sends as a message which is read where it lies.
using SenderPiece = std::function<Result<Piece>(const StepSource &message)>;
/// Whether copies and sums go around the caches where ranks touch so many bytes together: what was
/// used before would not stay in them.
bool exceedsCaches(int64_t touched);
/// The plan of a schedule whose ranks touch so many bytes together.
Result<std::shared_ptr<CollectivePlan>> makePlan(Schedule schedule,
                                                 const std::vector<PairKind> &pairs,
                                                 int64_t touched, const SenderPiece &senderPiece);

/// Makes plans, and finds those that it has made last. For all threads.
class PlanTable {
public:
  /// `pairs`: by position. Errors: of makeSchedule.
  Result<std::shared_ptr<const CollectivePlan>>
  find(const ScheduleRequest &request, const std::vector<PairKind> &pairs, int64_t position);

private:
  struct Group {
    ScheduleRequest request;
    std::vector<std::shared_ptr<const Schedule>> schedules; ///< by position, where one was made
    struct Made {
      int64_t position;
      std::vector<PairKind> pairs;
      std::shared_ptr<const CollectivePlan> plan;
    };
    std::vector<Made> plans;
  };
  static Result<std::shared_ptr<const Schedule>> scheduleOf(Group &group, int64_t position);
  static Result<std::shared_ptr<const CollectivePlan>>
  make(Group &group, const std::vector<PairKind> &pairs, int64_t position);

  std::mutex mutex;
  std::vector<std::unique_ptr<Group>> groups;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_PLAN_H
