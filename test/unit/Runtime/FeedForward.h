//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A feed-forward network of two layers, tensor and data parallel, for every target.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_FEEDFORWARD_H
#define BRAID_TEST_FEEDFORWARD_H

#include "ProgramBuilder.h"

#include <random>

namespace braid::runtime::testing {

/// The fields of a memref descriptor of rank 2.
struct Memref {
  float *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
};

/// out[i, j] = in[i, j] + bias[j]; operands in, bias (rank 1), out. On the null device it is
/// braid_add_bias.
inline void addBias(void *const *descriptors) {
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

/// y = all_reduce(x W1^T W2^T) + b by tensor parallelism over `tp`, data parallel over `dp`. The
/// two matmuls are in a procedure that is called twice, the second time on the first call's result.
inline ProgramBuilder feedForward(int64_t dp, int64_t tp) {
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
  layer.matmul("up", x, up, nullptr, h);
  layer.matmul("down", h, down, nullptr, partial);
  layer.start("down.sum", fb::CollectiveKind::all_reduce, {"tp"}, {partial}, {sum}, 0, 0, 1,
              "mlp.out");
  layer.wait("down.sum", 1);
  layer.launch("add_bias", kernel, {sum, bias, y}, {true, false, true}, rows);
  return b;
}

inline std::vector<float> randomValues(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &v : values)
    v = normal(generator);
  return values;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_FEEDFORWARD_H
