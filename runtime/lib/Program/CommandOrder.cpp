//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandOrder.h"
#include "ExpandedQueue.h"
#include "braid/Base/HostTensor.h"
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

/// A command of a queue with all calls expanded.
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
  Merge(const program::Program &program, const Mesh &mesh, const RankRoles &roles)
      : program(program), mesh(mesh), roles(roles) {}

  /// `all`: include commands that neither set nor await an event.
  Status load(uint32_t root, bool all) {
    numEvents = program.procedures()->Get(root)->num_events();
    setters.assign(numEvents, kComputeQueue);
    for (size_t role = 0; role < roles.count(); ++role)
      RETURN_IF_ERROR(loadRole(root, role, all));
    return findWays();
  }

  Result<std::vector<Step>> run(bool keep, const std::vector<OrderedAfter> &also = {}) {
    keepSteps = keep;
    for (const OrderedAfter &one : also)
      after[{one.command.rank, one.command.queue, one.command.index}] = &one.others;
    const auto ranks = static_cast<size_t>(mesh.numRanks());
    const size_t numQueues = runtime::numQueues(program);
    next.assign(ranks, std::vector<size_t>(numQueues, 0));
    isSet.assign(ranks, std::vector<bool>(numEvents, false));
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < ranks; ++r)
        for (Queue queue = 0; queue < numQueues; ++queue)
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
      for (Queue queue = numQueues; queue-- > 0;)
        if (at(r, queue))
          return Status::error(stuck({static_cast<int64_t>(r), queue}));
    return std::move(steps);
  }

private:
  using Kind = program::CollectiveKind;

  /// The commands of the ranks of one role.
  Status loadRole(uint32_t root, size_t role, bool all) {
    std::vector<std::vector<Leaf>> &queues = ofRoles.emplace_back(numQueues(program));
    for (Queue queue = 0; queue < queues.size(); ++queue)
      for (ExpandedQueue at(program, root, queue, RankInMesh{&mesh, roles.rank(role)}); !at.done();
           at.advance()) {
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
    return {};
  }

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

  const std::vector<Leaf> &leavesOf(size_t rank, Queue queue) const {
    return ofRoles[roles.roleOf(static_cast<int64_t>(rank))][queue];
  }
  const Leaf *at(size_t rank, Queue queue) const {
    const std::vector<Leaf> &leaves = leavesOf(rank, queue);
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
    std::vector<const Leaf *> sends, receives;
    uint64_t sent = 0, taken = 0;
    std::optional<Queue> sending, receiving;
  };
  static Way wayOf(const Leaf &leaf, size_t rank, int64_t peer) {
    const auto self = static_cast<int64_t>(rank);
    return leaf.start->kind() == Kind::send ? Way{self, peer, leaf.start->tag()}
                                            : Way{peer, self, leaf.start->tag()};
  }
  /// Lists the messages of each way, and checks that they stand on one queue, and so their recvs:
  /// else their order would not be known. Each message is received, as what it is.
  Status findWays() {
    const auto ranks = static_cast<size_t>(mesh.numRanks());
    for (size_t r = 0; r < ranks; ++r)
      for (Queue queue = 0; queue < numQueues(program); ++queue)
        for (const Leaf &leaf : leavesOf(r, queue)) {
          if (!leaf.start || !isMessage(*leaf.start))
            continue;
          const int64_t other = peer(leaf, r);
          if (other < 0)
            continue;
          const bool sends = leaf.start->kind() == Kind::send;
          const Way way = wayOf(leaf, r, other);
          Messages &of = messages[way];
          (sends ? of.sends : of.receives).push_back(&leaf);
          std::optional<Queue> &known = sends ? of.sending : of.receiving;
          if (known && *known != queue)
            return Status::error(describe(program, *leaf.procedure, queue, leaf.index),
                                 ": expects all ", sends ? "sends" : "recvs", " from rank ",
                                 std::get<0>(way), " to rank ", std::get<1>(way), " with tag ",
                                 std::get<2>(way), " on one queue, got the ",
                                 nameOf(program, *known), " queue too");
          known = queue;
        }
    for (const auto &[way, of] : messages)
      for (size_t n = 0; n < std::max(of.sends.size(), of.receives.size()); ++n)
        RETURN_IF_ERROR(verifyMessage(way, of, n));
    return {};
  }

  /// "f32 [8, 4], i64 [8]"
  static std::string typesOf(const Leaf &leaf) {
    const bool sends = leaf.start->kind() == Kind::send;
    std::string text;
    for (const program::View *view : sends ? *leaf.start->inputs() : *leaf.start->outputs())
      text += (text.empty() ? "" : ", ") + std::string(name(static_cast<DType>(view->dtype()))) +
              " " + shapeString({view->shape()->begin(), view->shape()->end()});
    return text;
  }

  Status verifyMessage(const Way &way, const Messages &of, size_t n) const {
    const Leaf *send = n < of.sends.size() ? of.sends[n] : nullptr,
               *receive = n < of.receives.size() ? of.receives[n] : nullptr;
    const auto [source, target, tag] = way;
    auto sending = [&] { return describe(program, *send->procedure, *of.sending, send->index); };
    auto receiving = [&] {
      return describe(program, *receive->procedure, *of.receiving, receive->index);
    };
    if (!receive)
      return Status::error("rank ", source, " sends at ", sending(), ", what rank ", target,
                           " does not receive (message ", n, " with tag ", tag, ")");
    if (!send)
      return Status::error("rank ", target, " receives at ", receiving(), ", what rank ", source,
                           " does not send (message ", n, " with tag ", tag, ")");
    if (typesOf(*send) != typesOf(*receive))
      return Status::error("rank ", target, " receives ", typesOf(*receive), " at ", receiving(),
                           ", where rank ", source, " sends ", typesOf(*send), " at ", sending(),
                           " (message ", n, " with tag ", tag, ")");
    return {};
  }

  /// A command that has to come before the queue's next one, apart from what the program says;
  /// null: there is none left.
  const Place *awaitedBefore(size_t rank, Queue queue) const {
    const auto found = after.find({static_cast<int64_t>(rank), queue, next[rank][queue]});
    if (found == after.end())
      return nullptr;
    for (const Place &other : *found->second)
      if (next[static_cast<size_t>(other.rank)][other.queue] <= other.index)
        return &other;
    return nullptr;
  }

  /// Takes the queue's next command unless it still has to wait.
  bool advance(size_t rank, Queue queue, const Leaf &leaf) {
    if (awaitedBefore(rank, queue))
      return false;
    if (leaf.awaits != Setter::none && !isSet[rank][leaf.event])
      return false;
    if (leaf.start && !isMessage(*leaf.start))
      return takeCollective(rank, queue, leaf);
    if (leaf.start)
      if (int64_t other = peer(leaf, rank); other >= 0) {
        Messages &way = messages[wayOf(leaf, rank, other)];
        if (leaf.start->kind() == Kind::send) {
          if (way.sent >= way.taken + kMessagesInFlight)
            return false;
          ++way.sent;
        } else {
          if (way.taken >= way.sent)
            return false;
          ++way.taken;
        }
      }
    Step step;
    take(rank, queue, leaf, step);
    keepStep(std::move(step));
    return true;
  }

  /// Whether a rank is at the same collective as another: each event is set once.
  bool isAt(int64_t rank, Queue queue, const Leaf &leaf) const {
    const Leaf *other = at(static_cast<size_t>(rank), queue);
    return other && other->start && other->event == leaf.event;
  }

  /// Takes a collective once all ranks of the group have reached it.
  bool takeCollective(size_t rank, Queue queue, const Leaf &leaf) {
    const std::vector<int64_t> &members = membersOf(leaf, rank);
    for (int64_t member : members)
      if (!isAt(member, queue, leaf) || awaitedBefore(static_cast<size_t>(member), queue))
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
    if (const Place *other = awaitedBefore(rank, node.queue))
      return {other->rank, other->queue};
    if (!leaf.start)
      return {node.rank, setters[leaf.event]};
    if (isMessage(*leaf.start)) {
      const int64_t other = peer(leaf, rank);
      const Messages &way = messages.at(wayOf(leaf, rank, other));
      return {other, leaf.start->kind() == Kind::recv ? *way.sending : *way.receiving};
    }
    for (int64_t member : membersOf(leaf, rank))
      if (!isAt(member, node.queue, leaf))
        return {member, node.queue};
    return node; // not reached: it could go on
  }

  /// What a rank waits for at a command: "a send of ".
  static std::string partner(const Leaf &leaf) {
    return !leaf.start                        ? ""
           : leaf.start->kind() == Kind::recv ? "a send of "
           : leaf.start->kind() == Kind::send ? "a recv of "
                                              : "";
  }

  /// Describes the deadlock cycle that a queue that cannot go on is in or waits for.
  std::string stuck(Node node) const {
    std::vector<Node> path;
    while (std::find(path.begin(), path.end(), node) == path.end()) {
      path.push_back(node);
      node = waitsFor(node);
      // Where ranks run different commands, one may have ended without the collective.
      if (!at(static_cast<size_t>(node.rank), node.queue)) {
        const Leaf &leaf = *at(static_cast<size_t>(path.back().rank), path.back().queue);
        return "rank " + std::to_string(path.back().rank) + " waits for rank " +
               std::to_string(node.rank) + " at " +
               describe(program, *leaf.procedure, path.back().queue, leaf.index) + ", which rank " +
               std::to_string(node.rank) + " does not reach";
      }
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), node));
    std::string text;
    for (const Node &waiting : path) {
      const Leaf &leaf = *at(static_cast<size_t>(waiting.rank), waiting.queue);
      const Node other = waitsFor(waiting);
      text += std::string(text.empty() ? "deadlock: " : "; ") + "rank " +
              std::to_string(waiting.rank) + " waits for " +
              (other.rank == waiting.rank ? "its " + nameOf(program, other.queue) + " queue"
                                          : partner(leaf) + "rank " + std::to_string(other.rank)) +
              " at " + describe(program, *leaf.procedure, waiting.queue, leaf.index);
    }
    return text;
  }

  const program::Program &program;
  const Mesh &mesh;
  const RankRoles &roles;
  uint64_t numEvents = 0;
  bool keepSteps = false;
  std::vector<std::vector<std::vector<Leaf>>> ofRoles; ///< by role and queue
  std::vector<Queue> setters;                          ///< by event
  std::map<std::string, Groups> groups;                ///< by axes
  std::vector<std::vector<size_t>> next;               ///< by rank and queue
  std::vector<std::vector<bool>> isSet;                ///< by rank and event
  std::map<Way, Messages> messages;
  std::map<std::tuple<int64_t, Queue, size_t>, const std::vector<Place> *> after;
  std::vector<Step> steps;
};

} // namespace

Result<std::vector<Step>> orderCommands(const program::Program &program, uint32_t root,
                                        const Manifest &manifest,
                                        const std::vector<OrderedAfter> &also) {
  ASSIGN_OR_RETURN(RankRoles roles, RankRoles::of(manifest.mesh, rankSetsOf(program, manifest)));
  Merge merge(program, manifest.mesh, roles);
  RETURN_IF_ERROR(merge.load(root, /*all=*/true));
  return merge.run(/*keep=*/true, also);
}

Status verifyOrder(const program::Program &program, uint32_t root, const Mesh &mesh,
                   const RankRoles &roles) {
  // Where all ranks have the same commands, and no messages, the order of one rank holds for all.
  bool anyMessages = false;
  uint64_t commands = 0;
  for (Queue queue = 1; queue < numQueues(program); ++queue)
    for (ExpandedQueue at(program, root, queue); !at.done(); at.advance()) {
      const program::CollectiveStart *start = at.command().op_as_CollectiveStart();
      anyMessages |= start && isMessage(*start);
      ++commands;
    }
  if (!anyMessages && roles.count() == 1)
    return {};
  constexpr int64_t kMaxRanks = int64_t(1) << 16;
  constexpr uint64_t kMaxCommands = uint64_t(1) << 28;
  const auto ranks = static_cast<uint64_t>(mesh.numRanks());
  if (mesh.numRanks() > kMaxRanks || commands * ranks > kMaxCommands)
    return Status::error("where ranks ",
                         anyMessages ? "send to each other" : "run different commands",
                         ", expects at most ", kMaxRanks, " ranks with ", kMaxCommands,
                         " communication commands, got ", ranks, " with ", commands * ranks);
  Merge merge(program, mesh, roles);
  RETURN_IF_ERROR(merge.load(root, /*all=*/false));
  return merge.run(/*keep=*/false).status();
}

} // namespace braid::runtime
