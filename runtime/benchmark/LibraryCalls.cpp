//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures what the runtime's choices for attention and matmuls rest on (runtime/README.md has the
// table):
//   attention: the runtime's own kernels, per instruction set, against two oneDNN matmuls per
//   block of queries with the same
//     softmax between them;
//   matmuls: oneDNN's matmul over plain layouts, as Matmul.cpp calls it, against dnnl_sgemm, and
//     against the runtime's own kernels of 8-bit integers with the rows that are quantized for
//     them.
// One thread. Build the target BraidRuntimeBenchmark; no arguments.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StridedCopy.h"
#include "runtime/lib/Executor/Commands.h"
#include "runtime/lib/Kernels/CpuFeatures.h"
#include "runtime/lib/Kernels/Int8.h"
#include "runtime/lib/Kernels/Operations.h"

#include <dnnl.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>

using namespace braid::runtime;

namespace {

std::vector<float> randomValues(int64_t count) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float &v : values)
    v = normal(random);
  return values;
}

/// Time of this thread on a processor: others may use the machine too.
double cpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Least time of a call in seconds, of at least five and half a second.
template <typename Work> double measure(Work work) {
  work();
  double best = 1e9, total = 0;
  for (int i = 0; i < 5 || total < 0.5; ++i) {
    double begin = cpuSeconds();
    work();
    double time = cpuSeconds() - begin;
    best = std::min(best, time);
    total += time;
  }
  return best;
}

Tensor dense(std::vector<float> &data, std::vector<int64_t> shape) {
  return {reinterpret_cast<std::byte *>(data.data()), DType::f32, shape, rowMajorStrides(shape)};
}

struct AttentionShape {
  int64_t batch, sequence, heads, dim;
};

/// The alternative: scores of a block of queries against all keys, softmax by rows, times values.
void attentionBySgemm(const AttentionShape &s, const float *q, const float *k, const float *v,
                      float *out, std::vector<float> &scores, const VectorKernels &kernels) {
  constexpr int64_t kQueries = 64;
  const int64_t stride = s.heads * s.dim;
  const float scale = 1.44269504f / std::sqrt(static_cast<float>(s.dim));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t first = 0; first < s.sequence; first += kQueries) {
        int64_t rows = std::min(kQueries, s.sequence - first);
        int64_t keys = b * s.sequence * stride + h * s.dim, queries = keys + first * stride;
        dnnl_sgemm('N', 'T', rows, s.sequence, s.dim, scale, q + queries, stride, k + keys, stride,
                   0, scores.data(), s.sequence);
        for (int64_t r = 0; r < rows; ++r) {
          float *row = scores.data() + r * s.sequence, largest = row[0], sum = 0;
          for (int64_t t = 1; t < s.sequence; ++t)
            largest = std::max(largest, row[t]);
          for (int64_t t = 0; t < s.sequence; ++t)
            row[t] -= largest;
          kernels.exp2(row, row, s.sequence);
          for (int64_t t = 0; t < s.sequence; ++t)
            sum += row[t];
          for (int64_t t = 0; t < s.sequence; ++t)
            row[t] /= sum;
        }
        dnnl_sgemm('N', 'N', rows, s.dim, s.sequence, 1, scores.data(), s.sequence, v + keys,
                   stride, 0, out + queries, stride);
      }
}

void benchmarkAttention() {
  std::printf("\n| attention [batch, sequence, heads, dim] | kernel | ms | GFLOP/s |\n| --- | --- "
              "| ---: | ---: |\n");
  for (const AttentionShape &s :
       {AttentionShape{8, 128, 12, 32}, {1, 512, 12, 64}, {1, 2048, 8, 128}, {16, 16, 12, 32}}) {
    std::vector<int64_t> shape = {s.batch, s.sequence, s.heads, s.dim};
    int64_t count = s.batch * s.sequence * s.heads * s.dim;
    std::vector<float> q = randomValues(count), k = randomValues(count), v = randomValues(count),
                       out(q.size());
    double flops = 4.0 * static_cast<double>(count * s.sequence);
    auto print = [&](const std::string &kernel, double seconds) {
      std::printf("| [%ld, %ld, %ld, %ld] | %s | %.3f | %.1f |\n", s.batch, s.sequence, s.heads,
                  s.dim, kernel.c_str(), seconds * 1e3, flops / seconds * 1e-9);
    };
    std::vector<const VectorKernels *> candidates = {vectorKernelsGeneric()};
    if (hostHasFeature("avx2"))
      candidates.push_back(vectorKernelsAvx2());
    if (hostHasFeature("avx512f"))
      candidates.push_back(vectorKernelsAvx512());
    for (const VectorKernels *kernels : candidates) {
      LibraryArguments arguments;
      arguments.kernel = findLibraryKernel("attention");
      const Tensor given[] = {dense(q, shape), dense(k, shape), dense(v, shape), dense(out, shape)};
      arguments.operands.resize(arguments.kernel->operands.size());
      arguments.data.resize(arguments.operands.size());
      for (size_t i = 0; i < 4; ++i) {
        const size_t place = i < 3 ? i : arguments.place("out");
        arguments.operands[place] = {given[i].dtype, given[i].shape, given[i].strides};
        arguments.data[place] = given[i].data;
      }
      arguments.integers = {0};
      arguments.numbers = {1 / std::sqrt(static_cast<double>(s.dim))};
      Result<AttentionCommand> command = resolveAttention(arguments, 1, kernels->queryBlock);
      Team team(1);
      RunControl control(1, {{QueueKind::compute, "compute"}}, 0, {});
      std::vector<std::vector<std::byte>> scratch(1);
      ExecutionContext context{control, control.queue(0, kComputeQueue), team, *kernels, scratch};
      print(std::string("own, ") + kernels->isa,
            measure([&] { execute(*command, Command(), context); }));
    }
    std::vector<float> scores(static_cast<size_t>(64 * s.sequence));
    print("two dnnl_sgemm a block", measure([&] {
            attentionBySgemm(s, q.data(), k.data(), v.data(), out.data(), scores, vectorKernels());
          }));
  }
}

void benchmarkMatmuls() {
  std::printf("\n| matmul [m, n, k] | call | ms | GFLOP/s |\n| --- | --- | ---: | ---: |\n");
  struct Shape {
    int64_t m, n, k;
  };
  for (const Shape &shape : {Shape{1024, 384, 384},
                             {1024, 1536, 384},
                             {1024, 384, 1536},
                             {1024, 192, 384},
                             {16, 384, 384},
                             {1, 1536, 576},
                             {1, 4096, 4096},
                             {128, 4096, 4096},
                             {1024, 1024, 1024}}) {
    const int64_t m = shape.m, n = shape.n, k = shape.k;
    std::vector<float> lhs = randomValues(m * k), rhs = randomValues(n * k), bias = randomValues(n);
    std::vector<float> out(static_cast<size_t>(m * n));
    double flops = 2.0 * static_cast<double>(m * n * k);
    auto print = [&](const char *call, double seconds) {
      std::printf("| [%ld, %ld, %ld] | %s | %.3f | %.1f |\n", m, n, k, call, seconds * 1e3,
                  flops / seconds * 1e-9);
    };
    MatmulCache matmuls;
    Result<std::shared_ptr<const Matmul>> matmul =
        matmuls.get({m, n, k, k, k, n, true, /*transposeLhs=*/false, /*transposeRhs=*/true, false});
    if (!matmul.ok()) {
      std::printf("%s\n", matmul.status().message().c_str());
      continue;
    }
    auto call = (*matmul)->bind(lhs.data(), rhs.data(), bias.data(), out.data());
    print("matmul with bias", measure([&] { call->run(); }));
    print("dnnl_sgemm, no bias", measure([&] {
            dnnl_sgemm('N', 'T', m, n, k, 1, lhs.data(), k, rhs.data(), k, 0, out.data(), n);
          }));
    const Int8Kernels &kernels = int8Kernels();
    std::vector<int8_t> lhsValues(lhs.size()), rhsValues(rhs.size());
    std::vector<float> lhsScales(static_cast<size_t>(m)), rhsScales(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      rhsScales[static_cast<size_t>(i)] =
          kernels.quantizeRow(rhs.data() + i * k, k, rhsValues.data() + i * k);
    std::vector<std::byte> scratch(static_cast<size_t>(kernels.scratchBytes(k)) + 64);
    auto *aligned = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) &
                                             ~uintptr_t(63));
    print((std::string("8-bit integers with bias, ") + kernels.isa).c_str(), measure([&] {
            for (int64_t i = 0; i < m; ++i)
              lhsScales[static_cast<size_t>(i)] =
                  kernels.quantizeRow(lhs.data() + i * k, k, lhsValues.data() + i * k);
            kernels.matmul({lhsValues.data(), rhsValues.data(), lhsScales.data(), rhsScales.data(),
                            bias.data(), out.data(), m, n, k, k, k, n},
                           aligned);
          }));
  }
}

} // namespace

int main() {
  useOneThread();
  std::printf("%s, one thread\n", hostCpuModel().c_str());
  benchmarkAttention();
  benchmarkMatmuls();
}
