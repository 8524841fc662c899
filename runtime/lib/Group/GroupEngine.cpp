//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "GroupEngine.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/CollectiveParts.h"
#include "runtime/lib/Collective/EngineRun.h"
#include "runtime/lib/Collective/Staging.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace braid::runtime {

/// A collective under way.
struct GroupEngine::Run {
  explicit Run(net::Link &link)
      : group(allRanks(link.ranks()), kComputeQueue),
        member(std::make_unique<GroupMember>(group.ranks.size(),
                                             pool.create<Arrival>(1, pool.sharing()), pool)),
        allLinks(group.ranks.size(), PairKind::link), engine(vectorKernels(), &link) {}
  static std::vector<int64_t> allRanks(int64_t count) {
    std::vector<int64_t> ranks(static_cast<size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  MemoryPool pool{Sharing::process};
  EngineGroup group;
  std::unique_ptr<SharedArenas> arenas; ///< null: none
  std::unique_ptr<GroupMember> member;
  std::vector<PairKind> allLinks; ///< for what is too large for numbers of messages
  // Of all ranks alike.
  int64_t mostChunk = INT64_MAX;
  bool isMixed = false; ///< some pairs have links, others are staged
  PlanTable plans;
  Engine engine;
  /// The collective under way; without values when there is nothing to do.
  Collective collective;
  bool isDone = true;
  /// Of outputs that the caller does not have, which a reduce fills with zeros.
  std::vector<std::unique_ptr<std::byte[]>> unwanted;
};

GroupEngine::GroupEngine(net::Link &itsLink) : link(itsLink), run(std::make_unique<Run>(itsLink)) {}
GroupEngine::~GroupEngine() = default;

Status GroupEngine::share(const SharedArenas::Exchange &exchange,
                          const std::vector<int64_t> &hostRanks, bool isMixed,
                          double timeLimitSeconds) {
  const Staging::Shape shape = Staging::shapeFor(run->group.ranks.size());
  run->mostChunk = shape.slotBytes;
  run->isMixed = isMixed;
  if (hostRanks.size() == 1)
    return {};
  const int64_t self = link.rank();
  ASSIGN_OR_RETURN(run->arenas, SharedArenas::create(exchange, hostRanks, self, link.ranks(),
                                                     Staging::bytes(shape)));
  std::unique_ptr<GroupMember> &member = run->member;
  member = run->arenas->makeMember(run->group, static_cast<size_t>(self));
  for (size_t rank = 0; rank < member->pairs.size(); ++rank)
    if (static_cast<int64_t>(rank) != self && member->pairs[rank] == PairKind::direct)
      member->pairs[rank] = PairKind::staged;
  member->staging =
      std::make_unique<Staging>(shape, static_cast<size_t>(self), run->arenas->heaps());
  return run->arenas->connect(timeLimitSeconds);
}

static StridedView viewOf(const void *data, int64_t elements) {
  return {static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data)), {elements}, {1}};
}

Status GroupEngine::begin(const GroupCollective &request, uint64_t tag) {
  const int64_t ranks = link.ranks();
  run->isDone = true;
  run->unwanted.clear();
  run->collective = {};
  Collective &c = run->collective;
  c.kind = request.kind;
  c.reduce = request.reduce;
  c.root = request.root;
  c.group = &run->group;
  c.position = link.rank();
  c.linkTag = tag;
  std::vector<OperandMemory> memory;
  const bool splitsInput =
      c.kind == CollectiveKind::reduceScatter || c.kind == CollectiveKind::allToAll;
  const bool joinsOutput =
      c.kind == CollectiveKind::allGather || c.kind == CollectiveKind::allToAll;
  for (const GroupValue &value : request.values) {
    if (value.elements == 0)
      continue;
    void *output = value.output;
    if (c.kind == CollectiveKind::reduce && c.position != c.root) {
      run->unwanted.emplace_back(
          new std::byte[static_cast<size_t>(value.elements * byteSize(value.dtype))]);
      output = run->unwanted.back().get();
    }
    CollectiveValue one;
    one.dtype = value.dtype;
    one.input = viewOf(value.input, value.elements * (splitsInput ? ranks : 1));
    one.output = viewOf(output, value.elements * (joinsOutput ? ranks : 1));
    setParts(c, ranks, one);
    c.values.push_back(std::move(one));
    // An input is only read.
    memory.push_back({static_cast<std::byte *>(const_cast<void *>(value.input)),
                      static_cast<std::byte *>(output)});
  }
  if (c.values.empty())
    return {};
  ScheduleRequest schedule = requestOf(c, "ucx");
  const std::vector<PairKind> *pairs = &run->member->pairs;
  // The longest values make more messages of a slot's size than links have numbers for.
  if (run->isMixed && schedule.chunkBytes > 2 * run->mostChunk)
    pairs = &run->allLinks;
  else
    schedule.chunkBytes = std::min(schedule.chunkBytes, run->mostChunk);
  ASSIGN_OR_RETURN(c.plan, run->plans.find(schedule, *pairs, c.position));
  run->member->reserve(c, run->pool);
  run->isDone = false;
  return run->engine.begin(c, *run->member, memory, run->member->scratch);
}

Status GroupEngine::begin(const std::vector<GroupMessage> &messages, uint64_t tag) {
  const int64_t ranks = link.ranks(), self = link.rank();
  run->unwanted.clear();
  run->collective = {};
  Collective &c = run->collective;
  c.kind = CollectiveKind::permute;
  c.group = &run->group;
  c.position = self;
  c.linkTag = tag;
  Schedule schedule;
  schedule.position = self;
  std::vector<OperandMemory> memory;
  // By peer, and whether it is sent: the pieces of all messages, in their order.
  std::vector<std::array<std::vector<Piece>, 2>> pieces(static_cast<size_t>(ranks));
  int64_t touched = 0;
  for (const GroupMessage &message : messages) {
    CollectiveValue value;
    value.dtype = DType::i8;
    value.input = value.output = viewOf(message.data, message.bytes);
    setParts(c, ranks, value);
    c.values.push_back(std::move(value));
    auto *data = static_cast<std::byte *>(message.data);
    memory.push_back({data, data});
    touched += message.bytes * ranks;
    const auto peer = static_cast<size_t>(message.peer);
    const bool isStaged = run->member->pairs[peer] == PairKind::staged;
    const int64_t length = isStaged ? run->mostChunk : std::max<int64_t>(message.bytes, 1);
    Piece piece{message.isSend ? Space::input : Space::output,
                static_cast<uint32_t>(memory.size() - 1), 0, 0};
    do {
      piece.bytes = std::min(length, message.bytes - piece.offset);
      pieces[peer][message.isSend].push_back(piece);
      piece.offset += piece.bytes;
    } while (piece.offset < message.bytes);
  }
  auto append = [&](StepKind kind, const Piece &piece) -> ScheduleStep & {
    ScheduleStep step;
    step.kind = kind;
    step.piece = piece;
    step.firstSource = static_cast<uint32_t>(schedule.sources.size());
    schedule.steps.push_back(step);
    return schedule.steps.back();
  };
  // In rounds of one piece from and to each rank, so that all are within the engine's window. The
  // ranks begin with their next ones, so that not all send to one.
  for (size_t round = 0, open = 1; open > 0; ++round) {
    open = 0;
    for (int64_t distance = 1; distance < ranks; ++distance) {
      const int64_t to = (self + distance) % ranks, from = (self + ranks - distance) % ranks;
      const auto &sent = pieces[static_cast<size_t>(to)][1];
      const auto &received = pieces[static_cast<size_t>(from)][0];
      if (round < sent.size()) {
        ScheduleStep &step = append(StepKind::send, sent[round]);
        step.peer = to;
        step.message = static_cast<uint32_t>(round);
      }
      if (round < received.size()) {
        append(StepKind::receive, received[round]).numSources = 1;
        schedule.sources.push_back({from, static_cast<uint32_t>(round), received[round]});
      }
      open += (round + 1 < sent.size() ? 1 : 0) + (round + 1 < received.size() ? 1 : 0);
    }
  }
  const auto &own = pieces[static_cast<size_t>(self)];
  for (size_t i = 0; i < std::min(own[0].size(), own[1].size()); ++i) {
    append(StepKind::copy, own[0][i]).numSources = 1;
    schedule.sources.push_back({-1, 0, own[1][i]});
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<CollectivePlan> plan,
                   makePlan(std::move(schedule), run->member->pairs, touched, nullptr));
  // A receiver compares the length of the whole.
  for (size_t i = 0; i < plan->schedule.steps.size(); ++i) {
    const ScheduleStep &step = plan->schedule.steps[i];
    if (step.kind != StepKind::copy)
      plan->messages[plan->firstMessage[i]].bytes = messages[step.piece.value].bytes;
  }
  c.plan = plan;
  run->isDone = false;
  return run->engine.begin(c, *run->member, memory, nullptr);
}

Status GroupEngine::advance() {
  if (!run->isDone) {
    ASSIGN_OR_RETURN(run->isDone, run->engine.advance());
  }
  return {};
}
bool GroupEngine::isDone() const { return run->isDone; }
Engine::Awaited GroupEngine::awaited() const {
  return run->isDone ? Engine::Awaited() : run->engine.awaited();
}
int64_t GroupEngine::latenessNs() const { return run->engine.latenessNs(); }
bool GroupEngine::hasLinks() const { return !run->isDone && run->engine.hasLinks(); }
bool GroupEngine::sharesMemory() const { return run->member->staging != nullptr; }
void GroupEngine::ring() {
  if (run->member->staging)
    run->member->staging->bell().increment();
}
void GroupEngine::abandon(int64_t until) {
  if (!run->isDone)
    run->engine.abandon(until);
}

} // namespace braid::runtime
