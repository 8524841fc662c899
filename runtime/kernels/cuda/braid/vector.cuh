//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small vectors of elements that a thread moves at once.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/device.cuh>

namespace braid {

/// N elements, a power of two, moved 16 bytes at a time.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) vec {
  T elements[N];
  __device__ __forceinline__ T &operator[](int i) { return elements[i]; }
  __device__ __forceinline__ const T &operator[](int i) const { return elements[i]; }
};

/// The address is a multiple of the vector's alignment.
template <int N, class T> __device__ __forceinline__ vec<T, N> load(const T *from) {
  constexpr int bytes = alignof(vec<T, N>);
  vec<T, N> value;
#pragma unroll
  for (int i = 0; i < int(sizeof(value)) / bytes; ++i)
    load_word<bytes>(reinterpret_cast<char *>(&value) + i * bytes,
                     reinterpret_cast<const char *>(from) + i * bytes);
  return value;
}
template <class T, int N> __device__ __forceinline__ void store(T *to, const vec<T, N> &value) {
  constexpr int bytes = alignof(vec<T, N>);
#pragma unroll
  for (int i = 0; i < int(sizeof(value)) / bytes; ++i)
    store_word<bytes>(reinterpret_cast<char *>(to) + i * bytes,
                      reinterpret_cast<const char *>(&value) + i * bytes);
}
/// The same, to shared memory.
template <class T, int N>
__device__ __forceinline__ void store_shared(T *to, const vec<T, N> &value) {
  constexpr int bytes = alignof(vec<T, N>);
#pragma unroll
  for (int i = 0; i < int(sizeof(value)) / bytes; ++i)
    store_shared_word<bytes>(reinterpret_cast<char *>(to) + i * bytes,
                             reinterpret_cast<const char *>(&value) + i * bytes);
}
} // namespace braid
