//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels of operations that are not made of rows: the executor launches them by these names, in
// blocks of library::kThreads, with one structure of library_arguments.h. Every bundle has them.
// They are correct for every shape and stride and coalesced, but not tuned further.
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

/// A word of 16, 8, 4, 2 or 1 bytes, from or to the first of 16 that are aligned.
__device__ __forceinline__ void load_unit(void *word, const void *from, int unit) {
  switch (unit) {
  case 16:
    return load_word<16>(word, from);
  case 8:
    return load_word<8>(word, from);
  case 4:
    return load_word<4>(word, from);
  case 2:
    return load_word<2>(word, from);
  default:
    return load_word<1>(word, from);
  }
}

__device__ __forceinline__ void store_unit(void *to, const void *word, int unit) {
  switch (unit) {
  case 16:
    return store_word<16>(to, word);
  case 8:
    return store_word<8>(to, word);
  case 4:
    return store_word<4>(to, word);
  case 2:
    return store_word<2>(to, word);
  default:
    return store_word<1>(to, word);
  }
}

__device__ __forceinline__ void move_unit(void *to, const void *from, int unit) {
  alignas(16) unsigned char word[16];
  load_unit(word, from, unit);
  store_unit(to, word, unit);
}

__device__ __forceinline__ void clear_unit(void *to, int unit) {
  alignas(16) const unsigned char zeros[16] = {};
  store_unit(to, zeros, unit);
}

/// Keeps the first failure.
__device__ __forceinline__ void report_fault(Fault *fault, unsigned long long command,
                                             long long value, long long position) {
  if (atomicCAS(&fault->command, 0ull, command) == 0) {
    fault->value = value;
    fault->position = position;
  }
}

__device__ __forceinline__ long long id_at(const void *ids, int wide, long long i) {
  return wide ? ((const long long *)ids)[i] : ((const int *)ids)[i];
}

__device__ __forceinline__ void store_id(void *ids, int wide, long long i, long long id) {
  if (wide)
    ((long long *)ids)[i] = id;
  else
    ((int *)ids)[i] = int(id);
}

__device__ __forceinline__ long long at(const Integers &integers, long long i) {
  return id_at(integers.data, integers.wide, i * integers.stride);
}

/// The storage type of elements and the type of arithmetic: half precision is computed in f32.
template <class S> struct storage {
  using wide = S;
  static __device__ __forceinline__ wide load(const void *from, long long i) {
    return ((const S *)from)[i];
  }
  static __device__ __forceinline__ void store(void *to, long long i, wide value) {
    ((S *)to)[i] = value;
  }
};
template <class S> struct half_storage {
  using wide = float;
  static __device__ __forceinline__ float load(const void *from, long long i) {
    return widen(((const S *)from)[i]);
  }
  static __device__ __forceinline__ void store(void *to, long long i, float value) {
    ((S *)to)[i] = narrow<S>(value);
  }
};
template <> struct storage<f16> : half_storage<f16> {};
template <> struct storage<bf16> : half_storage<bf16> {};

__device__ __forceinline__ float sum_of_warp(float value) {
  for (int distance = 16; distance; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

/// Where element or unit `index` of a loop nest over runs lies in two views: `rest` counts runs,
/// `from` and `to` come with the place in the run.
__device__ __forceinline__ void add_loops(int rank, const long long *counts,
                                          const long long *from_strides,
                                          const long long *to_strides, long long rest,
                                          long long &from, long long &to) {
#pragma unroll
  for (int d = kMaxDims - 1; d >= 0; --d)
    if (d < rank) {
      const long long index = rest % counts[d];
      rest /= counts[d];
      from += index * from_strides[d];
      to += index * to_strides[d];
    }
}

struct UnitPlace {
  const char *source;
  char *dest;
};
__device__ __forceinline__ UnitPlace place_of(const Copy &a, long long unit) {
  long long from = unit % a.runUnits * a.unit, to = from;
  add_loops(a.rank, a.counts, a.sourceStrides, a.destStrides, unit / a.runUnits, from, to);
  return {(const char *)a.source + from, (char *)a.dest + to};
}

template <class S> __device__ __forceinline__ void fill_rotary_tables(const RotaryTable &a) {
  const long long index = thread_index();
  if (index >= a.batch * a.seq * a.pairs)
    return;
  const long long i = index % a.pairs, s = index / a.pairs % a.seq, b = index / a.pairs / a.seq;
  const long long offset = a.positionOffset.data ? at(a.positionOffset, b) : 0;
  // An f32 angle of some thousands would have few digits after the point.
  const double angle = (double(s) + double(offset)) * a.frequencies[i];
  storage<S>::store(a.cos, b * a.cosBatch + s * a.cosRow + i, float(a.scale * cos(angle)));
  storage<S>::store(a.sin, b * a.sinBatch + s * a.sinRow + i, float(a.scale * sin(angle)));
}

template <class S> __device__ __forceinline__ void rotate(const Rotary &a) {
  const long long index = thread_index();
  if (index >= a.batch * a.seq * a.heads * a.pairs)
    return;
  const long long i = index % a.pairs, h = index / a.pairs % a.heads;
  const long long s = index / a.pairs / a.heads % a.seq, b = index / a.pairs / a.heads / a.seq;
  const long long in = b * a.inBatch + s * a.inRow + h * a.inHead + i;
  const long long out = b * a.outBatch + s * a.outRow + h * a.outHead + i;
  const float x = storage<S>::load(a.in, in), y = storage<S>::load(a.in, in + a.pairs);
  const float cosine = storage<S>::load(a.cos, b * a.cosBatch + s * a.cosRow + i);
  const float sine = storage<S>::load(a.sin, b * a.sinBatch + s * a.sinRow + i);
  storage<S>::store(a.out, out, x * cosine - y * sine);
  storage<S>::store(a.out, out + a.pairs, y * cosine + x * sine);
}

template <class S> __device__ __forceinline__ void attend(const Attention &a) {
  const long long index = thread_index() / 32;
  const int lane = threadIdx.x % 32;
  if (index >= a.batch * a.heads * a.queries) // whole warps
    return;
  const long long s = index % a.queries, h = index / a.queries % a.heads;
  const long long b = index / a.queries / a.heads;
  const long long query = b * a.queryBatch + s * a.queryRow + h * a.queryHead;
  const long long key = b * a.keyBatch + h / a.group * a.keyHead;
  const long long value = b * a.valueBatch + h / a.group * a.valueHead;
  long long offset = a.positionOffset.data ? at(a.positionOffset, b) : 0;
  // Clamped to just outside of the keys: a sum with the given offset could overflow.
  offset = offset > a.keys ? a.keys : offset < -a.queries ? -a.queries : offset;
  long long keys = a.keys;
  if (a.validLength.data && at(a.validLength, b) < keys)
    keys = at(a.validLength, b);
  if (a.causal && s + offset + 1 < keys)
    keys = s + offset + 1;
  float q[kMaxHeadPerLane], sums[kMaxHeadPerLane];
#pragma unroll
  for (int i = 0; i < kMaxHeadPerLane; ++i) {
    const int d = i * 32 + lane;
    q[i] = d < a.headDim ? storage<S>::load(a.query, query + d) * a.scale : 0.0f;
    sums[i] = 0.0f;
  }
  float most = -infinity(), total = 0.0f;
  for (long long t = 0; t < keys; ++t) {
    if (a.mask.data && id_at(a.mask.data, a.mask.wide, b * a.maskBatch + t * a.mask.stride) == 0)
      continue; // the same in all lanes
    float dot = 0.0f;
#pragma unroll
    for (int i = 0; i < kMaxHeadPerLane; ++i) {
      const int d = i * 32 + lane;
      if (d < a.headDim)
        dot += q[i] * storage<S>::load(a.key, key + t * a.keyRow + d);
    }
    dot = sum_of_warp(dot);
    const float greater = maximum(most, dot);
    const float shrink = expf(most - greater), weight = expf(dot - greater);
    most = greater;
    total = total * shrink + weight;
#pragma unroll
    for (int i = 0; i < kMaxHeadPerLane; ++i) {
      const int d = i * 32 + lane;
      if (d < a.valueDim)
        sums[i] = sums[i] * shrink + weight * storage<S>::load(a.value, value + t * a.valueRow + d);
    }
  }
  if (a.logSum && lane == 0)
    a.logSum[b * a.logSumBatch + s * a.logSumRow + h * a.logSumHead] =
        total == 0.0f ? -infinity() : most + logf(total);
  const long long out = b * a.outBatch + s * a.outRow + h * a.outHead;
#pragma unroll
  for (int i = 0; i < kMaxHeadPerLane; ++i) {
    const int d = i * 32 + lane;
    if (d < a.valueDim)
      storage<S>::store(a.out, out + d, total > 0.0f || total != total ? sums[i] / total : 0.0f);
  }
}

/// An element of type f32, f16 or bf16, as f32.
__device__ __forceinline__ float load_float(const Operand &operand, long long i) {
  if (operand.dtype == 0)
    return storage<float>::load(operand.data, i);
  return operand.dtype == 1 ? storage<f16>::load(operand.data, i)
                            : storage<bf16>::load(operand.data, i);
}
__device__ __forceinline__ void store_float(const Operand &operand, long long i, float value) {
  if (operand.dtype == 0)
    storage<float>::store(operand.data, i, value);
  else if (operand.dtype == 1)
    storage<f16>::store(operand.data, i, value);
  else
    storage<bf16>::store(operand.data, i, value);
}

/// Offset of a position of the first `dims` dimensions, in elements.
__device__ __forceinline__ long long leading_offset(const Operand &operand, int dims,
                                                    long long position) {
  long long offset = 0;
  for (int d = dims - 1; d >= 0; --d) {
    offset += position % operand.sizes[d] * operand.strides[d];
    position /= operand.sizes[d];
  }
  return offset;
}
/// All dimensions but the last count rows.
__device__ __forceinline__ long long row_offset(const Operand &operand, long long row) {
  return leading_offset(operand, operand.rank - 1, row);
}
__device__ __forceinline__ long long element_offset(const Operand &operand, long long element) {
  return leading_offset(operand, operand.rank, element);
}

/// Largest first, NaN before all numbers, the lower index first among equals. Index -1 means no
/// element.
__device__ __forceinline__ bool comes_before(float a, long long i, float b, long long j) {
  if (i < 0 || j < 0)
    return j < 0 && i >= 0;
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan != b_nan)
    return a_nan;
  if (a != b && !a_nan)
    return a > b;
  return i < j;
}

/// Selects the next largest repeatedly: the first of those that come after the last one.
__device__ __forceinline__ void choose_largest(const Call &a) {
  const long long row = thread_index() / 32;
  const int lane = threadIdx.x % 32;
  if (row >= a.rows) // whole warps
    return;
  const Operand &input = a.operands[0], &values = a.operands[1], &indices = a.operands[2];
  const int last = input.rank - 1;
  const long long in = row_offset(input, row), out = row_offset(values, row),
                  ids = row_offset(indices, row);
  float previous = 0.0f;
  long long previous_index = -1;
  for (long long k = 0; k < values.sizes[last]; ++k) {
    float best = 0.0f;
    long long best_index = -1;
    for (long long i = lane; i < input.sizes[last]; i += 32) {
      const float x = load_float(input, in + i * input.strides[last]);
      if ((k == 0 || comes_before(previous, previous_index, x, i)) &&
          comes_before(x, i, best, best_index)) {
        best = x;
        best_index = i;
      }
    }
    for (int distance = 16; distance; distance /= 2) {
      const float x = __shfl_xor_sync(0xffffffffu, best, distance);
      const long long i = __shfl_xor_sync(0xffffffffu, best_index, distance);
      if (comes_before(x, i, best, best_index)) {
        best = x;
        best_index = i;
      }
    }
    if (lane == 0) {
      store_float(values, out + k * values.strides[last], best);
      store_id(indices.data, indices.dtype == 5, ids + k * indices.strides[last], best_index);
    }
    previous = best;
    previous_index = best_index;
  }
}

} // namespace library
} // namespace braid

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_copy(const braid::library::Copy a) {
  const long long unit = braid::library::thread_index();
  if (unit >= a.units)
    return;
  const braid::library::UnitPlace place = braid::library::place_of(a, a.first + unit);
  braid::library::move_unit(place.dest, place.source, a.unit);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_gather(const braid::library::Gather a) {
  const long long i = blockIdx.x;
  const long long id = braid::library::id_at(a.ids, a.wideIds, i);
  const bool inside = id >= 0 && id < a.limit;
  const long long row = inside ? id - a.firstRow : -1;
  if (threadIdx.x == 0 && !inside)
    braid::library::report_fault(a.fault, a.command, id, i);
  char *out = (char *)a.out + i * a.outStrideBytes;
  const bool own = row >= 0 && row < a.rows;
  const char *source = (const char *)a.source + (own ? row : 0) * a.sourceStrideBytes;
  for (long long at = (long long)threadIdx.x * a.unit; at < a.rowBytes;
       at += (long long)braid::library::kThreads * a.unit) {
    if (own)
      braid::library::move_unit(out + at, source + at, a.unit);
    else
      braid::library::clear_unit(out + at, a.unit);
  }
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_append(const braid::library::Append a) {
  const long long unit = braid::library::thread_index();
  if (unit >= a.copy.units)
    return;
  const long long row = unit / a.rowUnits, position = braid::library::at(a.positions, row);
  if (position < 0 || position > a.last) {
    if (unit % a.rowUnits == 0)
      braid::library::report_fault(a.fault, a.command, position, row);
    return;
  }
  const braid::library::UnitPlace place = braid::library::place_of(a.copy, unit);
  braid::library::move_unit(place.dest + position * a.stepBytes, place.source, a.copy.unit);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_copy_counted(const braid::library::CopyCounted a) {
  const long long unit = braid::library::thread_index();
  if (unit >= a.copy.units)
    return;
  const long long row = unit / a.rowUnits % a.rows, block = unit / a.rowUnits / a.rows;
  const braid::library::UnitPlace place = braid::library::place_of(a.copy, unit);
  if (row >= braid::library::at(a.counts, block))
    braid::library::clear_unit(place.dest, a.copy.unit);
  else if (place.source != place.dest)
    braid::library::move_unit(place.dest, place.source, a.copy.unit);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_check_counts(const braid::library::CheckCounts a) {
  const long long i = braid::library::thread_index();
  if (i >= a.count)
    return;
  const long long count = braid::library::at(a.counts, i);
  if (count < 0 || count > a.most)
    braid::library::report_fault(a.fault, a.command, count, i);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_position_ids(const braid::library::Call a) {
  const braid::library::Operand &ids = a.operands[0], &out = a.operands[1];
  const long long b = braid::library::thread_index() / 32, padding = a.integers[0];
  const int lane = threadIdx.x % 32, wide = ids.dtype == 5;
  if (b >= a.rows) // whole warps
    return;
  long long before = 0; // tokens of the row so far
  for (long long first = 0; first < ids.sizes[1]; first += 32) {
    const long long s = first + lane;
    const bool token =
        s < ids.sizes[1] &&
        braid::library::id_at(ids.data, wide, b * ids.strides[0] + s * ids.strides[1]) != padding;
    int tokens = token; // in this lane and the lanes below
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_sync(0xffffffffu, tokens, lane < distance ? lane : lane - distance);
      if (lane >= distance)
        tokens += other;
    }
    if (s < ids.sizes[1])
      braid::library::store_id(out.data, wide, b * out.strides[0] + s * out.strides[1],
                               padding + (token ? before + tokens : 0));
    before += __shfl_sync(0xffffffffu, tokens, 31);
  }
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_top_k(const braid::library::Call a) {
  braid::library::choose_largest(a);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_last_token(const braid::library::Call a) {
  const braid::library::Operand &input = a.operands[0], &mask = a.operands[1], &out = a.operands[2];
  const long long b = braid::library::thread_index() / 32;
  const int lane = threadIdx.x % 32;
  if (b >= a.rows) // whole warps
    return;
  long long last = -1;
  for (long long s = lane; s < mask.sizes[1]; s += 32)
    if (braid::library::id_at(mask.data, mask.dtype == 5,
                              b * mask.strides[0] + s * mask.strides[1]) != 0)
      last = s;
  for (int distance = 16; distance; distance /= 2) {
    const long long other = __shfl_xor_sync(0xffffffffu, last, distance);
    last = other > last ? other : last;
  }
  const int size = input.dtype == 0 ? 4 : input.dtype == 3 ? 8 : 2; // of f32, f64, f16 and bf16
  const char *row = (const char *)input.data +
                    (b * input.strides[0] + (last >= 0 ? last : 0) * input.strides[1]) * size;
  char *to = (char *)out.data + b * out.strides[0] * size;
  for (long long h = lane; h < input.sizes[2]; h += 32)
    if (last >= 0)
      braid::library::move_unit(to + h * out.strides[2] * size, row + h * input.strides[2] * size,
                                size);
    else
      braid::library::clear_unit(to + h * out.strides[2] * size, size);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary_table_f32(const braid::library::RotaryTable a) {
  braid::library::fill_rotary_tables<float>(a);
}
extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary_table_f16(const braid::library::RotaryTable a) {
  braid::library::fill_rotary_tables<braid::f16>(a);
}
extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary_table_bf16(const braid::library::RotaryTable a) {
  braid::library::fill_rotary_tables<braid::bf16>(a);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary_f32(const braid::library::Rotary a) {
  braid::library::rotate<float>(a);
}
extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary_f16(const braid::library::Rotary a) {
  braid::library::rotate<braid::f16>(a);
}
extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_rotary_bf16(const braid::library::Rotary a) {
  braid::library::rotate<braid::bf16>(a);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_attention_f32(const braid::library::Attention a) {
  braid::library::attend<float>(a);
}
extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_attention_f16(const braid::library::Attention a) {
  braid::library::attend<braid::f16>(a);
}
extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_attention_bf16(const braid::library::Attention a) {
  braid::library::attend<braid::bf16>(a);
}

#include <braid/int8.cuh>
#include <braid/reductions.cuh>
