//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Octets, the 8 elements of a row that a thread has at once, in tensors and in payloads. The codes
// of n bits of an octet are n bytes, so that every octet of a row begins with a byte.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/codec_numbers.cuh>
#include <braid/vector.cuh>

namespace braid {
namespace codec {

/// Elements of an octet.
constexpr int octet = 8;

__device__ __forceinline__ int lane() { return int(threadIdx.x % 32); }
__device__ __forceinline__ unsigned misalignment(const void *address, unsigned bytes) {
  return unsigned((size)address & (bytes - 1));
}

//===----------------------------------------------------------------------===//
// In tensors
//===----------------------------------------------------------------------===//

/// Reads `count` elements as f32; those that do not exist become the first one. `aligned`: octets
/// are, to 16 bytes.
template <class T>
__device__ __forceinline__ void load_octet(const T *from, int count, bool aligned,
                                           float (&x)[octet]) {
  if (count == octet && aligned) {
    const vec<T, octet> v = load<octet>(from);
#pragma unroll
    for (int i = 0; i < octet; ++i)
      x[i] = as_float(v[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < octet; ++i)
    x[i] = count > 0 ? as_float(from[i < count ? i : 0]) : 0.0f;
}

template <bool Shared = false, class T>
__device__ __forceinline__ void store_octet(T *to, int count, bool aligned,
                                            const float (&x)[octet]) {
  if (count == octet && aligned) {
    vec<T, octet> v;
#pragma unroll
    for (int i = 0; i < octet; ++i)
      v[i] = cast<T>(x[i]);
    if constexpr (Shared)
      store_shared(to, v);
    else
      store(to, v);
    return;
  }
#pragma unroll
  for (int i = 0; i < octet; ++i)
    if (i < count)
      to[i] = cast<T>(x[i]);
}

//===----------------------------------------------------------------------===//
// In payloads
//===----------------------------------------------------------------------===//

/// The n bytes of an octet's codes, from the low bits of the first word on.
template <int Bits> struct Codes {
  static constexpr int words = Bits <= 4 ? 1 : (Bits + 3) / 4;
  unsigned word[words];

  /// Of codes without other bits.
  __device__ __forceinline__ void pack(const unsigned (&code)[octet]) {
#pragma unroll
    for (int w = 0; w < words; ++w)
      word[w] = 0;
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const int at = i * Bits / 32, shift = i * Bits % 32;
      word[at] |= code[i] << shift;
      if (shift + Bits > 32)
        word[at + 1 < words ? at + 1 : at] |= code[i] >> (32 - shift & 31);
    }
  }
  __device__ __forceinline__ unsigned code(int i) const {
    const int at = i * Bits / 32, shift = i * Bits % 32;
    unsigned all = word[at] >> shift;
    if (shift + Bits > 32)
      all |= word[at + 1 < words ? at + 1 : at] << (32 - shift & 31);
    return all & ((1u << Bits) - 1);
  }
  __device__ __forceinline__ unsigned char byte(int i) const {
    return (unsigned char)(word[i / 4] >> (i % 4 * 8));
  }

  /// Reads `bytes` of them, which are not 0; in words if memory around them is `aligned` to these
  /// and belongs to the payload.
  __device__ __forceinline__ void read(const unsigned char *from, int bytes, bool aligned) {
    if (!aligned) {
#pragma unroll
      for (int w = 0; w < words; ++w)
        word[w] = 0;
#pragma unroll
      for (int i = 0; i < Bits; ++i)
        if (i < bytes)
          word[i / 4] |= unsigned(from[i]) << (i % 4 * 8);
      return;
    }
    const unsigned over = misalignment(from, 4);
    unsigned whole[words + 1];
#pragma unroll
    for (int w = 0; w <= words; ++w) {
      whole[w] = 0;
      if (w * 4 < int(over) + bytes)
        load_word<4>(whole + w, from - over + w * 4);
    }
#pragma unroll
    for (int w = 0; w < words; ++w)
      word[w] = __funnelshift_r(whole[w], whole[w + 1], over * 8);
  }
  /// Writes the first `bytes` of them.
  __device__ __forceinline__ void write(unsigned char *to, int bytes) const {
#pragma unroll
    for (int i = 0; i < Bits; ++i)
      if (i < bytes)
        to[i] = byte(i);
  }
  /// Writes all of them, to a multiple of 4 bytes.
  __device__ __forceinline__ void write_words(unsigned char *to) const {
    static_assert(Bits % 4 == 0, "");
    if (words % 4 == 0 && misalignment(to, 16) == 0) {
      store_word<words % 4 == 0 ? 16 : 4>(to, word);
    } else if (words % 2 == 0 && misalignment(to, 8) == 0) {
#pragma unroll
      for (int w = 0; w < words; w += 2)
        store_word<words % 2 == 0 ? 8 : 4>(to + 4 * w, word + w);
    } else {
#pragma unroll
      for (int w = 0; w < words; ++w)
        store_word<4>(to + 4 * w, word + w);
    }
  }
};

/// Unsigned numbers of any alignment, little-endian.
template <int Bytes> __device__ __forceinline__ unsigned get(const unsigned char *from) {
  unsigned value = 0;
  if (Bytes == 2 && misalignment(from, 2) == 0) {
    unsigned short both;
    load_word<2>(&both, from);
    return both;
  }
#pragma unroll
  for (int i = 0; i < Bytes; ++i)
    value |= unsigned(from[i]) << (8 * i);
  return value;
}
template <int Bytes>
__device__ __forceinline__ unsigned char *put(unsigned char *to, unsigned value) {
#pragma unroll
  for (int i = 0; i < Bytes; ++i)
    to[i] = (unsigned char)(value >> (8 * i));
  return to + Bytes;
}

/// Bytes that a warp collects in shared memory and writes as a whole, adjacent lanes adjacent
/// words, wherever they begin in the payload.
template <int Bytes> struct Collected {
  unsigned words[(Bytes + 3) / 4 + 1];

  /// Where the bytes that go to `to` are collected.
  __device__ __forceinline__ unsigned char *place(const unsigned char *to) {
    return reinterpret_cast<unsigned char *>(words) + misalignment(to, 4);
  }
  /// Writes the first `bytes`, which are `most` or fewer. All lanes call it.
  __device__ __forceinline__ void write(unsigned char *to, int bytes) {
    const int lead = int(misalignment(to, 4));
    __syncwarp();
    for (int w = lane(); w * 4 < lead + bytes; w += 32) {
      const int begin = w * 4 - lead;
      if (begin >= 0 && begin + 4 <= bytes) {
        store_word<4>(to + begin, words + w);
        continue;
      }
      const unsigned char *from = reinterpret_cast<const unsigned char *>(words + w);
      for (int i = 0; i < 4; ++i)
        if (begin + i >= 0 && begin + i < bytes)
          to[begin + i] = from[i];
    }
    __syncwarp();
  }
};

} // namespace codec
} // namespace braid
