//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The elements of a group of a payload (braid/Base/Encoding.h), which lanes of a warp have: their
// extremes, and those that travel as spikes.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/codec_groups.cuh>
#include <braid/library_arguments.h>

namespace braid {
namespace codec {

/// Elements from `first` on, of `count`, that are in an octet.
__device__ __forceinline__ int octet_count(unsigned first, unsigned count) {
  return first >= count ? 0 : count - first < octet ? int(count - first) : octet;
}

/// The elements of a group, which `lanes` lanes beside each other have, an octet each at every
/// step. Groups of many steps are read again for every use.
template <class E, class T> struct Elements {
  static constexpr int octets = E::group / octet;
  static constexpr int lanes = library::codecLanes(E::group);
  static constexpr int steps = (octets + lanes - 1) / lanes;
  static constexpr int groups = 32 / lanes; ///< of a warp
  static constexpr bool kept = steps == 1;

  const T *from;
  unsigned count; ///< 0: the group does not exist
  bool aligned;
  float x[kept ? steps : 1][octet];

  static __device__ __forceinline__ int lane_in_group() { return lane() % lanes; }
  static __device__ __forceinline__ unsigned first(int step) {
    return unsigned(step * lanes + lane_in_group()) * octet;
  }
  __device__ __forceinline__ void read(int step, float (&to)[octet]) const {
    load_octet(from + first(step), octet_count(first(step), count), aligned, to);
    if constexpr (E::rotation != 0)
      rotate<E::rotation>(to, is_whole<E::rotation>(first(step), count));
  }
  __device__ __forceinline__ void keep() {
    if constexpr (kept) {
#pragma unroll
      for (int step = 0; step < steps; ++step)
        read(step, x[step]);
    }
  }
  /// One element, for all lanes of its group; `at` is the same in each of them.
  __device__ __forceinline__ float element(int at) {
    const int step = at / octet / lanes;
    if constexpr (!kept)
      read(step, x[0]);
    float v = 0.0f;
#pragma unroll
    for (int i = 0; i < octet; ++i)
      if (int(first(step)) + i == at)
        v = x[0][i];
    return __shfl_sync(all_lanes, v, lane() / lanes * lanes + at / octet % lanes);
  }
  /// Calls f(step, elements, number of them) with the lane's octets, in order. All lanes call it.
  template <class F> __device__ __forceinline__ void each(F f) {
    if constexpr (kept) {
#pragma unroll
      for (int step = 0; step < steps; ++step)
        f(step, x[step], octet_count(first(step), count));
    } else {
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        read(step, x[0]);
        f(step, x[0], octet_count(first(step), count));
      }
    }
  }
};

template <class E, class T> __device__ __forceinline__ Extremes extremes_of(Elements<E, T> &x) {
  using Lanes = Elements<E, T>;
  if constexpr (E::form == Form::asymmetric || E::form == Form::zero_point) {
    Extremes e = Extremes::of_none();
    x.each([&](int, const float (&v)[octet], int count) {
#pragma unroll
      for (int i = 0; i < octet; ++i)
        if (count > 0)
          e.take(v[i]);
    });
    e.template join<Lanes::lanes>();
    return e;
  } else {
    float most = 0.0f;
    x.each([&](int, const float (&v)[octet], int count) {
#pragma unroll
      for (int i = 0; i < octet; ++i)
        if (count > 0)
          most = maximum(most, magnitude(v[i]));
    });
    most = largest_of_lanes<Lanes::lanes>(most);
    return {-most, most};
  }
}

/// What a group's scale is made from, of elements from `least` to `most`.
template <class E> __device__ __forceinline__ float span_of(float least, float most) {
  if constexpr (E::form == Form::asymmetric)
    return subtract(most, least);
  else if constexpr (E::form == Form::zero_point)
    return subtract(fmaxf(most, 0.0f), fminf(least, 0.0f));
  else
    return fmaxf(most, -least);
}

/// Finds the spikes of a group, and gives the extremes of its other elements; of a group with an
/// infinity or a NaN, all extremes, and any places.
template <class E, class T>
__device__ __forceinline__ SpikePlaces take_spikes(Elements<E, T> &x, Extremes &e) {
  using Lanes = Elements<E, T>;
  // The largest have the opposite sign.
  Lowest least = Lowest::of_none(), most = Lowest::of_none();
  x.each([&](int, const float (&v)[octet], int count) {
#pragma unroll
    for (int i = 0; i < octet; ++i)
      if (i < count) {
        least.take(v[i]);
        most.take(-v[i]);
      }
  });
  least.template join<Lanes::lanes>();
  most.template join<Lanes::lanes>();
  e = {least.first, -most.first};
  float spikes[2] = {e.least, e.most};
  if (e.are_finite() && x.count <= 2) {
    e = {0.0f, 0.0f};
  } else if (e.are_finite()) {
    // Without one of either end, the two largest, and the two smallest.
    e = {least.second, -most.second};
    float span = span_of<E>(e.least, e.most);
    const float above = span_of<E>(least.first, -most.third);
    const float below = span_of<E>(least.third, -most.first);
    if (above < span) {
      span = above;
      e = {least.first, -most.third};
      spikes[0] = -most.first;
      spikes[1] = -most.second;
    }
    if (below < span) {
      e = {least.third, -most.first};
      spikes[0] = least.first;
      spikes[1] = least.second;
    }
  }
  // Where the first is, and where its like is next; and the second one.
  SpikePlaces equal = SpikePlaces::of_none();
  int other = nowhere;
  x.each([&](int step, const float (&v)[octet], int count) {
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const int at = int(Lanes::first(step)) + i;
      if (i < count && v[i] == spikes[0])
        equal.take(at);
      if (i < count && v[i] == spikes[1])
        other = at < other ? at : other;
    }
  });
  equal.template join<Lanes::lanes>();
  other = least_of_lanes<Lanes::lanes>(other);
  if (spikes[0] != spikes[1])
    return {equal.first, other};
  return {equal.first, x.count > 1 ? equal.second : equal.first};
}

} // namespace codec
} // namespace braid
