//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Program/CommandOrder.h"
#include "ProgramBuilder.h"
#include "braid/Base/MessagesInFlight.h"

#include <set>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32;
using Pairs = std::vector<uint32_t>;

/// A program of messages and sums over `axis`, each in its own memory, with all waits at the end.
class Exchanges {
public:
  explicit Exchanges(std::vector<Mesh::Axis> axes, std::string axis = "pp")
      : builder(std::move(axes)), axis(std::move(axis)),
        main(builder.procedure("main", 1, 0, 4096, 0)) {
    builder.result("y", f32, {1, 8});
  }
  Exchanges &send(const std::string &name, Pairs pairs) {
    return add(name, fb::CollectiveKind::send, std::move(pairs));
  }
  Exchanges &receive(const std::string &name, Pairs pairs) {
    return add(name, fb::CollectiveKind::recv, std::move(pairs));
  }
  Exchanges &sum(const std::string &name) { return add(name, fb::CollectiveKind::all_reduce, {}); }

  BundleContents contents() {
    if (!ended)
      for (uint32_t i = 0; i < count; ++i)
        main.wait("", 2 * i + 1);
    if (!ended)
      main.copy("y", symmetric(0, f32, {1, 8}), argument(0, f32, {1, 8}));
    ended = true;
    builder.program.procedures[0]->num_events = 2 * count;
    return builder.contents();
  }
  Status verify() {
    BundleContents made = contents();
    return verifyProgram(made.members.at(made.manifest.programMember), made.manifest);
  }
  /// "0m1": rank 0's second command of the communication queue.
  std::string order(const std::vector<OrderedAfter> &also = {}) {
    auto steps = ordered(also);
    EXPECT_OK(steps);
    std::string text;
    for (const Step &step : *steps) {
      for (const Place &p : step.places)
        text += std::to_string(p.rank) + (p.queue == 0 ? "c" : "m") + std::to_string(p.index) +
                (&p == &step.places.back() ? " " : "+");
    }
    return text;
  }

  Result<std::vector<Step>> ordered(const std::vector<OrderedAfter> &also) {
    BundleContents made = contents();
    const Bytes &bytes = made.members.at(made.manifest.programMember);
    return orderCommands(*fb::GetProgram(bytes.data()), 0, made.manifest, also);
  }

private:
  Exchanges &add(const std::string &name, fb::CollectiveKind kind, Pairs pairs) {
    const V value = symmetric(64 * count, f32, {1, 8});
    const bool sends = kind != fb::CollectiveKind::recv,
               receives = kind != fb::CollectiveKind::send;
    main.start(name, kind, {axis}, sends ? std::vector<V>{value} : std::vector<V>{},
               receives ? std::vector<V>{value} : std::vector<V>{}, 0, 2 * count, 2 * count + 1);
    main.last().pairs = std::move(pairs);
    ++count;
    return *this;
  }

  ProgramBuilder builder;
  std::string axis;
  ProcedureBuilder main;
  uint32_t count = 0;
  bool ended = false;
};

TEST(CommandOrder, PutsWaitsBehindWhatTheyWaitFor) {
  Exchanges program({{"pp", 2}});
  // Every command once; the collective's commands of both ranks together.
  EXPECT_EQ(program.sum("sum").order(), "0c0 0m0 1c0 1m0 0m1+1m1 0c1 0c2 1c1 1c2 ");
}

TEST(CommandOrder, KeepsAnOrderThatIsGivenToo) {
  const Place copies[] = {{0, kComputeQueue, 2}, {1, kComputeQueue, 2}};
  const OrderedAfter first{copies[0], {copies[1]}}, second{copies[1], {copies[0]}};
  Exchanges program({{"pp", 2}});
  program.sum("sum");
  EXPECT_EQ(program.order({first}), "0c0 0m0 1c0 1m0 0m1+1m1 0c1 1c1 1c2 0c2 ");
  EXPECT_ERROR(program.ordered({first, second}),
               "deadlock: rank 0 waits for rank 1 at procedure 'main', compute command 2 ('y'); "
               "rank 1 waits for rank 0 at procedure 'main', compute command 2 ('y')");
}

/// A receive comes after its send with no later send in between, since NCCL would make that send
/// wait for the receive. A rank without a source or target does not wait.
TEST(CommandOrder, PutsReceivesCloseBehindTheirSends) {
  Exchanges program({{"pp", 2}});
  program.send("s", {0, 1}).receive("r", {0, 1}).send("s", {0, 1}).receive("r", {0, 1});
  EXPECT_OK(program.verify());
  const std::string order = program.order();
  auto at = [&](const char *place) { return order.find(place); };
  EXPECT_LT(at("0m1 "), at("1m3 ")); // the first send before its receive
  EXPECT_LT(at("1m3 "), at("0m5 ")); // and that receive before the second send
  EXPECT_LT(at("0m5 "), at("1m7 "));
}

TEST(CommandOrder, NamesTwoRanksThatReceiveFirst) {
  Exchanges program({{"pp", 2}});
  program.receive("r", {0, 1, 1, 0}).send("s", {0, 1, 1, 0});
  EXPECT_ERROR(program.verify(),
               "entry 'main': deadlock: rank 0 waits for a send of rank 1 at procedure 'main', "
               "communication command 1 ('r'); rank 1 waits for a send of rank 0 at procedure "
               "'main', communication command 1 ('r')");
  Exchanges other({{"pp", 2}});
  EXPECT_OK(other.send("s", {0, 1, 1, 0}).receive("r", {0, 1, 1, 0}).verify());
}

TEST(CommandOrder, NamesAllRanksOfARing) {
  const Pairs ring{0, 1, 1, 2, 2, 0}, line{0, 1, 1, 2};
  Exchanges program({{"pp", 3}});
  EXPECT_ERROR(program.receive("r", ring).send("s", ring).verify(),
               "entry 'main': deadlock: rank 0 waits for a send of rank 2 at procedure 'main', "
               "communication command 1 ('r'); rank 2 waits for a send of rank 1 at procedure "
               "'main', communication command 1 ('r'); rank 1 waits for a send of rank 0 at "
               "procedure 'main', communication command 1 ('r')");
  Exchanges pipeline({{"pp", 3}}); // rank 0 receives nothing, so it can send
  EXPECT_OK(pipeline.receive("r", line).send("s", line).verify());
}

/// The first rank examined is not in the cycle.
TEST(CommandOrder, NamesTheRanksOfTheCircleOnly) {
  Exchanges other({{"dp", 2}, {"pp", 3}});
  EXPECT_ERROR(other.receive("r", {1, 2, 2, 1}).sum("sum").send("s", {1, 2, 2, 1}).verify(),
               "entry 'main': deadlock: rank 1 waits for a send of rank 2 at procedure 'main', "
               "communication command 1 ('r'); rank 2 waits for a send of rank 1 at procedure "
               "'main', communication command 1 ('r')");
}

TEST(CommandOrder, NamesACollectiveBetweenAReceiveAndItsSend) {
  Exchanges program({{"pp", 2}});
  EXPECT_ERROR(program.receive("r", {0, 1}).sum("sum").send("s", {0, 1}).verify(),
               "entry 'main': deadlock: rank 0 waits for rank 1 at procedure 'main', communication "
               "command 3 ('sum'); rank 1 waits for a send of rank 0 at procedure 'main', "
               "communication command 1 ('r')");
}

/// A ring in which every rank sends all of its messages before it receives any.
TEST(CommandOrder, CountsTheMessagesInFlight) {
  const Pairs ring{0, 1, 1, 0};
  for (int64_t messages : {kMessagesInFlight, kMessagesInFlight + 1}) {
    Exchanges program({{"pp", 2}});
    for (int64_t i = 0; i < messages; ++i)
      program.send("s", ring);
    for (int64_t i = 0; i < messages; ++i)
      program.receive("r", ring);
    if (messages == kMessagesInFlight)
      EXPECT_OK(program.verify());
    else
      EXPECT_ERROR(program.verify(),
                   "entry 'main': deadlock: rank 0 waits for a recv of rank 1 at procedure 'main', "
                   "communication command 9 ('s'); rank 1 waits for a recv of rank 0 at procedure "
                   "'main', communication command 9 ('s')");
  }
  // A rank that only receives takes any number of messages.
  Exchanges oneWay({{"pp", 2}});
  for (int i = 0; i < 20; ++i)
    oneWay.send("s", {0, 1});
  for (int i = 0; i < 20; ++i)
    oneWay.receive("r", {0, 1});
  EXPECT_OK(oneWay.verify());
  // A send finds room only behind the receive of the message before.
  const std::string order = oneWay.order();
  EXPECT_LT(order.find("1m41 "), order.find("0m9 "));
}

/// Each tag has its own order.
TEST(CommandOrder, MessagesOfAChannelComeInOrder) {
  Exchanges program({{"pp", 2}});
  EXPECT_OK(program.send("a", {0, 1}).receive("a", {0, 1}).verify());
  EXPECT_ERROR(program.receive("b", {1, 0}).verify(),
               "entry 'main': rank 0 receives at procedure 'main', communication command 5 ('b'), "
               "what rank 1 does not send (message 0 with tag 0)");
  Exchanges larger({{"pp", 1 << 17}});
  EXPECT_ERROR(larger.send("a", {0, 1}).receive("a", {0, 1}).verify(),
               "entry 'main': where ranks send to each other, expects at most 65536 ranks with "
               "268435456 communication commands, got 131072 with 524288");
}

} // namespace
