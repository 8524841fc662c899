//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels that encode tensors to payloads and decode them (braid/Base/Encoding.h), to the bit as
// the CPU does. A program has those of the encodings and types that it uses, each a function that
// the compiler makes of these (braid/Runtime/CudaCodec.h). They take a library::Codec, run in
// blocks of library::kThreads, and keep nothing from one launch to the next.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/codec_payload.cuh>
#include <braid/library.cuh>

namespace braid {
namespace codec {

/// `E`: the encoding; `T`: the type of the tensor.
template <class E, class T> __device__ __forceinline__ void encode(const Codec &a) {
  __shared__ Stage<E, T> stages[kThreads / 32];
  Stage<E, T> &stage = stages[threadIdx.x / 32];
  const unsigned warp = unsigned(library::thread_index() / 32);
  if (warp >= a.warps) // whole warps, and whole blocks of nvfp4
    return;
  const Place p = place_of(a, quotient(warp, a.warpsPerRow));
  const unsigned item = warp - p.row * a.warpsPerRow.divisor;
  if (is_own_part(a, p.part)) // whole blocks of nvfp4
    return clear_row(a, p, item * 32 + unsigned(lane()), a.warpsPerRow.divisor * 32);
  const T *row =
      p.row < a.rows
          ? reinterpret_cast<const T *>(static_cast<const char *>(a.tensor) + p.row * a.rowBytes)
          : nullptr;
  unsigned char *to = row_at(a, p.part, p.row_in_part);
  frame_part(a, p, item == 0, item + 1 == a.warpsPerRow.divisor);
  if constexpr (E::form == Form::cast)
    encode_cast<E>(a, row, to, item, stage);
  else if constexpr (E::scale == Scale::nvfp4)
    encode_row<E, Team<kThreads / 32>>(a, row, to, stage);
  else
    encode_groups<E>(a, row, to, item * unsigned(Elements<E, T>::groups), 0.0f, stage);
}

/// `T`: the type of the tensor that was encoded, `Out`: that of the result.
template <class E, class T, class Out> __device__ __forceinline__ void decode(const Codec &a) {
  check_parts(a);
  const unsigned warp = unsigned(library::thread_index() / 32);
  if (warp >= a.warps) // whole warps
    return;
  const Place p = place_of(a, quotient(warp, a.warpsPerRow));
  const unsigned item = warp - p.row * a.warpsPerRow.divisor;
  const unsigned first = (item * 32 + unsigned(lane())) * octet;
  const int n = octet_count(first, a.columns);
  float sum[octet];
  if (!sum_octet<E, T>(a, p, first, n, sum))
    return;
  Out *out = reinterpret_cast<Out *>(static_cast<char *>(a.tensor) + p.row * a.rowBytes);
  store_octet(out + first, n, a.alignedTensor, sum);
}

} // namespace codec
} // namespace braid
