//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the program interpreter with the executor, which share no code: every collective over
// every group of a mesh of six ranks.
//
//===----------------------------------------------------------------------===//
#include "OverlapProgram.h"
#include "braid/Interpreter/Core/ProgramOrder.h"

#include <gmock/gmock.h>

namespace braid::interp::testing {
namespace {

using Kind = fb::CollectiveKind;

struct Exchange {
  Kind kind;
  std::vector<std::string> axes;
  fb::ReduceKind reduce = fb::ReduceKind::sum;
  uint32_t root = 0;
  std::vector<uint32_t> pairs = {};
};

/// y = collective(x) on every rank, where x differs between ranks.
/// `strided`: sent and received values are columns of one matrix.
std::shared_ptr<const runtime::Bundle> build(const Exchange &exchange, int64_t groupSize,
                                             bool strided) {
  ProgramBuilder builder({{"dp", 2}, {"tp", 3}});
  Shape part{12, 6}, out = part;
  if (exchange.kind == Kind::reduce_scatter || exchange.kind == Kind::all_to_all)
    out[0] /= groupSize;
  if (exchange.kind == Kind::all_gather)
    out[0] *= groupSize;
  if (exchange.kind == Kind::all_to_all)
    out[1] *= groupSize;
  builder.operand("x", DType::f32, {6 * part[0], part[1]}, {{"dp", "tp"}, {}});
  builder.result("y", DType::f32, {6 * out[0], out[1]}, {{"dp", "tp"}, {}});
  auto main = builder.procedure("main", 2, 0, 16384, 2);
  auto sent = symmetric(0, DType::f32, part), received = symmetric(1024, DType::f32, out);
  if (strided) {
    received.offset = static_cast<uint64_t>(part[1]) * 4;
    sent.strides[0] = received.strides[0] = part[1] + out[1];
  }
  main.copy("send", argument(0, DType::f32, part), sent);
  fb::RecordT record;
  main.compute("ready", std::move(record));
  fb::AwaitT await;
  main.communication("ready", std::move(await));
  fb::CollectiveStartT start;
  start.kind = exchange.kind;
  start.reduce = exchange.reduce;
  start.axes = runtime::testing::ProcedureBuilder::axisRefs(exchange.axes);
  start.inputs.push_back(sent.build());
  start.outputs.push_back(received.build());
  start.concat_dim = 1;
  start.root = exchange.root;
  start.pairs = exchange.pairs;
  start.done = 1;
  start.identity = "test";
  main.communication("exchange", std::move(start));
  main.wait("exchange", 1);
  main.copy("receive", received, argument(1, DType::f32, out));
  return builder.bundle();
}

runtime::HostTensor input() {
  // Integers, so that sums are the same in any order.
  runtime::HostTensor x = runtime::HostTensor::zeros(DType::f32, {72, 6});
  for (int64_t i = 0; i < x.numElements(); ++i)
    x.as<float>()[i] = static_cast<float>((i * 37) % 101 - 50);
  return x;
}

void agree(const Exchange &exchange, bool strided) {
  int64_t groupSize = 1;
  for (const std::string &axis : exchange.axes)
    groupSize *= axis == "dp" ? 2 : 3;
  std::string what = std::string(fb::EnumNameCollectiveKind(exchange.kind)) + " over " +
                     ::testing::PrintToString(exchange.axes) + " root " +
                     std::to_string(exchange.root) + (strided ? " strided" : "");
  SCOPED_TRACE(what);
  std::shared_ptr<const runtime::Bundle> bundle = build(exchange, groupSize, strided);

  auto interpreter = ProgramInterpreter::create(bundle->program(), bundle->manifest(),
                                                bundle->manifest().entries[0],
                                                [](const std::string &) { return add; });
  ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();
  EXPECT_THAT(checkOrder((*interpreter)->program()), ::testing::IsEmpty());
  ASSERT_TRUE((*interpreter)->setInput("x", input()).ok());
  Result<ProgramResults> interpreted = (*interpreter)->runSchedules(1, 5);
  ASSERT_TRUE(interpreted.ok()) << interpreted.status().message();

  auto session = runtime::testing::Session::create(bundle, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE((*session)->setInput("x", input()).ok());
  Status ran = (*session)->run();
  ASSERT_TRUE(ran.ok()) << ran.message();
  Result<runtime::HostTensor> executed = (*session)->output("y");
  ASSERT_TRUE(executed.ok()) << executed.status().message();

  const runtime::HostTensor &y = interpreted->at("y");
  EXPECT_EQ(y.shape, executed->shape);
  EXPECT_EQ(std::vector<float>(y.as<float>(), y.as<float>() + y.numElements()),
            std::vector<float>(executed->as<float>(), executed->as<float>() + y.numElements()));
}

void agree(const Exchange &exchange) {
  for (bool strided : {false, true})
    agree(exchange, strided);
}

TEST(ProgramAndExecutor, AgreeOnEveryCollective) {
  for (const std::vector<std::string> &axes :
       {std::vector<std::string>{"tp"}, {"dp"}, {"dp", "tp"}, {"tp", "dp"}})
    for (Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                      Kind::reduce, Kind::broadcast}) {
      agree({kind, axes});
      agree({kind, axes, fb::ReduceKind::max, 1});
      agree({kind, axes, fb::ReduceKind::min, 1});
    }
}

TEST(ProgramAndExecutor, AgreeOnPermutations) {
  agree({Kind::permute, {"tp"}, {}, 0, {0, 1, 1, 2, 2, 0}});
  agree({Kind::permute, {"tp"}, {}, 0, {0, 2}}); // two ranks receive nothing and get zeros
  agree({Kind::permute, {"dp", "tp"}, {}, 0, {5, 0, 3, 3, 1, 4}});
}

} // namespace
} // namespace braid::interp::testing
