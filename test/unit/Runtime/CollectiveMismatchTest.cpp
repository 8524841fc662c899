//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks that call different collectives at the same time, or the same ones in different orders, on
// both transports: the run ends with a message that names both sides.
//
//===----------------------------------------------------------------------===//
#include "CollectiveValues.h"
#include "LimitTesting.h"
#include "Streams.h"
#include "Testing.h"
#include "runtime/lib/Executor/Commands.h"
#include "runtime/lib/Model/Processes.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::AnyOf;
using ::testing::MatchesRegex;

namespace {

Collective collective(CollectiveKind kind, const std::string &name = "c") {
  Collective c;
  c.kind = kind;
  c.values = {valueOf(c, 2, {DType::f32, {8}, 0, 1024})};
  c.name = name;
  c.role = "r";
  return c;
}

/// Two ranks, each with a list of collectives over a group.
class Pair {
public:
  Pair(const std::string &transportName, double timeLimit)
      : processes(transportName == "shm"),
        transport(processes ? createShmTransport(2) : createThreadsTransport(2)),
        control(2, computeAndCommunication(), timeLimit, {50, false},
                processes ? Sharing::forks : Sharing::process) {
    EXPECT_OK(transport->allocate(8192));
    control.begin();
  }

  void add(int64_t rank, Collective c, const std::vector<int64_t> &group = {0, 1}) {
    c.queue = kCommunicationQueue;
    c.group = transport->group(group, c.queue);
    c.position = std::find(group.begin(), group.end(), rank) - group.begin();
    EXPECT_OK(transport->plan(c));
    Command command;
    command.name = c.name;
    command.operation = name(c.kind);
    command.path = c.path;
    command.op = CollectiveCommand{std::move(c), 0, 0};
    commands[rank].push_back(std::move(command));
  }

  /// Runs both ranks; returns the run's failure.
  Status run() {
    if (processes) {
      Processes ranks;
      EXPECT_OK(ranks.start(2, [&](int64_t rank) { return work(rank) ? 0 : 1; }));
      while (ranks.numRunning() > 0)
        ranks.wait(10000000);
    } else {
      std::thread other([&] { work(1); });
      work(0);
      other.join();
    }
    return control.failure();
  }

private:
  bool work(int64_t rank) {
    QueueState &self = control.queue(rank, kCommunicationQueue);
    for (const Command &command : commands[rank]) {
      self.at.store(&command);
      if (!transport->run(std::get<CollectiveCommand>(command.op).collective, transport->heap(rank),
                          control, self))
        return false;
      self.progress.fetch_add(1);
    }
    self.at.store(nullptr);
    return true;
  }

  bool processes;
  std::unique_ptr<Transport> transport;
  RunControl control;
  std::vector<Command> commands[2];
};

struct Difference {
  const char *what;
  CollectiveKind kind;
  void (*change)(Collective &); ///< applied to rank 1's collective
  const char *mine, *theirs;
  const char *rest = "";
};
void PrintTo(const Difference &d, std::ostream *os) { *os << d.what; }

class Mismatch : public ::testing::TestWithParam<std::tuple<const char *, Difference>> {};

TEST_P(Mismatch, NamesBothSides) {
  auto [transport, d] = GetParam();
  Pair pair(transport, 30);
  Collective other = collective(d.kind);
  d.change(other);
  pair.add(0, collective(d.kind));
  pair.add(1, other);
  Status failure = pair.run();
  EXPECT_EQ(failure.code(), Code::rankFailed);
  std::string mine = d.mine, theirs = d.theirs;
  EXPECT_THAT(failure.message(),
              AnyOf("rank 0: " + mine + " does not match " + theirs + " of rank 1" + d.rest,
                    "rank 1: " + theirs + " does not match " + mine + " of rank 0" + d.rest));
}

/// The calls that lead to a collective.
const std::string *path() {
  static const std::string text = "@layer (layer.3)";
  return &text;
}
constexpr const char *kOrder = ", as these ranks reach them in different orders";

INSTANTIATE_TEST_SUITE_P(
    Of, Mismatch,
    ::testing::Combine(
        ::testing::Values("threads", "shm"),
        ::testing::Values(
            Difference{"kind", CollectiveKind::allReduce,
                       [](Collective &c) { c.kind = CollectiveKind::allGather; },
                       "all_reduce 'c' (sum, 8 f32, role 'r')",
                       "all_gather 'c' (8 f32, dim 0, role 'r')"},
            Difference{
                "size", CollectiveKind::allReduce,
                [](Collective &c) { c.values[0] = valueOf(c, 2, {DType::f32, {9}, 0, 1024}); },
                "all_reduce 'c' (sum, 8 f32, role 'r')", "all_reduce 'c' (sum, 9 f32, role 'r')"},
            Difference{"type", CollectiveKind::allReduce,
                       [](Collective &c) { c.values[0].dtype = DType::i32; },
                       "all_reduce 'c' (sum, 8 f32, role 'r')",
                       "all_reduce 'c' (sum, 8 i32, role 'r')"},
            Difference{"values", CollectiveKind::broadcast,
                       [](Collective &c) {
                         c.values.push_back(valueOf(c, 2, {DType::i64, {2}, 64, 2048}));
                       },
                       "broadcast 'c' (8 f32, root 0, role 'r')",
                       "broadcast 'c' (8 f32 and 2 i64, root 0, role 'r')"},
            Difference{"reduction", CollectiveKind::reduceScatter,
                       [](Collective &c) { c.reduce = ReduceKind::max; },
                       "reduce_scatter 'c' (sum, 8 f32, dim 0, role 'r')",
                       "reduce_scatter 'c' (max, 8 f32, dim 0, role 'r')"},
            Difference{"reductionToRoot", CollectiveKind::reduce,
                       [](Collective &c) { c.reduce = ReduceKind::min; },
                       "reduce 'c' (sum, 8 f32, root 0, role 'r')",
                       "reduce 'c' (min, 8 f32, root 0, role 'r')"},
            Difference{"role", CollectiveKind::allReduce, [](Collective &c) { c.role = "mlp.out"; },
                       "all_reduce 'c' (sum, 8 f32, role 'r')",
                       "all_reduce 'c' (sum, 8 f32, role 'mlp.out')"},
            Difference{"dim", CollectiveKind::allGather, [](Collective &c) { c.dim = 1; },
                       "all_gather 'c' (8 f32, dim 0, role 'r')",
                       "all_gather 'c' (8 f32, dim 1, role 'r')"},
            Difference{"concat", CollectiveKind::allToAll, [](Collective &c) { c.concatDim = 1; },
                       "all_to_all 'c' (8 f32, dim 0, concat 0, role 'r')",
                       "all_to_all 'c' (8 f32, dim 0, concat 1, role 'r')"},
            Difference{"root", CollectiveKind::broadcast, [](Collective &c) { c.root = 1; },
                       "broadcast 'c' (8 f32, root 0, role 'r')",
                       "broadcast 'c' (8 f32, root 1, role 'r')"},
            Difference{"pairs", CollectiveKind::permute, [](Collective &c) { c.pairs = {{0, 1}}; },
                       "permute 'c' (8 f32, pairs [], role 'r')",
                       "permute 'c' (8 f32, pairs [0 -> 1], role 'r')"},
            Difference{"name", CollectiveKind::allReduce, [](Collective &c) { c.name = "d"; },
                       "all_reduce 'c' (sum, 8 f32, role 'r')",
                       "all_reduce 'd' (sum, 8 f32, role 'r')", kOrder},
            Difference{"call", CollectiveKind::allGather, [](Collective &c) { c.path = path(); },
                       "all_gather 'c' (8 f32, dim 0, role 'r')",
                       "all_gather 'c' (8 f32, dim 0, role 'r') in @layer (layer.3)", kOrder})),
    [](const auto &info) {
      return std::get<0>(info.param) + std::string("_") + std::get<1>(info.param).what;
    });

class Order : public ::testing::TestWithParam<const char *> {};

/// Without this check, ranks with another order would exchange values of different operations.
TEST_P(Order, OfTwoThatLookAlike) {
  Pair pair(GetParam(), 30);
  for (const char *name : {"first", "second"}) {
    pair.add(0, collective(CollectiveKind::broadcast, name));
    pair.add(1, collective(CollectiveKind::broadcast,
                           std::string(name) == "first" ? "second" : "first"));
  }
  EXPECT_THAT(pair.run().message(),
              AnyOf("rank 0: broadcast 'first' (8 f32, root 0, role 'r') does not match broadcast "
                    "'second' (8 f32, root 0, role 'r') of rank 1" +
                        std::string(kOrder),
                    "rank 1: broadcast 'second' (8 f32, root 0, role 'r') does not match broadcast "
                    "'first' (8 f32, root 0, role 'r') of rank 0" +
                        std::string(kOrder)));
}

/// Rank 1 skips the first one.
TEST_P(Order, OneIsMissing) {
  Pair pair(GetParam(), 30);
  pair.add(0, collective(CollectiveKind::allGather, "first"));
  for (int64_t rank : {0, 1})
    pair.add(rank, collective(CollectiveKind::allReduce, "second"));
  EXPECT_THAT(
      pair.run().message(),
      AnyOf(
          "rank 0: all_gather 'first' (8 f32, dim 0, role 'r') does not match all_reduce 'second' "
          "(sum, 8 f32, role 'r') of rank 1",
          "rank 1: all_reduce 'second' (sum, 8 f32, role 'r') does not match all_gather "
          "'first' (8 f32, dim 0, role 'r') of rank 0"));
}

/// Rank 1 ends before the last one.
TEST_P(Order, TheLastIsMissing) {
  expectRankFailed(
      MatchesRegex(
          "rank 0: all_gather 'second' on the communication queue waited [0-9.]+ s for rank "
          "1, which has not arrived \\(rank 1 is not at any command .*"),
      [](double limit) {
        Pair pair(GetParam(), limit);
        for (int64_t rank : {0, 1})
          pair.add(rank, collective(CollectiveKind::allReduce, "first"));
        pair.add(0, collective(CollectiveKind::allGather, "second"));
        return pair.run();
      });
}

/// With different groups no rank finds a wrong collective, but the ranks deadlock.
TEST_P(Order, OfTwoGroups) {
  expectRankFailed(
      "ranks wait for each other, as they reach collectives in different orders: rank 0 at "
      "all_reduce 'first', rank 1 at all_gather 'second'",
      [](double limit) {
        Pair pair(GetParam(), limit);
        const std::vector<int64_t> one{0, 1}, other{1, 0};
        pair.add(0, collective(CollectiveKind::allReduce, "first"), one);
        pair.add(0, collective(CollectiveKind::allGather, "second"), other);
        pair.add(1, collective(CollectiveKind::allGather, "second"), other);
        pair.add(1, collective(CollectiveKind::allReduce, "first"), one);
        return pair.run();
      });
}

INSTANTIATE_TEST_SUITE_P(On, Order, ::testing::Values("threads", "shm"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
