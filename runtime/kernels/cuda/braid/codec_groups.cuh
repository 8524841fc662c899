//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Groups of payloads (braid/Base/Encoding.h): what an encoding is, rotations, extremes and spikes,
// scales, and the codes of elements.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/codec_bits.cuh>

namespace braid {
namespace codec {

constexpr unsigned all_lanes = 0xffffffffu;

enum class Form { asymmetric, symmetric, zero_point, scaled, cast };
enum class Scale { f16, bf16, e8m0, nvfp4, none };

/// `Element` is a type of codec_numbers.cuh, the type that is cast to, or int.
template <class Element, int Bits, Form Form_, Scale Scale_, int Group, int Rotation, bool Spikes>
struct Encoding {
  using element = Element;
  static constexpr int bits = Bits;
  static constexpr Form form = Form_;
  static constexpr Scale scale = Scale_;
  static constexpr int group = Group, rotation = Rotation;
  static constexpr bool spikes = Spikes;

  static constexpr bool has_wide_scale = Scale_ == Scale::f16 || Scale_ == Scale::bf16;
  static constexpr bool is_integer = Form_ <= Form::zero_point;
  static constexpr unsigned mask = (1u << Bits) - 1;
  /// What the scale is made for.
  static __device__ __forceinline__ float largest() {
    if constexpr (is_integer)
      return float(Form_ == Form::symmetric ? mask >> 1 : mask);
    else
      return Element::largest();
  }
};

template <class E> struct half_of {
  using type = f16;
};
template <class E, int Bits, Form F, int Group, int Rotation, bool Spikes>
struct half_of<Encoding<E, Bits, F, Scale::bf16, Group, Rotation, Spikes>> {
  using type = bf16;
};
/// The type of an encoding's scales and offsets.
template <class E> using scale_type = typename half_of<E>::type;

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

/// Hadamard transforms of blocks, each of which adjacent lanes have; those that are not `whole`
/// stay as they are. All lanes call it.
template <int Block> __device__ __forceinline__ void rotate(float (&x)[octet], bool whole) {
  constexpr int lanes = Block / octet;
  constexpr float factor = Block == 16    ? 0.25f
                           : Block == 32  ? 0.176776695296636881f
                           : Block == 64  ? 0.125f
                           : Block == 128 ? 0.0883883476483184405f
                                          : 0.0625f;
  float y[octet];
#pragma unroll
  for (int i = 0; i < octet; ++i)
    y[i] = x[i];
#pragma unroll
  for (int h = 1; h < octet; h *= 2)
#pragma unroll
    for (int i = 0; i < octet; ++i)
      if ((i & h) == 0) {
        const float a = y[i], b = y[i + h];
        y[i] = add(a, b);
        y[i + h] = subtract(a, b);
      }
#pragma unroll
  for (int distance = 1; distance < lanes; distance *= 2)
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float other = __shfl_xor_sync(all_lanes, y[i], distance);
      y[i] = (lane() & distance) != 0 ? subtract(other, y[i]) : add(y[i], other);
    }
#pragma unroll
  for (int i = 0; i < octet; ++i)
    if (whole)
      x[i] = multiply(y[i], factor);
}

/// Whether the block that an octet is part of lies in the row.
template <int Block> __device__ __forceinline__ bool is_whole(unsigned first, unsigned columns) {
  const unsigned begin = first / Block * Block;
  return begin < columns && columns - begin >= unsigned(Block);
}

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

/// With an infinity or a NaN, `least` is not above -infinity or `most` not below infinity.
struct Extremes {
  float least, most;

  static __device__ __forceinline__ Extremes of_none() { return {infinity(), -infinity()}; }
  __device__ __forceinline__ void take(float x) {
    least = minimum(least, x);
    most = maximum(most, x);
  }
  /// Of `Lanes` lanes beside each other.
  template <int Lanes> __device__ __forceinline__ void join() {
#pragma unroll
    for (int distance = 1; distance < Lanes; distance *= 2) {
      least = minimum(least, __shfl_xor_sync(all_lanes, least, distance));
      most = maximum(most, __shfl_xor_sync(all_lanes, most, distance));
    }
  }
  __device__ __forceinline__ bool are_finite() const {
    return least > -infinity() && most < infinity();
  }
};

template <int Lanes> __device__ __forceinline__ float largest_of_lanes(float x) {
#pragma unroll
  for (int distance = 1; distance < Lanes; distance *= 2)
    x = maximum(x, __shfl_xor_sync(all_lanes, x, distance));
  return x;
}
template <int Lanes> __device__ __forceinline__ int least_of_lanes(int x) {
#pragma unroll
  for (int distance = 1; distance < Lanes; distance *= 2) {
    const int other = __shfl_xor_sync(all_lanes, x, distance);
    x = other < x ? other : x;
  }
  return x;
}

/// The three smallest of some numbers in order, which may be equal; infinity for those that there
/// are not, and NaNs once there is one.
struct Lowest {
  float first, second, third;

  static __device__ __forceinline__ Lowest of_none() {
    return {infinity(), infinity(), infinity()};
  }
  __device__ __forceinline__ void take(float x) {
    third = minimum(third, maximum(second, x));
    second = minimum(second, maximum(first, x));
    first = minimum(first, x);
  }
  /// Of `Lanes` lanes beside each other. The n-th smallest of two lists in order is the smallest of
  /// max(i-th of one, (n - i)-th of the other).
  template <int Lanes> __device__ __forceinline__ void join() {
#pragma unroll
    for (int distance = 1; distance < Lanes; distance *= 2) {
      const float a = __shfl_xor_sync(all_lanes, first, distance);
      const float b = __shfl_xor_sync(all_lanes, second, distance);
      const float c = __shfl_xor_sync(all_lanes, third, distance);
      third = minimum(minimum(third, c), minimum(maximum(second, a), maximum(first, b)));
      second = minimum(minimum(second, b), maximum(first, a));
      first = minimum(first, a);
    }
  }
};

constexpr int nowhere = 1 << 30;

/// Places of elements: the first one, and the next one.
struct SpikePlaces {
  int first, second;

  static __device__ __forceinline__ SpikePlaces of_none() { return {nowhere, nowhere}; }
  /// The two first of some places; each is taken once.
  __device__ __forceinline__ void take(int at) {
    const int later = at < first ? first : at;
    second = later < second ? later : second;
    first = at < first ? at : first;
  }
  template <int Lanes> __device__ __forceinline__ void join() {
#pragma unroll
    for (int distance = 1; distance < Lanes; distance *= 2) {
      const int a = __shfl_xor_sync(all_lanes, first, distance);
      const int b = __shfl_xor_sync(all_lanes, second, distance);
      take(a);
      take(b);
    }
  }
};

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// A group's header, and what its codes are made with.
struct GroupScale {
  bool refused;
  unsigned scale_bits, offset_bits, zero;
  float inverse, offset;
};

/// `row_factor`: of nvfp4.
template <class E>
__device__ __forceinline__ GroupScale scale_of(const Extremes &x, float row_factor) {
  using Half = scale_type<E>;
  GroupScale s{};
  bool good = x.are_finite();
  const float m = good ? fmaxf(x.most, -x.least) : 0.0f;
  const float low = fminf(x.least, 0.0f);
  float scale;
  if constexpr (E::scale == Scale::e8m0) {
    // Exponents with their bias: that of M is 0 where M is subnormal.
    const int exponent = int(bits_of(m) >> 23) - (int(E::element::largest_bits >> 23) - 127);
    s.scale_bits = exponent < 0 ? 0u : unsigned(exponent);
    scale = float_of(s.scale_bits == 0 ? 0x400000u : s.scale_bits << 23);
  } else if constexpr (E::scale == Scale::nvfp4) {
    if (row_factor > 0.0f)
      s.scale_bits = e4m3_up(__fdiv_rn(__fdiv_rn(m, 6.0f), row_factor));
    scale = multiply(E4m3::decode(s.scale_bits), row_factor);
    if (!(scale >= 0x1p-126f)) {
      s.scale_bits = 0;
      scale = 0.0f;
    }
  } else {
    float range = m;
    if constexpr (E::form == Form::asymmetric) {
      s.offset_bits = offset_bits<Half>(x.least);
      s.offset = widen_bits<Half>(s.offset_bits);
      range = subtract(x.most, s.offset);
    } else if constexpr (E::form == Form::zero_point) {
      range = subtract(fmaxf(x.most, 0.0f), low);
    }
    s.scale_bits = HalfBits<Half>::scale(magnitude(__fdiv_rn(range, E::largest())));
    scale = widen_bits<Half>(s.scale_bits);
  }
  good = good && is_finite(add(s.offset, multiply(E::largest(), scale)));
  s.inverse = scale == 0.0f ? 0.0f : __frcp_rn(scale);
  if constexpr (E::form == Form::zero_point)
    s.zero = round_to_bits(fminf(multiply(-low, s.inverse), E::largest())) & E::mask;
  if (good)
    return s;
  s = {};
  s.refused = true;
  s.scale_bits = E::scale == Scale::e8m0    ? 255u
                 : E::scale == Scale::nvfp4 ? 0x7fu
                                            : HalfBits<Half>::nan;
  return s;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// No code of a number of a group is outside of its range, as scales are rounded up; only those of
/// spikes are, which are replaced.
template <class E> __device__ __forceinline__ unsigned code_of(float x, const GroupScale &s) {
  if constexpr (E::form == Form::asymmetric) {
    return round_to_bits(multiply(subtract(x, s.offset), s.inverse)) & E::mask;
  } else if constexpr (E::form == Form::symmetric) {
    return round_to_bits(multiply(x, s.inverse)) & E::mask;
  } else if constexpr (E::form == Form::zero_point) {
    const float zero = to_float(int(s.zero));
    const float v = fminf(fmaxf(multiply(x, s.inverse), -zero), subtract(E::largest(), zero));
    return (round_to_bits(v) + s.zero) & E::mask;
  } else {
    return E::element::encode(multiply(x, s.inverse));
  }
}

/// What a group's codes are decoded with: a scale that is NaN where the group is refused.
struct GroupValues {
  float scale, offset;
  unsigned zero;
};

template <class E> __device__ __forceinline__ float value_of(unsigned code, const GroupValues &g) {
  if constexpr (E::form == Form::asymmetric) {
    return add(g.offset, multiply(to_float(int(code)), g.scale));
  } else if constexpr (E::form == Form::symmetric) {
    return multiply(to_float(int(code << (32 - E::bits)) >> (32 - E::bits)), g.scale);
  } else if constexpr (E::form == Form::zero_point) {
    return multiply(to_float(int(code) - int(g.zero)), g.scale);
  } else {
    return multiply(E::element::decode(code), g.scale);
  }
}

} // namespace codec
} // namespace braid
