//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs give the same results on the null device as on the CPU.
//
//===----------------------------------------------------------------------===//
#include "CudaPrograms.h"
#include "MatmulPrograms.h"
#include "NullDeviceTesting.h"
#include "StatePrograms.h"

#include <nlohmann/json.hpp>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

struct Layout {
  int64_t dp, tp;
  const char *transport;
  bool graph;
};
void PrintTo(const Layout &layout, std::ostream *os) { *os << layout.transport; }
void compareWithTheCpu(const Layout &layout) {
  ProgramBuilder builder = feedForward(layout.dp, layout.tp);
  WorldOptions options = onNullDevice(layout.transport);
  options.cudaGraph = layout.graph;
  options.trace = true;
  auto cuda = cudaSession(builder, options);
  ASSERT_OK(cuda);
  auto cpu = builder.session();
  ASSERT_OK(cpu);
  for (auto *session : {&cuda, &cpu})
    ASSERT_OK((**session)->loadWeights(*WeightSource::random(7)));
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    std::vector<float> x = randomValues(kBatch * kHidden, seed);
    for (auto *session : {&cuda, &cpu}) {
      ASSERT_OK((**session)->setInput("x", f32, {kBatch, kHidden}, x.data()));
      ASSERT_OK((**session)->run());
    }
    expectClose(*(*cuda)->output("y"), *(*cpu)->output("y"));
  }
  auto got = nlohmann::json::parse((*cuda)->report());
  auto expected = nlohmann::json::parse((*cpu)->report());
  EXPECT_EQ(got["transport"], layout.transport);
  EXPECT_EQ(got["machine"]["kernel_isa"], "sm_90a");
  EXPECT_EQ(got["machine"]["gpus"].size(),
            std::string(layout.transport) == "nccl" ? size_t(layout.dp * layout.tp) : 1);
  for (const char *field : {"bytes_sent_per_rank", "runs"})
    EXPECT_EQ(got[field], expected[field]) << field;
  EXPECT_EQ(got["collectives"].size(), expected["collectives"].size());
  for (auto &[field, value] : expected.items())
    EXPECT_TRUE(got.contains(field)) << field;
  TemporaryFolder folder;
  ASSERT_OK((*cuda)->writeTrace(folder.path("trace.json")));
  auto trace = nlohmann::json::parse(get(folder.path("trace.json")));
  size_t launches = 0;
  for (const auto &event : trace["traceEvents"])
    launches += event["name"] == "add_bias";
  EXPECT_EQ(launches, size_t(2 * layout.dp * layout.tp));
}

class FeedForward : public ::testing::TestWithParam<Layout> {};

TEST_P(FeedForward, GivesWhatTheCpuGivesAndLeavesNothing) {
  const std::string before = inUse();
  compareWithTheCpu(GetParam());
  EXPECT_EQ(inUse(), before);
}

INSTANTIATE_TEST_SUITE_P(Meshes, FeedForward,
                         ::testing::Values(Layout{1, 1, "threads", false},
                                           Layout{1, 2, "threads", false},
                                           Layout{2, 2, "threads", false},
                                           Layout{1, 4, "threads", true},
                                           Layout{1, 1, "nccl", false}, Layout{1, 2, "nccl", false},
                                           Layout{2, 2, "nccl", true}, Layout{1, 4, "nccl", false}),
                         [](const auto &info) {
                           return "dp" + std::to_string(info.param.dp) + "tp" +
                                  std::to_string(info.param.tp) + info.param.transport +
                                  (info.param.graph ? "Graph" : "");
                         });

TEST(CudaSession, LibraryKernelsGiveWhatTheCpuGives) {
  const std::string before = inUse();
  for (const char *transport : {"threads", "nccl"})
    for (DType integers : {i32, i64}) {
      ProgramBuilder builder = libraryCalls(integers);
      auto cuda = cudaSession(builder, onNullDevice(transport));
      auto cpu = builder.session();
      for (auto *session : {&cuda, &cpu}) {
        ASSERT_OK(*session);
        ASSERT_OK((**session)->loadWeights(*WeightSource::random(3)));
        ASSERT_OK(setLibraryInputs(***session, {0, 5, 9, 1, 2, 8, 4, 1, 1, 7, 3, 6}, integers));
        ASSERT_OK((**session)->run());
      }
      for (const char *name : {"rows", "attended", "half"})
        expectClose(*(*cuda)->output(name), *(*cpu)->output(name), 2e-6);
      EXPECT_EQ((*cuda)->output("positions")->data, (*cpu)->output("positions")->data);
    }
  EXPECT_EQ(inUse(), before);
}

TEST(CudaSession, MatmulsInEveryFormGiveWhatTheCpuGives) {
  const uint32_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  RandomMatmuls random(seed);
  for (int i = 0; i < 40; ++i) {
    const MatmulCase c = random.next();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", case " + std::to_string(i) + ": " +
                 c.describe());
    ProgramBuilder builder = matmulProgram(c);
    const auto inputs = random.inputs(c);
    auto cuda = cudaSession(builder, onNullDevice("threads"));
    auto cpu = builder.session();
    ASSERT_OK(cuda);
    ASSERT_OK(cpu);
    Result<HostTensor> got = runMatmul(**cuda, inputs), expected = runMatmul(**cpu, inputs);
    ASSERT_OK(got);
    ASSERT_OK(expected);
    expectClose(*got, *expected, 2e-6);
  }
}

TEST(CudaSession, NamesACountThatIsOutOfRange) {
  MatmulCase c;
  c.lhs = {{2, 3, 4}, {12, 4, 1}};
  c.rhs = {{2, 4, 5}, {20, 5, 1}};
  c.out = {{2, 3, 5}, {15, 5, 1}};
  c.counts = true;
  ProgramBuilder builder = matmulProgram(c);
  auto session = cudaSession(builder, onNullDevice("threads"));
  ASSERT_OK(session);
  auto inputs = RandomMatmuls(1).inputs(c);
  inputs["counts"].as<int32_t>()[1] = 4;
  Result<HostTensor> got = runMatmul(**session, inputs);
  EXPECT_ERROR(got,
               "rank 0: matmul 'product' in @main: count 4 at position 1 is outside of [0, 3]");
  EXPECT_EQ(got.status().code(), Code::invalid);
}

/// The CPU supports f32 only. A result differs by roundings of the table, of angles and rotated
/// heads, and of the result.
TEST(CudaSession, LibraryKernelsOfHalvesGiveWhatF32Gives) {
  const std::vector<int64_t> ids = {0, 5, 9, 1, 2, 8, 4, 1, 1, 7, 3, 6};
  ProgramBuilder wide = libraryCalls();
  auto cpu = wide.session();
  ASSERT_OK(cpu);
  ASSERT_OK((*cpu)->loadWeights(*WeightSource::random(3)));
  ASSERT_OK(setLibraryInputs(**cpu, ids));
  ASSERT_OK((*cpu)->run());
  for (auto [type, allowed] : {std::pair{DType::f16, 5e-4}, {DType::bf16, 4e-3}})
    for (const char *transport : {"threads", "nccl"}) {
      SCOPED_TRACE(name(type));
      ProgramBuilder builder = libraryCalls(i64, 0, type);
      auto cuda = cudaSession(builder, onNullDevice(transport));
      ASSERT_OK(cuda);
      ASSERT_OK((*cuda)->loadWeights(*WeightSource::random(3)));
      ASSERT_OK(setLibraryInputs(**cuda, ids));
      ASSERT_OK((*cuda)->run());
      for (const char *result : {"rows", "attended", "half"}) {
        EXPECT_EQ((*cuda)->output(result)->dtype, type);
        expectClose(*(*cuda)->output(result), *(*cpu)->output(result), allowed);
      }
    }
}

TEST(CudaSession, NamesAnIdOutsideOfTheTable) {
  struct Case {
    DType integers;
    int64_t limit, wrong;
    const char *message;
  };
  for (const Case &c :
       {Case{i64, 0, 10, "id 10 at position 7 is outside of [0, 10)"},
        Case{i64, 9, 9, "id 9 at position 7 is outside of [0, 9)"},
        Case{i32, 9, -1, "id -1 at position 7 is outside of [0, 9)"},
        Case{i64, 0, INT64_MIN, "id -9223372036854775808 at position 7 is outside of [0, 10)"}})
    for (bool graph : {false, true}) {
      ProgramBuilder builder = libraryCalls(c.integers, c.limit);
      WorldOptions options = onNullDevice();
      options.cudaGraph = graph;
      auto session = cudaSession(builder, options);
      ASSERT_OK(session);
      ASSERT_OK((*session)->loadWeights(*WeightSource::random(3)));
      for (int run = 0; run < 2; ++run) { // the second run replays a graph
        ASSERT_OK(
            setLibraryInputs(**session, {0, 5, 8, 1, 2, 8, 4, c.wrong, 1, 7, 3, 6}, c.integers));
        Status status = (*session)->run();
        EXPECT_ERROR(status, std::string("rank 0: embedding 'embed' in @main: ") + c.message);
        EXPECT_EQ(status.code(), Code::invalid);
        ASSERT_OK(setLibraryInputs(**session, {0, 5, 8, 1, 2, 8, 4, 1, 1, 7, 3, 6}, c.integers));
        EXPECT_OK((*session)->run()); // a run with valid inputs succeeds again
      }
    }
}

TEST(CudaSession, EntriesShareAState) {
  for (const char *transport : {"threads", "nccl"})
    for (bool graph : {false, true}) {
      WorldOptions options = onNullDevice(transport);
      options.cudaGraph = graph;
      ProgramBuilder builder = cacheProgram();
      auto session = cudaSession(builder, options, {"sm_90a", {}}, "write");
      ASSERT_OK(session);
      Model &model = (*session)->model();
      ASSERT_OK(model.loadWeights(*WeightSource::random(3)));
      Result<Execution *> write = model.execution("write"), read = model.execution("read");
      ASSERT_OK(write);
      ASSERT_OK(read);
      std::vector<float> expected(12);
      for (int32_t step = 0; step < 6; ++step) { // entries take turns, with their own graphs
        const int32_t position = step % 3;
        std::vector<float> row(4);
        for (size_t i = 0; i < 4; ++i)
          row[i] = expected[static_cast<size_t>(position) * 4 + i] =
              static_cast<float>(10 * step) + static_cast<float>(i);
        ASSERT_OK((*write)->setInput("x", f32, {1, 1, 4}, row.data()));
        ASSERT_OK((*write)->setInput("position", DType::i32, {1}, &position));
        ASSERT_OK((*write)->run());
        expectCache(model, **read, expected);
      }
      const int32_t beyond = 3;
      ASSERT_OK((*write)->setInput("position", DType::i32, {1}, &beyond));
      Status status = (*write)->run();
      EXPECT_ERROR(
          status,
          "entry 'write': rank 0: append 'append keys' in @write: position 3 of row 0 is outside "
          "of [0, 2], for a capacity of 3");
      EXPECT_EQ(status.code(), Code::invalid);
      ASSERT_OK(model.resetStates());
      ASSERT_OK((*read)->run());
      Result<HostTensor> y = (*read)->output("y");
      ASSERT_OK(y);
      for (size_t i = 0; i < 12; ++i)
        EXPECT_EQ(y->as<float>()[i], 0);
    }
}

/// y = x w^T and rows = table[ids] on both queues, unordered.
ProgramBuilder twoQueues() {
  ProgramBuilder b({{"a", 1}});
  b.parameter("w", {4, 8});
  b.parameter("table", {10, 8});
  b.operand("x", f32, {6, 8});
  b.operand("ids", i64, {3});
  for (int queue = 0; queue < 2; ++queue) {
    b.result("y" + std::to_string(queue), f32, {6, 4});
    b.result("rows" + std::to_string(queue), f32, {3, 8});
  }
  auto p = b.procedure("main", 8, 0, 0, 0);
  for (uint32_t queue = 0; queue < 2; ++queue) {
    MatmulLaunch matmul;
    matmul.lhs = argument(2, f32, {6, 8}).build();
    matmul.rhs = argument(0, f32, {4, 8}).build();
    matmul.out = argument(4 + 2 * queue, f32, {6, 4}).build();
    EmbeddingLaunch gather;
    gather.table = argument(1, f32, {10, 8}).build();
    gather.ids = argument(3, i64, {3}).build();
    gather.out = argument(5 + 2 * queue, f32, {3, 8}).build();
    gather.rows = queue == 0 ? 10 : 9;
    if (queue == 0) {
      p.compute("multiply", std::move(matmul));
      p.compute("look up", std::move(gather));
    } else {
      p.communication("multiply there", std::move(matmul));
      p.communication("look up there", std::move(gather));
    }
  }
  return b;
}

TEST(CudaSession, QueuesShareNothingThatIsHidden) {
  ProgramBuilder builder = twoQueues();
  auto cuda = cudaSession(builder);
  auto cpu = builder.session();
  std::vector<float> x = randomValues(48, 1);
  for (auto *session : {&cuda, &cpu}) {
    ASSERT_OK(*session);
    ASSERT_OK((**session)->loadWeights(*WeightSource::random(3)));
    ASSERT_OK((**session)->setInput("x", f32, {6, 8}, x.data()));
    ASSERT_OK(setIntegers(***session, i64, "ids", {3}, {8, 0, 3}));
    ASSERT_OK((**session)->run());
  }
  for (const char *name : {"y0", "y1", "rows0", "rows1"})
    expectClose(*(*cuda)->output(name), *(*cpu)->output(name));
  ASSERT_OK(setIntegers(**cuda, i64, "ids", {3}, {8, 9, 3}));
  EXPECT_ERROR(
      (*cuda)->run(),
      "rank 0: embedding 'look up there' in @main: id 9 at position 1 is outside of [0, 9)");
}

} // namespace
