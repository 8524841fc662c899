//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of processes of one host that were not forked from each other's memory: they read it
// in arenas.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Collective/SharedArenas.h"
#include "ArenaTesting.h"
#include "NetTesting.h"
#include "ProcessTesting.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/EngineRun.h"

#include <gmock/gmock.h>

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;

namespace {

constexpr size_t kHeapBytes = size_t(1) << 20;
constexpr uint64_t kOutput = kHeapBytes / 2;
constexpr int64_t kElements = 12345;

/// A rank of a host with three ranks.
class HostRank {
public:
  HostRank(Board &board, int64_t rank) : board(board), rank(rank), group({0, 1, 2}, 1) {}

  Status start(double limit = 20) {
    ASSIGN_OR_RETURN(arenas, SharedArenas::create(
                                 [&](size_t bytes, size_t needed) {
                                   ArenaOptions options = optionsOf(board, rank, {0, 1, 2}, limit);
                                   options.neededBytes = needed;
                                   return exchangeArenas(options, bytes);
                                 },
                                 {0, 1, 2}, rank, 3, kHeapBytes));
    auto &member = group.members[static_cast<size_t>(rank)];
    member = arenas->makeMember(group, static_cast<size_t>(rank));
    return {};
  }
  SymmetricHeap heap() const { return {nullptr, 0, rank, 3, arenas->heaps()}; }
  float *at(uint64_t offset) const { return reinterpret_cast<float *>(heap().peer(rank, offset)); }

  Result<Collective> allReduce(ScheduleAlgorithm algorithm, const std::string &name) {
    Collective c;
    c.name = name;
    c.group = &group;
    c.position = rank;
    c.queue = 1;
    CollectiveValue value;
    value.input = {0, {kElements}, {1}};
    value.output = {kOutput, {kElements}, {1}};
    setParts(c, 3, value);
    c.values.push_back(value);
    GroupMember &member = *group.members[static_cast<size_t>(rank)];
    ScheduleRequest request = requestOf(c, "ucx");
    request.algorithm = algorithm;
    request.chunkBytes = 5000;
    ASSIGN_OR_RETURN(c.plan, plans.find(request, member.pairs, rank));
    c.shared = SharedCollective::make(c, arenas->pool());
    member.reserve(c, arenas->pool());
    return c;
  }
  Status run(const Collective &c) {
    GroupMember &member = *group.members[static_cast<size_t>(rank)];
    const SymmetricHeap memory = heap();
    RETURN_IF_ERROR(engine.begin(c, member, memory, member.scratch));
    for (const int64_t until = nowNs() + 20 * kSecond;;) {
      ASSIGN_OR_RETURN(const bool done, engine.advance());
      if (done)
        return {};
      if (nowNs() > until)
        return Status::error("no end of ", c.name);
      sched_yield();
    }
  }

  Board &board;
  const int64_t rank;
  EngineGroup group;
  std::unique_ptr<SharedArenas> arenas;
  PlanTable plans;
  Engine engine{vectorKernels()};
};

TEST(SharedArenas, AllReducesOfEveryAlgorithm) {
  Board board;
  RankProcessesOfTest processes(3, [&](int64_t position) {
    auto run = [&]() -> Status {
      HostRank rank(board, position);
      RETURN_IF_ERROR(rank.start());
      std::vector<Collective> collectives;
      for (ScheduleAlgorithm algorithm :
           {ScheduleAlgorithm::direct, ScheduleAlgorithm::oneShot, ScheduleAlgorithm::ring,
            ScheduleAlgorithm::recursiveDoubling, ScheduleAlgorithm::tree,
            ScheduleAlgorithm::hierarchical}) {
        ASSIGN_OR_RETURN(Collective c, rank.allReduce(algorithm, name(algorithm)));
        collectives.push_back(std::move(c));
      }
      RETURN_IF_ERROR(rank.arenas->connect(20));
      RETURN_IF_ERROR(rank.arenas->touch());
      for (const Collective &c : collectives)
        for (int64_t round = 0; round < 20; ++round) {
          for (int64_t i = 0; i < kElements; ++i)
            rank.at(0)[i] = static_cast<float>((i + round + position * 5) % 17);
          RETURN_IF_ERROR(rank.run(c));
          for (int64_t i = 0; i < kElements; ++i) {
            float sum = 0;
            for (int64_t other = 0; other < 3; ++other)
              sum += static_cast<float>((i + round + other * 5) % 17);
            if (rank.at(kOutput)[i] != sum)
              return Status::error(c.name, ": element ", i, " is ", rank.at(kOutput)[i],
                                   ", expects ", sum);
          }
        }
      board.meet("done", position, 3);
      return {};
    };
    return text(run());
  });
  for (int64_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(processes.result(rank), "done");
}

TEST(SharedArenas, RanksThatRunDifferentCollectives) {
  Board board;
  RankProcessesOfTest processes(3, [&](int64_t position) {
    auto run = [&]() -> Status {
      HostRank rank(board, position);
      RETURN_IF_ERROR(rank.start());
      ASSIGN_OR_RETURN(const Collective c,
                       rank.allReduce(ScheduleAlgorithm::direct, position == 2 ? "other" : "same"));
      RETURN_IF_ERROR(rank.arenas->connect(20));
      const Status status = rank.run(c);
      board.meet("done", position, 3);
      return status;
    };
    return text(run());
  });
  EXPECT_EQ(processes.result(2),
            "all_reduce 'other' (sum, 12345 f32, role '') does not match all_reduce 'same' (sum, "
            "12345 f32, role '') of rank 0, as these ranks reach them in different orders");
  for (int64_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(processes.result(rank),
              "all_reduce 'same' (sum, 12345 f32, role '') does not match all_reduce 'other' (sum, "
              "12345 f32, role '') of rank 2, as these ranks reach them in different orders");
}

/// Each rank sends to the next one: in two slots of a tag, and a message that is larger than what
/// is left of an arena, of which the receiver learns nothing.
TEST(SharedArenas, MessagesLieWithTheirSender) {
  Board board;
  RankProcessesOfTest processes(3, [&](int64_t position) {
    auto run = [&]() -> Status {
      constexpr int64_t kTag = 7, kOther = 8, kBytes = 100000, kTooMany = int64_t(1) << 40;
      HostRank rank(board, position);
      RETURN_IF_ERROR(rank.start());
      SharedArenas &arenas = *rank.arenas;
      MessageSlot sends[3], receives[3];
      for (size_t i = 0; i < 3; ++i) {
        sends[i].source = receives[i].target = position;
        sends[i].target = (position + 1) % 3;
        receives[i].source = (position + 2) % 3;
        sends[i].bytes = receives[i].bytes = i == 2 ? kTooMany : kBytes;
        const int64_t tag = i == 2 ? kOther : kTag;
        if (arenas.offer(tag, i % 2, sends[i]) != (i < 2))
          return Status::error("message ", i, " is offered, or is not");
        arenas.await(tag, i % 2, receives[i]);
      }
      RETURN_IF_ERROR(arenas.connect(20));
      RETURN_IF_ERROR(arenas.touch());
      if (receives[2].sent)
        return Status::error("a message is found that nobody has offered");
      for (int round = 0; round < 50; ++round)
        for (size_t i = 0; i < 2; ++i) {
          const auto byteOf = [&](int64_t sender, int64_t at) {
            return static_cast<std::byte>(sender * 31 + round * 7 + static_cast<int>(i) + at);
          };
          while (sends[i].awaitsRoom())
            sched_yield();
          for (int64_t at = 0; at < kBytes; ++at)
            sends[i].data[at] = byteOf(position, at);
          sends[i].sent->increment();
          for (const int64_t until = nowNs() + 20 * kSecond; receives[i].awaitsMessage();)
            if (nowNs() > until)
              return Status::error("no message");
          for (int64_t at = 0; at < kBytes; ++at)
            if (receives[i].data[at] != byteOf(receives[i].source, at))
              return Status::error("byte ", at, " of message ", i, " in round ", round);
          receives[i].taken->increment();
        }
      board.meet("done", position, 3);
      return {};
    };
    return text(run());
  });
  for (int64_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(processes.result(rank), "done");
}

TEST(SharedArenas, ARankThatDoesNotPrepare) {
  Board board;
  RankProcessesOfTest processes(3, [&](int64_t position) {
    HostRank rank(board, position);
    if (Status started = rank.start(); !started.ok())
      return text(started);
    const Status status = position == 1 ? Status() : rank.arenas->connect(0.3);
    board.meet("done", position, 3);
    return text(status);
  });
  for (int64_t rank : {0, 2})
    EXPECT_EQ(processes.result(rank),
              "rank 1 of this host has not prepared its collectives within 0.3 s");
}

} // namespace
