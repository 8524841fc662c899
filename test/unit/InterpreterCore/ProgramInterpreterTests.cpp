//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "OverlapProgram.h"

#include <cmath>
#include <gmock/gmock.h>
#include <set>

namespace braid::interp::testing {
namespace {

TEST(ProgramInterpreter, SameSeedSameOrder) {
  // The error of a faulty program says in which order the fault occurred.
  OverlapProgram program;
  OverlapProgram::erase(communicationOf(program.procedure()), fb::Operation::Await);
  auto interpreter = program.interpreter();
  ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::string first = (*interpreter)->run(seed).status().message();
    EXPECT_EQ((*interpreter)->run(seed).status().message(), first);
    outcomes.insert(first);
  }
  // The read comes after, before or during the write, on either rank.
  EXPECT_GE(outcomes.size(), 4U) << ::testing::PrintToString(outcomes);
}

/// A stateful kernel gives each run another result, like a program whose result depends on the
/// order in a way that no other check detects.
TEST(ProgramInterpreter, NoticesResultsThatDiffer) {
  OverlapProgram program;
  program.builder.kernels["add"] = [](void *const *operands) {
    static float runsBefore = 0;
    const auto &out = *static_cast<Vector *>(operands[2]);
    for (int64_t i = 0; i < out.size; ++i)
      out[i] = runsBefore;
    // Two kernels on each of two ranks: the ranks of a run agree, but the runs do not.
    static int numCalls = 0;
    const int runs = ++numCalls / 4;
    runsBefore = static_cast<float>(runs);
  };
  Result<ProgramResults> results = program.run(2);
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.status().code(), runtime::Code::checkFailed);
  EXPECT_EQ(results.status().message(), "result 'y' depends on the order: seeds 1 and 2 differ");
}

TEST(ProgramInterpreter, NamesWhatIsMissing) {
  OverlapProgram program;
  auto bundle = program.builder.contents();
  auto noKernels = [](const std::string &symbol) -> Result<runtime::KernelFunction> {
    return Status::error("no kernel '" + symbol + "'");
  };
  const auto &manifest = bundle.manifest;
  const auto &bytes = bundle.members.at(manifest.programMember);
  EXPECT_EQ(ProgramInterpreter::create(bytes, manifest, manifest.entries[0], noKernels)
                .status()
                .message(),
            "no kernel 'add'");
  auto lookup = [](const std::string &) -> Result<runtime::KernelFunction> { return add; };
  auto created = ProgramInterpreter::create(bytes, manifest, manifest.entries[0], lookup);
  ASSERT_TRUE(created.ok());
  EXPECT_EQ((*created)->run(0).status().message(), "input 'x' is missing");
  EXPECT_EQ((*created)->setInput("z", {}).message(), "no input 'z'");
  EXPECT_EQ((*created)->setInput("x", runtime::HostTensor::zeros(DType::f32, {4})).message(),
            "input 'x' expects f32 [8], got f32 [4]");
}

TEST(ProgramInterpreter, RefusesAProgramThatIsNotOne) {
  OverlapProgram program;
  auto bundle = program.builder.contents();
  auto lookup = [](const std::string &) -> Result<runtime::KernelFunction> { return add; };
  EXPECT_EQ(ProgramInterpreter::create({}, bundle.manifest, bundle.manifest.entries[0], lookup)
                .status()
                .message(),
            "not a Braid program, or a damaged one");
}

/// Ranks that should hold the same value hold their own partial sums.
TEST(ProgramInterpreter, NoticesRanksThatDisagree) {
  ProgramBuilder builder({{"tp", 2}});
  builder.operand("x", DType::f32, {4}, {{"tp"}});
  builder.result("y", DType::f32, {2});
  auto main = builder.procedure("main", 2, 64, 64, 0);
  main.copy("own part", argument(0, DType::f32, {2}), argument(1, DType::f32, {2}));
  auto bundle = builder.contents();
  auto created = ProgramInterpreter::create(bundle.members.at(bundle.manifest.programMember),
                                            bundle.manifest, bundle.manifest.entries[0],
                                            [](const std::string &) { return add; });
  ASSERT_TRUE(created.ok()) << created.status().message();
  runtime::HostTensor x = runtime::HostTensor::zeros(DType::f32, {4});
  x.as<float>()[3] = 1;
  ASSERT_TRUE((*created)->setInput("x", x).ok());
  EXPECT_EQ((*created)->run(0).status().message(),
            "ranks 0 and 1 hold different values of result 'y'");
}

/// Collectives with different contributions of the ranks.
TEST(ProgramInterpreter, ComputesExchanges) {
  ProgramBuilder builder({{"tp", 2}});
  builder.operand("x", DType::f32, {2, 2}, {{"tp"}, {}});
  builder.result("moved", DType::f32, {2, 2}, {{}, {"tp"}});
  for (const char *name : {"reduced", "broadcast", "permuted"})
    builder.result(name, DType::f32, {2, 2}, {{"tp"}, {}});
  auto main = builder.procedure("main", 5, 64, 320, 8);
  const auto x = symmetric(0, DType::f32, {1, 2});
  main.copy("in", argument(0, DType::f32, {1, 2}), x);
  const fb::CollectiveKind kinds[] = {fb::CollectiveKind::all_to_all, fb::CollectiveKind::reduce,
                                      fb::CollectiveKind::broadcast, fb::CollectiveKind::permute};
  for (uint32_t i = 0; i < 4; ++i) {
    const Shape shape = i == 0 ? Shape{2, 1} : Shape{1, 2};
    const auto out = symmetric(64 * (i + 1), DType::f32, shape);
    main.start("exchange", kinds[i], {"tp"}, {x}, {out}, i == 0 ? 1 : 0, 2 * i, 2 * i + 1);
    main.last().reduce = fb::ReduceKind::max;
    main.last().root = 1;
    if (i == 3)
      main.last().pairs = {0, 1};
    main.wait("exchange", 2 * i + 1);
    main.copy("out", out, argument(i + 1, DType::f32, shape));
  }
  auto bundle = builder.contents();
  auto created = ProgramInterpreter::create(bundle.members.at(bundle.manifest.programMember),
                                            bundle.manifest, bundle.manifest.entries[0],
                                            [](const std::string &) { return add; });
  ASSERT_TRUE(created.ok()) << created.status().message();
  runtime::HostTensor input = runtime::HostTensor::zeros(DType::f32, {2, 2});
  const float values[] = {1, 7, 3, 4};
  std::copy_n(values, 4, input.as<float>());
  ASSERT_TRUE((*created)->setInput("x", input).ok());
  Result<ProgramResults> results = (*created)->runSchedules(3, 20);
  ASSERT_TRUE(results.ok()) << results.status().message();
  auto elements = [&](const char *name) {
    const float *data = results->at(name).as<float>();
    return std::vector<float>(data, data + 4);
  };
  EXPECT_EQ(elements("moved"), (std::vector<float>{1, 7, 3, 4}));
  EXPECT_EQ(elements("reduced"), (std::vector<float>{0, 0, 3, 7}));
  EXPECT_EQ(elements("broadcast"), (std::vector<float>{3, 4, 3, 4}));
  EXPECT_EQ(elements("permuted"), (std::vector<float>{0, 0, 1, 7}));
}

namespace {
/// Ranks 0, 1 and 2 pass their number around a ring, and all of them send first. Then rank 0
/// exchanges one row with rank 2 by counts.
struct Passing {
  explicit Passing(const Shape &expected = {1}) : builder({{"tp", 3}}) {
    builder.operand("x", DType::f32, {3}, {{"tp"}});
    builder.result("passed", DType::f32, {3}, {{"tp"}});
    builder.operand("counts", DType::i32, {9}, {{"tp"}});
    builder.result("rows", DType::f32, {9, 1}, {{"tp"}, {}});
    auto main = builder.procedure("main", 4, 64, 384, 6);
    const auto sent = symmetric(0, DType::f32, {1}), got = symmetric(64, DType::f32, expected);
    main.copy("in", argument(0, DType::f32, {1}), sent);
    main.start("pass on", fb::CollectiveKind::send, {"tp"}, {sent}, {}, 0, 0, 1);
    main.last().pairs = {0, 1, 1, 2, 2, 0};
    main.last().tag = 4;
    main.start("take", fb::CollectiveKind::recv, {"tp"}, {}, {got}, 0, 2, 3);
    main.last().pairs = {0, 1, 1, 2, 2, 0};
    main.last().tag = 4;
    main.wait("pass on", 1);
    main.wait("take", 3);
    main.copy("out", symmetric(64, DType::f32, {1}), argument(2, DType::f32, {1}));
    const auto counts = symmetric(128, DType::i32, {3}), numbers = symmetric(192, DType::i32, {3}),
               rows = symmetric(256, DType::f32, {3, 1}),
               there = symmetric(320, DType::f32, {3, 1});
    main.copy("counts", argument(1, DType::i32, {3}), counts);
    for (uint64_t i = 0; i < 3; ++i)
      main.copy("row", sent, symmetric(256 + 4 * i, DType::f32, {1}));
    main.start("rows", fb::CollectiveKind::all_to_all_v, {"tp"}, {rows, counts}, {there, numbers},
               0, 4, 5);
    main.wait("rows", 5);
    main.copy("out", there, argument(3, DType::f32, {3, 1}));
    bundle = builder.contents();
  }
  Result<ProgramResults> run(const std::vector<int32_t> &counts) {
    auto created = ProgramInterpreter::create(bundle.members.at(bundle.manifest.programMember),
                                              bundle.manifest, bundle.manifest.entries[0],
                                              [](const std::string &) { return add; });
    if (!created.ok())
      return created.status();
    runtime::HostTensor x = runtime::HostTensor::zeros(DType::f32, {3});
    for (int i = 0; i < 3; ++i)
      x.as<float>()[i] = static_cast<float>(10 + i);
    runtime::HostTensor n = runtime::HostTensor::zeros(DType::i32, {9});
    std::copy(counts.begin(), counts.end(), n.as<int32_t>());
    for (const Status &status : {(*created)->setInput("x", x), (*created)->setInput("counts", n)})
      if (!status.ok())
        return status;
    return (*created)->runSchedules(3, 20);
  }
  ProgramBuilder builder;
  runtime::BundleContents bundle;
};
} // namespace

TEST(ProgramInterpreter, PassesValuesOn) {
  Result<ProgramResults> results = Passing().run({0, 0, 1, 0, 0, 0, 1, 0, 0});
  ASSERT_TRUE(results.ok()) << results.status().message();
  const float *passed = results->at("passed").as<float>(), *rows = results->at("rows").as<float>();
  EXPECT_EQ(std::vector<float>(passed, passed + 3), (std::vector<float>{12, 10, 11}));
  EXPECT_EQ(std::vector<float>(rows, rows + 9), (std::vector<float>{0, 0, 12, 0, 0, 0, 10, 0, 0}));
  EXPECT_THAT(Passing().run({0, 0, 2, 0, 0, 0, 1, 0, 0}).status().message(),
              ::testing::HasSubstr("expects counts in [0, 1], got 2 at block 2"));
  EXPECT_EQ(Passing({2}).run({0, 0, 0, 0, 0, 0, 0, 0, 0}).status().message(),
            "entry 'main': rank 1 receives f32 [2] at procedure 'main', communication command 3 "
            "('take'), "
            "where rank 0 sends f32 [1] at procedure 'main', communication command 1 ('pass on') "
            "(message 0 with tag 4)");
}

/// Every command but kernels, compared with results computed by hand.
TEST(ProgramInterpreter, ComputesEveryCommand) {
  ProgramBuilder builder({{"tp", 2}});
  builder.parameter("table", {3, 4});
  builder.parameter("w", {4, 4}, {{"tp"}, {}});
  builder.parameter("bias", {4}, {{"tp"}});
  builder.operand("ids", DType::i64, {2});
  builder.result("scattered", DType::f32, {2, 4}, {{"tp"}, {}});
  builder.result("gathered", DType::f32, {2, 4});
  builder.result("slice", DType::f32, {2, 4}, {{}, {"tp"}});
  auto main = builder.procedure("main", 7, 256, 256, 4);
  const auto rows = local(0, DType::f32, {2, 4}), part = symmetric(0, DType::f32, {2, 2}),
             whole = symmetric(64, DType::f32, {2, 4}), half = symmetric(128, DType::f32, {1, 4});
  runtime::testing::EmbeddingLaunch gather;
  gather.table = argument(0, DType::f32, {3, 4}).build();
  gather.ids = argument(3, DType::i64, {2}).build();
  gather.out = rows.build();
  main.compute("rows", std::move(gather));
  const auto bias = argument(2, DType::f32, {2});
  main.matmul("linear", rows, argument(1, DType::f32, {2, 4}), &bias, part);
  main.start("join", fb::CollectiveKind::all_gather, {"tp"}, {part}, {whole}, 1, 0, 1);
  main.wait("join", 1);
  main.copy("out", whole, argument(5, DType::f32, {2, 4}));
  main.start("scatter", fb::CollectiveKind::reduce_scatter, {"tp"}, {whole}, {half}, 0, 2, 3);
  main.wait("scatter", 3);
  main.copy("out", half, argument(4, DType::f32, {1, 4}));
  runtime::testing::PartLaunch slice;
  slice.source = whole.build();
  slice.dest = argument(6, DType::f32, {2, 2}).build();
  slice.dim = 1;
  slice.axes = runtime::testing::ProcedureBuilder::axisRefs({"tp"});
  main.compute("slice", std::move(slice));
  auto bundle = builder.contents();
  auto created = ProgramInterpreter::create(bundle.members.at(bundle.manifest.programMember),
                                            bundle.manifest, bundle.manifest.entries[0],
                                            [](const std::string &) { return add; });
  ASSERT_TRUE(created.ok()) << created.status().message();
  auto weights = runtime::WeightSource::random(5);
  ASSERT_TRUE((*created)->loadWeights(*weights).ok());
  runtime::HostTensor ids = runtime::HostTensor::zeros(DType::i64, {2});
  ids.as<int64_t>()[0] = 2;
  ids.as<int64_t>()[1] = 1;
  ASSERT_TRUE((*created)->setInput("ids", ids).ok());
  Result<ProgramResults> results = (*created)->runSchedules(3, 20);
  ASSERT_TRUE(results.ok()) << results.status().message();

  auto read = [&](size_t i) {
    const runtime::Parameter &p = bundle.manifest.entries[0].parameters[i];
    runtime::HostTensor value = runtime::HostTensor::zeros(p.dtype, p.globalShape);
    EXPECT_TRUE(
        weights->read(p, {Shape(p.globalShape.size(), 0), p.globalShape}, value.data.data()).ok());
    return std::vector<float>(value.as<float>(), value.as<float>() + value.numElements());
  };
  const std::vector<float> table = read(0), w = read(1), b = read(2);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t n = 0; n < 4; ++n) {
      double sum = b[static_cast<size_t>(n)];
      for (int64_t k = 0; k < 4; ++k)
        sum += double(table[static_cast<size_t>(4 * (2 - i) + k)]) *
               double(w[static_cast<size_t>(4 * n + k)]);
      EXPECT_NEAR(results->at("gathered").as<float>()[4 * i + n], sum, 1e-9);
      EXPECT_NEAR(results->at("slice").as<float>()[4 * i + n], sum, 1e-9);
      EXPECT_NEAR(results->at("scattered").as<float>()[4 * i + n], 2 * sum, 2e-9);
    }

  ids.as<int64_t>()[1] = 3;
  ASSERT_TRUE((*created)->setInput("ids", ids).ok());
  const std::string message = (*created)->run(0).status().message();
  EXPECT_THAT(message,
              ::testing::MatchesRegex("rank [01]: embedding 'rows' in @main on the compute "
                                      "queue: .*3.*"));
}

TEST(ProgramInterpreter, ComputesPositions) {
  ProgramBuilder builder({});
  builder.operand("ids", DType::i64, {1, 3});
  builder.operand("offset", DType::i64, {1});
  builder.operand("x", DType::f32, {1, 3, 1, 4});
  builder.result("positions", DType::i64, {1, 3});
  builder.result("turned", DType::f32, {1, 3, 1, 4});
  auto main = builder.procedure("main", 5, 128, 0, 0);
  runtime::testing::PositionIdsLaunch positions;
  positions.ids = argument(0, DType::i64, {1, 3}).build();
  positions.padding = 7;
  positions.out = argument(3, DType::i64, {1, 3}).build();
  main.compute("positions", std::move(positions));
  runtime::testing::RotaryTableLaunch table;
  table.frequencies = {1, 0.25};
  table.scale = 2;
  table.position_offset = argument(1, DType::i64, {1}).build();
  table.cos = local(0, DType::f32, {1, 3, 2}).build();
  table.sin = local(64, DType::f32, {1, 3, 2}).build();
  main.compute("table", std::move(table));
  runtime::testing::RotaryLaunch rotary;
  rotary.input = argument(2, DType::f32, {1, 3, 1, 4}).build();
  rotary.cos = local(0, DType::f32, {1, 3, 2}).build();
  rotary.sin = local(64, DType::f32, {1, 3, 2}).build();
  rotary.out = argument(4, DType::f32, {1, 3, 1, 4}).build();
  main.compute("turn", std::move(rotary));
  auto bundle = builder.contents();
  auto created = ProgramInterpreter::create(bundle.members.at(bundle.manifest.programMember),
                                            bundle.manifest, bundle.manifest.entries[0],
                                            [](const std::string &) { return add; });
  ASSERT_TRUE(created.ok()) << created.status().message();
  runtime::HostTensor ids = runtime::HostTensor::zeros(DType::i64, {1, 3});
  ids.as<int64_t>()[1] = 7;
  runtime::HostTensor offset = runtime::HostTensor::zeros(DType::i64, {1});
  offset.as<int64_t>()[0] = 5;
  runtime::HostTensor x = runtime::HostTensor::zeros(DType::f32, {1, 3, 1, 4});
  for (int64_t i = 0; i < 12; ++i)
    x.as<float>()[i] = static_cast<float>(i + 1);
  ASSERT_TRUE((*created)->setInput("ids", ids).ok());
  ASSERT_TRUE((*created)->setInput("offset", offset).ok());
  ASSERT_TRUE((*created)->setInput("x", x).ok());
  Result<ProgramResults> results = (*created)->runSchedules(1, 3);
  ASSERT_TRUE(results.ok()) << results.status().message();
  const int64_t *got = results->at("positions").as<int64_t>();
  EXPECT_EQ((std::vector<int64_t>{got[0], got[1], got[2]}), (std::vector<int64_t>{8, 7, 9}));
  for (int64_t s = 0; s < 3; ++s)
    for (int64_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(s + 5) * (i == 0 ? 1 : 0.25);
      const double a = static_cast<double>(4 * s + i + 1), b = a + 2;
      const float *row = results->at("turned").as<float>() + 4 * s;
      EXPECT_NEAR(row[i], 2 * (a * std::cos(angle) - b * std::sin(angle)), 1e-5);
      EXPECT_NEAR(row[i + 2], 2 * (b * std::cos(angle) + a * std::sin(angle)), 1e-5);
    }
}

} // namespace
} // namespace braid::interp::testing
