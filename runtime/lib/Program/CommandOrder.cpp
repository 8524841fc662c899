//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandOrder.h"
#include "ExpandedQueue.h"
#include "braid/Base/MessagesInFlight.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <map>
#include <optional>

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
    queues.resize(numQueues(program));
    setters.assign(numEvents, kComputeQueue);
    for (Queue queue = 0; queue < queues.size(); ++queue)
      for (ExpandedQueue at(program, root, queue); !at.done(); at.advance()) {
        const auto [sets, set] = setBy(at.command());
        const auto [awaits, awaited] = waitedBy(at.command());
        if (!all && sets == Setter::none && awaits == Setter::none)
          continue;
        Leaf leaf;
        leaf.sets = sets;
        leaf.awaits = awaits;
        if (sets != Setter::none || awaits != Setter::none)
          leaf.event = at.event(sets != Setter::none ? set : awaited);
        if (sets != Setter::none)
          setters[leaf.event] = queue;
        leaf.start = at.command().op_as_CollectiveStart();
        leaf.procedure = &at.procedure();
        leaf.index = at.index();
        if (leaf.start) {
          ASSIGN_OR_RETURN(const Groups *groups, groupsOver(*leaf.start));
          leaf.groups = groups;
        }
        queues[queue].push_back(leaf);
      }
    return findWays();
  }

  Result<std::vector<Step>> run(bool keep) {
    keepSteps = keep;
    const auto ranks = static_cast<size_t>(mesh.numRanks());
    next.assign(ranks, std::vector<size_t>(queues.size(), 0));
    isSet.assign(ranks, std::vector<bool>(numEvents, false));
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < ranks; ++r)
        for (Queue queue = 0; queue < queues.size(); ++queue)
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
      for (Queue queue = queues.size(); queue-- > 0;)
        if (at(r, queue))
          return Status::error(stuck({static_cast<int64_t>(r), queue}));
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

  const Leaf *at(size_t rank, Queue queue) const {
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
    uint64_t expected = 0, expectedTaken = 0, sent = 0, taken = 0;
    std::optional<Queue> sending, receiving;
  };
  static Way wayOf(const Leaf &leaf, size_t rank, int64_t peer) {
    const auto self = static_cast<int64_t>(rank);
    return leaf.start->kind() == Kind::send ? Way{self, peer, leaf.start->tag()}
                                            : Way{peer, self, leaf.start->tag()};
  }
  /// Counts the messages of each way, and checks that they stand on one queue, and so their recvs:
  /// else their order would not be known.
  Status findWays() {
    const auto ranks = static_cast<size_t>(mesh.numRanks());
    for (Queue queue = 0; queue < queues.size(); ++queue)
      for (const Leaf &leaf : queues[queue])
        for (size_t r = 0; leaf.start && isMessage(*leaf.start) && r < ranks; ++r) {
          const int64_t other = peer(leaf, r);
          if (other < 0)
            continue;
          const bool sends = leaf.start->kind() == Kind::send;
          const Way way = wayOf(leaf, r, other);
          Messages &of = messages[way];
          ++(sends ? of.expected : of.expectedTaken);
          std::optional<Queue> &known = sends ? of.sending : of.receiving;
          if (known && *known != queue)
            return Status::error(describe(program, *leaf.procedure, queue, leaf.index),
                                 ": expects all ", sends ? "sends" : "recvs", " from rank ",
                                 std::get<0>(way), " to rank ", std::get<1>(way), " with tag ",
                                 std::get<2>(way), " on one queue, got the ",
                                 nameOf(program, *known), " queue too");
          known = queue;
        }
    return {};
  }

  /// Takes the queue's next command unless it still has to wait.
  bool advance(size_t rank, Queue queue, const Leaf &leaf) {
    if (leaf.awaits != Setter::none && !isSet[rank][leaf.event])
      return false;
    if (leaf.start && !isMessage(*leaf.start))
      return takeCollective(rank, queue, leaf);
    if (leaf.start)
      if (int64_t other = peer(leaf, rank); other >= 0) {
        Messages &way = messages[wayOf(leaf, rank, other)];
        // One side without the other is reported elsewhere, where the values are known.
        if (leaf.start->kind() == Kind::send) {
          if (way.sent >= way.taken + kMessagesInFlight && way.taken < way.expectedTaken)
            return false;
          ++way.sent;
        } else {
          if (way.taken >= way.sent && way.taken < way.expected)
            return false;
          ++way.taken;
        }
      }
    Step step;
    take(rank, queue, leaf, step);
    keepStep(std::move(step));
    return true;
  }

  /// Takes a collective once all ranks of the group have reached it. All ranks have the same
  /// commands.
  bool takeCollective(size_t rank, Queue queue, const Leaf &leaf) {
    const std::vector<int64_t> &members = membersOf(leaf, rank);
    for (int64_t member : members)
      if (at(static_cast<size_t>(member), queue) != &leaf)
        return false;
    Step step;
    for (int64_t member : members)
      take(static_cast<size_t>(member), queue, leaf, step);
    keepStep(std::move(step));
    return true;
  }

  void take(size_t rank, Queue queue, const Leaf &leaf, Step &step) {
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

  /// A queue of a rank.
  struct Node {
    int64_t rank;
    Queue queue;
    bool operator==(const Node &o) const { return rank == o.rank && queue == o.queue; }
  };

  /// The queue that a queue that cannot go on waits for.
  Node waitsFor(Node node) const {
    const auto rank = static_cast<size_t>(node.rank);
    const Leaf &leaf = *at(rank, node.queue);
    if (!leaf.start)
      return {node.rank, setters[leaf.event]};
    if (isMessage(*leaf.start)) {
      const int64_t other = peer(leaf, rank);
      const Messages &way = messages.at(wayOf(leaf, rank, other));
      return {other, leaf.start->kind() == Kind::recv ? *way.sending : *way.receiving};
    }
    for (int64_t member : membersOf(leaf, rank))
      if (at(static_cast<size_t>(member), node.queue) != &leaf)
        return {member, node.queue};
    return node; // not reached: it could go on
  }

  /// What a rank waits for at a command: "a send of ".
  static std::string partner(const Leaf &leaf) {
    return leaf.start->kind() == Kind::recv   ? "a send of "
           : leaf.start->kind() == Kind::send ? "a recv of "
                                              : "";
  }

  /// Describes the deadlock cycle that a queue that cannot go on is in or waits for.
  std::string stuck(Node node) const {
    std::vector<Node> path;
    while (std::find(path.begin(), path.end(), node) == path.end()) {
      path.push_back(node);
      node = waitsFor(node);
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), node));
    std::string text;
    for (const Node &waiting : path) {
      const Leaf &leaf = *at(static_cast<size_t>(waiting.rank), waiting.queue);
      const Node other = waitsFor(waiting);
      text += std::string(text.empty() ? "deadlock: " : "; ") + "rank " +
              std::to_string(waiting.rank) + " waits for " +
              (!leaf.start ? "its " + nameOf(program, other.queue) + " queue"
                           : partner(leaf) + "rank " + std::to_string(other.rank)) +
              " at " + describe(program, *leaf.procedure, waiting.queue, leaf.index);
    }
    return text;
  }

  const program::Program &program;
  const Mesh &mesh;
  uint64_t numEvents = 0;
  bool keepSteps = false;
  std::vector<std::vector<Leaf>> queues;
  std::vector<Queue> setters;            ///< by event
  std::map<std::string, Groups> groups;  ///< by axes
  std::vector<std::vector<size_t>> next; ///< by rank and queue
  std::vector<std::vector<bool>> isSet;  ///< by rank and event
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
  for (Queue queue = 1; queue < numQueues(program); ++queue)
    for (ExpandedQueue at(program, root, queue); !at.done(); at.advance()) {
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
