//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels of operations that are not made of rows: the executor launches them by these names, in
// blocks of library::kThreads, with one structure of library_arguments.h. Every bundle has them. They
// are plain: right for every shape and stride, coalesced, and not tuned further.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/device.cuh>
#include <braid/library_arguments.h>

namespace braid {
namespace library {

__device__ __forceinline__ long long thread_index() {
  return (long long)blockIdx.x * kThreads + threadIdx.x;
}

__device__ __forceinline__ void move_unit(void *to, const void *from, int unit) {
  // The word is somewhere in between, as loads and stores are of one width each.
  alignas(16) unsigned char word[16];
  switch (unit) {
  case 16:
    load_word<16>(word, from);
    return store_word<16>(to, word);
  case 8:
    load_word<8>(word, from);
    return store_word<8>(to, word);
  case 4:
    load_word<4>(word, from);
    return store_word<4>(to, word);
  case 2:
    load_word<2>(word, from);
    return store_word<2>(to, word);
  default:
    load_word<1>(word, from);
    return store_word<1>(to, word);
  }
}

__device__ __forceinline__ long long id_at(const void *ids, int wide, long long i) {
  return wide ? ((const long long *)ids)[i] : ((const int *)ids)[i];
}

__device__ __forceinline__ long long at(const Integers &integers, long long i) {
  return id_at(integers.data, integers.wide, i * integers.stride);
}

__device__ __forceinline__ float sum_of_warp(float value) {
  for (int distance = 16; distance; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

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

/// Sums of f16 and bf16 are made in f32; T is what is added, S what is stored.
template <class S> struct storage {
  using sum = S;
  static __device__ __forceinline__ sum load(const void *from, long long i) {
    return ((const S *)from)[i];
  }
  static __device__ __forceinline__ void store(void *to, long long i, sum value) {
    ((S *)to)[i] = value;
  }
};
template <class S> struct half_storage {
  using sum = float;
  static __device__ __forceinline__ float load(const void *from, long long i) {
    return widen(((const S *)from)[i]);
  }
  static __device__ __forceinline__ void store(void *to, long long i, float value) {
    ((S *)to)[i] = narrow<S>(value);
  }
};

template <class Storage> __device__ __forceinline__ void reduce_one(const Reduce &a, long long i) {
  auto sum = Storage::load(a.sources[0], i);
  for (int s = 1; s < a.numSources; ++s)
    sum = combine<typename Storage::sum>(a.kind, sum, Storage::load(a.sources[s], i));
  Storage::store(a.out, i, sum);
}

} // namespace library
} // namespace braid

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_copy(const braid::library::Copy a) {
  const long long unit = braid::library::thread_index();
  if (unit >= a.units)
    return;
  long long rest = unit / a.runUnits, from = unit % a.runUnits * a.unit, to = from;
#pragma unroll
  for (int d = braid::library::kMaxDims - 1; d >= 0; --d)
    if (d < a.rank) {
      const long long index = rest % a.counts[d];
      rest /= a.counts[d];
      from += index * a.sourceStrides[d];
      to += index * a.destStrides[d];
    }
  braid::library::move_unit((char *)a.dest + to, (const char *)a.source + from, a.unit);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_gather(const braid::library::Gather a) {
  const long long i = blockIdx.x;
  const long long id = braid::library::id_at(a.ids, a.wideIds, i);
  const bool inside = id >= 0 && id < a.limit;
  const long long row = inside ? id - a.firstRow : -1;
  if (threadIdx.x == 0 && !inside && atomicCAS(&a.fault->command, 0ull, a.command) == 0) {
    a.fault->value = id;
    a.fault->position = i;
  }
  char *out = (char *)a.out + i * a.outStrideBytes;
  const bool own = row >= 0 && row < a.rows;
  const char *source = (const char *)a.source + (own ? row : 0) * a.sourceStrideBytes;
  for (long long at = (long long)threadIdx.x * a.unit; at < a.rowBytes;
       at += (long long)braid::library::kThreads * a.unit) {
    if (own)
      braid::library::move_unit(out + at, source + at, a.unit);
    else
      for (int b = 0; b < a.unit; ++b)
        out[at + b] = 0;
  }
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary_table(const braid::library::RotaryTable a) {
  const long long index = braid::library::thread_index();
  if (index >= a.batch * a.seq * a.pairs)
    return;
  const long long i = index % a.pairs, s = index / a.pairs % a.seq, b = index / a.pairs / a.seq;
  const long long offset = a.positionOffset.data ? braid::library::at(a.positionOffset, b) : 0;
  // In f32 an angle of some thousands has few digits left after the point.
  const double angle = (double(s) + double(offset)) * a.frequencies[i];
  a.cos[b * a.cosBatch + s * a.cosRow + i] = float(a.scale * cos(angle));
  a.sin[b * a.sinBatch + s * a.sinRow + i] = float(a.scale * sin(angle));
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary(const braid::library::Rotary a) {
  const long long index = braid::library::thread_index();
  if (index >= a.batch * a.seq * a.heads * a.pairs)
    return;
  const long long i = index % a.pairs, h = index / a.pairs % a.heads;
  const long long s = index / a.pairs / a.heads % a.seq, b = index / a.pairs / a.heads / a.seq;
  const float *in = a.in + b * a.inBatch + s * a.inRow + h * a.inHead;
  float *out = a.out + b * a.outBatch + s * a.outRow + h * a.outHead;
  const float x = in[i], y = in[a.pairs + i];
  const float cosine = a.cos[b * a.cosBatch + s * a.cosRow + i];
  const float sine = a.sin[b * a.sinBatch + s * a.sinRow + i];
  out[i] = x * cosine - y * sine;
  out[a.pairs + i] = y * cosine + x * sine;
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_position_ids(const braid::library::PositionIds a) {
  const long long b = braid::library::thread_index() / 32;
  const int lane = threadIdx.x % 32;
  if (b >= a.batch) // whole warps
    return;
  long long before = 0; // tokens of the row so far
  for (long long first = 0; first < a.seq; first += 32) {
    const long long s = first + lane;
    const bool token = s < a.seq && braid::library::id_at(a.ids, a.wide,
                                                          b * a.idsBatch + s * a.idsStride) !=
                                        a.padding;
    int tokens = token; // of this lane and those below
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_sync(0xffffffffu, tokens, lane < distance ? lane : lane - distance);
      if (lane >= distance)
        tokens += other;
    }
    if (s < a.seq) {
      const long long position = a.padding + (token ? before + tokens : 0);
      const long long at = b * a.outBatch + s * a.outStride;
      if (a.wide)
        ((long long *)a.out)[at] = position;
      else
        ((int *)a.out)[at] = int(position);
    }
    before += __shfl_sync(0xffffffffu, tokens, 31);
  }
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_attention(const braid::library::Attention a) {
  const long long index = braid::library::thread_index() / 32;
  const int lane = threadIdx.x % 32;
  if (index >= a.batch * a.heads * a.queries) // whole warps
    return;
  const long long s = index % a.queries, h = index / a.queries % a.heads;
  const long long b = index / a.queries / a.heads;
  const float *query = a.query + b * a.queryBatch + s * a.queryRow + h * a.queryHead;
  const float *key = a.key + b * a.keyBatch + h / a.group * a.keyHead;
  const float *value = a.value + b * a.valueBatch + h / a.group * a.valueHead;
  long long offset = a.positionOffset.data ? braid::library::at(a.positionOffset, b) : 0;
  // Beyond all keys, or before all of them, is as far as it matters; a sum could overflow.
  offset = offset > a.keys ? a.keys : offset < -a.queries ? -a.queries : offset;
  long long keys = a.keys;
  if (a.validLength.data && braid::library::at(a.validLength, b) < keys)
    keys = braid::library::at(a.validLength, b);
  if (a.causal && s + offset + 1 < keys)
    keys = s + offset + 1;
  constexpr int most_per_lane = braid::library::kMaxHeadPerLane;
  float q[most_per_lane], sums[most_per_lane];
#pragma unroll
  for (int i = 0; i < most_per_lane; ++i) {
    const int d = i * 32 + lane;
    q[i] = d < a.headDim ? query[d] * a.scale : 0.0f;
    sums[i] = 0.0f;
  }
  float most = -braid::infinity(), total = 0.0f;
  for (long long t = 0; t < keys; ++t) {
    if (a.mask.data && braid::library::id_at(a.mask.data, a.mask.wide,
                                             b * a.maskBatch + t * a.mask.stride) == 0)
      continue; // the same in all lanes
    float dot = 0.0f;
#pragma unroll
    for (int i = 0; i < most_per_lane; ++i) {
      const int d = i * 32 + lane;
      if (d < a.headDim)
        dot += q[i] * key[t * a.keyRow + d];
    }
    dot = braid::library::sum_of_warp(dot);
    const float greater = braid::maximum(most, dot);
    const float shrink = expf(most - greater), weight = expf(dot - greater);
    most = greater;
    total = total * shrink + weight;
#pragma unroll
    for (int i = 0; i < most_per_lane; ++i) {
      const int d = i * 32 + lane;
      if (d < a.headDim)
        sums[i] = sums[i] * shrink + weight * value[t * a.valueRow + d];
    }
  }
  float *out = a.out + b * a.outBatch + s * a.outRow + h * a.outHead;
#pragma unroll
  for (int i = 0; i < most_per_lane; ++i) {
    const int d = i * 32 + lane;
    if (d < a.headDim)
      out[d] = total > 0.0f || total != total ? sums[i] / total : 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_reduce(const braid::library::Reduce a) {
  using namespace braid::library;
  const long long i = thread_index();
  if (i >= a.count)
    return;
  switch (a.dtype) {
  case 0:
    return reduce_one<storage<float>>(a, i);
  case 1:
    return reduce_one<half_storage<braid::f16>>(a, i);
  case 2:
    return reduce_one<half_storage<braid::bf16>>(a, i);
  case 3:
    return reduce_one<storage<double>>(a, i);
  case 4:
    return reduce_one<storage<int>>(a, i);
  case 5:
    return reduce_one<storage<long long>>(a, i);
  default:
    return reduce_one<storage<signed char>>(a, i);
  }
}
