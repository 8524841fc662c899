//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Row kernels that decode what they read and encode what they write. The threads that have a row
// (rows.cuh) decode it to shared memory, compute with it there, and encode a row from there, with
// the same functions as kernels that do nothing else: payloads and rows have the same bits. Grids
// are those of the row kernel.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/codec_payload.cuh>
#include <braid/rows.cuh>

namespace braid {
namespace codec {

/// The rows of an operand that a block has, in shared memory. Each begins with a multiple of 16
/// bytes.
template <class T, class Row> struct RowMemory {
  static constexpr int stride = (Row::columns * int(sizeof(T)) + 15) / 16 * 16 / int(sizeof(T));
  alignas(16) T elements[Row::rows * stride];
  __device__ __forceinline__ T *row() { return elements + Row::row_in_block() * stride; }
};

/// Decodes a row to `to`, in shared memory. `T`: the type of the tensor that was encoded. Threads
/// of all blocks call check_parts before. Of a bad part it makes zeros, so that what is computed
/// and encoded of them is well-formed.
template <class E, class T, class Row, class Out>
__device__ __forceinline__ void decode_row(const Codec &a, unsigned row, Out *to) {
  using Warps = Team<Row::warps>;
  const Place p = place_of(a, row);
#pragma unroll 1
  for (unsigned item = Warps::warp(); item * library::kCodecElements < a.columns;
       item += Warps::warps) {
    const unsigned first = (item * 32 + unsigned(lane())) * octet;
    const int n = octet_count(first, a.columns);
    float sum[octet];
    sum_octet<E, T>(a, p, first, n, sum);
    store_octet<true>(to + first, n, true, sum);
  }
  Warps::wait();
}

/// Encodes the row `from`, in shared memory. The first rows also write those that are padding.
template <class E, class Row, class T>
__device__ __forceinline__ void encode_rows(const Codec &a, unsigned row, const T *from) {
  using Warps = Team<Row::warps>;
  __shared__ Stage<E, T> stages[Row::rows * Row::warps];
  Stage<E, T> &stage = stages[threadIdx.x / 32];
  const unsigned all = a.parts * a.rowsPerPart.divisor;
  Warps::wait();
#pragma unroll 1
  for (unsigned r = row; r < all; r += unsigned(a.rows)) {
    const Place p = place_of(a, r);
    if (is_own_part(a, p.part)) { // the same for all threads that have the row
      clear_row(a, p, Warps::warp() * 32 + unsigned(lane()), Warps::warps * 32);
      continue;
    }
    frame_part(a, p, Warps::warp() == 0, Warps::warp() == 0);
    encode_row<E, Warps>(a, r == row ? from : nullptr, row_at(a, p.part, p.row_in_part), stage);
  }
}

} // namespace codec
} // namespace braid
