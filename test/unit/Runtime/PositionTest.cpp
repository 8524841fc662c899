//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Views whose place depends on the rank's position, on all transports of the CPU and of CUDA (on
// the null device) and in the program interpreter.
//
//===----------------------------------------------------------------------===//
#include "CudaTesting.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"

#include <gmock/gmock.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType kType = DType::f32;
using Values = std::map<std::string, HostTensor>;

HostTensor counted(const Shape &shape) {
  HostTensor value = HostTensor::zeros(kType, shape);
  for (int64_t i = 0; i < value.numElements(); ++i)
    value.as<float>()[i] = static_cast<float>(i + 1);
  return value;
}

/// Runs the program everywhere; the results must be these.
void expectEverywhere(ProgramBuilder &b, const Values &inputs, const Values &results) {
  for (const Where &where : kEverywhere) {
    SCOPED_TRACE(where.name);
    auto session = where.session(b);
    ASSERT_OK(session);
    for (const auto &[name, value] : inputs)
      ASSERT_OK((*session)->setInput(name, value));
    for (int run = 0; run < 2; ++run)
      ASSERT_OK((*session)->run());
    for (const auto &[name, value] : results) {
      auto got = (*session)->output(name);
      ASSERT_OK(got);
      EXPECT_EQ(got->data, value.data) << name;
    }
  }
  SCOPED_TRACE("interpreter");
  std::shared_ptr<const Bundle> bundle = b.bundle();
  auto interpreter = braid::interp::ProgramInterpreter::create(
      bundle->program(), bundle->manifest(), bundle->manifest().entries[0],
      [](const std::string &symbol) -> Result<KernelFunction> {
        return Status::error("no kernel '" + symbol + "'");
      });
  ASSERT_OK(interpreter);
  EXPECT_THAT(braid::interp::checkOrder((*interpreter)->program()), ::testing::IsEmpty());
  for (const auto &[name, value] : inputs)
    ASSERT_OK((*interpreter)->setInput(name, value));
  auto got = (*interpreter)->runSchedules(1, 5);
  ASSERT_OK(got);
  for (const auto &[name, value] : results)
    EXPECT_EQ(got->at(name).data, value.data) << name;
}

/// Each rank copies one of several blocks of rows of a value that all have, also in a procedure
/// that gets the block as an argument, and writes it at its place in a matrix.
TEST(Positions, ChooseBlocks) {
  struct Case {
    Axes axes;
    int64_t shift, count;
  };
  const Mesh mesh = [] {
    Mesh m;
    m.axes = {{"dp", 2}, {"tp", 3}};
    return m;
  }();
  const Case cases[] = {{{"tp"}, 0, 3},        {{"tp"}, 1, 3}, {{"tp"}, -4, 3},
                        {{"dp"}, 1, 2},        {{"dp"}, 1, 5}, {{"tp", "dp"}, 2, 6},
                        {{"dp", "tp"}, -1, 4}, {{"tp"}, 1, 1}};
  ProgramBuilder b(mesh.axes);
  const Shape block{2, 3};
  const uint64_t bytes = 24;
  b.operand("x", kType, {12, 3});
  const Values inputs{{"x", counted({12, 3})}};
  Values results;
  const auto count = static_cast<uint32_t>(std::size(cases));
  auto p = b.procedure("main", 1 + 2 * count, 256, 0, 0);
  auto callee = b.procedure("callee", 2, 128, 0, 0);
  // Through the second of two rows of places.
  callee.copy("to", argument(0, kType, block), local(0, kType, block).at({"tp"}, 1, 3, bytes));
  callee.copy("from", local(0, kType, block).at({"tp"}, -2, 3, bytes), argument(1, kType, block));
  for (uint32_t c = 0; c < count; ++c) {
    const Case &test = cases[c];
    const V taken = argument(0, kType, block).at(test.axes, test.shift, test.count, bytes);
    p.copy("take", taken, argument(1 + 2 * c, kType, block));
    p.call("call", 1, {taken, argument(2 + 2 * c, kType, block)}, 0, 0, 0);
    HostTensor expected = HostTensor::zeros(kType, {12, 3});
    for (int64_t rank = 0; rank < 6; ++rank) {
      std::vector<AxisRef> axes;
      for (const std::string &axis : test.axes)
        axes.push_back({axis});
      const int64_t place =
          ((*mesh.groupPosition(rank, axes) + test.shift) % test.count + test.count) % test.count;
      for (int64_t i = 0; i < 6; ++i)
        expected.as<float>()[rank * 6 + i] = static_cast<float>(place * 6 + i + 1);
    }
    for (const char *kind : {"taken.", "called."}) {
      b.result(kind + std::to_string(c), kType, {12, 3}, {{"dp", "tp"}, {}});
      results[kind + std::to_string(c)] = expected;
    }
  }
  expectEverywhere(b, inputs, results);
}

/// An all_gather as a ring: in every step each rank passes on the block that it has got last.
class Ring : public ::testing::TestWithParam<int64_t> {};
TEST_P(Ring, GathersTheBlocksOfAllRanks) {
  const int64_t ranks = GetParam();
  ProgramBuilder b({{"tp", ranks}});
  const Shape block{2, 3}, all{2 * ranks, 3};
  const uint64_t bytes = 24;
  b.operand("x", kType, all, {{"tp"}, {}});
  b.result("y", kType, all);
  const auto steps = static_cast<uint32_t>(ranks - 1);
  auto p = b.procedure("main", 2, 0, 64 + bytes * static_cast<uint64_t>(ranks), 3 * steps);
  const V blocks = symmetric(0, kType, block);
  auto blockAt = [&](int64_t shift) { return blocks.at({"tp"}, shift, ranks, bytes); };
  p.copy("own", argument(0, kType, block), blockAt(0));
  for (uint32_t step = 0; step < steps; ++step) {
    const uint32_t ready = 3 * step, sent = ready + 1, received = ready + 2;
    std::vector<uint32_t> pairs;
    for (uint32_t i = 0; i <= steps; ++i)
      pairs.insert(pairs.end(), {i, (i + 1) % (steps + 1)});
    const std::string name = "step." + std::to_string(step);
    p.start(name, fb::CollectiveKind::send, {"tp"}, {blockAt(-int64_t(step))}, {}, 0, ready, sent);
    p.last().pairs = pairs;
    fb::CollectiveStartT receive;
    receive.kind = fb::CollectiveKind::recv;
    receive.axes = ProcedureBuilder::axisRefs({"tp"});
    receive.outputs.push_back(blockAt(-int64_t(step) - 1).build());
    receive.done = received;
    receive.identity = "test";
    receive.pairs = pairs;
    p.communication(name, std::move(receive));
    p.wait(name, sent);
    p.wait(name, received);
  }
  p.copy("result", symmetric(0, kType, all), argument(1, kType, all));
  expectEverywhere(b, {{"x", counted(all)}}, {{"y", counted(all)}});
}
INSTANTIATE_TEST_SUITE_P(Of, Ring, ::testing::Values(2, 3, 4, 5));

/// Values of a collective may lie elsewhere on every rank.
TEST(Positions, OfCollectives) {
  constexpr int64_t kRanks = 3;
  ProgramBuilder b({{"tp", kRanks}});
  const Shape block{4}, all{4 * kRanks};
  b.operand("x", kType, all, {{"tp"}});
  b.result("y", kType, all);
  auto p = b.procedure("main", 2, 0, 256, 2);
  const V in = symmetric(0, kType, block).at({"tp"}, 1, kRanks, 16);
  p.copy("in", argument(0, kType, block), in);
  V out = symmetric(64, kType, all).at({"tp"}, 2, kRanks, 48);
  p.start("gather", fb::CollectiveKind::all_gather, {"tp"}, {in}, {out}, 0, 0, 1);
  p.wait("gather", 1);
  p.copy("out", out, argument(1, kType, all));
  expectEverywhere(b, {{"x", counted(all)}}, {{"y", counted(all)}});
}

} // namespace
