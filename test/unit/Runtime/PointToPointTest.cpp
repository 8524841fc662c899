//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// send and recv beyond the table of collectives: their order, tags, and sends that do not match
// their receives, on all transports of the CPU and of CUDA; and counts of an all_to_all_v that
// exceed its capacity.
//
//===----------------------------------------------------------------------===//
#include "CollectiveTable.h"
#include "CudaTesting.h"

#include <chrono>
#include <functional>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32, i32 = DType::i32;

/// A program of sends and receives of f32 [4] on a mesh of `ranks`.
class Builder {
public:
  explicit Builder(int64_t ranks) : b({{"tp", ranks}}), ranks(ranks) {
    b.operand("x", f32, {ranks, 4}, {{"tp"}, {}});
    b.procedure("main", 1, 0, 4096, 0);
  }
  ProcedureBuilder main() { return ProcedureBuilder(b.program, *b.program.procedures[0]); }

  void result(const std::string &name, uint64_t offset) {
    b.result(name, f32, {ranks, 4}, {{"tp"}, {}});
    results.push_back(offset);
    ++b.program.procedures[0]->num_arguments;
  }
  void add(const std::string &name, fb::CollectiveKind kind, uint64_t offset,
           const std::vector<uint32_t> &pairs, uint32_t tag = 0, DType dtype = f32,
           int64_t elements = 4) {
    fb::CollectiveStartT op;
    op.kind = kind;
    op.axes = ProcedureBuilder::axisRefs({"tp"});
    (kind == fb::CollectiveKind::send ? op.inputs : op.outputs)
        .push_back(symmetric(offset, dtype, {elements}).build());
    op.pairs = pairs;
    op.tag = tag;
    op.done = events++;
    op.identity = "test";
    ProcedureBuilder p = main();
    p.communication(name, std::move(op));
  }
  void send(const std::string &name, uint64_t offset, const std::vector<uint32_t> &pairs,
            uint32_t tag = 0) {
    add(name, fb::CollectiveKind::send, offset, pairs, tag);
  }
  void recv(const std::string &name, uint64_t offset, const std::vector<uint32_t> &pairs,
            uint32_t tag = 0) {
    add(name, fb::CollectiveKind::recv, offset, pairs, tag);
  }
  /// Inputs are at 0 when the first send or recv begins; all are complete when results are copied.
  Result<std::unique_ptr<Session>> session(const Where &where, double timeLimit = 20) {
    fb::ProcedureT &procedure = *b.program.procedures[0];
    procedure.num_events = events + 1;
    auto commands = std::move(communicationOf(procedure));
    communicationOf(procedure).clear();
    ProcedureBuilder p = main();
    p.copy("in", argument(0, f32, {4}), symmetric(0, f32, {4}));
    fb::RecordT record;
    record.event = events;
    p.compute("ready", std::move(record));
    fb::AwaitT await;
    await.event = events;
    p.communication("ready", std::move(await));
    for (auto &command : commands)
      communicationOf(procedure).push_back(std::move(command));
    for (uint32_t event = 0; event < events; ++event)
      p.wait("message", event);
    for (size_t i = 0; i < results.size(); ++i)
      p.copy("out", symmetric(results[i], f32, {4}),
             argument(static_cast<uint32_t>(1 + i), f32, {4}));
    return where.session(b, timeLimit);
  }

private:
  ProgramBuilder b;
  int64_t ranks;
  uint32_t events = 0;
  std::vector<uint64_t> results;
};

std::vector<float> input(int64_t ranks, int run) {
  std::vector<float> x;
  for (int64_t i = 0; i < ranks * 4; ++i)
    x.push_back(static_cast<float>(100 * run + i + 1));
  return x;
}

class PointToPoint : public ::testing::TestWithParam<Where> {};
class Counts : public ::testing::TestWithParam<Where> {};

/// Messages take turns in a few slots: each must arrive before the next one of its slot is sent.
TEST_P(PointToPoint, MoreMessagesThanSlots) {
  constexpr int64_t kRanks = 3, kMessages = 20;
  Builder b(kRanks);
  const std::vector<uint32_t> ring{0, 1, 1, 2, 2, 0};
  auto place = [](int64_t message) { return static_cast<uint64_t>(4 * message); };
  auto receive = [&](int64_t message) {
    b.add("r", fb::CollectiveKind::recv, 1024 + place(message), ring, 0, f32, 1);
  };
  for (int64_t message = 0; message < kMessages; ++message) {
    b.add("s", fb::CollectiveKind::send, place(message % 4), ring, 0, f32, 1);
    if (message + 1 >= kMessagesInFlight)
      receive(message + 1 - kMessagesInFlight);
  }
  for (int64_t message = kMessages + 1 - kMessagesInFlight; message < kMessages; ++message)
    receive(message);
  for (int64_t row = 0; row < kMessages / 4; ++row)
    b.result("y." + std::to_string(row), 1024 + place(4 * row));
  auto session = b.session(GetParam());
  ASSERT_OK(session);
  for (int run = 0; run < 20; ++run) {
    std::vector<float> x = input(kRanks, run);
    ASSERT_OK((*session)->setInput("x", f32, {kRanks, 4}, x.data()));
    ASSERT_OK((*session)->run());
    for (int64_t row = 0; row < kMessages / 4; ++row) {
      auto y = (*session)->output("y." + std::to_string(row));
      ASSERT_OK(y);
      for (int64_t i = 0; i < kRanks * 4; ++i)
        ASSERT_EQ(y->as<float>()[i], x[static_cast<size_t>((i + (kRanks - 1) * 4) % (kRanks * 4))]);
    }
  }
}

/// Every rank sends before it receives: this deadlocks if a send waits for its receive.
TEST_P(PointToPoint, ARingThatSendsFirst) {
  constexpr int64_t kRanks = 4;
  Builder b(kRanks);
  const std::vector<uint32_t> ring{0, 1, 1, 2, 2, 3, 3, 0};
  b.send("s", 0, ring);
  b.recv("r", 1024, ring);
  b.result("y", 1024);
  auto session = b.session(GetParam());
  ASSERT_OK(session);
  for (int run = 0; run < 20; ++run) {
    std::vector<float> x = input(kRanks, run);
    ASSERT_OK((*session)->setInput("x", f32, {kRanks, 4}, x.data()));
    ASSERT_OK((*session)->run());
    auto y = (*session)->output("y");
    ASSERT_OK(y);
    for (int64_t rank = 0; rank < kRanks; ++rank)
      for (int64_t i = 0; i < 4; ++i)
        ASSERT_EQ(y->as<float>()[rank * 4 + i],
                  x[static_cast<size_t>((rank + kRanks - 1) % kRanks * 4 + i)]);
  }
}

/// Messages with the same tag are received in the order in which they were sent; a rank may receive
/// another tag's message first. A sent buffer may be overwritten.
TEST_P(PointToPoint, InOrderPerChannel) {
  Builder b(2);
  const std::vector<uint32_t> there{0, 1}, back{1, 0};
  b.send("a", 0, there);      // rank 0's x
  b.recv("a", 512, there);    // rank 1 gets rank 0's x
  b.send("b", 512, back);     // rank 1 sends rank 0's x back
  b.send("c", 0, back, 7);    // rank 1's own x, with another tag
  b.recv("c", 1024, back, 7); // rank 0 receives this one first
  b.send("d", 0, back);       // the second one with the first tag
  b.recv("b", 1536, back);
  b.recv("d", 2048, back);
  b.result("c", 1024);
  b.result("b", 1536);
  b.result("d", 2048);
  auto session = b.session(GetParam());
  ASSERT_OK(session);
  for (int run = 0; run < 5; ++run) {
    std::vector<float> x = input(2, run);
    ASSERT_OK((*session)->setInput("x", f32, {2, 4}, x.data()));
    ASSERT_OK((*session)->run());
    auto c = (*session)->output("c"), first = (*session)->output("b"),
         second = (*session)->output("d");
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c->as<float>()[i], x[4 + i]);
      EXPECT_EQ(first->as<float>()[i], x[i]);
      EXPECT_EQ(second->as<float>()[i], x[4 + i]);
      EXPECT_EQ(c->as<float>()[4 + i], 0) << "rank 1 is nobody's target";
    }
  }
}

/// The memory had other values before, the rank's own, which have been sent.
TEST_P(PointToPoint, WhoIsNobodysTargetGetsZeros) {
  Builder b(2);
  b.send("s", 0, {0, 1});
  b.recv("r", 0, {0, 1});
  b.result("y", 0);
  auto session = b.session(GetParam());
  ASSERT_OK(session);
  for (int run = 0; run < 3; ++run) {
    std::vector<float> x = input(2, run);
    ASSERT_OK((*session)->setInput("x", f32, {2, 4}, x.data()));
    ASSERT_OK((*session)->run());
    auto y = (*session)->output("y");
    ASSERT_OK(y);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(y->as<float>()[i], 0);
      EXPECT_EQ(y->as<float>()[4 + i], x[i]);
    }
  }
}

TEST_P(PointToPoint, SendsAndRecvsThatDoNotMatchAreRefused) {
  const std::vector<uint32_t> there{0, 1}, back{1, 0};
  auto error = [&](const std::function<void(Builder &)> &fill) {
    Builder b(2);
    fill(b);
    return b.session(GetParam()).status().message();
  };
  using Kind = fb::CollectiveKind;
  const std::string program = "bundle: member 'program.brpg': entry 'main': ",
                    command = " at procedure 'main', communication command ";
  EXPECT_EQ(error([&](Builder &b) { b.send("s", 0, there); }),
            program + "rank 0 sends" + command +
                "1 ('s'), what rank 1 does not receive (message 0 with tag 0)");
  EXPECT_EQ(error([&](Builder &b) {
              b.send("s", 0, there);
              b.recv("r", 512, there, 1);
            }),
            program + "rank 0 sends" + command +
                "1 ('s'), what rank 1 does not receive (message 0 with tag 0)");
  EXPECT_EQ(error([&](Builder &b) { b.recv("r", 512, there); }),
            program + "rank 1 receives" + command +
                "1 ('r'), what rank 0 does not send (message 0 with tag 0)");
  EXPECT_EQ(error([&](Builder &b) {
              b.send("s", 0, there);
              b.add("r", Kind::recv, 512, there, 0, f32, 5);
            }),
            program + "rank 1 receives f32 [5]" + command + "2 ('r'), where rank 0 sends f32 [4]" +
                command + "1 ('s') (message 0 with tag 0)");
  EXPECT_EQ(error([&](Builder &b) {
              b.send("s", 0, there);
              b.add("r", Kind::recv, 512, there, 0, i32);
            }),
            program + "rank 1 receives i32 [4]" + command + "2 ('r'), where rank 0 sends f32 [4]" +
                command + "1 ('s') (message 0 with tag 0)");
  // Sides need not list the same pairs.
  EXPECT_EQ(error([&](Builder &b) {
              b.send("s", 0, there);
              b.send("t", 0, back);
              b.recv("r", 512, {0, 1, 1, 0});
            }),
            "");
}

/// Both ranks receive before they send: this deadlock is detected before any command runs.
TEST_P(PointToPoint, ReceivingBeforeSendingIsRefused) {
  Builder b(2);
  b.recv("r", 512, {0, 1, 1, 0});
  b.send("s", 0, {0, 1, 1, 0});
  EXPECT_ERROR(b.session(GetParam(), 60),
               "bundle: member 'program.brpg': entry 'main': deadlock: rank 0 waits for a send of "
               "rank 1 at procedure 'main', "
               "communication command 1 ('r'); rank 1 waits for a send of rank 0 at procedure "
               "'main', communication command 1 ('r')");
}

/// all_to_all_v: the error names the rank, the block and the bound.
TEST_P(Counts, ThatHaveNoRoom) {
  for (auto [bad, where] : {std::pair{6, 1}, std::pair{-1, 3}}) {
    ProgramBuilder b({{"tp", 2}});
    b.operand("counts", i32, {8}, {{"tp"}});
    b.result("got", i32, {8}, {{"tp"}});
    auto p = b.procedure("main", 2, 0, 4096, 2);
    V counts = symmetric(0, i32, {4}), gotCounts = symmetric(64, i32, {4});
    V x = symmetric(128, f32, {4, 5, 3}), y = symmetric(1024, f32, {4, 5, 3});
    p.copy("in", argument(0, i32, {4}), counts);
    p.start("experts", fb::CollectiveKind::all_to_all_v, {"tp"}, {x, counts}, {y, gotCounts}, 0, 0,
            1);
    p.wait("experts", 1);
    p.copy("out", gotCounts, argument(1, i32, {4}));
    auto session = GetParam().session(b, 60);
    ASSERT_OK(session);
    std::vector<int32_t> values{0, 5, 2, 1, 3, 0, 4, 5};
    ASSERT_OK((*session)->setInput("counts", i32, {8}, values.data()));
    ASSERT_OK((*session)->run());
    auto got = (*session)->output("got");
    ASSERT_OK(got);
    EXPECT_EQ(std::vector<int32_t>(got->as<int32_t>(), got->as<int32_t>() + 8),
              (std::vector<int32_t>{0, 5, 3, 0, 2, 1, 4, 5}));
    values[4 + static_cast<size_t>(where)] = bad; // of rank 1
    ASSERT_OK((*session)->setInput("counts", i32, {8}, values.data()));
    auto begin = std::chrono::steady_clock::now();
    Status status = (*session)->run();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(status.code(), Code::rankFailed);
    EXPECT_EQ(status.message(),
              "rank 1: all_to_all_v 'experts' (30 f32 and 2 i32, role 'test') in @main expects "
              "counts in [0, 5], got " +
                  std::to_string(bad) + " at block " + std::to_string(where));
    // The session is still usable.
    values[4 + static_cast<size_t>(where)] = 0;
    ASSERT_OK((*session)->setInput("counts", i32, {8}, values.data()));
    EXPECT_OK((*session)->run());
  }
}

std::string nameOf(const ::testing::TestParamInfo<Where> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(On, PointToPoint, ::testing::ValuesIn(kEverywhere), nameOf);
INSTANTIATE_TEST_SUITE_P(On, Counts, ::testing::ValuesIn(kEverywhere), nameOf);

} // namespace
