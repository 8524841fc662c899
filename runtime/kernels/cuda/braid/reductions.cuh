//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reductions over ranks and over dimensions. Part of library.cuh.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace braid {
namespace library {

__device__ __forceinline__ float add(float a, float b) { return a + b; }
__device__ __forceinline__ double add(double a, double b) { return a + b; }
/// Sums of integers wrap around.
template <class T> __device__ __forceinline__ T add(T a, T b) {
  return (T)((unsigned long long)a + (unsigned long long)b);
}
template <class T> __device__ __forceinline__ T combine(int kind, T a, T b) {
  if (kind == 0)
    return add(a, b);
  if (a != a || b != b)
    return a != a ? a : b;
  return kind == 1 ? (a < b ? b : a) : (b < a ? b : a);
}

template <class S> __device__ __forceinline__ void reduce_one(const Reduce &a, long long i) {
  long long from = a.rank ? i % a.run : i, to = from;
  if (a.rank)
    add_loops(a.rank, a.counts, a.sourceStrides, a.outStrides, i / a.run, from, to);
  auto sum = storage<S>::load(a.sources[0], from);
  for (int s = 1; s < a.numSources; ++s)
    sum = combine<typename storage<S>::wide>(a.kind, sum, storage<S>::load(a.sources[s], from));
  storage<S>::store(a.out, to, sum);
}

/// Of two floats, by a kind of library::Reduce.
__device__ __forceinline__ float combine_floats(long long kind, float a, float b) {
  if (kind == 0)
    return a + b;
  if (a != a || b != b)
    return a != a ? a : b;
  return (kind == 1 ? a > b : a < b) ? a : b;
}

/// What threads have reduced so far: a value by a kind of library::Reduce and, of a maximum, the
/// sum of exp(x - value).
struct Reduced {
  float value, sum;
  int any;
};
/// sum * exp(own - common); the difference of equal infinities would be no number.
__device__ __forceinline__ float rescale(float sum, float own, float common) {
  return own == common ? sum : sum * expf(own - common);
}
__device__ __forceinline__ void join(Reduced &to, long long kind, int sums, const Reduced &x) {
  if (!x.any)
    return;
  if (!to.any) {
    to = x;
    return;
  }
  const float value = combine_floats(kind, to.value, x.value);
  if (sums)
    to.sum = rescale(to.sum, to.value, value) + rescale(x.sum, x.value, value);
  to.value = value;
}
__device__ __forceinline__ void join_lanes(Reduced &to, long long kind, int sums, int distance) {
  const unsigned all = 0xffffffffu;
  const Reduced other = {__shfl_xor_sync(all, to.value, distance),
                         __shfl_xor_sync(all, to.sum, distance),
                         __shfl_xor_sync(all, to.any, distance)};
  join(to, kind, sums, other);
}

/// Each block has as many elements of the result as it has warps, each reduced by 32 threads. Where
/// the last dimension stays, adjacent threads read adjacent columns; otherwise a warp reads along
/// the row that it reduces.
__device__ __forceinline__ void reduce_dims(const Call &a) {
  constexpr int kElements = kThreads / 32;
  const Operand &input = a.operands[0], &out = a.operands[1], &exp_sum = a.operands[2];
  const long long kind = a.integers[0], dims = a.integers[1];
  const int sums = exp_sum.data != nullptr;
  const bool columns = !(dims >> (input.rank - 1) & 1);
  const int thread = threadIdx.x, warp = thread / 32;
  const int element = columns ? thread % kElements : warp;
  const int part = columns ? thread / kElements : thread % 32;
  const long long row = static_cast<long long>(blockIdx.x) * kElements + element;

  long long rest = row, begin = 0, to = 0, sum_to = 0, count = 1;
  for (int d = input.rank - 1, kept = out.rank - 1; d >= 0; --d) {
    if (dims >> d & 1) {
      count *= input.sizes[d];
      continue;
    }
    const long long i = rest % input.sizes[d];
    rest /= input.sizes[d];
    begin += i * input.strides[d];
    to += i * out.strides[kept];
    sum_to += sums ? i * exp_sum.strides[kept] : 0;
    --kept;
  }
  Reduced found = {0.0f, 0.0f, 0};
  for (long long n = row < a.rows ? part : count; n < count; n += 32) {
    long long at = begin, left = n;
    for (int d = input.rank - 1; d >= 0; --d)
      if (dims >> d & 1) {
        at += left % input.sizes[d] * input.strides[d];
        left /= input.sizes[d];
      }
    join(found, kind, sums, {load_float(input, at), 1.0f, 1});
  }
  // First the threads of a warp that have the same element, then, of columns, the warps.
  for (int distance = 16; distance >= (columns ? kElements : 1); distance /= 2)
    join_lanes(found, kind, sums, distance);
  __shared__ Reduced of_warps[kElements][kElements];
  if (columns) {
    if (thread % 32 < kElements)
      of_warps[warp][element] = found;
    __syncthreads();
    for (int other = 1; warp == 0 && other < kElements; ++other)
      join(found, kind, sums, of_warps[other][element]);
  }
  if (part != 0 || row >= a.rows)
    return;
  store_float(out, to, found.value);
  if (sums)
    store_float(exp_sum, sum_to, found.value == -infinity() ? 0.0f : found.sum);
}

} // namespace library
} // namespace braid

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_reduce_dims(const braid::library::Call a) {
  braid::library::reduce_dims(a);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_reduce(const braid::library::Reduce a) {
  using namespace braid::library;
  if (thread_index() >= a.count)
    return;
  const long long i = a.first + thread_index();
  switch (a.dtype) {
  case 0:
    return reduce_one<float>(a, i);
  case 1:
    return reduce_one<braid::f16>(a, i);
  case 2:
    return reduce_one<braid::bf16>(a, i);
  case 3:
    return reduce_one<double>(a, i);
  case 4:
    return reduce_one<int>(a, i);
  case 5:
    return reduce_one<long long>(a, i);
  default:
    return reduce_one<signed char>(a, i);
  }
}
