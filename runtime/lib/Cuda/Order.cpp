//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Order.h"

#include <array>
#include <set>

namespace braid::runtime::cuda {

namespace {

class Merge {
public:
  explicit Merge(const std::vector<const RankProgram *> &programs) : programs(programs) {
    for (const RankProgram *program : programs) {
      next.push_back({0, 0});
      recorded.emplace_back(program->numEvents, false);
    }
  }

  Result<std::vector<Step>> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < programs.size(); ++r)
        for (int queue = 0; queue < 2; ++queue)
          for (bool advanced = true; advanced;) {
            const Command *command = at(r, queue);
            Result<bool> taken = advance(r, queue);
            if (!taken.ok())
              return taken.status();
            moved |= *taken;
            // NCCL holds the sender's stream up where the receive is, so that comes close behind.
            advanced = *taken && !isSend(*command);
          }
    }
    for (size_t r = 0; r < programs.size(); ++r)
      for (int queue = 0; queue < 2; ++queue)
        if (at(r, queue))
          return Status::error(stuck(), Code::rankFailed);
    return std::move(steps);
  }

private:
  const Command *at(size_t rank, int queue) const {
    const std::vector<Command> &commands = programs[rank]->queues[queue];
    return next[rank][queue] < commands.size() ? &commands[next[rank][queue]] : nullptr;
  }
  static bool isSend(const Command &command) {
    auto *collective = std::get_if<CollectiveCommand>(&command.op);
    return collective && collective->collective.kind == CollectiveKind::send;
  }
  Place take(size_t rank, int queue) {
    return {static_cast<int64_t>(rank), queue, next[rank][queue]++};
  }

  /// Takes the queue's next command if all it waits for has been taken.
  Result<bool> advance(size_t rank, int queue) {
    const Command *command = at(rank, queue);
    if (!command)
      return false;
    if (auto *wait = std::get_if<AwaitCommand>(&command->op))
      if (!recorded[rank][wait->event])
        return false;
    if (auto *wait = std::get_if<CollectiveWaitCommand>(&command->op))
      if (!recorded[rank][wait->event])
        return false;
    if (auto *collective = std::get_if<CollectiveCommand>(&command->op))
      return isPointToPoint(collective->collective.kind) ? post(rank, *collective)
                                                         : meet(rank, *collective);
    if (auto *record = std::get_if<RecordCommand>(&command->op))
      recorded[rank][record->event] = true;
    steps.push_back({{take(rank, queue)}});
    return true;
  }

  /// A send goes at once, a receive when what it takes has been sent.
  bool post(size_t rank, const CollectiveCommand &half) {
    const Letter *letter = half.collective.letter;
    if (half.collective.kind == CollectiveKind::send)
      sent.insert(letter);
    else if (letter && !sent.count(letter))
      return false;
    recorded[rank][half.event] = true;
    steps.push_back({{take(rank, 1)}});
    return true;
  }

  /// What the rank has come to that ranks meet in. One at a send or receive is on its way there.
  const CollectiveCommand *meetingAt(size_t rank) const {
    const Command *command = at(rank, 1);
    const auto *found = command ? std::get_if<CollectiveCommand>(&command->op) : nullptr;
    return found && !isPointToPoint(found->collective.kind) ? found : nullptr;
  }

  Result<bool> meet(size_t rank, const CollectiveCommand &mine) {
    const std::vector<int64_t> &members = mine.collective.group->ranks;
    for (int64_t member : members) {
      const CollectiveCommand *other = meetingAt(static_cast<size_t>(member));
      if (!other || other->collective.group != mine.collective.group)
        return false;
    }
    Step step;
    for (int64_t member : members) {
      const Collective &other = meetingAt(static_cast<size_t>(member))->collective;
      const bool alike = agree(mine.collective, other);
      if (!alike || !samePlace(mine.collective, other))
        return Status::error("rank " + std::to_string(rank) + ": " + signature(mine.collective) +
                                 " meets " + signature(other) + " of rank " +
                                 std::to_string(member) +
                                 (alike ? ", as these ranks come to them in different orders" : ""),
                             Code::rankFailed);
    }
    for (int64_t member : members) {
      const auto m = static_cast<size_t>(member);
      recorded[m][meetingAt(m)->event] = true;
      step.places.push_back(take(m, 1));
    }
    steps.push_back(std::move(step));
    return true;
  }

  /// Where every queue that has not ended stands.
  std::string stuck() const {
    std::string text =
        "ranks wait for each other, as they come to collectives in different orders:";
    bool first = true;
    for (size_t r = 0; r < programs.size(); ++r)
      for (int queue : {1, 0})
        if (const Command *command = at(r, queue)) {
          text += (first ? " rank " : ", rank ") + std::to_string(r) + " at " + describe(*command);
          first = false;
          break;
        }
    return text;
  }

  const std::vector<const RankProgram *> &programs;
  std::vector<std::array<size_t, 2>> next;
  std::vector<std::vector<bool>> recorded;
  std::set<const Letter *> sent;
  std::vector<Step> steps;
};

} // namespace

Result<std::vector<Step>> orderCommands(const std::vector<const RankProgram *> &programs) {
  return Merge(programs).run();
}

} // namespace braid::runtime::cuda
