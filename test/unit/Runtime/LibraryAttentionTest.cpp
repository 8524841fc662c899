//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attention compared with plain loops in double precision.
//
//===----------------------------------------------------------------------===//
#include "LibraryCallsTesting.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

struct AttentionCase {
  int64_t batch, queries, keys, heads, kvHeads, dim;
  bool mask, lengths, offsets, causal;
  int64_t gap;
  bool narrow = false;  ///< mask, lengths and offsets of i32
  int64_t valueDim = 0; ///< of values and out; 0: the same as dim
};

void checkAttention(const AttentionCase &c, int64_t threads, const VectorKernels &kernels,
                    std::mt19937 &random) {
  SCOPED_TRACE(::testing::Message()
               << kernels.isa << ", " << threads << " threads: batch " << c.batch << ", queries "
               << c.queries << ", keys " << c.keys << ", heads " << c.heads << "/" << c.kvHeads
               << ", dim " << c.dim << (c.mask ? ", mask" : "") << (c.lengths ? ", lengths" : "")
               << (c.offsets ? ", offsets" : "") << (c.causal ? ", causal" : "") << ", gap "
               << c.gap << (c.narrow ? ", i32" : ""));
  const int64_t valueDim = c.valueDim ? c.valueDim : c.dim;
  Strided q({c.batch, c.queries, c.heads, c.dim}, c.gap, random),
      k({c.batch, c.keys, c.kvHeads, c.dim}, c.gap, random),
      v({c.batch, c.keys, c.kvHeads, valueDim}, c.gap, random),
      out({c.batch, c.queries, c.heads, valueDim}, c.gap, random),
      logSum({c.batch, c.queries, c.heads}, c.gap, random);
  std::vector<float> before = out.data;
  std::vector<int64_t> mask(static_cast<size_t>(c.batch * c.keys)),
      lengths(static_cast<size_t>(c.batch)), offsets(static_cast<size_t>(c.batch));
  for (int64_t &m : mask)
    m = random() % 4 != 0;
  if (c.mask && c.batch > 1) // one sequence is masked entirely
    std::fill(mask.begin(), mask.begin() + c.keys, 0);
  for (int64_t &l : lengths)
    l = static_cast<int64_t>(random() % static_cast<uint32_t>(c.keys + 1));
  for (int64_t &o : offsets)
    o = static_cast<int64_t>(random() % static_cast<uint32_t>(c.keys)) - 2;
  Tensor maskTensor = integers(mask, {c.batch, c.keys}),
         lengthTensor = integers(lengths, {c.batch}), offsetTensor = integers(offsets, {c.batch});
  Narrow narrowMask(maskTensor), narrowLengths(lengthTensor), narrowOffsets(offsetTensor);
  if (c.narrow) {
    maskTensor = narrowMask.tensor;
    lengthTensor = narrowLengths.tensor;
    offsetTensor = narrowOffsets.tensor;
  }
  AttentionOperands operands{q.tensor, k.tensor, v.tensor, out.tensor};
  operands.mask = c.mask ? &maskTensor : nullptr;
  operands.validLength = c.lengths ? &lengthTensor : nullptr;
  operands.positionOffset = c.offsets ? &offsetTensor : nullptr;
  operands.causal = c.causal;
  operands.logSum = &logSum.tensor;
  operands.scale = 1 / std::sqrt(static_cast<double>(c.dim));
  Result<AttentionCommand> command = resolveAttention(operands, threads, kernels.queryBlock);
  ASSERT_TRUE(command.ok()) << command.status().message();
  command->members =
      std::min(threads, command->units()); // also if the work is too small for this many
  Bench bench(threads, kernels);
  bench.run(*command);

  double difference = 0, norm = 0;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t s = 0; s < c.queries; ++s) {
        int64_t g = h / (c.heads / c.kvHeads);
        std::vector<double> weights(static_cast<size_t>(c.keys), 0),
            expected(static_cast<size_t>(valueDim), 0);
        double largest = -INFINITY, sum = 0;
        auto takesPart = [&](int64_t t) {
          return (!c.mask || mask[static_cast<size_t>(b * c.keys + t)] != 0) &&
                 (!c.lengths || t < lengths[static_cast<size_t>(b)]) &&
                 (!c.causal || t <= s + (c.offsets ? offsets[static_cast<size_t>(b)] : 0));
        };
        for (int64_t t = 0; t < c.keys; ++t) {
          for (int64_t e = 0; e < c.dim; ++e)
            weights[static_cast<size_t>(t)] +=
                static_cast<double>(q.at({b, s, h, e})) * static_cast<double>(k.at({b, t, g, e}));
          weights[static_cast<size_t>(t)] *= operands.scale;
          if (takesPart(t))
            largest = std::max(largest, weights[static_cast<size_t>(t)]);
        }
        for (int64_t t = 0; t < c.keys; ++t) {
          double w = takesPart(t) ? std::exp(weights[static_cast<size_t>(t)] - largest) : 0;
          sum += w;
          for (int64_t e = 0; e < valueDim; ++e)
            expected[static_cast<size_t>(e)] += w * static_cast<double>(v.at({b, t, g, e}));
        }
        const float log = logSum.at({b, s, h});
        if (sum > 0)
          ASSERT_NEAR(log, largest + std::log(sum), 1e-5) << "at " << b << ", " << s << ", " << h;
        else
          ASSERT_EQ(log, -INFINITY) << "at " << b << ", " << s << ", " << h;
        for (int64_t e = 0; e < valueDim; ++e) {
          double x = sum > 0 ? expected[static_cast<size_t>(e)] / sum : 0;
          double d = static_cast<double>(out.at({b, s, h, e})) - x;
          ASSERT_LT(std::abs(d), 1e-5) << "at " << b << ", " << s << ", " << h << ", " << e;
          difference += d * d;
          norm += x * x;
          out.at({b, s, h, e}) =
              before[static_cast<size_t>(&out.at({b, s, h, e}) - out.data.data())];
        }
      }
  EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(norm));
  EXPECT_EQ(out.data, before) << "memory between the rows was written";
}

TEST(Attention, EqualsPlainLoopsOnChosenShapes) {
  std::mt19937 random(1);
  const AttentionCase cases[] = {
      {2, 128, 128, 4, 4, 32, true, false, false, false, 0}, // MiniLM
      {2, 70, 70, 6, 2, 64, false, false, false, true, 0},   // grouped heads, causal
      {2, 1, 200, 8, 2, 16, false, true, true, true, 0},     // one query against a cache
      {1, 65, 130, 9, 3, 40, true, true, true, true, 8},     // all options
      {3, 65, 130, 9, 3, 40, true, true, true, true, 8, true},
      {3, 5, 7, 2, 1, 3, true, false, false, false, 1}, // smaller than any block
      {1, 17, 1, 1, 1, 1, false, false, false, false, 0},
      {2, 4, 300, 1, 1, 128, false, true, false, false, 0},
      // tiles, blocks of keys and vectors that end one before, at and one after their bounds
      {1, 127, 63, 1, 1, 7, false, false, false, true, 1},
      {1, 128, 64, 2, 1, 8, true, false, false, true, 0},
      {1, 129, 65, 3, 3, 33, false, true, false, false, 5},
      {1, 43, 129, 6, 2, 12, false, false, true, true, 0},
      // values with a larger and a smaller dimension than keys
      {2, 65, 70, 6, 2, 24, true, true, true, true, 3, false, 41},
      {2, 65, 70, 6, 2, 24, true, true, true, true, 3, false, 5},
  };
  for (const VectorKernels *kernels : allKernels())
    for (const AttentionCase &c : cases)
      for (int64_t threads : {1, 3})
        checkAttention(c, threads, *kernels, random);
}

TEST(Attention, EqualsPlainLoopsOnRandomShapes) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  auto upTo = [&](uint32_t n) { return static_cast<int64_t>(1 + random() % n); };
  for (int i = 0; i < 40; ++i) {
    int64_t kvHeads = upTo(3), heads = kvHeads * upTo(4);
    AttentionCase c{upTo(3),           upTo(90),          upTo(150),         heads,
                    kvHeads,           upTo(80),          random() % 2 == 0, random() % 2 == 0,
                    random() % 2 == 0, random() % 2 == 0, upTo(4) - 1,       random() % 2 == 0};
    const auto kernels = allKernels();
    checkAttention(c, upTo(3), *kernels[random() % kernels.size()], random);
  }
}

/// With any offset, however large, a query attends to all keys or to none.
TEST(Attention, OffsetsAtTheEndsOfTheirType) {
  std::mt19937 random(4);
  for (const VectorKernels *kernels : allKernels()) {
    Strided q({3, 8, 1, 16}, 0, random), k({3, 8, 1, 16}, 0, random), v({3, 8, 1, 16}, 0, random),
        out({3, 8, 1, 16}, 0, random), all({3, 8, 1, 16}, 0, random);
    std::vector<int64_t> offsets{INT64_MAX, INT64_MIN, INT64_MAX - 3};
    Tensor offset = integers(offsets, {3});
    AttentionOperands operands{q.tensor, k.tensor, v.tensor, out.tensor};
    operands.causal = true;
    operands.positionOffset = &offset;
    Result<AttentionCommand> causal = resolveAttention(operands, 1, kernels->queryBlock);
    Result<AttentionCommand> whole =
        resolveAttention({q.tensor, k.tensor, v.tensor, all.tensor}, 1, kernels->queryBlock);
    ASSERT_TRUE(causal.ok() && whole.ok());
    Bench bench(1, *kernels);
    bench.run(*causal);
    bench.run(*whole);
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t s = 0; s < 8; ++s)
        for (int64_t e = 0; e < 16; ++e)
          EXPECT_EQ(out.at({b, s, 0, e}), b == 1 ? 0 : all.at({b, s, 0, e})) << kernels->isa;
  }
}

TEST(Attention, BitsDoNotDependOnThreads) {
  std::mt19937 random(5);
  for (const VectorKernels *kernels : allKernels()) {
    Strided q({2, 150, 6, 20}, 0, random), k({2, 170, 2, 20}, 0, random),
        v({2, 170, 2, 20}, 0, random), out({2, 150, 6, 20}, 0, random);
    std::vector<float> first;
    for (int64_t threads : {1, 2, 5}) {
      AttentionOperands operands{q.tensor, k.tensor, v.tensor, out.tensor};
      operands.causal = true;
      Result<AttentionCommand> command = resolveAttention(operands, threads, kernels->queryBlock);
      ASSERT_TRUE(command.ok());
      command->members = std::min(threads, command->units());
      Bench bench(threads, *kernels);
      bench.run(*command);
      if (first.empty())
        first = out.data;
      EXPECT_EQ(out.data, first) << kernels->isa << ", " << threads << " threads";
    }
  }
}

/// Attention without mask or offsets, on one thread.
void attend(const Strided &q, const Strided &k, const Strided &v, const Strided &out,
            const VectorKernels &kernels) {
  Result<AttentionCommand> command =
      resolveAttention({q.tensor, k.tensor, v.tensor, out.tensor}, 1, kernels.queryBlock);
  ASSERT_TRUE(command.ok());
  Bench bench(1, kernels);
  bench.run(*command);
}

/// Scores of +inf become NaN when the maximum is subtracted; keys with scores of -inf are ignored.
TEST(Attention, InfiniteScoresStayInTheirRow) {
  std::mt19937 random(6);
  for (const VectorKernels *kernels : allKernels()) {
    Strided q({1, 40, 1, 16}, 0, random), k({1, 70, 1, 16}, 0, random),
        v({1, 70, 1, 16}, 0, random), out({1, 40, 1, 16}, 0, random);
    for (int64_t t = 0; t < 70; ++t)
      k.at({0, t, 0, 5}) = t == 66 ? 0.5f : 1.0f;
    q.at({0, 20, 0, 5}) = INFINITY;
    q.at({0, 30, 0, 5}) = -INFINITY;
    attend(q, k, v, out, *kernels);
    for (int64_t s = 0; s < 40; ++s)
      for (int64_t e = 0; e < 16; ++e)
        if (s == 20)
          EXPECT_TRUE(std::isnan(out.at({0, s, 0, e}))) << kernels->isa;
        else if (s == 30)
          EXPECT_EQ(out.at({0, s, 0, e}), 0.0f) << kernels->isa;
        else
          EXPECT_TRUE(std::isfinite(out.at({0, s, 0, e}))) << kernels->isa;
  }
}

TEST(Attention, NanInAQueryStaysInItsRow) {
  std::mt19937 random(2);
  for (const VectorKernels *kernels : allKernels()) {
    Strided q({1, 8, 1, 16}, 0, random), k({1, 8, 1, 16}, 0, random), v({1, 8, 1, 16}, 0, random),
        out({1, 8, 1, 16}, 0, random);
    q.at({0, 3, 0, 5}) = NAN;
    attend(q, k, v, out, *kernels);
    for (int64_t s = 0; s < 8; ++s)
      for (int64_t e = 0; e < 16; ++e)
        EXPECT_EQ(std::isnan(out.at({0, s, 0, e})), s == 3) << kernels->isa;
  }
}

} // namespace
