//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests of test/lib/cuda-on-host itself: its results, and the errors that it reports.
//
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

using namespace braid::test;

namespace {
const char *kSource = R"(
#include <braid/rows.cuh>
#include <braid/scalar.cuh>

extern "C" __global__ void divides(const float *x, float *by_576, float *by_thousandth) {
  by_576[threadIdx.x] = braid::divide(x[threadIdx.x], 576.0f);
  by_thousandth[threadIdx.x] = braid::divide(x[threadIdx.x], -0.001f);
}

extern "C" __global__ void sums(const float *x, float *out) {
  // Every thread adds the sum of its block's values with its own atomic addition.
  float value = braid::reduce_block<braid::Sum, 96>(x[threadIdx.x]);
  atomicAdd(out, value);
  if (threadIdx.x == 0)
    out[1] = braid::reduce_block<braid::Sum, 96>(1.0f);
  else
    braid::reduce_block<braid::Sum, 96>(1.0f);
}

extern "C" __global__ void shuffles(int *out) {
  int lane = threadIdx.x;
  out[lane] = __shfl_sync(0xffffffffu, lane, 3);
  out[32 + lane] = __shfl_down_sync(0xffffffffu, lane, 4);
  if (lane < 16)
    out[64 + lane] = __shfl_xor_sync(0xffffu, lane, 8);
}

extern "C" __global__ void barrier_of_some(float *) {
  if (threadIdx.x == 5)
    return;
  __syncthreads();
}

extern "C" __global__ void diverged_shuffle(float *out) {
  if (threadIdx.x != 7)
    out[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  else
    __syncthreads();
}

extern "C" __global__ void unlike_shuffles(float *out) {
  if (threadIdx.x < 16)
    out[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  else
    out[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 2);
}

extern "C" __global__ void outside_of_the_lanes(float *out) {
  out[0] = __shfl_xor_sync(0xffu, 1.0f, 1);
}

extern "C" __global__ void reads_an_idle_lane(float *out) {
  if (threadIdx.x < 8)
    out[0] = __shfl_xor_sync(0xffu, 1.0f, 8);
}

extern "C" __global__ void half_a_warp(float *out) {
  out[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

extern "C" __global__ void misaligned(const float *x, float *out) {
  braid::store(out, braid::load<4>(x + 1));
}

// On a GPU these are other instructions.
extern "C" __global__ void shared_as_global(const float *x, float *) {
  __shared__ braid::vec<float, 4> value;
  braid::store(value.elements, braid::load<4>(x));
}

extern "C" __global__ void global_as_shared(const float *x, float *out) {
  braid::store_shared(out, braid::load<4>(x));
}

extern "C" __global__ void never_written(float *out) {
  __shared__ float value[32];
  out[threadIdx.x] = value[threadIdx.x];
  __syncthreads();
  value[threadIdx.x] = 0.0f;
}

extern "C" __global__ void no_barrier(int *out) {
  __shared__ int value[64];
  value[threadIdx.x] = 1;
  out[threadIdx.x] = value[63 - threadIdx.x];
}

extern "C" __global__ void last_block(unsigned *out) { *out = blockIdx.x; }
)";

struct OnHost : ::testing::Test {
  static void SetUpTestSuite() {
    kernels = HostKernels::compile(
                  kSource, {"divides", "sums", "shuffles", "barrier_of_some", "diverged_shuffle",
                            "unlike_shuffles", "outside_of_the_lanes", "reads_an_idle_lane",
                            "half_a_warp", "misaligned", "shared_as_global", "global_as_shared",
                            "never_written", "no_barrier", "last_block"})
                  .release();
  }
  static void TearDownTestSuite() {
    delete kernels;
    kernels = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(kernels); }

  /// Runs a kernel that takes addresses only.
  std::string launch(const char *kernel, unsigned blocks, unsigned threads,
                     std::vector<void *> addresses, uint64_t seed) {
    std::vector<void *> arguments;
    for (void *&address : addresses)
      arguments.push_back(static_cast<void *>(&address));
    return kernels->launch(kernel, blocks, threads, arguments, seed);
  }
  /// Runs a kernel of one argument.
  std::string run(const char *kernel, void *argument, unsigned blocks, unsigned threads,
                  uint64_t seed = 1) {
    return launch(kernel, blocks, threads, {argument}, seed);
  }

  static HostKernels *kernels;
};
HostKernels *OnHost::kernels = nullptr;
} // namespace

TEST_F(OnHost, BlockReductionsAndAtomics) {
  float x[96], out[2] = {0, 0};
  for (int i = 0; i < 96; ++i)
    x[i] = static_cast<float>(i);
  for (uint64_t seed = 1; seed < 6; ++seed) {
    out[0] = 0;
    EXPECT_EQ(launch("sums", 3, 96, {x, out}, seed), "");
    EXPECT_EQ(out[0], 3 * 96 * (95 * 96 / 2));
    EXPECT_EQ(out[1], 96);
  }
}

TEST_F(OnHost, Shuffles) {
  int out[80];
  EXPECT_EQ(run("shuffles", out, 1, 32), "");
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], 3);
    EXPECT_EQ(out[32 + lane], lane < 28 ? lane + 4 : lane);
    if (lane < 16) {
      EXPECT_EQ(out[64 + lane], lane ^ 8);
    }
  }
}

TEST_F(OnHost, RefusesABarrierThatSomeDoNotReach) {
  float out[4] = {};
  EXPECT_EQ(run("barrier_of_some", out, 1, 64),
            "block 0, thread 0 waits at a barrier for thread 5, which has ended");
}

TEST_F(OnHost, RefusesDivergedShuffles) {
  float out[4] = {};
  EXPECT_EQ(run("diverged_shuffle", out, 1, 32),
            "block 0, thread 0 waits at a shuffle with thread 7, which waits at a barrier");
  EXPECT_NE(run("unlike_shuffles", out, 1, 32).find("take part in different shuffles"),
            std::string::npos);
  EXPECT_NE(run("outside_of_the_lanes", out, 1, 32).find("lanes that it is not one of"),
            std::string::npos);
  EXPECT_EQ(run("reads_an_idle_lane", out, 1, 32),
            "block 0, thread 0 reads lane 8, which does not take part in the shuffle");
  EXPECT_NE(run("half_a_warp", out, 1, 16).find("shuffles with lane 16, which its block does not"),
            std::string::npos);
}

TEST_F(OnHost, RefusesMisalignedAccess) {
  alignas(16) float x[8] = {}, out[4] = {};
  EXPECT_EQ(launch("misaligned", 1, 1, {x, out}, 1),
            "block 0, thread 0 accesses 16 bytes at an address that is no multiple");
}

TEST_F(OnHost, RefusesStoresToOtherMemory) {
  alignas(16) float x[4] = {}, out[4] = {};
  EXPECT_EQ(launch("shared_as_global", 1, 1, {x, out}, 1),
            "block 0, thread 0 stores to shared memory as if it were global");
  EXPECT_EQ(launch("global_as_shared", 1, 1, {x, out}, 1),
            "block 0, thread 0 stores to global memory as if it were shared");
}

TEST_F(OnHost, SharedMemoryBeginsAsNaNInEveryBlock) {
  float out[32] = {};
  EXPECT_EQ(run("never_written", out, 2, 32), "");
  for (float value : out)
    EXPECT_TRUE(std::isnan(value));
}

// Without a barrier, some order of the threads reveals the race.
TEST_F(OnHost, OrdersOfThreadsAndBlocksAreRandom) {
  int missed = 0;
  std::set<unsigned> last;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    int out[64];
    EXPECT_EQ(run("no_barrier", out, 1, 64, seed), "");
    for (int value : out)
      missed += value != 1;
    unsigned block = 0;
    EXPECT_EQ(run("last_block", &block, 8, 1, seed), "");
    last.insert(block);
  }
  EXPECT_GT(missed, 0);
  EXPECT_GT(last.size(), 2u);
}

TEST_F(OnHost, DivisionByAConstant) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x{0.0f, -0.0f, 1.0f, 576.0f, 1e-20f, 1e30f, infinity, -infinity};
  std::mt19937 random(1);
  while (x.size() < 1024)
    x.push_back(std::ldexp(std::uniform_real_distribution<float>(-1, 1)(random),
                           static_cast<int>(random() % 80) - 40));
  std::vector<float> by576(x.size()), byThousandth(x.size());
  ASSERT_EQ(launch("divides", 1, 1024, {x.data(), by576.data(), byThousandth.data()}, 1), "");
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(by576[i], x[i] / 576.0f) << x[i];
    EXPECT_EQ(byThousandth[i], x[i] / -0.001f) << x[i];
  }
}
