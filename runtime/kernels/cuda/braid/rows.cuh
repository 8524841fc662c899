//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Skeletons of row kernels: the assignment of rows and columns to threads, and reductions over a
// row. A thread has vectors of `Vec` columns that begin at column(0), ..., column(steps - 1); a
// vector at or beyond `Columns` does not exist.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/vector.cuh>

namespace braid {

struct Sum {
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float combine(float a, float b) { return a + b; }
};
struct Product {
  static __device__ __forceinline__ float identity() { return 1.0f; }
  static __device__ __forceinline__ float combine(float a, float b) { return a * b; }
};
struct Maximum {
  static __device__ __forceinline__ float identity() { return -infinity(); }
  static __device__ __forceinline__ float combine(float a, float b) { return maximum(a, b); }
};
struct Minimum {
  static __device__ __forceinline__ float identity() { return infinity(); }
  static __device__ __forceinline__ float combine(float a, float b) { return minimum(a, b); }
};
/// Numbers win over NaN.
struct MaxNum {
  static __device__ __forceinline__ float identity() { return nan(); }
  static __device__ __forceinline__ float combine(float a, float b) { return fmaxf(a, b); }
};
struct MinNum {
  static __device__ __forceinline__ float identity() { return nan(); }
  static __device__ __forceinline__ float combine(float a, float b) { return fminf(a, b); }
};

/// Reduces over the warp. Every lane gets the same bits, since the combiners commute.
template <class Op> __device__ __forceinline__ float reduce_warp(float value) {
#pragma unroll
  for (int distance = 16; distance; distance /= 2)
    value = Op::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

template <class Op, int Threads> __device__ __forceinline__ float reduce_block(float value) {
  constexpr int warps = Threads / 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __shared__ float partial[warps];
  value = reduce_warp<Op>(value);
  __syncthreads(); // A thread may still read the previous reduction.
  if (lane == 0)
    partial[warp] = value;
  __syncthreads();
  return reduce_warp<Op>(lane < warps ? partial[lane] : Op::identity());
}

/// Without reductions: each thread has one vector.
template <int Columns, int Vec, int Threads> struct Map {
  static constexpr int steps = 1;
  static __device__ __forceinline__ unsigned item() { return blockIdx.x * Threads + threadIdx.x; }
  static __device__ __forceinline__ unsigned row() { return item() / (Columns / Vec); }
  static __device__ __forceinline__ int column(int) { return item() % (Columns / Vec) * Vec; }
  static __device__ __forceinline__ bool first() { return column(0) == 0; }
};

/// Each warp has one row, each block Threads / 32 rows. `warps` is the number that have a row,
/// `rows` the number that a block has.
template <int Columns, int Vec, int Threads> struct WarpRow {
  static constexpr int columns = Columns, warps = 1, rows = Threads / 32;
  static constexpr int steps = (Columns / Vec + 31) / 32;
  static __device__ __forceinline__ unsigned row() {
    return blockIdx.x * (Threads / 32) + threadIdx.x / 32;
  }
  static __device__ __forceinline__ unsigned row_in_block() { return threadIdx.x / 32; }
  static __device__ __forceinline__ int column(int step) {
    return (step * 32 + threadIdx.x % 32) * Vec;
  }
  static __device__ __forceinline__ bool first() { return threadIdx.x % 32 == 0; }
  template <class Op> static __device__ __forceinline__ float reduce(float value) {
    return reduce_warp<Op>(value);
  }
};

/// Each block has one row.
template <int Columns, int Vec, int Threads> struct BlockRow {
  static constexpr int columns = Columns, warps = Threads / 32, rows = 1;
  static constexpr int steps = (Columns / Vec + Threads - 1) / Threads;
  static __device__ __forceinline__ unsigned row() { return blockIdx.x; }
  static __device__ __forceinline__ unsigned row_in_block() { return 0; }
  static __device__ __forceinline__ int column(int step) {
    return (step * Threads + threadIdx.x) * Vec;
  }
  static __device__ __forceinline__ bool first() { return threadIdx.x == 0; }
  template <class Op> static __device__ __forceinline__ float reduce(float value) {
    return reduce_block<Op, Threads>(value);
  }
};
} // namespace braid
