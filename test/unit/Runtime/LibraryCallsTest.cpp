//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Library kernels compared with plain loops in double precision.
//
//===----------------------------------------------------------------------===//
#include "LibraryCallsTesting.h"

#include <cmath>
#include <gmock/gmock.h>
#include <oneapi/dnnl/dnnl_config.h>
#include <oneapi/dnnl/dnnl_types.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

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
  return resolveMatmul(
      call("matmul", {&lhs, &rhs, bias, nullptr, nullptr, nullptr, &out}, {0, 1, 0}), threads,
      matmuls);
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
            "matmul of f16 is not implemented on target 'cpu'");
  ids.tensor.dtype = DType::i32;
  EXPECT_EQ(call("embedding", {&table.tensor, &ids.tensor, &q.tensor}, {0}).check().message(),
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

TEST(Append, WritesEachRowAtItsPosition) {
  std::mt19937 random(12);
  for (bool narrow : {false, true})
    for (int64_t size : {1, 3, 5}) {
      Strided source({3, size, 2, 6}, 3, random), cache({3, 5, 2, 6}, 2, random);
      std::vector<float> expected = cache.data;
      std::vector<int64_t> positions = {5 - size, 0, (5 - size) / 2};
      Tensor position = integers(positions, {3});
      Narrow few(position);
      Result<LibraryCommand> command = resolveLibrary(
          call("append", {&source.tensor, narrow ? &few.tensor : &position, &cache.tensor}, {1}),
          {});
      ASSERT_OK(command);
      Bench bench(1, vectorKernels());
      (*command)->run(Command(), bench.context);
      for (int64_t b = 0; b < 3; ++b)
        for (int64_t s = 0; s < size; ++s)
          for (int64_t h = 0; h < 2; ++h)
            for (int64_t i = 0; i < 6; ++i)
              expected[static_cast<size_t>(
                  &cache.at({b, positions[static_cast<size_t>(b)] + s, h, i}) -
                  cache.data.data())] = source.at({b, s, h, i});
      EXPECT_EQ(cache.data, expected);
    }
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

/// A maximum and the sum of exp(x - maximum) over the dimensions of `dims`.
void checkMaximumAndSum(int64_t dims, int64_t gap, int64_t threads, std::mt19937 &random) {
  SCOPED_TRACE(::testing::Message() << "dims " << dims << ", gap " << gap << ", " << threads);
  const std::vector<int64_t> shape = {3, 40, 150};
  std::vector<int64_t> kept;
  for (size_t d = 0; d < shape.size(); ++d)
    if ((dims >> d & 1) == 0)
      kept.push_back(shape[d]);
  Strided in(shape, gap, random), out(kept, gap, random), sums(kept, 2 * gap, random);
  // Whole rows and columns have no element above -infinity; others have infinities and NaNs.
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t j = 0; j < 150; ++j)
      for (int64_t b = 0; b < 3; ++b)
        if (i == 7 || j == 9 || (i * j) % 11 == 5)
          in.at({b, i, j}) = -INFINITY;
        else if (i == 17 && j >= 140)
          in.at({b, i, j}) = j % 3 == 0 ? NAN : INFINITY;
        else if (i == 18 && j >= 148)
          in.at({b, i, j}) = INFINITY;
  Result<LibraryCommand> command =
      resolveLibrary(call("reduce_dims", {&in.tensor, &out.tensor, &sums.tensor}, {1, dims}),
                     {threads, 1, nullptr});
  ASSERT_OK(command);
  Bench bench(threads, vectorKernels());
  (*command)->run(Command(), bench.context);
  for (int64_t place = 0; place < out.tensor.numElements(); ++place) {
    int64_t rest = place, outAt = 0, sumAt = 0;
    std::vector<int64_t> at(kept.size());
    for (size_t d = kept.size(); d-- > 0; rest /= kept[d]) {
      at[d] = rest % kept[d];
      outAt += at[d] * out.tensor.strides[d];
      sumAt += at[d] * sums.tensor.strides[d];
    }
    std::vector<double> elements;
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t i = 0; i < 40; ++i)
        for (int64_t j = 0; j < 150; ++j) {
          size_t next = 0;
          const int64_t index[] = {b, i, j};
          bool here = true;
          for (size_t d = 0; d < 3; ++d)
            if ((dims >> d & 1) == 0)
              here &= index[d] == at[next++];
          if (here)
            elements.push_back(static_cast<double>(in.at({b, i, j})));
        }
    double most = -INFINITY, sum = 0;
    for (double x : elements)
      most = std::isnan(x) || std::isnan(most) ? NAN : std::max(most, x);
    for (double x : elements)
      sum += most == -INFINITY ? 0 : x == most ? 1 : std::exp(x - most);
    const auto got = static_cast<double>(out.data[static_cast<size_t>(outAt)]),
               gotSum = static_cast<double>(sums.data[static_cast<size_t>(sumAt)]);
    if (std::isnan(most)) {
      EXPECT_TRUE(std::isnan(got) && std::isnan(gotSum)) << place;
      continue;
    }
    EXPECT_EQ(got, most) << place;
    EXPECT_NEAR(gotSum, sum, 1e-6 * sum) << place;
  }
}

TEST(ReduceDims, MaximumAndSum) {
  std::mt19937 random(12);
  for (int64_t dims = 1; dims < 8; ++dims)
    for (int64_t threads : {1, 3})
      checkMaximumAndSum(dims, dims % 3, threads, random);
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
  const std::string expects = "matmul expects a oneDNN that computes on one thread, got one that ";
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
  EXPECT_EQ(out->runs.runBytes, 16);
  EXPECT_EQ(out->runs.counts, std::vector<int64_t>{6}); // two loops merged into one
  copyRuns(out->runs, out->source, out->dest);
  copyRuns(in->runs, in->source, in->dest);
  EXPECT_EQ(back, source);
  for (size_t row = 0; row < 12; ++row)
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(big[row * 4 + i], row % 2 ? -1 : static_cast<int32_t>(row / 2 * 4 + i));
  // A transpose has no contiguous run of elements.
  Tensor transposed{reinterpret_cast<std::byte *>(back.data()), DType::i32, {2, 3, 4}, {1, 2, 6}};
  Result<CopyCommand> transpose = resolveCopy(from, transposed);
  ASSERT_TRUE(transpose.ok());
  copyRuns(transpose->runs, transpose->source, transpose->dest);
  EXPECT_EQ(back[1 * 1 + 2 * 2 + 3 * 6], source[1 * 12 + 2 * 4 + 3]);
}

} // namespace
