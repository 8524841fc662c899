//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Functions of the machine beyond CUDA C++. All PTX is here; the tests have another
// braid/device.cuh with the same functions for a CPU. No header of the CUDA toolkit is needed.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace braid {
using size = unsigned long long;

/// Storage types: arithmetic is in float.
struct bf16 {
  unsigned short bits;
};
struct f16 {
  unsigned short bits;
};

__device__ __forceinline__ float widen(bf16 x) { return __uint_as_float(unsigned(x.bits) << 16); }
__device__ __forceinline__ float widen(f16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
/// Rounds to nearest even.
template <class T> __device__ T narrow(float x);
template <> __device__ __forceinline__ bf16 narrow<bf16>(float x) {
  bf16 near;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(near.bits) : "f"(x));
  return near;
}
template <> __device__ __forceinline__ f16 narrow<f16>(float x) {
  f16 near;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(near.bits) : "f"(x));
  return near;
}

__device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }
__device__ __forceinline__ float nan() { return __uint_as_float(0x7fc00000u); }
/// NaN if either is NaN; fmaxf and fminf return the other one.
__device__ __forceinline__ float maximum(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}
__device__ __forceinline__ float minimum(float a, float b) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
  return least;
}

/// The widths of memory accesses; addresses are multiples of them.
template <int Bytes> struct word;
template <> struct word<1> {
  using type = unsigned char;
};
template <> struct word<2> {
  using type = unsigned short;
};
template <> struct word<4> {
  using type = unsigned;
};
template <> struct word<8> {
  using type = uint2;
};
template <> struct word<16> {
  using type = uint4;
};
template <int Bytes> __device__ __forceinline__ void load_word(void *to, const void *from) {
  using W = typename word<Bytes>::type;
  *static_cast<W *>(to) = *static_cast<const W *>(from);
}
/// To global memory.
template <int Bytes> __device__ __forceinline__ void store_word(void *to, const void *from) {
  using W = typename word<Bytes>::type;
  const W value = *static_cast<const W *>(from);
  // The compiler may split a plain store of several words, but not this instruction.
  if constexpr (Bytes == 16)
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(value.x), "r"(value.y),
                 "r"(value.z), "r"(value.w)
                 : "memory");
  else if constexpr (Bytes == 8)
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(value.x), "r"(value.y)
                 : "memory");
  else
    *static_cast<W *>(to) = value;
}
template <int Bytes> __device__ __forceinline__ void store_shared_word(void *to, const void *from) {
  using W = typename word<Bytes>::type;
  *static_cast<W *>(to) = *static_cast<const W *>(from);
}
} // namespace braid
