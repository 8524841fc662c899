//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "FeedForward.h"
#include "runtime/lib/Sync/Cores.h"

#include <cmath>
#include <gmock/gmock.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;

namespace {

/// The result of feedForward, in double precision on one device.
std::vector<double> expectedFeedForward(const std::vector<float> &x, uint64_t seed,
                                        const Entry &entry) {
  std::vector<std::vector<float>> weights;
  auto source = WeightSource::random(seed);
  for (const Parameter &p : entry.parameters) {
    int64_t count = 1;
    for (int64_t d : p.globalShape)
      count *= d;
    weights.emplace_back(static_cast<size_t>(count));
    Box all{Shape(p.globalShape.size(), 0), p.globalShape};
    EXPECT_TRUE(source->read(p, all, weights.back().data()).ok());
  }
  std::vector<double> in(x.begin(), x.end()), out;
  for (int layer = 0; layer < 2; ++layer) {
    out.assign(in.size(), 0);
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t o = 0; o < kHidden; ++o) {
        double sum = static_cast<double>(weights[2][static_cast<size_t>(o)]);
        for (int64_t i = 0; i < kInner; ++i) {
          double hidden = 0;
          for (int64_t k = 0; k < kHidden; ++k)
            hidden += in[static_cast<size_t>(b * kHidden + k)] *
                      static_cast<double>(weights[0][static_cast<size_t>(i * kHidden + k)]);
          sum += hidden * static_cast<double>(weights[1][static_cast<size_t>(o * kInner + i)]);
        }
        out[static_cast<size_t>(b * kHidden + o)] = sum;
      }
    in = out;
  }
  return out;
}

double relativeL2(const float *got, const std::vector<double> &expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    double d = static_cast<double>(got[i]) - expected[i];
    difference += d * d;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

struct Layout {
  int64_t dp, tp, threads;
};

class FeedForward : public ::testing::TestWithParam<Layout> {};

TEST_P(FeedForward, EqualsOneDevice) {
  auto [dp, tp, threads] = GetParam();
  ProgramBuilder builder = feedForward(dp, tp);
  WorldOptions options;
  options.threadsPerRank = threads;
  auto session = builder.session(options);
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
  for (uint32_t seed = 1; seed <= 3; ++seed) { // the same session runs again with other inputs
    std::vector<float> x = randomValues(kBatch * kHidden, seed);
    ASSERT_OK((*session)->setInput("x", DType::f32, {kBatch, kHidden}, x.data()));
    ASSERT_OK((*session)->run());
    Result<HostTensor> y = (*session)->output("y");
    ASSERT_OK(y.status());
    EXPECT_LT(relativeL2(y->as<float>(), expectedFeedForward(x, 7, (*session)->entry())), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, FeedForward,
                         ::testing::Values(Layout{1, 1, 1}, Layout{1, 2, 1}, Layout{2, 1, 1},
                                           Layout{1, 4, 1}, Layout{2, 2, 1}, Layout{1, 2, 3},
                                           Layout{2, 2, 2}),
                         [](const auto &info) {
                           return "dp" + std::to_string(info.param.dp) + "tp" +
                                  std::to_string(info.param.tp) + "threads" +
                                  std::to_string(info.param.threads);
                         });

constexpr DType f32 = DType::f32;

extern "C" int braidTestCApi(const void *data, size_t bytes, float *result);
extern "C" int braidTestCApiMisuse(const void *data, size_t bytes);

TEST(CApi, MisuseIsAnError) {
  Result<Bytes> bytes = projection().bundle()->serialize();
  ASSERT_OK(bytes);
  EXPECT_EQ(braidTestCApiMisuse(bytes->data(), bytes->size()), 0) << "line of CApiTest.c";
}

TEST(CApi, LifeCycle) {
  std::shared_ptr<const Bundle> bundle = projection().bundle();
  Result<Bytes> bytes = bundle->serialize();
  ASSERT_OK(bytes);
  float y[32];
  ASSERT_EQ(braidTestCApi(bytes->data(), bytes->size(), y), 0) << "line of CApiTest.c";
  std::vector<float> weight(8 * 16);
  ASSERT_OK(WeightSource::random(5)->read(bundle->manifest().entries[0].parameters[0],
                                          {{0, 0}, {8, 16}}, weight.data()));
  std::vector<double> expected(32, 0);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 8; ++j)
      for (size_t k = 0; k < 16; ++k)
        expected[i * 8 + j] +=
            (static_cast<double>((i * 16 + k) % 7) - 3) * static_cast<double>(weight[j * 16 + k]);
  EXPECT_LT(relativeL2(y, expected), 1e-6);
}

/// After each binding all commands use the new memory, also in called procedures.
TEST(Session, BindingMovesEveryUse) {
  auto session = feedForward(1, 2).session();
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
  constexpr size_t kCount = kBatch * kHidden, kBytes = kCount * sizeof(float);
  std::vector<float> x = randomValues(kCount, 3);
  ASSERT_OK((*session)->setInput("x", f32, {kBatch, kHidden}, x.data()));
  ASSERT_OK((*session)->run());
  auto expected = (*session)->output("y");
  ASSERT_OK(expected);
  alignas(64) static float in[2][kCount], out[2][2][kCount];
  for (int round = 0; round < 4; ++round) {
    const int half = round % 2;
    std::copy(x.begin(), x.end(), in[half]);
    std::fill(in[1 - half], in[1 - half] + kCount, std::nanf("")); // must not be read
    for (int64_t rank = 0; rank < 2; ++rank) {
      ASSERT_OK((*session)->bindInput(rank, "x", in[half], kBytes));
      // The second rank's output stays at its first binding.
      if (rank == 0 || round == 0)
        ASSERT_OK((*session)->bindOutput(rank, "y", out[half][rank], kBytes));
    }
    std::fill(out[half][0], out[half][0] + kCount, 0.0F);
    std::fill(out[0][1], out[0][1] + kCount, 0.0F);
    ASSERT_OK((*session)->run());
    EXPECT_TRUE(std::equal(out[half][0], out[half][0] + kCount, expected->as<float>()));
    EXPECT_TRUE(std::equal(out[0][1], out[0][1] + kCount, expected->as<float>()));
  }
}

/// The processors on which a kernel's threads may run, by rank and row.
std::mutex seenLock;
std::map<float, std::vector<int>> seenCores;
void noteCores(void *const *descriptors) {
  auto *in = static_cast<Memref *>(descriptors[0]);
  std::lock_guard<std::mutex> lock(seenLock);
  seenCores[in->aligned[in->offset]] = allowedCores();
}

TEST(Session, ThreadsArePinnedToCores) {
  const std::vector<int> cores = allowedCores();
  if (cores.size() < 2)
    GTEST_SKIP() << "expects 2 cores, got " << cores.size();
  constexpr int64_t kRows = 2, kColumns = 32768; // large enough for two threads
  auto program = [&](int64_t ranks) {
    ProgramBuilder b({{"tp", ranks}});
    b.operand("x", f32, {ranks * kRows, kColumns}, {{"tp"}, {}});
    b.result("y", f32, {ranks * kRows, kColumns}, {{"tp"}, {}});
    auto p = b.procedure("main", 2, 0, 0, 0);
    p.launch("note", b.kernel("note", 2, noteCores),
             {argument(0, f32, {kRows, kColumns}), argument(1, f32, {kRows, kColumns})},
             {true, true}, kRows);
    return b;
  };
  for (int64_t ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    WorldOptions options;
    options.pin = true;
    options.threadsPerRank = 2 / ranks;
    auto session = program(ranks).session(options);
    ASSERT_OK(session);
    std::vector<float> x(static_cast<size_t>(ranks * kRows * kColumns));
    for (size_t i = 0; i < x.size(); ++i) {
      size_t row = i / kColumns;
      x[i] = static_cast<float>(row);
    }
    ASSERT_OK((*session)->setInput("x", f32, {ranks * kRows, kColumns}, x.data()));
    seenCores.clear();
    ASSERT_OK((*session)->run());
    // With one rank, two threads have one row each; with two ranks, each rank's thread has its
    // first row.
    EXPECT_EQ(seenCores[0], std::vector<int>{cores[0]});
    EXPECT_EQ(seenCores[ranks == 1 ? 1.0F : 2.0F], std::vector<int>{cores[1]});
    EXPECT_THAT((*session)->report(), HasSubstr("\"pinned_cores\": ["));
  }
  // With more threads than cores, cores serve several in turn.
  WorldOptions options;
  options.pin = true;
  options.threadsPerRank = static_cast<int64_t>(cores.size());
  Result<std::unique_ptr<Session>> many = program(2).session(options);
  ASSERT_OK(many);
  std::string both;
  for (int rank = 0; rank < 2; ++rank)
    for (int core : cores)
      both += (both.empty() ? "" : ",") + std::to_string(core);
  const std::string report = (*many)->report();
  std::string packed;
  for (char c : report)
    if (c != ' ' && c != '\n')
      packed += c;
  EXPECT_THAT(packed, HasSubstr("\"pinned_cores\":[" + both + "]"));
  EXPECT_EQ(allowedCores(), cores) << "the caller's thread stays where it was";
}

/// Callers see [2, 5] of [2, 8] in four shards; the last shard is only padding.
TEST(Session, PaddingOfAResult) {
  ProgramBuilder b({{"tp", 4}});
  b.operand("x", f32, {2, 8}, {{}, {"tp"}});
  b.result("y", f32, {2, 8}, {{}, {"tp"}});
  auto p = b.procedure("main", 2, 0, 0, 0);
  p.copy("y", argument(0, f32, {2, 2}), argument(1, f32, {2, 2}));
  BundleContents contents = b.contents();
  EntryValue &y = contents.manifest.entries[0].results[0];
  y.paddedShape = y.globalShape;
  y.globalShape = {2, 5};
  auto session = Session::create(bundleOf(contents), {});
  ASSERT_OK(session);
  std::vector<float> x(16);
  std::iota(x.begin(), x.end(), 1.0f);
  ASSERT_OK((*session)->setInput("x", f32, {2, 8}, x.data()));
  ASSERT_OK((*session)->run());
  Result<HostTensor> got = (*session)->output("y");
  ASSERT_OK(got);
  EXPECT_EQ(got->shape, (std::vector<int64_t>{2, 5}));
  const float *values = got->as<float>();
  EXPECT_EQ(std::vector<float>(values, values + 10),
            (std::vector<float>{1, 2, 3, 4, 5, 9, 10, 11, 12, 13}));
  std::vector<float> padded(16);
  EXPECT_ERROR((*session)->readOutput("y", padded.data(), 64),
               "output 'y' expects memory of 40 bytes, got 64");
}

/// A result without a sharding is the same on all ranks; a program that breaks this is found out
/// when the result is read.
TEST(Session, RanksThatDisagreeAboutAResult) {
  ProgramBuilder b({{"dp", 2}, {"tp", 2}});
  b.operand("x", f32, {4, 6}, {{"dp"}, {"tp"}});
  b.result("y", f32, {4, 3}, {{"dp"}, {}});
  auto p = b.procedure("main", 2, 0, 0, 0);
  p.copy("y", argument(0, f32, {2, 3}), argument(1, f32, {2, 3}));
  BundleContents contents = b.contents();
  for (const char *transport : {"shm", "threads"}) {
    WorldOptions options;
    options.transport = transport;
    auto session = Session::create(bundleOf(contents), options);
    ASSERT_OK(session);
    // Ranks 0 and 1 have equal shards, ranks 2 and 3 differ in their last element.
    std::vector<float> x(24, 1.0f);
    x[23] = 2;
    ASSERT_OK((*session)->setInput("x", f32, {4, 6}, x.data()));
    ASSERT_OK((*session)->run());
    Result<HostTensor> y = (*session)->output("y");
    EXPECT_ERROR(y, "output 'y' expects equal values on ranks 2 and 3, which differ at [1, 2]");
    EXPECT_EQ(y.status().code(), Code::rankFailed);
    x[23] = 1;
    ASSERT_OK((*session)->setInput("x", f32, {4, 6}, x.data()));
    ASSERT_OK((*session)->run());
    y = (*session)->output("y");
    ASSERT_OK(y);
    EXPECT_THAT(std::vector<float>(y->as<float>(), y->as<float>() + 12), ::testing::Each(1.0f));
  }
}

/// The default is used until the input is set. Memory that the caller binds is not overwritten.
TEST(Session, AnInputWithADefaultMayBeLeftOut) {
  ProgramBuilder b({{"tp", 2}});
  b.operand("x", DType::i64, {2, 8}, {{"tp"}, {}});
  b.result("y", DType::i64, {2, 8}, {{"tp"}, {}});
  auto p = b.procedure("main", 2, 0, 0, 0);
  p.copy("y", argument(0, DType::i64, {1, 8}), argument(1, DType::i64, {1, 8}));
  BundleContents contents = b.contents();
  auto values = [](Session &session) {
    Result<HostTensor> y = session.output("y");
    EXPECT_OK(y);
    return std::vector<int64_t>(y->as<int64_t>(), y->as<int64_t>() + 16);
  };
  auto without = Session::create(bundleOf(contents), {});
  ASSERT_OK(without);
  EXPECT_ERROR((*without)->run(), "inputs are missing: 'x' i64 [2, 8]");
  without->reset(); // the thread sanitizer refuses to fork a process with several threads
  contents.manifest.entries[0].operands[0].defaultValue = 3;
  for (const char *transport : {"threads", "shm"}) {
    WorldOptions options;
    options.transport = transport;
    auto session = Session::create(bundleOf(contents), options);
    ASSERT_OK(session);
    ASSERT_OK((*session)->run());
    EXPECT_EQ(values(**session), std::vector<int64_t>(16, 3)) << transport;
    std::vector<int64_t> x(16);
    std::iota(x.begin(), x.end(), 1);
    ASSERT_OK((*session)->setInput("x", DType::i64, {2, 8}, x.data()));
    ASSERT_OK((*session)->run());
    EXPECT_EQ(values(**session), x) << transport;
  }
  auto bound = Session::create(bundleOf(contents), {});
  ASSERT_OK(bound);
  alignas(64) int64_t part[8] = {5, 5, 5, 5, 5, 5, 5, 5};
  ASSERT_OK((*bound)->bindInput(0, "x", part, sizeof part));
  EXPECT_ERROR((*bound)->run(), "inputs are missing: 'x' i64 [2, 8]");
  EXPECT_EQ(part[0], 5);
}

/// Several collectives in flight, over both axes of the mesh, waited for in another order than
/// started.
TEST(Session, CollectivesInFlightOverSeveralGroups) {
  ProgramBuilder b({{"dp", 2}, {"tp", 2}});
  b.operand("x", f32, {4, 32}, {{"dp", "tp"}, {}}); // one row per rank
  b.result("tp_sum", f32, {4, 32}, {{"dp", "tp"}, {}});
  b.result("dp_parts", f32, {4, 16}, {{"dp", "tp"}, {}});
  b.result("all", f32, {4, 4, 32}, {{"dp", "tp"}, {}, {}});
  b.result("sliced", f32, {4, 16}, {{"dp", "tp"}, {}});
  auto p = b.procedure("main", 5, 0, 2048, 6);
  V x = argument(0, f32, {1, 32}), in = symmetric(0, f32, {1, 32});
  V tpSum = symmetric(256, f32, {1, 32}), dpPart = symmetric(512, f32, {1, 16}),
    all = symmetric(1024, f32, {4, 32});
  p.copy("in", x, in);
  p.start("a", fb::CollectiveKind::all_reduce, {"tp"}, {in}, {tpSum}, 0, 0, 1, "a");
  p.start("b", fb::CollectiveKind::reduce_scatter, {"dp"}, {in}, {dpPart}, 1, 2, 3, "b");
  p.start("c", fb::CollectiveKind::all_gather, {"dp", "tp"}, {in}, {all}, 0, 4, 5, "c");
  PartLaunch slice;
  slice.source = x.build();
  slice.dest = argument(4, f32, {1, 16}).build();
  slice.dim = 1;
  slice.axes = ProcedureBuilder::axisRefs({"tp"});
  p.compute("slice", std::move(slice));
  p.wait("c", 5);
  p.copy("all", all, argument(3, f32, {4, 32}));
  p.wait("b", 3);
  p.copy("dp_parts", dpPart, argument(2, f32, {1, 16}));
  p.wait("a", 1);
  p.copy("tp_sum", tpSum, argument(1, f32, {1, 32}));
  auto session = b.session();
  ASSERT_OK(session);
  for (int run = 0; run < 50; ++run) {
    std::vector<float> values(4 * 32);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(static_cast<int>(i) * 3 + run);
    auto at = [&](int64_t rank, int64_t i) { return values[static_cast<size_t>(rank * 32 + i)]; };
    ASSERT_OK((*session)->setInput("x", f32, {4, 32}, values.data()));
    ASSERT_OK((*session)->run());
    auto tp = (*session)->output("tp_sum"), dp = (*session)->output("dp_parts"),
         gathered = (*session)->output("all"), sliced = (*session)->output("sliced");
    for (int64_t rank = 0; rank < 4; ++rank) {
      int64_t d = rank / 2, t = rank % 2;
      for (int64_t i = 0; i < 32; ++i) {
        ASSERT_EQ(tp->as<float>()[rank * 32 + i], at(2 * d, i) + at(2 * d + 1, i));
        for (int64_t r = 0; r < 4; ++r)
          ASSERT_EQ(gathered->as<float>()[(rank * 4 + r) * 32 + i], at(r, i));
      }
      for (int64_t i = 0; i < 16; ++i) {
        ASSERT_EQ(dp->as<float>()[rank * 16 + i], at(t, d * 16 + i) + at(2 + t, d * 16 + i));
        ASSERT_EQ(sliced->as<float>()[rank * 16 + i], at(rank, t * 16 + i));
      }
    }
  }
  auto report = (*session)->report();
  EXPECT_THAT(report, HasSubstr("\"name\": \"b\""));
}

/// all_to_all, reduce, broadcast and permute on three ranks, all in flight at once.
TEST(Session, ExchangesInFlight) {
  ProgramBuilder b({{"tp", 3}});
  b.operand("x", f32, {3, 2, 6}, {{"tp"}, {}, {}});
  for (const char *name : {"swapped", "sum", "same", "shifted"})
    b.result(name, f32, {3, 12}, {{"tp"}, {}});
  auto p = b.procedure("main", 5, 0, 2048, 8);
  V in = symmetric(0, f32, {2, 6});
  V swapped = symmetric(256, f32, {6, 2}), sum = symmetric(512, f32, {2, 6}),
    same = symmetric(768, f32, {2, 6}), shifted = symmetric(1024, f32, {2, 6});
  p.copy("in", argument(0, f32, {2, 6}), in);
  p.start("a", fb::CollectiveKind::all_to_all, {"tp"}, {in}, {swapped}, 1, 0, 1, "a");
  p.last().concat_dim = 0;
  p.start("b", fb::CollectiveKind::reduce, {"tp"}, {in}, {sum}, 0, 2, 3, "b");
  p.last().root = 2;
  p.start("c", fb::CollectiveKind::broadcast, {"tp"}, {in}, {same}, 0, 4, 5, "c");
  p.last().root = 1;
  p.start("d", fb::CollectiveKind::permute, {"tp"}, {in}, {shifted}, 0, 6, 7, "d");
  p.last().pairs = {0, 1, 1, 2};
  p.wait("d", 7);
  p.wait("a", 1);
  p.wait("c", 5);
  p.wait("b", 3);
  p.copy("swapped", symmetric(256, f32, {1, 12}), argument(1, f32, {1, 12}));
  p.copy("sum", symmetric(512, f32, {1, 12}), argument(2, f32, {1, 12}));
  p.copy("same", symmetric(768, f32, {1, 12}), argument(3, f32, {1, 12}));
  p.copy("shifted", symmetric(1024, f32, {1, 12}), argument(4, f32, {1, 12}));
  auto session = b.session();
  ASSERT_OK(session);
  for (int run = 0; run < 30; ++run) {
    std::vector<float> x(36);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(static_cast<int>(i) * 5 + run + 1);
    auto at = [&](int64_t rank, int64_t i) { return x[static_cast<size_t>(rank * 12 + i)]; };
    ASSERT_OK((*session)->setInput("x", f32, {3, 2, 6}, x.data()));
    ASSERT_OK((*session)->run());
    auto swappedOut = (*session)->output("swapped"), sumOut = (*session)->output("sum"),
         sameOut = (*session)->output("same"), shiftedOut = (*session)->output("shifted");
    for (int64_t rank = 0; rank < 3; ++rank)
      for (int64_t i = 0; i < 12; ++i) {
        int64_t row = i / 2, column = i % 2; // of [6, 2]: two rows from each sender
        ASSERT_EQ(swappedOut->as<float>()[rank * 12 + i],
                  at(row / 2, row % 2 * 6 + rank * 2 + column));
        ASSERT_EQ(sumOut->as<float>()[rank * 12 + i],
                  rank == 2 ? at(0, i) + at(1, i) + at(2, i) : 0);
        ASSERT_EQ(sameOut->as<float>()[rank * 12 + i], at(1, i));
        ASSERT_EQ(shiftedOut->as<float>()[rank * 12 + i], rank == 0 ? 0 : at(rank - 1, i));
      }
  }
  // Each rank has 48 bytes. It sends two thirds (all_to_all), all unless it is the root (reduce),
  // nothing unless it is the root (broadcast), and all if it is a source (permute).
  auto report = (*session)->report();
  EXPECT_THAT(report, HasSubstr("\"kind\": \"all_to_all\""));
  EXPECT_THAT(report, HasSubstr("\"bytes_sent\": 128")); // rank 0: 32 + 48 + 0 + 48
  EXPECT_THAT(report, HasSubstr("\"bytes_sent\": 224")); // rank 1: 32 + 48 + 96 + 48
  EXPECT_THAT(report, HasSubstr("\"bytes_sent\": 32"));  // rank 2: 32 + 0 + 0 + 0
}

TEST(Session, TheCallerMaySupplyMemory) {
  ProgramBuilder builder = feedForward(2, 1);
  auto session = builder.session();
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
  constexpr size_t kPart = kBatch / 2 * kHidden;
  alignas(64) static float in[2][kPart], out[2][kPart];
  std::vector<float> x = randomValues(2 * kPart, 9);
  for (int64_t rank = 0; rank < 2; ++rank) {
    std::copy_n(x.begin() + static_cast<int64_t>(kPart) * rank, kPart, in[rank]);
    EXPECT_ERROR((*session)->run(), "inputs are missing: 'x' f32 [12, 24]");
    ASSERT_OK((*session)->bindInput(rank, "x", in[rank], sizeof in[rank]));
    ASSERT_OK((*session)->bindOutput(rank, "y", out[rank], sizeof out[rank]));
  }
  EXPECT_ERROR((*session)->bindInput(0, "x", in[0], 4),
               "input 'x' of rank 0 expects 576 bytes [6, 24], got 4");
  EXPECT_ERROR((*session)->bindInput(0, "x", in[0] + 1, sizeof in[0]),
               "input 'x' of rank 0 expects memory aligned to 64 bytes");
  EXPECT_ERROR((*session)->bindInput(2, "x", in[0], sizeof in[0]),
               "expects a rank of 0 to 1, got 2");
  ASSERT_OK((*session)->run());
  std::vector<double> expected = expectedFeedForward(x, 7, (*session)->entry());
  EXPECT_LT(relativeL2(out[0], {expected.begin(), expected.begin() + kPart}), 1e-6);
  EXPECT_LT(relativeL2(out[1], {expected.begin() + kPart, expected.end()}), 1e-6);
}

/// Matmuls and attentions on both queues, unordered: each queue's threads have their own scratch
/// memory, and helpers of the compute queue do not work for the other queue.
TEST(Session, BothQueuesComputeAtOnce) {
  constexpr int64_t kSize = 128;
  const V x = argument(1, f32, {kSize, kSize}), heads = argument(1, f32, {1, kSize, 2, kSize / 2});
  ProgramBuilder b({{"a", 1}});
  b.parameter("w", {kSize, kSize});
  b.operand("x", f32, {kSize, kSize});
  auto p = b.procedure("main", 6, 0, 0, 0);
  for (uint32_t queue = 0; queue < 2; ++queue) {
    b.result("product" + std::to_string(queue), f32, {kSize, kSize});
    b.result("attention" + std::to_string(queue), f32, {1, kSize, 2, kSize / 2});
    MatmulLaunch matmul;
    matmul.lhs = x.build();
    matmul.rhs = argument(0, f32, {kSize, kSize}).build();
    matmul.out = argument(2 + 2 * queue, f32, {kSize, kSize}).build();
    AttentionLaunch attention;
    for (auto *operand : {&attention.query, &attention.key, &attention.value})
      *operand = heads.build();
    attention.out = argument(3 + 2 * queue, f32, heads.shape).build();
    attention.scale = 0.1F;
    if (queue == 0) {
      p.compute("multiply", std::move(matmul));
      p.compute("attend", std::move(attention));
    } else {
      p.communication("multiply there", std::move(matmul));
      p.communication("attend there", std::move(attention));
    }
  }
  WorldOptions options;
  options.threadsPerRank = 3;
  auto session = b.session(options);
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(5)));
  std::vector<float> weight(kSize * kSize);
  ASSERT_OK(WeightSource::random(5)->read((*session)->entry().parameters[0],
                                          {{0, 0}, {kSize, kSize}}, weight.data()));
  for (uint32_t run = 1; run <= 10; ++run) {
    const std::vector<float> values = randomValues(kSize * kSize, run);
    std::vector<double> expected(kSize * kSize, 0);
    for (size_t i = 0; i < kSize; ++i)
      for (size_t j = 0; j < kSize; ++j)
        for (size_t k = 0; k < kSize; ++k)
          expected[i * kSize + j] += static_cast<double>(values[i * kSize + k]) *
                                     static_cast<double>(weight[j * kSize + k]);
    ASSERT_OK((*session)->setInput("x", f32, {kSize, kSize}, values.data()));
    ASSERT_OK((*session)->run());
    for (const char *name : {"product0", "product1"})
      EXPECT_LT(relativeL2((*session)->output(name)->as<float>(), expected), 1e-6) << name;
    const Result<HostTensor> here = (*session)->output("attention0"),
                             there = (*session)->output("attention1");
    const std::vector<double> attended(here->as<float>(), here->as<float>() + kSize * kSize);
    EXPECT_LT(relativeL2(there->as<float>(), attended), 1e-6);
  }
}

TEST(Session, SeveralSessionsAtOnce) {
  std::vector<std::thread> users;
  for (int64_t user = 0; user < 3; ++user)
    users.emplace_back([user] {
      ProgramBuilder builder = feedForward(1, 1 + user % 2);
      auto session = builder.session();
      ASSERT_OK(session);
      uint64_t seed = static_cast<uint64_t>(user);
      ASSERT_OK((*session)->loadWeights(*WeightSource::random(seed)));
      std::vector<float> x = randomValues(kBatch * kHidden, static_cast<uint32_t>(user));
      ASSERT_OK((*session)->setInput("x", f32, {kBatch, kHidden}, x.data()));
      std::vector<double> expected = expectedFeedForward(x, seed, (*session)->entry());
      for (int i = 0; i < 20; ++i) {
        ASSERT_OK((*session)->run());
        ASSERT_LT(relativeL2((*session)->output("y")->as<float>(), expected), 1e-6);
      }
    });
  for (std::thread &user : users)
    user.join();
}

} // namespace
