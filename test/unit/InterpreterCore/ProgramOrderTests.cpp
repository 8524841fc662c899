//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "OverlapProgram.h"
#include "braid/Interpreter/Core/ProgramOrder.h"

#include <gmock/gmock.h>

namespace braid::interp::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSchedules = 100;

std::vector<std::string> faultsOf(OverlapProgram &program) {
  Result<ProgramRoles> expanded = program.expand();
  EXPECT_TRUE(expanded.ok()) << expanded.status().message();
  return expanded.ok() ? checkOrder(*expanded) : std::vector<std::string>();
}

/// Expects that one of the first hundred orders fails. Returns the message without rank and seed,
/// which depend on the random numbers.
std::string noticed(OverlapProgram &program) {
  Result<ProgramResults> results = program.run(kSchedules);
  EXPECT_FALSE(results.ok()) << "nothing was noticed";
  EXPECT_EQ(results.status().code(), runtime::Code::checkFailed);
  const std::string message = results.status().message();
  const std::string rank = ": rank ";
  size_t at = message.find(rank);
  EXPECT_EQ(message.rfind("in the order of seed ", 0), 0U) << message;
  return at == std::string::npos ? message : message.substr(at + rank.size() + 3);
}

TEST(ProgramOrder, FindsNothingInARightProgram) {
  OverlapProgram program;
  EXPECT_THAT(faultsOf(program), IsEmpty());
  Result<ProgramResults> results = program.run(kSchedules);
  ASSERT_TRUE(results.ok()) << results.status().message();
  for (int64_t i = 0; i < OverlapProgram::kElements; ++i)
    EXPECT_EQ(results->at("y").as<float>()[i], 4 * static_cast<float>(i + 1));
}

TEST(ProgramOrder, NoticesAMissingAwait) {
  OverlapProgram program;
  OverlapProgram::erase(communicationOf(program.procedure()), fb::Operation::Await);
  EXPECT_THAT(faultsOf(program),
              ElementsAre("race between copy 'send' in @main on the compute queue and all_reduce "
                          "'sum' in @main on the communication queue on buffer 'sent' in @main "
                          "(symmetric bytes [0, 32)): no event orders what the one writes and the "
                          "other reads"));
  noticed(program);
}

TEST(ProgramOrder, NoticesAMissingWait) {
  OverlapProgram program;
  OverlapProgram::erase(computeOf(program.procedure()), fb::Operation::CollectiveWait);
  EXPECT_THAT(faultsOf(program),
              ElementsAre("race between kernel 'add' in @main on the compute queue and all_reduce "
                          "'sum' in @main on the communication queue on buffer 'received' in @main "
                          "(symmetric bytes [64, 96)): no event orders what the one reads and the "
                          "other writes"));
  noticed(program);
}

/// One value overwrites another that is still needed, although every queue runs in order.
TEST(ProgramOrder, NoticesBuffersThatOverlap) {
  for (uint64_t offset : {0, 16}) {
    OverlapProgram program;
    auto main = program.append();
    int32_t other = main.buffer("other", fb::Space::local, offset, 32);
    auto &compute = computeOf(program.procedure());
    main.copy("other", argument(0, DType::f32, {OverlapProgram::kElements}), program.at(other));
    // Between the doubling and its use.
    std::rotate(compute.end() - 2, compute.end() - 1, compute.end());
    const std::string reads = "kernel 'add' in @main on the compute queue reads buffer 'doubled' "
                              "in @main (local bytes [" +
                              std::to_string(offset) + ", 32)), which holds ";
    const std::string writer = "copy 'other' in @main on the compute queue";
    EXPECT_THAT(faultsOf(program),
                ElementsAre(reads + "buffer 'other' in @main there, written by " + writer));
    // Nothing reads the other value, so it is dead when it is overwritten.
    EXPECT_EQ(noticed(program), reads + "no value; it was written last by " + writer);
  }
}

TEST(ProgramOrder, AllowsBytesToBeUsedAgain) {
  OverlapProgram program;
  auto main = program.append();
  // The last use of "received" is the kernel before.
  int32_t again = main.buffer("again", fb::Space::symmetric, 64, 32);
  const auto y = argument(1, DType::f32, {OverlapProgram::kElements});
  main.copy("again", y, program.at(again));
  main.launch("add again", 0, {program.at(again), program.at(again), y}, {true, true, true},
              OverlapProgram::kElements);
  EXPECT_THAT(faultsOf(program), IsEmpty());
  Result<ProgramResults> results = program.run(kSchedules);
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(results->at("y").as<float>()[1], 16);
}

TEST(ProgramOrder, NoticesAValueThatNobodyWrote) {
  OverlapProgram program;
  auto main = program.append();
  int32_t never = main.buffer("never", fb::Space::local, 64, 32);
  main.copy("late", program.at(never), argument(1, DType::f32, {OverlapProgram::kElements}));
  const std::string where =
      "copy 'late' in @main on the compute queue reads buffer 'never' in @main (local bytes [64, "
      "96)), which ";
  EXPECT_THAT(faultsOf(program), ElementsAre(where + "nothing has written"));
  EXPECT_EQ(noticed(program), where + "holds no value");
}

TEST(ProgramOrder, KernelsWorkInPlaceOnlyWhereTheyCan) {
  auto inPlace = [](bool allowed) {
    OverlapProgram program;
    if (allowed)
      program.builder.program.kernels[0]->in_place = {0, 2};
    const auto y = argument(1, DType::f32, {OverlapProgram::kElements});
    auto main = program.append();
    main.launch("in place", 0, {y, program.at(program.doubled), y}, {true, true, true},
                OverlapProgram::kElements);
    return program;
  };
  OverlapProgram right = inPlace(true);
  EXPECT_THAT(faultsOf(right), IsEmpty());
  Result<ProgramResults> results = right.run(kSchedules);
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(results->at("y").as<float>()[2], 18);

  OverlapProgram wrong = inPlace(false);
  const std::string where = "kernel 'in place' in @main on the compute queue writes result 'y' "
                            "(argument bytes [0, 32)) over its own input";
  EXPECT_THAT(faultsOf(wrong), ElementsAre(where + " result 'y', which it cannot do in place"));
  EXPECT_EQ(noticed(wrong), where + ", which it cannot do in place");
}

TEST(ProgramOrder, ListsRedundantWaits) {
  OverlapProgram program;
  Result<ProgramRoles> expanded = program.expand();
  ASSERT_TRUE(expanded.ok());
  EXPECT_THAT(findRedundantWaits(*expanded), IsEmpty());

  // An event of the compute queue on which the communication queue has already waited, and one
  // after which it does nothing.
  auto &procedure = program.procedure();
  procedure.num_events = 4;
  auto eventCommand = [](auto op, uint32_t event, const char *name) {
    op.event = event;
    auto command = std::make_unique<fb::CommandT>();
    command->op.Set(std::move(op));
    command->name = name;
    return command;
  };
  computeOf(procedure).insert(computeOf(procedure).begin(),
                              eventCommand(fb::RecordT(), 2, "early"));
  computeOf(procedure).push_back(eventCommand(fb::RecordT(), 3, "late"));
  communicationOf(procedure).insert(communicationOf(procedure).begin() + 1,
                                    eventCommand(fb::AwaitT(), 2, "early"));
  communicationOf(procedure).push_back(eventCommand(fb::AwaitT(), 3, "late"));
  expanded = program.expand();
  ASSERT_TRUE(expanded.ok()) << expanded.status().message();
  std::vector<RedundantWait> redundant = findRedundantWaits(*expanded);
  ASSERT_EQ(redundant.size(), 2U);
  EXPECT_EQ(redundant[0].what, "await 'early' in @main on the communication queue");
  EXPECT_TRUE(redundant[0].implied);
  EXPECT_EQ(redundant[1].what, "await 'late' in @main on the communication queue");
  EXPECT_FALSE(redundant[1].implied);
}

} // namespace
} // namespace braid::interp::testing
