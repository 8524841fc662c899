//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs whose ranks run different calls and have different values, on all transports of the CPU
// and of CUDA (on the null device), in the program interpreter, and in the verifier.
//
//===----------------------------------------------------------------------===//
#include "CudaTesting.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"

#include <gmock/gmock.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32;
constexpr uint64_t kFrame = 64;

Shape fourElements() { return {4}; }
RankSet firstStage() { return {{{"pp", {0}}}}; }
RankSet lastStage() { return {{{"pp", {1}}}}; }

/// Makes the calls of a procedure, which is the last command of all queues, run on some ranks.
void onRanks(fb::ProcedureT &procedure, const RankSet &ranks) {
  for (auto &stream : procedure.streams) {
    fb::CommandT &command = *stream->commands.back();
    command.on.clear();
    for (const RankSet::Axis &axis : ranks.axes) {
      command.on.push_back(std::make_unique<fb::CoordinatesT>());
      command.on.back()->axis = axis.axis;
      command.on.back()->coordinates.assign(axis.coordinates.begin(), axis.coordinates.end());
    }
  }
}

/// Two stages: @send sends x, which the ranks with pp = 0 have, and @recv gives what it receives as
/// y, on the ranks with pp = 1.
struct Stages {
  explicit Stages(int64_t stages = 2) : b({{"pp", stages}, {"tp", 2}}) {
    b.operand("x", f32, {8}, {{"tp"}});
    b.result("y", f32, {8}, {{"tp"}});
    b.manifest.entries[0].operands[0].on = firstStage();
    b.manifest.entries[0].results[0].on = lastStage();
    ProcedureBuilder main = b.procedure("main", 2, 0, 3 * kFrame, 4);
    main.call("send", 1, {argument(0, f32, fourElements())}, 0, 0, 0);
    onRanks(procedure(0), firstStage());
    main.call("recv", 2, {argument(1, f32, fourElements())}, 0, kFrame, 2);
    onRanks(procedure(0), lastStage());
    ProcedureBuilder send = b.procedure("send", 1, 0, kFrame, 2);
    send.copy("x", argument(0, f32, fourElements()), symmetric(0, f32, fourElements()));
    send.start("send", fb::CollectiveKind::send, {"pp"}, {symmetric(0, f32, fourElements())}, {}, 0,
               0, 1);
    send.last().pairs = {0, 1};
    send.wait("send", 1);
    ProcedureBuilder recv = b.procedure("recv", 1, 0, kFrame, 2);
    recv.start("recv", fb::CollectiveKind::recv, {"pp"}, {}, {symmetric(0, f32, fourElements())}, 0,
               0, 1);
    recv.last().pairs = {0, 1};
    recv.wait("recv", 1);
    recv.copy("y", symmetric(0, f32, fourElements()), argument(0, f32, fourElements()));
  }
  fb::ProcedureT &procedure(size_t number) { return *b.program.procedures[number]; }
  Status verify() {
    BundleContents made = b.contents();
    RETURN_IF_ERROR(made.manifest.verify());
    return verifyProgram(made.members.at(made.manifest.programMember), made.manifest);
  }
  ProgramBuilder b;
};

HostTensor counted() {
  HostTensor value = HostTensor::zeros(f32, {8});
  for (int64_t i = 0; i < 8; ++i)
    value.as<float>()[i] = static_cast<float>(i + 1);
  return value;
}

TEST(Roles, RunEverywhere) {
  Stages stages;
  const HostTensor x = counted();
  for (const Where &where : kEverywhere) {
    SCOPED_TRACE(where.name);
    auto session = where.session(stages.b);
    ASSERT_OK(session);
    ASSERT_OK((*session)->setInput("x", x));
    for (int run = 0; run < 3; ++run)
      ASSERT_OK((*session)->run());
    auto y = (*session)->output("y");
    ASSERT_OK(y);
    EXPECT_EQ(y->data, x.data);
  }
}

TEST(Roles, RunInEveryOrder) {
  Stages stages;
  std::shared_ptr<const Bundle> bundle = stages.b.bundle();
  auto interpreter = braid::interp::ProgramInterpreter::create(
      bundle->program(), bundle->manifest(), bundle->manifest().entries[0],
      [](const std::string &symbol) -> Result<KernelFunction> {
        return Status::error("no kernel '" + symbol + "'");
      });
  ASSERT_OK(interpreter);
  const braid::interp::ProgramRoles &roles = (*interpreter)->program();
  EXPECT_EQ(roles.roles.size(), 2u);
  EXPECT_EQ(roles.of(1).numCommands(), 5u); // copy, record, await, send, wait
  EXPECT_THAT(braid::interp::checkOrder(roles), ::testing::IsEmpty());
  ASSERT_OK((*interpreter)->setInput("x", counted()));
  auto got = (*interpreter)->runSchedules(1, 20);
  ASSERT_OK(got);
  EXPECT_EQ(got->at("y").data, counted().data);
}

TEST(Roles, HaveMemoryForTheirOwnValues) {
  Stages stages;
  auto session = stages.b.session();
  ASSERT_OK(session);
  alignas(64) float memory[4];
  EXPECT_ERROR((*session)->bindInput(2, "x", memory, sizeof memory),
               "input 'x' of rank 2 does not exist: it is on {pp = [0]}");
  EXPECT_ERROR((*session)->bindOutput(0, "y", memory, sizeof memory),
               "output 'y' of rank 0 does not exist: it is on {pp = [1]}");
  const std::string report = (*session)->report();
  EXPECT_THAT(report, ::testing::HasSubstr("\"rank\": 0"));
  // Caller's memory on the ranks that have the input is all of it.
  alignas(64) float low[4] = {1, 2, 3, 4};
  alignas(64) float high[4] = {5, 6, 7, 8};
  ASSERT_OK((*session)->bindInput(0, "x", low, sizeof low));
  ASSERT_OK((*session)->bindInput(1, "x", high, sizeof high));
  ASSERT_OK((*session)->run());
  auto y = (*session)->output("y");
  ASSERT_OK(y);
  EXPECT_EQ(y->data, counted().data);
}

TEST(Roles, RefuseRanksThatDoNotExist) {
  Stages stages;
  onRanks(stages.procedure(0), RankSet{{{"pp", {2}}}});
  EXPECT_ERROR(stages.verify(), "procedure 'main', compute command 1 ('recv'): axis 'pp' of size 2 "
                                "has no coordinate 2");
  onRanks(stages.procedure(1), firstStage()); // a wait, and a send
  onRanks(stages.procedure(0), lastStage());
  EXPECT_ERROR(stages.verify(), "procedure 'send', compute command 2 ('send'): expects ranks of a "
                                "call or a copy only");
}

TEST(Roles, RefuseQueuesThatDiffer) {
  Stages stages;
  stages.procedure(0).streams[1]->commands.back()->on.clear();
  EXPECT_ERROR(stages.verify(),
               "procedure 'main', compute command 1 ('recv'): expects the same call as procedure "
               "'main', communication command 1 ('recv')");
}

TEST(Roles, RefuseValuesOfOtherRanks) {
  Stages stages;
  stages.b.manifest.entries[0].operands[0].on = lastStage();
  EXPECT_ERROR(stages.verify(), "entry 'main': operand 'x' is on {pp = [1]}, but rank 0 uses it");
  Stages unwritten;
  unwritten.b.manifest.entries[0].results[0].on = {};
  EXPECT_ERROR(unwritten.verify(), "entry 'main': result 'y' is never written");
  Stages sharded;
  sharded.b.manifest.entries[0].results[0].on = RankSet{{{"tp", {0}}}};
  EXPECT_ERROR(sharded.verify(), "'entries[0].results[0]': 'y': expects no sharding over axis "
                                 "'tp', along which only some ranks have it");
}

TEST(Roles, RefuseEventsOfOtherRanks) {
  Stages stages;
  // All ranks wait for what only the first stage sets.
  ProcedureBuilder main(stages.b.program, stages.procedure(0));
  main.wait("sent", 1);
  EXPECT_ERROR(stages.verify(),
               "entry 'main': on rank 2: procedure 'main', compute command 2 ('sent'): waits for "
               "event 1, which procedure 'send', communication command 1 ('send') sets on other "
               "ranks only");
}

TEST(Roles, RefuseMessagesWithoutTheOtherSide) {
  Stages stages;
  stages.b.manifest.entries[0].operands[0].on = {};
  fb::ProcedureT &main = stages.procedure(0);
  for (auto &stream : main.streams)
    stream->commands.front()
        ->on.clear(); // a send on all ranks, of which one is a source: as before
  EXPECT_OK(stages.verify());
  stages.procedure(1).streams[1]->commands.back()->op.AsCollectiveStart()->tag = 3;
  EXPECT_ERROR(stages.verify(),
               "entry 'main': rank 2 receives at procedure 'recv', communication command 1 "
               "('recv'), what rank 0 does not send (message 0 with tag 0)");
}

TEST(Roles, RefuseCollectivesThatOthersDoNotReach) {
  Stages stages;
  fb::CollectiveStartT &send =
                           *stages.procedure(1).streams[1]->commands.back()->op.AsCollectiveStart(),
                       &recv =
                           *stages.procedure(2).streams[1]->commands.back()->op.AsCollectiveStart();
  for (fb::CollectiveStartT *start : {&send, &recv}) {
    start->kind = fb::CollectiveKind::all_reduce;
    start->pairs.clear();
  }
  send.outputs.push_back(symmetric(0, f32, fourElements()).build());
  recv.inputs.push_back(symmetric(0, f32, fourElements()).build());
  EXPECT_ERROR(stages.verify(),
               "entry 'main': deadlock: rank 0 waits for rank 2 at procedure 'send', communication "
               "command 1 ('send'); rank 2 waits for rank 0 at procedure 'recv', communication "
               "command 1 ('recv')");

  ProgramBuilder b({{"pp", 2}});
  b.operand("x", f32, fourElements());
  b.result("y", f32, fourElements());
  ProcedureBuilder main = b.procedure("main", 2, 0, kFrame, 2);
  main.copy("y", argument(0, f32, fourElements()), argument(1, f32, fourElements()));
  main.call("sum", 1, {argument(0, f32, fourElements())}, 0, 0, 0);
  onRanks(*b.program.procedures[0], firstStage());
  ProcedureBuilder sum = b.procedure("sum", 1, 0, kFrame, 2);
  sum.copy("x", argument(0, f32, fourElements()), symmetric(0, f32, fourElements()));
  sum.start("sum", fb::CollectiveKind::all_reduce, {"pp"}, {symmetric(0, f32, fourElements())},
            {symmetric(0, f32, fourElements())}, 0, 0, 1);
  sum.wait("sum", 1);
  BundleContents made = b.contents();
  EXPECT_ERROR(verifyProgram(made.members.at(made.manifest.programMember), made.manifest),
               "entry 'main': rank 0 waits for rank 1 at procedure 'sum', communication command 1 "
               "('sum'), which rank 1 does not reach");
}

} // namespace
