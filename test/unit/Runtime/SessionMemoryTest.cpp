//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The memory of a session: huge pages, and memory that the caller supplies.
//
//===----------------------------------------------------------------------===//
#include "ProgramBuilder.h"

#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;

namespace {

constexpr DType f32 = DType::f32;

/// Whether the system gives huge pages on request.
bool hasHugePages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string setting;
  std::getline(file, setting);
  return setting.find("[madvise]") != std::string::npos ||
         setting.find("[always]") != std::string::npos;
}

/// That a run uses one at least: the system may not have enough of them.
void expectHugePages(ProgramBuilder &builder) {
  auto session = builder.session();
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
  ASSERT_OK((*session)->run());
  auto report = nlohmann::json::parse((*session)->report());
  EXPECT_GE(report["huge_page_bytes"].get<int64_t>(), int64_t(2) << 20);
}

/// Large memory uses huge pages where the system has them on request, and the report says so.
TEST(SessionMemory, LargeMemoryIsInHugePages) {
  if (!hasHugePages())
    GTEST_SKIP() << "the system gives no huge pages on request";
  ProgramBuilder b({{"tp", 2}});
  b.parameter("w", {4096, 4096});
  b.procedure("main", 1, uint64_t(32) << 20, 0, 0);
  // Two ranks with 64 MiB of weights in all and an arena of 32 MiB each.
  expectHugePages(b);
}

/// Parameters that do not fill a huge page lie side by side.
TEST(SessionMemory, SmallParametersAreInHugePages) {
  if (!hasHugePages())
    GTEST_SKIP() << "the system gives no huge pages on request";
  ProgramBuilder b({{"tp", 1}});
  for (int i = 0; i < 32; ++i)
    b.parameter("w" + std::to_string(i), {512, 256}); // half a MiB
  b.parameter("bias", {3});
  b.procedure("main", 33, 4096, 0, 0);
  expectHugePages(b);
}

TEST(SessionMemory, RefusesCollectivesOnOtherMemory) {
  ProgramBuilder b({{"tp", 2}});
  b.operand("x", f32, {2, 8}, {{"tp"}, {}});
  auto p = b.procedure("main", 1, 0, 256, 2);
  V x = argument(0, f32, {1, 8});
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {x}, {symmetric(0, f32, {1, 8})}, 0, 0, 1);
  p.wait("sum", 1);
  auto session = b.session();
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.status().message(), HasSubstr("symmetric"));
}

/// y is written before the last read of x.
TEST(SessionMemory, BoundOutputsOverlapNothing) {
  ProgramBuilder b({{"dp", 2}});
  b.operand("x", f32, {2, 32}, {{"dp"}, {}});
  b.operand("z", f32, {2, 32}, {{"dp"}, {}});
  b.result("y", f32, {2, 32}, {{"dp"}, {}});
  b.result("t", f32, {2, 32}, {{"dp"}, {}});
  auto p = b.procedure("main", 4, 0, 0, 0);
  auto row = [](uint32_t index) { return argument(index, f32, {1, 32}); };
  p.copy("y", row(1), row(2));
  p.copy("t", row(0), row(3));
  auto session = b.session();
  ASSERT_OK(session);
  alignas(64) static float memory[8 * 32];
  constexpr size_t kPart = 32 * sizeof(float);
  auto bind = [&](const char *name, int64_t rank, size_t at) {
    const bool isInput = *name == 'x' || *name == 'z';
    return isInput ? (*session)->bindInput(rank, name, memory + at, kPart)
                   : (*session)->bindOutput(rank, name, memory + at, kPart);
  };
  for (int64_t rank = 0; rank < 2; ++rank) { // inputs may overlap each other
    ASSERT_OK(bind("x", rank, 0));
    ASSERT_OK(bind("z", rank, 16));
    ASSERT_OK(bind("y", rank, static_cast<size_t>(64 + 64 * rank)));
    ASSERT_OK(bind("t", rank, static_cast<size_t>(96 + 64 * rank)));
  }
  EXPECT_OK((*session)->run());
  struct Case {
    size_t at;
    const char *output, *other;
  };
  const Case cases[] = {
      {0, "'y' of rank 0", "input 'x' of rank 0"},    // all of it
      {32, "'y' of rank 0", "input 'z' of rank 0"},   // the second half of z
      {80, "'t' of rank 0", "output 'y' of rank 0"},  //
      {112, "'y' of rank 0", "output 't' of rank 0"}, //
      {176, "'y' of rank 0", "output 't' of rank 1"}, // of another rank
  };
  for (const Case &c : cases) {
    ASSERT_OK(bind("y", 0, c.at));
    for (int i = 0; i < 2; ++i) // again: the binding stays
      EXPECT_ERROR((*session)->run(), std::string("output ") + c.output +
                                          " expects memory that does not overlap that of " +
                                          c.other);
  }
  // Bindings may exchange memory: only the bindings at the time of the run are checked.
  ASSERT_OK(bind("y", 0, 0));
  for (int64_t rank = 0; rank < 2; ++rank) {
    ASSERT_OK(bind("x", rank, 64));
    ASSERT_OK(bind("z", rank, 64));
  }
  EXPECT_OK((*session)->run());
  ASSERT_OK(bind("x", 1, 16));
  EXPECT_ERROR((*session)->run(), "output 'y' of rank 0 expects memory that does not overlap that "
                                  "of input 'x' of rank 1");
}

} // namespace
