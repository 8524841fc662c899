//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs of several communication queues, and of events that cross calls: on all transports of
// the CPU and of CUDA, and in the program interpreter in many orders.
//
//===----------------------------------------------------------------------===//
#include "CudaTesting.h"
#include "QueuePrograms.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"
#include "runtime/lib/Executor/Commands.h"

#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32;

/// Runs a program of kRanks ranks with inputs "x" and compares every result with `expected`.
void run(const Where &where, ProgramBuilder &b, const Expected &expected) {
  auto session = where.session(b);
  ASSERT_OK(session);
  for (int round = 0; round < 50; ++round) {
    const std::vector<float> x = inputOf(round);
    ASSERT_OK((*session)->setInput("x", f32, {kRanks, kWidth}, x.data()));
    ASSERT_OK((*session)->run());
    for (const auto &[name, value] : expected) {
      auto got = (*session)->output(name);
      ASSERT_OK(got);
      const std::vector<float> want = value(x);
      EXPECT_EQ(std::vector<float>(got->as<float>(), got->as<float>() + want.size()), want)
          << name << " in round " << round;
    }
  }
}

/// The same in the program interpreter, in many orders, after the proof for all orders.
void interpret(ProgramBuilder &b, const Expected &expected) {
  BundleContents contents = b.contents();
  const Bytes &program = contents.members.at(contents.manifest.programMember);
  const Entry &entry = contents.manifest.entries[0];
  auto lookup = [](const std::string &symbol) -> Result<KernelFunction> {
    return Status::error("no kernel " + symbol);
  };
  auto interpreter =
      braid::interp::ProgramInterpreter::create(program, contents.manifest, entry, lookup);
  ASSERT_OK(interpreter);
  EXPECT_EQ(braid::interp::checkOrder((*interpreter)->program()), std::vector<std::string>());
  const std::vector<float> x = inputOf(3);
  HostTensor input = HostTensor::zeros(f32, {kRanks, kWidth});
  std::copy(x.begin(), x.end(), input.as<float>());
  ASSERT_OK((*interpreter)->setInput("x", input));
  auto results = (*interpreter)->runSchedules(1, 300, {});
  ASSERT_OK(results);
  for (const auto &[name, value] : expected) {
    const HostTensor &got = results->at(name);
    const std::vector<float> want = value(x);
    EXPECT_EQ(std::vector<float>(got.as<float>(), got.as<float>() + want.size()), want) << name;
  }
}

struct NamedProgram {
  const char *name;
  ProgramBuilder (*build)(Expected &expected);
};
const NamedProgram kPrograms[] = {{"CollectivesOfOneGroupInFlightTogether", twoInFlight},
                                  {"AReceiveHoldsUpItsOwnQueueOnly", receiveBeside},
                                  {"EventsCrossCalls", eventsAcrossCalls}};

class Queues : public ::testing::TestWithParam<std::tuple<NamedProgram, Where>> {};

TEST_P(Queues, GiveTheResults) {
  const auto &[program, where] = GetParam();
  Expected expected;
  ProgramBuilder b = program.build(expected);
  run(where, b, expected);
}

TEST(QueuesInterpreted, GiveTheResultsInEveryOrder) {
  for (const NamedProgram &program : kPrograms) {
    SCOPED_TRACE(program.name);
    Expected expected;
    ProgramBuilder b = program.build(expected);
    interpret(b, expected);
  }
}

/// Without the wait on the third queue, its collective reads what the second one writes.
TEST(QueuesInterpreted, ARaceBetweenCommunicationQueuesIsNamed) {
  Expected expected;
  ProgramBuilder b = twoInFlight(expected);
  CommandList &second = streamOf(*b.program.procedures[0], 2);
  second.erase(second.begin()); // its await of the compute queue's copies
  BundleContents contents = b.contents();
  auto expanded = braid::interp::expandProgram(contents.members.at(contents.manifest.programMember),
                                               contents.manifest, contents.manifest.entries[0]);
  ASSERT_OK(expanded);
  const std::vector<std::string> faults = braid::interp::checkOrder(*expanded);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults.front(),
            "race between copy 'second' in @main on the compute queue and all_reduce 'second' in "
            "@main on the communication 1 queue on memory in @main (symmetric bytes [64, 80)): no "
            "event orders what the one writes and the other reads");
}

INSTANTIATE_TEST_SUITE_P(Of, Queues,
                         ::testing::Combine(::testing::ValuesIn(kPrograms),
                                            ::testing::ValuesIn(kEverywhere)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::get<1>(info.param).name;
                         });

//===----------------------------------------------------------------------===//
// Messages about what waits
//===----------------------------------------------------------------------===//

/// Each rank's second queue waits for the compute queue, which waits for the first, which waits for
/// the second queue of the other rank.
TEST(QueuesRefused, ADeadlockOfThreeQueues) {
  ProgramBuilder b({{"tp", kRanks}});
  b.operand("x", f32, {kRanks, kWidth}, {{"tp"}, {}});
  b.result("y", f32, {kRanks, kWidth}, {{"tp"}, {}});
  const Queue sending = b.queue("communication 1");
  auto p = b.procedure("main", 2, 0, 256, 4);
  const V in = symmetric(0, f32, {kWidth}), got = symmetric(64, f32, {kWidth});
  const std::vector<uint32_t> around{0, 1, 1, 0};
  p.copy("in", argument(0, f32, {kWidth}), in);
  p.record(kComputeQueue, 0, "begun");
  p.await(kCommunicationQueue, 0, "begun");
  p.collective(kCommunicationQueue, "receive", fb::CollectiveKind::recv, {"tp"}, {}, {got}, 0, 1);
  p.last().pairs = around;
  p.wait("received", 1);
  p.record(kComputeQueue, 2, "answer");
  p.await(sending, 2, "answer");
  p.collective(sending, "send", fb::CollectiveKind::send, {"tp"}, {in}, {}, 0, 3);
  p.last(sending).pairs = around;
  p.copy("out", got, argument(1, f32, {kWidth}));
  EXPECT_ERROR(
      b.session(),
      "bundle: member 'program.brpg': entry 'main': deadlock: rank 0 waits for its compute queue "
      "at procedure 'main', communication 1 command 0 ('answer'); rank 0 waits for its "
      "communication queue at procedure 'main', compute command 2 ('received'); rank 0 waits for a "
      "send of rank 1 at procedure 'main', communication command 1 ('receive'); rank 1 waits for "
      "its compute queue at procedure 'main', communication 1 command 0 ('answer'); rank 1 waits "
      "for its communication queue at procedure 'main', compute command 2 ('received'); rank 1 "
      "waits for a send of rank 0 at procedure 'main', communication command 1 ('receive')");
}

/// The order of messages of one tag between two ranks is that of one queue.
TEST(QueuesRefused, MessagesOfOneTagOnTwoQueues) {
  ProgramBuilder b({{"tp", kRanks}});
  b.operand("x", f32, {kRanks, kWidth}, {{"tp"}, {}});
  b.result("y", f32, {kRanks, kWidth}, {{"tp"}, {}});
  const Queue other = b.queue("communication 1");
  auto p = b.procedure("main", 2, 0, 256, 4);
  const V in = symmetric(0, f32, {kWidth}), got = symmetric(64, f32, {kWidth});
  const std::vector<uint32_t> there{0, 1};
  auto add = [&](Queue queue, const std::string &name, fb::CollectiveKind kind, uint32_t done) {
    const bool sends = kind == fb::CollectiveKind::send;
    p.collective(queue, name, kind, {"tp"}, sends ? std::vector<V>{in} : std::vector<V>{},
                 sends ? std::vector<V>{} : std::vector<V>{got}, 0, done);
    p.last(queue).pairs = there;
  };
  p.copy("in", argument(0, f32, {kWidth}), in);
  add(kCommunicationQueue, "s0", fb::CollectiveKind::send, 0);
  add(kCommunicationQueue, "r0", fb::CollectiveKind::recv, 1);
  add(other, "s1", fb::CollectiveKind::send, 2);
  add(other, "r1", fb::CollectiveKind::recv, 3);
  p.copy("out", got, argument(1, f32, {kWidth}));
  EXPECT_ERROR(b.session(),
               "bundle: member 'program.brpg': entry 'main': procedure 'main', communication 1 "
               "command 0 ('s1'): expects all sends from rank 0 to rank 1 with tag 0 on one queue, "
               "got the communication queue too");
}

/// Ranks that stand at collectives of different queues: the message tells the cycle, over events
/// too.
TEST(QueuesAtRuntime, ACycleOverQueuesIsNamed) {
  std::vector<QueueInfo> queues = computeAndCommunication();
  queues.push_back({QueueKind::communication, "communication 1"});
  RunControl control(kRanks, queues, 0.05, {});
  control.begin();
  struct Group : ProcessGroup {
    std::vector<int64_t> missing(int64_t position) const override { return {1 - position}; }
  } group;
  group.queue = kCommunicationQueue;
  std::vector<Command> commands[kRanks];
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    CollectiveCommand sum{};
    sum.collective.group = &group;
    sum.collective.position = rank;
    auto at = [&](Queue queue, const char *operation, const char *name, auto op, Waiting waiting) {
      Command &command = commands[rank].emplace_back();
      command.operation = operation;
      command.name = name;
      command.op = std::move(op);
      QueueState &state = control.queue(rank, queue);
      state.waiting.store(waiting);
    };
    // Rank 0 is at the collective; the queue of rank 1 that is to arrive waits for the third one.
    if (rank == 0) {
      at(kCommunicationQueue, "all_reduce", "a", std::move(sum), Waiting::peer);
    } else {
      at(kCommunicationQueue, "await", "b", AwaitCommand{0, 2}, Waiting::event);
      at(2, "await", "c", AwaitCommand{1, kComputeQueue}, Waiting::event);
      at(kComputeQueue, "wait", "d", CollectiveWaitCommand{2, 0, kCommunicationQueue},
         Waiting::event);
    }
  }
  control.queue(0, kCommunicationQueue).at.store(&commands[0][0]);
  control.queue(1, kCommunicationQueue).at.store(&commands[1][0]);
  control.queue(1, 2).at.store(&commands[1][1]);
  control.queue(1, kComputeQueue).at.store(&commands[1][2]);
  RunControl::Watch watch;
  while (control.poll(watch))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(control.failure().message(),
            "queues wait for each other: rank 1 at await 'c' on its communication 1 queue, rank 1 "
            "at wait 'd' on its compute queue, rank 1 at await 'b' on its communication queue");
}

} // namespace
