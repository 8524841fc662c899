//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "../../../runtime/lib/Cuda/Executor.h"
#include "Testing.h"

using namespace braid::runtime;
using namespace braid::runtime::cuda;

namespace {

Command named(const char *operation, const std::string &name) {
  Command command;
  command.operation = operation;
  command.name = name;
  return command;
}
Command record(uint32_t event) {
  Command command = named("record", "");
  command.op = RecordCommand{event};
  return command;
}
Command await(uint32_t event) {
  Command command = named("await", "");
  command.op = AwaitCommand{event};
  return command;
}
Command wait(uint32_t event) {
  Command command = named("wait", "");
  command.op = CollectiveWaitCommand{event, 0};
  return command;
}
Command work(const std::string &name) {
  Command command = named("copy", name);
  command.op = CopyCommand{};
  return command;
}
Command collective(const std::string &name, Group &group, int64_t position, uint32_t event) {
  Command command = named("all_reduce", name);
  CollectiveCommand op{};
  op.collective.name = name;
  op.collective.role = "r";
  op.collective.values.resize(1);
  op.collective.values[0].inner = 8;
  op.collective.group = &group;
  op.collective.position = position;
  op.event = event;
  command.op = std::move(op);
  return command;
}

Result<std::vector<Step>> order(const std::vector<RankProgram> &programs) {
  std::vector<const RankProgram *> pointers;
  for (const RankProgram &program : programs)
    pointers.push_back(&program);
  return orderCommands(pointers);
}

DeviceGroup groupOf(std::vector<int64_t> ranks) {
  DeviceGroup group;
  group.ranks = std::move(ranks);
  return group;
}

TEST(CudaOrder, PutsWaitsBehindWhatTheyWaitFor) {
  DeviceGroup group = groupOf({0, 1});
  std::vector<RankProgram> programs(2);
  for (int64_t r = 0; r < 2; ++r) {
    RankProgram &p = programs[static_cast<size_t>(r)];
    p.numEvents = 2;
    p.queues[0].push_back(work("before"));
    p.queues[0].push_back(record(0));
    p.queues[0].push_back(work("meanwhile"));
    p.queues[0].push_back(wait(1));
    p.queues[0].push_back(work("after"));
    p.queues[1].push_back(await(0));
    p.queues[1].push_back(collective("sum", group, r, 1));
  }
  Result<std::vector<Step>> steps = order(programs);
  ASSERT_OK(steps);
  // Every command once, and of the collective both ranks' at once.
  std::vector<std::string> text;
  for (const Step &step : *steps) {
    std::string line;
    for (const Place &p : step.places)
      line += std::to_string(p.rank) + (p.queue == 0 ? "c" : "m") + std::to_string(p.index) + " ";
    text.push_back(line);
  }
  EXPECT_THAT(text, ::testing::ElementsAre("0c0 ", "0c1 ", "0c2 ", "0m0 ", "1c0 ", "1c1 ", "1c2 ",
                                           "1m0 ", "0m1 1m1 ", "0c3 ", "0c4 ", "1c3 ", "1c4 "));
}

TEST(CudaOrder, NamesCollectivesThatDoNotBelongTogether) {
  DeviceGroup group = groupOf({0, 1});
  std::vector<RankProgram> programs(2);
  for (int64_t r = 0; r < 2; ++r) {
    RankProgram &p = programs[static_cast<size_t>(r)];
    p.numEvents = 2;
    for (uint32_t i = 0; i < 2; ++i)
      p.queues[1].push_back(collective((r == 0) == (i == 0) ? "a" : "b", group, r, i));
  }
  EXPECT_ERROR(
      order(programs),
      "rank 0: all_reduce 'a' (sum, 8 f32, role 'r') meets all_reduce 'b' (sum, 8 f32, role "
      "'r') of rank 1, as these ranks come to them in different orders");
  std::get<CollectiveCommand>(programs[1].queues[1][0].op).collective.values[0].inner = 4;
  EXPECT_ERROR(order(programs),
               "rank 0: all_reduce 'a' (sum, 8 f32, role 'r') meets all_reduce 'b' "
               "(sum, 4 f32, role 'r') of rank 1");
}

TEST(CudaOrder, NamesRanksThatWaitForEachOther) {
  DeviceGroup groups[] = {groupOf({0, 1}), groupOf({1, 2}), groupOf({0, 2})};
  std::vector<RankProgram> programs(3);
  for (RankProgram &p : programs)
    p.numEvents = 2;
  auto add = [&](size_t rank, size_t group, uint32_t event) {
    const auto &ranks = groups[group].ranks;
    const int64_t position = ranks[0] == static_cast<int64_t>(rank) ? 0 : 1;
    programs[rank].queues[1].push_back(
        collective("g" + std::to_string(group), groups[group], position, event));
  };
  add(0, 2, 0);
  add(0, 0, 1);
  add(1, 0, 0);
  add(1, 1, 1);
  add(2, 1, 0);
  add(2, 2, 1);
  EXPECT_ERROR(order(programs),
               "ranks wait for each other, as they come to collectives in different orders: rank 0 "
               "at all_reduce 'g2', rank 1 at all_reduce 'g0', rank 2 at all_reduce 'g1'");
}

Command half(CollectiveKind kind, const std::string &name, Letter *letter, Group &group,
             int64_t position, uint32_t event) {
  Command command = collective(name, group, position, event);
  command.operation = braid::runtime::name(kind);
  auto &op = std::get<CollectiveCommand>(command.op);
  op.collective.kind = kind;
  op.collective.letter = letter;
  return command;
}

/// Two that rank 0 sends, and rank 1 receives: a receive comes behind its send, and no later send
/// in between, as NCCL would let that one wait for it.
TEST(CudaOrder, PutsReceivesCloseBehindTheirSends) {
  DeviceGroup group = groupOf({0, 1});
  Letter letters[] = {Letter(Sharing::process), Letter(Sharing::process)};
  std::vector<RankProgram> programs(2);
  for (uint32_t i = 0; i < 2; ++i) {
    programs[0].queues[1].push_back(half(CollectiveKind::send, "s", &letters[i], group, 0, i));
    programs[1].queues[1].push_back(half(CollectiveKind::recv, "r", &letters[i], group, 1, i));
  }
  // Who is nobody's source or target waits for nobody.
  programs[1].queues[1].push_back(half(CollectiveKind::send, "s", nullptr, group, 1, 2));
  programs[0].queues[1].push_back(half(CollectiveKind::recv, "r", nullptr, group, 0, 2));
  for (RankProgram &program : programs)
    program.numEvents = 3;
  auto text = [&] {
    Result<std::vector<Step>> steps = order(programs);
    EXPECT_OK(steps);
    std::string line;
    for (const Step &step : *steps)
      for (const Place &p : step.places)
        line += std::to_string(p.rank) + "." + std::to_string(p.index) + " ";
    return line;
  };
  EXPECT_EQ(text(), "0.0 1.0 0.1 1.1 1.2 0.2 ");
  std::swap(programs[0], programs[1]); // the receiver comes first
  EXPECT_EQ(text(), "1.0 0.0 1.1 0.1 0.2 1.2 ");
}

/// Rank 0 comes to the sum when rank 1 has a receive before it.
TEST(CudaOrder, ARankAtAReceiveIsNotAtACollective) {
  DeviceGroup group = groupOf({0, 1});
  std::vector<RankProgram> programs(2);
  for (RankProgram &program : programs)
    program.numEvents = 2;
  programs[0].queues[1].push_back(collective("sum", group, 0, 0));
  programs[1].queues[1].push_back(half(CollectiveKind::recv, "r", nullptr, group, 1, 0));
  programs[1].queues[1].push_back(collective("sum", group, 1, 1));
  Result<std::vector<Step>> steps = order(programs);
  ASSERT_OK(steps);
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ((*steps)[0].places[0].rank, 1);
  EXPECT_EQ((*steps)[1].places.size(), 2u);
}

TEST(CudaOrder, NamesReceivesThatCannotBe) {
  DeviceGroup group = groupOf({0, 1});
  Letter there(Sharing::process), back(Sharing::process);
  std::vector<RankProgram> programs(2);
  for (int64_t r = 0; r < 2; ++r) {
    RankProgram &p = programs[static_cast<size_t>(r)];
    p.numEvents = 2;
    p.queues[1].push_back(half(CollectiveKind::recv, "r", r == 0 ? &back : &there, group, r, 0));
    p.queues[1].push_back(half(CollectiveKind::send, "s", r == 0 ? &there : &back, group, r, 1));
  }
  EXPECT_ERROR(order(programs),
               "ranks wait for each other, as they come to collectives in different orders: rank 0 "
               "at recv 'r', rank 1 at recv 'r'");
}

TEST(CudaKernels, ArchitecturesRunWhereTheyCan) {
  EXPECT_TRUE(runsOn("sm_90a", 9, 0));
  EXPECT_FALSE(runsOn("sm_90a", 9, 1)); // of that one only
  EXPECT_FALSE(runsOn("sm_90a", 10, 0));
  EXPECT_TRUE(runsOn("sm_80", 8, 9));
  EXPECT_FALSE(runsOn("sm_86", 8, 0));
  EXPECT_FALSE(runsOn("sm_80", 9, 0)); // code is not carried over to another generation
  EXPECT_TRUE(runsOn("sm_100f", 10, 3));
  EXPECT_TRUE(runsOn("sm_120", 12, 0));
  EXPECT_FALSE(runsOn("compute_90", 9, 0));
  EXPECT_FALSE(runsOn("sm_90b", 9, 0));
  EXPECT_FALSE(runsOn("sm_", 0, 0));
}

} // namespace
