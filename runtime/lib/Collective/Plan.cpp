//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Plan.h"
#include "braid/Base/LastLevelCache.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime {

/// A virtual machine tells of the cache of a whole socket, which it has not for itself. Where the
/// system tells of none, it is too large to be exceeded.
static int64_t cacheBytes() {
  constexpr int64_t kMost = int64_t(32) << 20;
  const int64_t bytes = lastLevelCacheBytes();
  return bytes > 0 ? std::min(bytes, kMost) : INT64_MAX;
}

/// From half of the cache on, copies around it would halve the time of collectives that follow each
/// other; but programs that read the results, from memory then, would take up to 1.7 times as long.
/// Sums that other ranks read next go around it, too. All_reduces of two ranks that use 48 to
/// 128 MiB take a third less time for that where neighbours of a virtual machine have a part in the
/// cache, and 5 % more where none has.
bool exceedsCaches(int64_t touched) { return touched > cacheBytes(); }

Result<std::shared_ptr<const Schedule>> PlanTable::scheduleOf(Group &group, int64_t position) {
  std::shared_ptr<const Schedule> &schedule = group.schedules[static_cast<size_t>(position)];
  if (!schedule) {
    ASSIGN_OR_RETURN(Schedule made, makeSchedule(group.request, position));
    schedule = std::make_shared<const Schedule>(std::move(made));
  }
  return schedule;
}

/// Sets which sends in staged pairs have the bytes of an earlier one.
static void findSameBytes(CollectivePlan &plan) {
  const std::vector<ScheduleStep> &steps = plan.schedule.steps;
  // Those of one chunk stand together.
  const size_t most = 2 * plan.pairs.size();
  auto isStaged = [&](const ScheduleStep &step) {
    return step.kind == StepKind::send &&
           plan.pairs[static_cast<size_t>(step.peer)] == PairKind::staged;
  };
  // An input and an output may be the same memory.
  auto overlap = [](const Piece &a, const Piece &b) {
    const bool isScratch = a.space == Space::scratch;
    return isScratch == (b.space == Space::scratch) && (isScratch || a.value == b.value) &&
           a.offset < b.end() && b.offset < a.end();
  };
  for (uint32_t i = 0; i < steps.size(); ++i) {
    plan.sameBytes.push_back(i);
    for (uint32_t j = i; isStaged(steps[i]) && j > 0 && i - j < most;) {
      const ScheduleStep &before = steps[--j];
      if (isStaged(before) && before.piece == steps[i].piece &&
          before.counted == steps[i].counted) {
        plan.sameBytes[i] = plan.sameBytes[j];
        break;
      }
      if (before.kind != StepKind::send && overlap(before.piece, steps[i].piece))
        break;
    }
  }
}

Result<std::shared_ptr<CollectivePlan>> makePlan(Schedule schedule,
                                                 const std::vector<PairKind> &pairs,
                                                 int64_t touched, const SenderPiece &senderPiece) {
  auto plan = std::make_shared<CollectivePlan>();
  plan->schedule = std::move(schedule);
  plan->pairs = pairs;
  plan->sends.assign(pairs.size(), 0);
  plan->takes.assign(pairs.size(), 0);
  plan->senderPieces.resize(plan->schedule.sources.size());
  auto addMessage = [&](int64_t peer, uint32_t number, int64_t bytes) {
    const PairKind kind = pairs[static_cast<size_t>(peer)];
    plan->hasLinks |= kind == PairKind::link;
    plan->isInTurn &= kind == PairKind::direct;
    if (kind != PairKind::direct)
      plan->messages.push_back({peer, number, bytes});
    return kind != PairKind::direct;
  };
  for (const ScheduleStep &step : plan->schedule.steps) {
    plan->firstMessage.push_back(static_cast<uint32_t>(plan->messages.size()));
    if (step.kind == StepKind::send) {
      ++plan->sends[static_cast<size_t>(step.peer)];
      addMessage(step.peer, step.message, step.piece.bytes);
    }
    plan->mostSources = std::max<size_t>(plan->mostSources, step.numSources);
    for (uint32_t i = step.firstSource; i < step.firstSource + step.numSources; ++i) {
      const StepSource &source = plan->schedule.sources[i];
      if (!source.isMessage())
        continue;
      ++plan->takes[static_cast<size_t>(source.peer)];
      if (!addMessage(source.peer, source.message, source.piece.bytes)) {
        ASSIGN_OR_RETURN(plan->senderPieces[i], senderPiece(source));
      } else if (pairs[static_cast<size_t>(source.peer)] == PairKind::link) {
        plan->receivedBytes += source.piece.bytes;
      }
    }
  }
  findSameBytes(*plan);
  plan->exceedsCaches = exceedsCaches(touched);
  return plan;
}

Result<std::shared_ptr<const CollectivePlan>>
PlanTable::make(Group &group, const std::vector<PairKind> &pairs, int64_t position) {
  const ScheduleRequest &request = group.request;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Schedule> schedule, scheduleOf(group, position));
  // By position and number of a message: the peer's piece, once it is needed.
  std::vector<std::vector<Piece>> sent(static_cast<size_t>(request.ranks));
  auto senderPiece = [&](const StepSource &message) -> Result<Piece> {
    std::vector<Piece> &pieces = sent[static_cast<size_t>(message.peer)];
    if (pieces.empty()) {
      ASSIGN_OR_RETURN(const std::shared_ptr<const Schedule> other,
                       scheduleOf(group, message.peer));
      for (const ScheduleStep &send : other->steps)
        if (send.kind == StepKind::send && send.peer == position)
          pieces.push_back(send.piece);
    }
    return pieces[message.message];
  };
  int64_t touched = 0; // by all ranks
  for (const ScheduleValue &value : request.values)
    touched += value.partBytes * (request.inputParts() + request.outputParts()) * request.ranks;
  ASSIGN_OR_RETURN(const std::shared_ptr<CollectivePlan> plan,
                   makePlan(*schedule, pairs, touched, senderPiece));
  plan->algorithm = request.algorithm;
  return std::shared_ptr<const CollectivePlan>(plan);
}

Result<std::shared_ptr<const CollectivePlan>> PlanTable::find(const ScheduleRequest &request,
                                                              const std::vector<PairKind> &pairs,
                                                              int64_t position) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = std::find_if(groups.begin(), groups.end(),
                            [&](const auto &group) { return group->request == request; });
  if (found == groups.end()) {
    // Programs have few that differ; a caller that never repeats itself fills no memory.
    constexpr size_t kMostRequests = 256;
    if (groups.size() == kMostRequests)
      groups.erase(groups.begin());
    auto made = std::make_unique<Group>();
    made->request = request;
    made->schedules.resize(static_cast<size_t>(request.ranks));
    groups.push_back(std::move(made));
    found = groups.end() - 1;
  }
  Group &group = **found;
  for (const Group::Made &made : group.plans)
    if (made.position == position && made.pairs == pairs)
      return made.plan;
  ASSIGN_OR_RETURN(std::shared_ptr<const CollectivePlan> plan, make(group, pairs, position));
  group.plans.push_back({position, pairs, plan});
  return plan;
}

} // namespace braid::runtime
