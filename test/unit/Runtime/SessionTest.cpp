//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramBuilder.h"

#include <cmath>
#include <gmock/gmock.h>
#include <random>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;

namespace {

/// The fields of a memref descriptor of rank 2.
struct Memref {
  float *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
};

/// out[i, j] = in[i, j] + bias[j]; operands in, bias (rank 1), out.
void addBias(void *const *descriptors) {
  auto *in = static_cast<Memref *>(descriptors[0]);
  auto *bias = static_cast<Memref *>(descriptors[1]);
  auto *out = static_cast<Memref *>(descriptors[2]);
  for (int64_t i = 0; i < in->sizes[0]; ++i)
    for (int64_t j = 0; j < in->sizes[1]; ++j)
      out->aligned[out->offset + i * out->strides[0] + j * out->strides[1]] =
          in->aligned[in->offset + i * in->strides[0] + j * in->strides[1]] +
          bias->aligned[bias->offset +
                        j * bias->sizes[1]]; // rank 1: its stride lies where a rank 2 has sizes[1]
}

constexpr int64_t kBatch = 12, kHidden = 24, kInner = 16;

/// y = all_reduce(x W1^T W2^T) + b by tensor parallelism over `tp`, data parallel over `dp`; the
/// two products stand in a procedure that is called twice, the second time on the first one's
/// result.
ProgramBuilder feedForward(int64_t dp, int64_t tp) {
  ProgramBuilder b({{"dp", dp}, {"tp", tp}});
  int64_t rows = kBatch / dp, inner = kInner / tp;
  constexpr DType f32 = DType::f32;
  b.parameter("up", {kInner, kHidden}, {{"tp"}, {}});
  b.parameter("down", {kHidden, kInner}, {{}, {"tp"}});
  b.parameter("bias", {kHidden});
  b.operand("x", f32, {kBatch, kHidden}, {{"dp"}, {}});
  b.result("y", f32, {kBatch, kHidden}, {{"dp"}, {}});
  uint32_t kernel = b.kernel("add_bias", 3, addBias);
  uint64_t activation = static_cast<uint64_t>(rows * kHidden * 4),
           hidden = static_cast<uint64_t>(rows * inner * 4);

  V x = argument(3, f32, {rows, kHidden}), y = argument(4, f32, {rows, kHidden});
  V up = argument(0, f32, {inner, kHidden}), down = argument(1, f32, {kHidden, inner}),
    bias = argument(2, f32, {kHidden});
  {
    auto main = b.procedure("main", 5, activation + hidden, 2 * activation, 4);
    V between = local(0, f32, {rows, kHidden});
    main.call("layer.0", 1, {up, down, bias, x, between}, activation, 0, 0);
    main.call("layer.1", 1, {up, down, bias, between, y}, activation, 0, 2);
  }
  auto layer = b.procedure("layer", 5, hidden, 2 * activation, 2);
  V h = local(0, f32, {rows, inner});
  V partial = symmetric(0, f32, {rows, kHidden}), sum = symmetric(activation, f32, {rows, kHidden});
  layer.product("up", x, up, nullptr, h);
  layer.product("down", h, down, nullptr, partial);
  layer.start("down.sum", fb::CollectiveKind::all_reduce, {"tp"}, {partial}, {sum}, 0, 0, 1,
              "mlp.out");
  layer.wait("down.sum", 1);
  layer.launch("add_bias", kernel, {sum, bias, y}, {true, false, true}, rows);
  return b;
}

std::vector<float> randomValues(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &v : values)
    v = normal(generator);
  return values;
}

/// What feedForward computes, in double precision on one device.
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
  SessionOptions options;
  options.threadsPerRank = threads;
  auto session = builder.session(options);
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
  for (uint32_t seed = 1; seed <= 3; ++seed) { // the same session runs again on other inputs
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
} // namespace
