//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandOrder.h"
#include "ExpandedQueue.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <array>
#include <map>

namespace braid::runtime {

namespace {

/// The groups over some axes; each rank is in one.
struct Groups {
  std::vector<std::vector<int64_t>> members; ///< by group
  std::vector<size_t> of;                    ///< by rank
  std::vector<int64_t> position;             ///< by rank
};

/// A command of a queue with all calls expanded. All ranks have the same commands.
struct Leaf {
  Setter sets = Setter::none, awaits = Setter::none;
  uint64_t event = 0;
  const program::CollectiveStart *start = nullptr;
  const Groups *groups = nullptr;
  const program::Procedure *procedure;
  unsigned index;
};

class Merge {
public:
  Merge(const program::Program &program, const Mesh &mesh) : program(program), mesh(mesh) {}

  /// `all`: include commands that neither set nor await an event.
  Status load(uint32_t root, bool all) {
    numEvents = program.procedures()->Get(root)->num_events();
    for (Queue queue : kQueues)
      for (ExpandedQueue at(program, root, queue); !at.done(); at.advance()) {
        const auto [sets, set] = setBy(at.command());
        const auto [awaits, awaited] = waitedBy(at.command());
        if (!all && sets == Setter::none && awaits == Setter::none)
          continue;
        Leaf leaf;
        leaf.sets = sets;
        leaf.awaits = awaits;
        leaf.event = at.event(sets != Setter::none ? set : awaited);
        leaf.start = at.command().op_as_CollectiveStart();
        leaf.procedure = &at.procedure();
        leaf.index = at.index();
        if (leaf.start) {
          ASSIGN_OR_RETURN(const Groups *groups, groupsOver(*leaf.start));
          leaf.groups = groups;
        }
        queues[static_cast<size_t>(queue)].push_back(leaf);
      }
    return {};
  }

  Result<std::vector<Step>> run(bool keep) {
    keepSteps = keep;
    const auto ranks = static_cast<size_t>(mesh.numRanks());
    next.assign(ranks, {0, 0});
    isSet.assign(ranks, std::vector<bool>(numEvents, false));
    countSends(ranks);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < ranks; ++r)
        for (int queue = 0; queue < 2; ++queue)
          for (bool advanced = true; advanced;) {
            const Leaf *leaf = at(r, queue);
            const bool taken = leaf && advance(r, queue, *leaf);
            moved |= taken;
            // NCCL blocks the sender's stream until the recv, so the recv should follow closely.
            advanced =
                taken && !(leaf->start && leaf->start->kind() == Kind::send && peer(*leaf, r) >= 0);
          }
    }
    for (size_t r = 0; r < ranks; ++r)
      if (at(r, 0) || at(r, 1))
        return Status::error(stuck(static_cast<int64_t>(r)));
    return std::move(steps);
  }

private:
  using Kind = program::CollectiveKind;

  Result<const Groups *> groupsOver(const program::CollectiveStart &start) {
    std::vector<AxisRef> axes;
    std::string key;
    for (const program::AxisRef *axis : *start.axes()) {
      axes.push_back({axis->name()->str(), axis->pre(), axis->size()});
      key += axes.back().name + '\0' + std::to_string(axis->pre()) + ',' +
             std::to_string(axis->size()) + ',';
    }
    auto [slot, isNew] = groups.try_emplace(key);
    Groups &result = slot->second;
    if (!isNew)
      return &result;
    const int64_t ranks = mesh.numRanks();
    result.of.resize(static_cast<size_t>(ranks));
    result.position.assign(static_cast<size_t>(ranks), -1);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (result.position[static_cast<size_t>(rank)] >= 0)
        continue;
      ASSIGN_OR_RETURN(std::vector<int64_t> members, mesh.group(rank, axes));
      for (size_t i = 0; i < members.size(); ++i) {
        const auto member = static_cast<size_t>(members[i]);
        result.of[member] = result.members.size();
        result.position[member] = static_cast<int64_t>(i);
      }
      result.members.push_back(std::move(members));
    }
    return &result;
  }

  const Leaf *at(size_t rank, int queue) const {
    const std::vector<Leaf> &leaves = queues[queue];
    return next[rank][queue] < leaves.size() ? &leaves[next[rank][queue]] : nullptr;
  }
  static const std::vector<int64_t> &membersOf(const Leaf &leaf, size_t rank) {
    return leaf.groups->members[leaf.groups->of[rank]];
  }

  /// The target of a send or the source of a recv; -1: none.
  static int64_t peer(const Leaf &leaf, size_t rank) {
    const int64_t position = leaf.groups->position[rank];
    const bool sends = leaf.start->kind() == Kind::send;
    if (const auto *pairs = leaf.start->pairs())
      for (unsigned i = 0; i + 1 < pairs->size(); i += 2)
        if (pairs->Get(sends ? i : i + 1) == position)
          return membersOf(leaf, rank)[pairs->Get(sends ? i + 1 : i)];
    return -1;
  }

  /// Messages between two ranks with one tag arrive in the order in which they are sent.
  using Way = std::tuple<int64_t, int64_t, uint32_t>;
  struct Messages {
    uint64_t expected = 0, sent = 0, taken = 0;
  };
  static Way wayOf(const Leaf &leaf, size_t rank, int64_t peer) {
    const auto self = static_cast<int64_t>(rank);
    return leaf.start->kind() == Kind::send ? Way{self, peer, leaf.start->tag()}
                                            : Way{peer, self, leaf.start->tag()};
  }
  void countSends(size_t ranks) {
    for (const Leaf &leaf : queues[1])
      if (leaf.start && leaf.start->kind() == Kind::send)
        for (size_t r = 0; r < ranks; ++r)
          if (int64_t target = peer(leaf, r); target >= 0)
            ++messages[wayOf(leaf, r, target)].expected;
  }

  /// Takes the queue's next command unless it still has to wait.
  bool advance(size_t rank, int queue, const Leaf &leaf) {
    if (leaf.awaits != Setter::none && !isSet[rank][leaf.event])
      return false;
    if (leaf.start && !isMessage(*leaf.start))
      return takeCollective(rank, leaf);
    if (leaf.start)
      if (int64_t other = peer(leaf, rank); other >= 0) {
        Messages &way = messages[wayOf(leaf, rank, other)];
        if (leaf.start->kind() == Kind::send)
          ++way.sent;
        // A recv without any send is reported elsewhere, where the values are known.
        else if (way.taken >= way.sent && way.taken < way.expected)
          return false;
        else
          ++way.taken;
      }
    Step step;
    take(rank, queue, leaf, step);
    keepStep(std::move(step));
    return true;
  }

  /// Takes a collective once all ranks of the group have reached it. All ranks have the same
  /// commands.
  bool takeCollective(size_t rank, const Leaf &leaf) {
    const std::vector<int64_t> &members = membersOf(leaf, rank);
    for (int64_t member : members)
      if (at(static_cast<size_t>(member), 1) != &leaf)
        return false;
    Step step;
    for (int64_t member : members)
      take(static_cast<size_t>(member), 1, leaf, step);
    keepStep(std::move(step));
    return true;
  }

  void take(size_t rank, int queue, const Leaf &leaf, Step &step) {
    if (leaf.sets != Setter::none)
      isSet[rank][leaf.event] = true;
    if (keepSteps)
      step.places.push_back({static_cast<int64_t>(rank), queue, next[rank][queue]});
    ++next[rank][queue];
  }
  void keepStep(Step step) {
    if (keepSteps)
      steps.push_back(std::move(step));
  }

  /// The rank that this one waits for on its communication queue, or -1.
  int64_t waitsFor(size_t rank) const {
    const Leaf *leaf = at(rank, 1);
    if (!leaf || !leaf->start)
      return -1;
    if (isMessage(*leaf->start))
      return peer(*leaf, rank);
    for (int64_t member : membersOf(*leaf, rank))
      if (at(static_cast<size_t>(member), 1) != leaf)
        return member;
    return -1;
  }

  /// Describes the deadlock cycle that `rank` is in or waits for.
  std::string stuck(int64_t rank) const {
    std::vector<int64_t> path;
    while (rank >= 0 && std::find(path.begin(), path.end(), rank) == path.end()) {
      path.push_back(rank);
      rank = waitsFor(static_cast<size_t>(rank));
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), rank));
    std::string text;
    for (int64_t waiting : path) {
      const Leaf &leaf = *at(static_cast<size_t>(waiting), 1);
      text += std::string(text.empty() ? "deadlock: " : "; ") + "rank " + std::to_string(waiting) +
              " waits for " + (isMessage(*leaf.start) ? "a send of " : "") + "rank " +
              std::to_string(waitsFor(static_cast<size_t>(waiting))) + " at " +
              describe(*leaf.procedure, Queue::communication, leaf.index);
    }
    return text;
  }

  const program::Program &program;
  const Mesh &mesh;
  uint64_t numEvents = 0;
  bool keepSteps = false;
  std::vector<Leaf> queues[2];
  std::map<std::string, Groups> groups; ///< by axes
  std::vector<std::array<size_t, 2>> next;
  std::vector<std::vector<bool>> isSet; ///< by rank and event
  std::map<Way, Messages> messages;
  std::vector<Step> steps;
};

} // namespace

Result<std::vector<Step>> orderCommands(const program::Program &program, uint32_t root,
                                        const Mesh &mesh) {
  Merge merge(program, mesh);
  RETURN_IF_ERROR(merge.load(root, /*all=*/true));
  return merge.run(/*keep=*/true);
}

Status verifyOrder(const program::Program &program, uint32_t root, const Mesh &mesh) {
  // All ranks have the same commands, so without messages the order of one rank holds for all.
  bool anyMessages = false;
  uint64_t commands = 0;
  for (ExpandedQueue at(program, root, Queue::communication); !at.done(); at.advance()) {
    const program::CollectiveStart *start = at.command().op_as_CollectiveStart();
    anyMessages |= start && isMessage(*start);
    ++commands;
  }
  if (!anyMessages)
    return {};
  constexpr int64_t kMaxRanks = int64_t(1) << 16;
  constexpr uint64_t kMaxCommands = uint64_t(1) << 28;
  const auto ranks = static_cast<uint64_t>(mesh.numRanks());
  if (mesh.numRanks() > kMaxRanks || commands * ranks > kMaxCommands)
    return Status::error("where ranks send to each other, expects at most ", kMaxRanks,
                         " ranks with ", kMaxCommands, " communication commands, got ", ranks,
                         " with ", commands * ranks);
  Merge merge(program, mesh);
  RETURN_IF_ERROR(merge.load(root, /*all=*/false));
  return merge.run(/*keep=*/false).status();
}

} // namespace braid::runtime
