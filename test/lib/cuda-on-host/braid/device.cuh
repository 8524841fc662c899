//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of runtime/kernels/cuda/braid/device.cuh on a CPU.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace braid {
using size = unsigned long long;

struct bf16 {
  unsigned short bits;
};
struct f16 {
  unsigned short bits;
};

inline float widen(bf16 x) { return __uint_as_float(unsigned(x.bits) << 16); }
inline float widen(f16 x) {
  _Float16 value;
  std::memcpy(&value, &x, 2);
  return value;
}
template <class T> T narrow(float x);
template <> inline bf16 narrow<bf16>(float x) {
  if (x != x)
    return {0x7fff};
  unsigned bits = static_cast<unsigned>(__float_as_int(x));
  return {static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
template <> inline f16 narrow<f16>(float x) {
  auto value = static_cast<_Float16>(x);
  f16 near;
  std::memcpy(&near, &value, 2);
  return near;
}

inline float infinity() { return __uint_as_float(0x7f800000u); }
inline float nan() { return __uint_as_float(0x7fc00000u); }
inline float maximum(float a, float b) { return a != a || b != b ? nan() : a < b ? b : a; }
inline float minimum(float a, float b) { return a != a || b != b ? nan() : b < a ? b : a; }

template <int Bytes> void check_aligned(const void *address) {
  if (reinterpret_cast<uintptr_t>(address) % Bytes != 0)
    on_host::running->fail(on_host::running->thread(threadIdx.x) + " accesses " +
                           std::to_string(Bytes) + " bytes at an address that is no multiple");
}
template <int Bytes> void load_word(void *to, const void *from) {
  check_aligned<Bytes>(from);
  std::memcpy(to, from, Bytes);
}
inline bool is_shared(const void *address) {
  return address >= __start_braid_shared && address < __stop_braid_shared;
}
template <int Bytes> void store_word(void *to, const void *from) {
  check_aligned<Bytes>(to);
  if (is_shared(to))
    on_host::running->fail(on_host::running->thread(threadIdx.x) +
                           " stores to shared memory as if it were global");
  std::memcpy(to, from, Bytes);
}
template <int Bytes> void store_shared_word(void *to, const void *from) {
  check_aligned<Bytes>(to);
  if (!is_shared(to))
    on_host::running->fail(on_host::running->thread(threadIdx.x) +
                           " stores to global memory as if it were shared");
  std::memcpy(to, from, Bytes);
}
} // namespace braid
