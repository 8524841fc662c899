//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Library kernels compared with plain loops in double precision.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"
#include "runtime/lib/Executor/Commands.h"
#include "runtime/lib/Kernels/Operations.h"

#include <cmath>
#include <gmock/gmock.h>
#include <oneapi/dnnl/dnnl_config.h>
#include <oneapi/dnnl/dnnl_types.h>
#include <random>
#include <thread>

using namespace braid::runtime;

namespace {

std::vector<const VectorKernels *> allKernels() {
  std::vector<const VectorKernels *> kernels = {vectorKernelsGeneric()};
  const std::string best = vectorKernels().isa;
  if (best == "avx2" || best == "avx512")
    kernels.push_back(vectorKernelsAvx2());
  if (best == "avx512")
    kernels.push_back(vectorKernelsAvx512());
  return kernels;
}

/// Runs a command as an executor's queue does, with a team of threads.
class Bench {
public:
  explicit Bench(int64_t threads, const VectorKernels &kernels)
      : team(threads), scratch(static_cast<size_t>(threads)), control(1, 60, 50),
        context{control, control.queue(0, Queue::compute), team, kernels, scratch} {
    useOneThread();
    for (int64_t member = 1; member < threads; ++member)
      helpers.emplace_back([this, member] {
        useOneThread();
        team.serve(member, 50);
      });
  }
  ~Bench() {
    team.stop();
    for (std::thread &t : helpers)
      t.join();
  }
  template <typename Op> void run(const Op &op) {
    Command source;
    execute(op, source, context);
    EXPECT_FALSE(control.failed());
  }

  Team team;
  std::vector<std::vector<std::byte>> scratch;
  RunControl control;
  ExecutionContext context;
  std::vector<std::thread> helpers;
};

/// A tensor in memory that may have gaps between its rows, filled with a value that must not
/// change.
struct Strided {
  Strided(std::vector<int64_t> shape, int64_t gap, std::mt19937 &random) {
    tensor.shape = shape;
    tensor.strides.resize(shape.size());
    int64_t next = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      tensor.strides[d] = next;
      next *= shape[d];
      if (d + 1 == shape.size())
        next += gap;
    }
    std::normal_distribution<float> normal;
    data.resize(static_cast<size_t>(next));
    for (float &x : data)
      x = normal(random);
    tensor.data = reinterpret_cast<std::byte *>(data.data());
  }
  float &at(std::initializer_list<int64_t> index) {
    int64_t offset = 0;
    size_t d = 0;
    for (int64_t i : index)
      offset += i * tensor.strides[d++];
    return data[static_cast<size_t>(offset)];
  }
  Tensor tensor;
  std::vector<float> data;
};

Tensor integers(std::vector<int64_t> &data, std::vector<int64_t> shape) {
  Tensor t{reinterpret_cast<std::byte *>(data.data()), DType::i64, shape, {}};
  int64_t next = 1;
  t.strides.resize(shape.size());
  for (size_t d = shape.size(); d-- > 0; next *= shape[d])
    t.strides[d] = next;
  return t;
}

/// The same numbers as i32.
struct Narrow {
  explicit Narrow(const Tensor &wide) : tensor(wide) {
    for (int64_t i = 0; i < wide.numElements(); ++i)
      data.push_back(static_cast<int32_t>(wide.as<int64_t>()[i]));
    tensor.dtype = DType::i32;
    tensor.data = reinterpret_cast<std::byte *>(data.data());
  }
  std::vector<int32_t> data;
  Tensor tensor;
};

/// A call of a library kernel. Operands are in the order of its descriptor; absent ones are null.
LibraryArguments call(const char *kernel, const std::vector<const Tensor *> &operands,
                      std::vector<int64_t> integers = {}, std::vector<double> numbers = {}) {
  LibraryArguments a;
  a.kernel = findLibraryKernel(kernel);
  for (const Tensor *t : operands) {
    a.operands.emplace_back();
    a.data.push_back(t ? t->data : nullptr);
    if (t)
      a.operands.back() = OperandType{t->dtype, t->shape, t->strides};
  }
  a.integers = std::move(integers);
  a.numbers = std::move(numbers);
  return a;
}

struct AttentionOperands {
  Tensor query, key, value, out;
  const Tensor *mask = nullptr, *validLength = nullptr, *positionOffset = nullptr;
  double scale = 1;
  bool causal = false;
};
Result<AttentionCommand> resolveAttention(const AttentionOperands &o, int64_t threads,
                                          int64_t queryBlock) {
  return resolveAttention(
      call("attention",
           {&o.query, &o.key, &o.value, o.mask, o.validLength, o.positionOffset, &o.out},
           {o.causal}, {o.scale}),
      threads, queryBlock);
}
Result<RotaryTableCommand> resolveRotaryTable(std::vector<double> frequencies, double scale,
                                              const Tensor *offset, const Tensor &cos,
                                              const Tensor &sin, int64_t threads) {
  frequencies.insert(frequencies.begin(), scale);
  return resolveRotaryTable(call("rotary_table", {offset, &cos, &sin}, {}, frequencies), threads);
}
Result<RotaryCommand> resolveRotary(const Tensor &input, const Tensor &cos, const Tensor &sin,
                                    const Tensor &out, int64_t threads) {
  return resolveRotary(call("rotary", {&input, &cos, &sin, &out}), threads);
}
Result<PositionIdsCommand> resolvePositionIds(const Tensor &ids, int64_t padding,
                                              const Tensor &out) {
  return resolvePositionIds(call("position_ids", {&ids, &out}, {padding}));
}
Result<MatmulCommand> resolveMatmul(const Tensor &lhs, const Tensor &rhs, const Tensor *bias,
                                    const Tensor &out, int64_t threads, MatmulCache &matmuls) {
  return resolveMatmul(call("linear", {&lhs, &rhs, bias, &out}), threads, matmuls);
}

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
      out({c.batch, c.queries, c.heads, valueDim}, c.gap, random);
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
    Result<AttentionCommand> command =
        resolveAttention({q.tensor, k.tensor, v.tensor, out.tensor}, 1, kernels->queryBlock);
    ASSERT_TRUE(command.ok());
    Bench bench(1, *kernels);
    bench.run(*command);
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
    Result<AttentionCommand> command =
        resolveAttention({q.tensor, k.tensor, v.tensor, out.tensor}, 1, kernels->queryBlock);
    ASSERT_TRUE(command.ok());
    Bench bench(1, *kernels);
    bench.run(*command);
    for (int64_t s = 0; s < 8; ++s)
      for (int64_t e = 0; e < 16; ++e)
        EXPECT_EQ(std::isnan(out.at({0, s, 0, e})), s == 3) << kernels->isa;
  }
}

/// Calls that descriptors allow but that the CPU has no kernel for.
TEST(LibraryCalls, RefusesWhatTheCpuHasNoKernelFor) {
  std::mt19937 random(3);
  MatmulCache matmuls;
  Strided q({1, 8, 2, 16}, 0, random), table({8, 8}, 0, random), ids({2, 3}, 1, random);
  auto message = [](const auto &result) { return result.status().message(); };
  AttentionOperands same{q.tensor, q.tensor, q.tensor, q.tensor};
  same.query.dtype = same.key.dtype = same.value.dtype = DType::bf16;
  EXPECT_EQ(message(resolveAttention(same, 1, 16)), "expects query of f32, got bf16");
  same = {q.tensor, q.tensor, q.tensor, q.tensor};
  same.out.dtype = DType::f64;
  EXPECT_EQ(message(resolveAttention(same, 1, 16)), "expects out of f32, got f64");
  same = {q.tensor, q.tensor, q.tensor, q.tensor};
  same.key.strides[3] = 2;
  EXPECT_EQ(message(resolveAttention(same, 1, 16)),
            "expects a contiguous last dimension of key [1, 8, 2, 16], got strides [256, 32, 16, "
            "2]");
  Tensor half = q.tensor;
  half.dtype = DType::f16;
  EXPECT_EQ(message(resolveRotary(half, table.tensor, table.tensor, half, 1)),
            "expects input of f32, got f16");
  EXPECT_EQ(message(resolveRotaryTable({1.0}, 1, nullptr, half, half, 1)),
            "expects cos of f32, got f16");
  EXPECT_EQ(message(resolveMatmul(half, table.tensor, nullptr, q.tensor, 1, matmuls)),
            "expects input of f32, got f16");
  ids.tensor.dtype = DType::i32;
  EXPECT_EQ(
      message(resolveGather(call("embedding", {&table.tensor, &ids.tensor, &q.tensor}, {0}), 1)),
      "expects contiguous ids, got [2, 3] with strides [4, 1]");
}

void checkRotary(int64_t batch, int64_t seq, int64_t heads, int64_t pairs, bool offsets,
                 int64_t gap, int64_t threads, const VectorKernels &kernels, std::mt19937 &random,
                 bool narrow = false) {
  SCOPED_TRACE(::testing::Message() << kernels.isa << ", " << threads << " threads: batch " << batch
                                    << ", seq " << seq << ", heads " << heads << ", pairs " << pairs
                                    << (offsets ? ", offsets" : "") << ", gap " << gap);
  std::vector<int64_t> tableShape = {batch, seq, pairs}, offset(static_cast<size_t>(batch));
  if (!offsets)
    tableShape.erase(tableShape.begin());
  for (int64_t &o : offset)
    o = offsets ? static_cast<int64_t>(random() % 8000) : 0;
  Strided in({batch, seq, heads, 2 * pairs}, gap, random), out(in.tensor.shape, gap, random),
      cos(tableShape, gap, random), sin(tableShape, gap, random);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < pairs; ++i)
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs)));
  const double scale = 1.25;
  Tensor offsetTensor = integers(offset, {batch});
  Narrow narrowOffset(offsetTensor);
  if (narrow)
    offsetTensor = narrowOffset.tensor;
  Bench bench(threads, kernels);
  Result<RotaryTableCommand> table = resolveRotaryTable(
      frequencies, scale, offsets ? &offsetTensor : nullptr, cos.tensor, sin.tensor, threads);
  ASSERT_TRUE(table.ok()) << table.status().message();
  bench.run(*table);
  std::vector<float> before = out.data;
  Result<RotaryCommand> command =
      resolveRotary(in.tensor, cos.tensor, sin.tensor, out.tensor, threads);
  ASSERT_TRUE(command.ok()) << command.status().message();
  bench.run(*command);
  double worst = 0;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t s = 0; s < seq; ++s)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < pairs; ++i) {
          double angle = static_cast<double>(s + offset[static_cast<size_t>(b)]) *
                         frequencies[static_cast<size_t>(i)];
          double c = scale * std::cos(angle), d = scale * std::sin(angle);
          double x = static_cast<double>(in.at({b, s, h, i})),
                 y = static_cast<double>(in.at({b, s, h, i + pairs}));
          worst = std::max(
              {worst, std::abs(static_cast<double>(out.at({b, s, h, i})) - (x * c - y * d)),
               std::abs(static_cast<double>(out.at({b, s, h, i + pairs})) - (y * c + x * d))});
          for (int64_t e : {i, i + pairs})
            out.at({b, s, h, e}) =
                before[static_cast<size_t>(&out.at({b, s, h, e}) - out.data.data())];
        }
  EXPECT_LE(worst, 2e-6);
  EXPECT_EQ(out.data, before) << "memory between the rows was written";
}

TEST(Rotary, EqualsPlainLoops) {
  std::mt19937 random(7);
  for (const VectorKernels *kernels : allKernels())
    for (bool offsets : {false, true})
      for (int64_t gap : {0, 3})
        for (int64_t threads : {1, 3}) {
          checkRotary(1, 40, 9, 32, offsets, gap, threads, *kernels, random);
          checkRotary(3, 7, 2, 21, offsets, gap, threads, *kernels, random);
          checkRotary(3, 7, 2, 21, offsets, gap, threads, *kernels, random, /*narrow=*/true);
          checkRotary(2, 200, 3, 64, offsets, gap, threads, *kernels, random); // divided
          checkRotary(2, 1, 1, 1, offsets, gap, threads, *kernels, random);
        }
}

TEST(PositionIds, PaddingIsNotCounted) {
  std::vector<int64_t> ids = {7, 1, 8, 9, 1, 1, 1, 5}, positions(8);
  Bench bench(1, vectorKernels());
  Result<PositionIdsCommand> command =
      resolvePositionIds(integers(ids, {2, 4}), 1, integers(positions, {2, 4}));
  ASSERT_TRUE(command.ok()) << command.status().message();
  bench.run(*command);
  const std::vector<int64_t> expected = {2, 1, 3, 4, 1, 1, 1, 2};
  EXPECT_EQ(positions, expected);
  std::vector<int32_t> narrow(ids.begin(), ids.end()), narrowPositions(8);
  auto tensor = [](std::vector<int32_t> &data) {
    return Tensor{reinterpret_cast<std::byte *>(data.data()), DType::i32, {2, 4}, {4, 1}};
  };
  command = resolvePositionIds(tensor(narrow), 1, tensor(narrowPositions));
  ASSERT_TRUE(command.ok()) << command.status().message();
  bench.run(*command);
  EXPECT_EQ(std::vector<int64_t>(narrowPositions.begin(), narrowPositions.end()), expected);
}

TEST(LastToken, CopiesTheRow) {
  std::mt19937 random(11);
  for (bool narrow : {false, true}) {
    Strided in({5, 4, 6}, 3, random), out({5, 1, 6}, 2, random);
    std::vector<float> before = out.data;
    std::vector<int64_t> valid = {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0};
    Tensor mask = integers(valid, {5, 4});
    Narrow few(mask);
    Result<LibraryCommand> command = resolveLibrary(
        call("last_token", {&in.tensor, narrow ? &few.tensor : &mask, &out.tensor}), {});
    ASSERT_OK(command);
    Bench bench(1, vectorKernels());
    (*command)->run(Command(), bench.context);
    const std::vector<int64_t> last = {3, 1, 3, 1, -1};
    for (int64_t b = 0; b < 5; ++b)
      for (int64_t h = 0; h < 6; ++h) {
        float &value = out.at({b, 0, h});
        EXPECT_EQ(value, last[b] < 0 ? 0 : in.at({b, last[b], h}));
        value = before[static_cast<size_t>(&value - out.data.data())];
      }
    EXPECT_EQ(out.data, before) << "memory between the rows was written";
  }
}

void checkTopK(int64_t rows, int64_t n, int64_t k, int64_t gap, bool narrow, int64_t threads,
               std::mt19937 &random) {
  SCOPED_TRACE(::testing::Message() << rows << " rows, " << k << " of " << n << ", gap " << gap
                                    << ", " << threads << " threads" << (narrow ? ", i32" : ""));
  Strided in({2, rows, n}, gap, random), values({2, rows, k}, gap, random);
  // Few different numbers, so that many are equal.
  for (float &x : in.data)
    x = random() % 9 == 0 ? NAN : static_cast<float>(random() % 7) - 3;
  std::vector<int64_t> wide(static_cast<size_t>(2 * rows * k), -1);
  Tensor indices = integers(wide, {2, rows, k});
  Narrow few(indices);
  std::vector<float> before = values.data;
  Result<LibraryCommand> command =
      resolveLibrary(call("top_k", {&in.tensor, &values.tensor, narrow ? &few.tensor : &indices}),
                     {threads, 1, nullptr});
  ASSERT_OK(command);
  Bench bench(threads, vectorKernels());
  (*command)->run(Command(), bench.context);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<std::pair<float, int64_t>> sorted; // negated, so that the largest value is first
      for (int64_t i = 0; i < n; ++i) {
        const float x = in.at({b, r, i});
        sorted.emplace_back(std::isnan(x) ? -INFINITY : -x, i);
      }
      std::sort(sorted.begin(), sorted.end());
      for (int64_t i = 0; i < k; ++i) {
        const auto place = static_cast<size_t>((b * rows + r) * k + i);
        const int64_t index = sorted[static_cast<size_t>(i)].second;
        EXPECT_EQ(narrow ? few.data[place] : wide[place], index);
        float &value = values.at({b, r, i});
        const float expected = in.at({b, r, index});
        EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)));
        value = before[static_cast<size_t>(&value - values.data.data())];
      }
    }
  EXPECT_EQ(values.data, before) << "memory between the rows was written";
}

TEST(TopK, EqualsASortedRow) {
  std::mt19937 random(9);
  for (int64_t threads : {1, 3})
    for (bool narrow : {false, true}) {
      checkTopK(5, 12, 4, 3, narrow, threads, random);
      checkTopK(3, 7, 7, 0, narrow, threads, random);
      checkTopK(1, 1, 1, 1, narrow, threads, random);
      checkTopK(40, 1000, 17, 0, narrow, threads, random); // divided among threads
    }
  Strided half({2, 8}, 0, random);
  half.tensor.dtype = DType::f16;
  Tensor few = half.tensor;
  EXPECT_ERROR(resolveLibrary(call("top_k", {&half.tensor, &half.tensor, &few}), {}),
               "expects input of f32, got f16");
}

TEST(VectorKernels, Exp2IsAccurate) {
  std::vector<float> x, y;
  for (int i = 0; i <= 106569; ++i) // up to 20
    x.push_back(-126.0f + 0.00137f * static_cast<float>(i));
  for (float special : {0.0f, -0.5f, 0.5f, 1.0f, -1.0f, -126.0f, -127.0f, -200.0f, -INFINITY, NAN})
    x.push_back(special);
  y.resize(x.size());
  for (const VectorKernels *kernels : allKernels()) {
    kernels->exp2(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(y[i]));
      } else if (x[i] < -126.0f) {
        EXPECT_EQ(y[i], 0.0f);
      } else {
        double expected = std::exp2(static_cast<double>(x[i]));
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected) / expected);
      }
    }
    EXPECT_LT(worst, 1e-6) << kernels->isa;
    RecordProperty(kernels->isa, std::to_string(worst));
  }
}

void checkMatmul(int64_t m, int64_t n, int64_t k, bool withBias, int64_t gap, int64_t threads,
                 std::mt19937 &random) {
  SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << (withBias ? ", bias" : "")
                                    << ", gap " << gap << ", " << threads << " threads");
  Strided lhs({m, k}, gap, random), rhs({n, k}, gap, random), bias({n}, 0, random),
      out({m, n}, gap, random);
  Bench bench(threads, vectorKernels());
  MatmulCache matmuls;
  Result<MatmulCommand> command = resolveMatmul(
      lhs.tensor, rhs.tensor, withBias ? &bias.tensor : nullptr, out.tensor, threads, matmuls);
  ASSERT_TRUE(command.ok()) << command.status().message();
  std::vector<float> before = out.data;
  bench.run(*command);
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = withBias ? static_cast<double>(bias.at({j})) : 0;
      for (int64_t e = 0; e < k; ++e)
        sum += static_cast<double>(lhs.at({i, e})) * static_cast<double>(rhs.at({j, e}));
      double d = static_cast<double>(out.at({i, j})) - sum;
      difference += d * d;
      norm += sum * sum;
      out.at({i, j}) = before[static_cast<size_t>(&out.at({i, j}) - out.data.data())];
    }
  EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(norm));
  EXPECT_EQ(out.data, before) << "memory between the rows was written";
}

TEST(Matmul, ThreadsOfTheLibraryAreRefused) {
  EXPECT_OK(checkOneThread(DNNL_RUNTIME_SEQ, false));
  EXPECT_OK(checkOneThread(DNNL_RUNTIME_OMP, true));
  const std::string expects = "linear expects a oneDNN that computes on one thread, got one that ";
  EXPECT_ERROR(checkOneThread(DNNL_RUNTIME_OMP, false), expects + "lacks omp_set_num_threads");
  EXPECT_ERROR(checkOneThread(DNNL_RUNTIME_TBB, true), expects + "was built for TBB");
  EXPECT_ERROR(checkOneThread(DNNL_RUNTIME_THREADPOOL, true),
               expects + "was built for a pool of threads");
}

TEST(Matmul, EqualsPlainLoops) {
  std::mt19937 random(4);
  for (bool bias : {false, true})
    for (int64_t gap : {0, 16})
      for (int64_t threads : {1, 3}) {
        checkMatmul(128, 96, 64, bias, gap, threads, random); // split by rows
        checkMatmul(5, 384, 256, bias, gap, threads, random); // split by columns
        checkMatmul(1, 33, 7, bias, gap, threads, random);
        checkMatmul(100, 100, 100, bias, gap, threads, random);
      }
}

TEST(Matmul, SharesTheWorkOut) {
  std::mt19937 random(5);
  MatmulCache matmuls;
  Strided lhs({128, 64}, 0, random), few({5, 256}, 0, random), rhs({96, 64}, 0, random),
      wide({384, 256}, 0, random), out({128, 96}, 0, random), fewOut({5, 384}, 0, random);
  auto rows = resolveMatmul(lhs.tensor, rhs.tensor, nullptr, out.tensor, 3, matmuls);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->parts.size(), 3u);
  EXPECT_EQ(rows->parts[1].lhs, lhs.data.data() + 42 * 64);
  EXPECT_EQ(rows->parts[1].rhs, rhs.data.data());
  auto columns = resolveMatmul(few.tensor, wide.tensor, nullptr, fewOut.tensor, 3, matmuls);
  ASSERT_TRUE(columns.ok());
  ASSERT_EQ(columns->parts.size(), 1u); // too little work for more
  Strided more({8, 2048}, 0, random), wider({384, 2048}, 0, random), moreOut({8, 384}, 0, random);
  columns = resolveMatmul(more.tensor, wider.tensor, nullptr, moreOut.tensor, 3, matmuls);
  ASSERT_TRUE(columns.ok());
  ASSERT_EQ(columns->parts.size(), 3u);
  EXPECT_EQ(columns->parts[1].lhs, more.data.data());
  EXPECT_EQ(columns->parts[1].rhs, wider.data.data() + 128 * 2048);
  EXPECT_EQ(columns->parts[1].out, moreOut.data.data() + 128);
}

TEST(Copy, MovesStridedData) {
  // [2, 3, 4] into every second row of a larger tensor and back.
  std::vector<int32_t> source(24), big(2 * 6 * 4, -1), back(24);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<int32_t>(i);
  Tensor from{reinterpret_cast<std::byte *>(source.data()), DType::i32, {2, 3, 4}, {12, 4, 1}};
  Tensor to{reinterpret_cast<std::byte *>(big.data()), DType::i32, {2, 3, 4}, {24, 8, 1}};
  Tensor again{reinterpret_cast<std::byte *>(back.data()), DType::i32, {2, 3, 4}, {12, 4, 1}};
  Result<CopyCommand> out = resolveCopy(from, to), in = resolveCopy(to, again);
  ASSERT_TRUE(out.ok() && in.ok());
  EXPECT_EQ(out->runBytes, 16);
  EXPECT_EQ(out->counts, std::vector<int64_t>{6}); // two loops merged into one
  runCopy(*out);
  runCopy(*in);
  EXPECT_EQ(back, source);
  for (size_t row = 0; row < 12; ++row)
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(big[row * 4 + i], row % 2 ? -1 : static_cast<int32_t>(row / 2 * 4 + i));
  // A transpose has no contiguous run of elements.
  Tensor transposed{reinterpret_cast<std::byte *>(back.data()), DType::i32, {2, 3, 4}, {1, 2, 6}};
  Result<CopyCommand> transpose = resolveCopy(from, transposed);
  ASSERT_TRUE(transpose.ok());
  runCopy(*transpose);
  EXPECT_EQ(back[1 * 1 + 2 * 2 + 3 * 6], source[1 * 12 + 2 * 4 + 3]);
}

} // namespace
