//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rows of payloads (braid/Base/Encoding.h): how warps encode the groups of a row, wherever the row
// is, and decode its elements. Kernels of their own (codec.cuh) and those of row operations
// (codec_rows.cuh) are made of this.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <braid/codec_elements.cuh>

namespace braid {
namespace codec {

using library::Codec;
using library::kThreads;

constexpr int header_bytes = 16;

/// The warps of a block that have a row between them, beside each other: one, or all of them.
template <int Warps> struct Team {
  static constexpr int warps = Warps;
  static __device__ __forceinline__ unsigned warp() {
    return Warps == 1 ? 0u : unsigned(threadIdx.x / 32);
  }
  static __device__ __forceinline__ void wait() {
    if constexpr (Warps == 1)
      __syncwarp();
    else
      __syncthreads();
  }
};

__device__ __forceinline__ unsigned quotient(unsigned n, const library::Divisor &by) {
  return unsigned((unsigned long long)n * by.multiplier >> by.shift);
}

/// Where a row is.
struct Place {
  unsigned row, part, row_in_part;
};
__device__ __forceinline__ Place place_of(const Codec &a, unsigned row) {
  const unsigned part = quotient(row, a.rowsPerPart);
  return {row, part, row - part * a.rowsPerPart.divisor};
}
/// `part` counts those of all senders.
__device__ __forceinline__ unsigned char *part_at(const Codec &a, unsigned part) {
  return a.partsAt ? a.partsAt[part] : a.payload + part * a.partStride;
}
__device__ __forceinline__ unsigned char *row_at(const Codec &a, unsigned part,
                                                 unsigned row_in_part) {
  return part_at(a, part) + header_bytes + row_in_part * a.payloadRowBytes;
}
/// The rows of a part that exist.
__device__ __forceinline__ unsigned rows_of(const Codec &a, unsigned part) {
  const long long left = a.rows - (long long)part * a.rowsPerPart.divisor;
  return left < 0 ? 0u : left < a.rowsPerPart.divisor ? unsigned(left) : a.rowsPerPart.divisor;
}
__device__ __forceinline__ int bytes_of(int count, int bits) { return (count * bits + 7) / 8; }

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

/// The bytes of a group besides its codes.
template <class E, class T> __device__ constexpr int group_header_bytes() {
  return (E::has_wide_scale ? 2 : 1) + (E::form == Form::asymmetric ? 2 : 0) +
         (E::form == Form::zero_point ? 1 : 0) +
         (E::spikes ? 2 * int(sizeof(T)) + (E::group > 256 ? 4 : 2) : 0);
}

/// Where a warp collects the bytes of its groups.
template <class E, class T> struct Stage {
  Collected<E::form == Form::cast ? 0 : Elements<E, T>::groups * group_header_bytes<E, T>()>
      headers;
  Collected<32 * E::bits> codes;
};

template <class E, class T>
__device__ __forceinline__ unsigned char *put_spike(unsigned char *to, float value) {
  if constexpr (sizeof(T) == 4)
    return put<4>(to, bits_of(value));
  else
    return put<2>(to, cast<T>(value).bits);
}

/// Writes the header of a group; rows that do not exist have zeros.
template <class E, class T>
__device__ __forceinline__ void put_header(unsigned char *to, const GroupScale &s,
                                           const SpikePlaces &places, const float (&spikes)[2]) {
  to = E::has_wide_scale ? put<2>(to, s.scale_bits) : put<1>(to, s.scale_bits);
  if constexpr (E::form == Form::asymmetric)
    to = put<2>(to, s.offset_bits);
  if constexpr (E::form == Form::zero_point)
    to = put<1>(to, s.zero);
  if constexpr (E::spikes) {
    constexpr int place_bytes = E::group > 256 ? 2 : 1;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      to = put_spike<E, T>(to, spikes[i]);
    to = put<place_bytes>(to, unsigned(places.first));
    put<place_bytes>(to, unsigned(places.second));
  }
}

/// Encodes a warp's groups from `first_group` on. `row` is null if it does not exist.
template <class E, class T>
__device__ __forceinline__ void encode_groups(const Codec &a, const T *row, unsigned char *to,
                                              unsigned first_group, float row_factor,
                                              Stage<E, T> &stage) {
  using Lanes = Elements<E, T>;
  const unsigned group = first_group + unsigned(lane() / Lanes::lanes);
  const unsigned begin = group * E::group;
  const unsigned left = group < a.groups ? a.columns - begin : 0;
  const unsigned count = left < unsigned(E::group) ? left : unsigned(E::group);
  Lanes x;
  x.from = row + begin;
  x.count = row ? count : 0;
  x.aligned = a.alignedTensor;
  x.keep();
  Extremes e;
  SpikePlaces places = {};
  if constexpr (E::spikes)
    places = take_spikes(x, e);
  else
    e = extremes_of(x);
  GroupScale s = scale_of<E>(e, row_factor);
  const bool has_codes = row && !s.refused;
  if (!row)
    s = {};

  // Headers. Spikes are as they are in the group: zeros have signs.
  float spikes[2] = {0.0f, 0.0f};
  if constexpr (E::spikes) {
    if (!has_codes)
      places = {};
    const float first = x.element(places.first), second = x.element(places.second);
    const float without = row ? nan() : 0.0f;
    spikes[0] = has_codes ? first : without;
    spikes[1] = has_codes ? second : without;
  }
  unsigned char *headers =
      to + (E::scale == Scale::nvfp4 ? 4 : 0) + (long long)first_group * a.groupHeaderBytes;
  if (Lanes::lane_in_group() == 0 && group < a.groups)
    put_header<E, T>(stage.headers.place(headers) + lane() / Lanes::lanes * a.groupHeaderBytes, s,
                     places, spikes);
  const unsigned rest = a.groups - first_group;
  stage.headers.write(headers,
                      int(rest < unsigned(Lanes::groups) ? rest : unsigned(Lanes::groups)) *
                          a.groupHeaderBytes);

  // Codes. Those of spikes are 0.
  unsigned char *codes = to + a.codesOffset + (long long)begin / octet * E::bits;
  const long long all = a.payloadRowBytes - a.codesOffset;
  const bool direct = E::bits % 4 == 0 && misalignment(to + a.codesOffset, 4) == 0;
  x.each([&](int step, const float (&v)[octet], int) {
    const int n = octet_count(Lanes::first(step), count), bytes = bytes_of(n, E::bits);
    unsigned code[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      code[i] = has_codes && i < n ? code_of<E>(v[i], s) : 0u;
      if constexpr (E::spikes) {
        const int at = int(Lanes::first(step)) + i;
        if (at == places.first || at == places.second)
          code[i] = 0;
      }
    }
    Codes<E::bits> packed;
    packed.pack(code);
    const long long in_group = (long long)Lanes::first(step) / octet * E::bits;
    if (direct) {
      if constexpr (E::bits % 4 == 0) {
        if (n == octet)
          packed.write_words(codes + in_group);
        else
          packed.write(codes + in_group, bytes);
      }
      return;
    }
    // What the warp has at this step is contiguous.
    const long long before = (long long)first_group * E::group / octet * E::bits +
                             (long long)step * Lanes::lanes * E::bits;
    constexpr int most = Lanes::groups * Lanes::octets * E::bits;
    const int of_step = Lanes::steps == 1                           ? most
                        : most - step * 32 * E::bits < 32 * E::bits ? most - step * 32 * E::bits
                                                                    : 32 * E::bits;
    const long long left_bytes = all - before;
    unsigned char *target = to + a.codesOffset + before;
    packed.write(stage.codes.place(target) + (codes + in_group - target), bytes);
    stage.codes.write(target, left_bytes < of_step ? int(left_bytes) : of_step);
  });
}

/// 256 elements of a row.
template <class E, class T>
__device__ __forceinline__ void encode_cast(const Codec &a, const T *row, unsigned char *to,
                                            unsigned item, Stage<E, T> &stage) {
  const unsigned begin = item * 32 * octet, first = begin + unsigned(lane()) * octet;
  const int n = octet_count(first, a.columns);
  float x[octet];
  load_octet(row + first, row ? n : 0, a.alignedTensor, x);
  unsigned code[octet];
#pragma unroll
  for (int i = 0; i < octet; ++i)
    code[i] = i < n ? cast<typename E::element>(x[i]).bits : 0u;
  Codes<16> packed;
  packed.pack(code);
  unsigned char *target = to + (long long)begin * 2;
  if (misalignment(to, 4) == 0) {
    if (n == octet)
      packed.write_words(target + lane() * 16);
    else
      packed.write(target + lane() * 16, 2 * n);
    return;
  }
  packed.write(stage.codes.place(target) + lane() * 16, 2 * n);
  const unsigned rest = a.columns - begin;
  stage.codes.write(target, 2 * int(rest < 32 * octet ? rest : 32 * octet));
}

/// Of nvfp4: M of the groups of a row without an infinity or a NaN, over the largest number of the
/// codes and scales. The team waits between two calls.
template <class E, class Warps, class T>
__device__ __forceinline__ float row_factor_of(const Codec &a, const T *row) {
  using Lanes = Elements<E, T>;
  float most = 0.0f;
  for (unsigned first = Warps::warp() * Lanes::groups; first < a.groups;
       first += unsigned(Warps::warps * Lanes::groups)) {
    const unsigned group = first + unsigned(lane() / Lanes::lanes), begin = group * E::group;
    const unsigned left = group < a.groups ? a.columns - begin : 0;
    Lanes x;
    x.from = row + begin;
    x.count = left < unsigned(E::group) ? left : unsigned(E::group);
    x.aligned = a.alignedTensor;
    x.keep();
    const Extremes e = extremes_of(x);
    if (e.are_finite())
      most = fmaxf(most, e.most);
  }
  most = largest_of_lanes<32>(most);
  if constexpr (Warps::warps > 1) {
    __shared__ float of_warps[Warps::warps];
    if (lane() == 0)
      of_warps[Warps::warp()] = most;
    Warps::wait();
#pragma unroll
    for (int i = 0; i < Warps::warps; ++i)
      most = fmaxf(most, of_warps[i]);
  }
  const float factor = __fdiv_rn(most, 2688.0f);
  return factor < 0x1p-126f ? 0.0f : factor;
}

/// Encodes a row, which is null if it does not exist, by a team.
template <class E, class Warps, class T>
__device__ __forceinline__ void encode_row(const Codec &a, const T *row, unsigned char *to,
                                           Stage<E, T> &stage) {
  if constexpr (E::form == Form::cast) {
#pragma unroll 1
    for (unsigned item = Warps::warp(); item * library::kCodecElements < a.columns;
         item += Warps::warps)
      encode_cast<E>(a, row, to, item, stage);
  } else {
    constexpr unsigned groups = unsigned(Elements<E, T>::groups);
    float factor = 0.0f;
    if constexpr (E::scale == Scale::nvfp4) {
      if (row) // for the whole team
        factor = row_factor_of<E, Warps>(a, row);
      if (Warps::warp() == 0 && lane() == 0)
        put<4>(to, bits_of(factor));
    }
#pragma unroll 1
    for (unsigned first = Warps::warp() * groups; first < a.groups; first += Warps::warps * groups)
      encode_groups<E>(a, row, to, first, factor, stage);
  }
}

/// What stands before the first row of a part, and after its last one.
__device__ __forceinline__ void frame_part(const Codec &a, const Place &p, bool first, bool last) {
  unsigned char *part = part_at(a, p.part);
  const int i = lane();
  if (first && p.row_in_part == 0 && i < header_bytes) {
    const unsigned word = i / 4 == 2 ? rows_of(a, p.part) : a.header[i / 4];
    part[i] = (unsigned char)(word >> (i % 4 * 8));
  }
  const long long end = header_bytes + a.rowsPerPart.divisor * a.payloadRowBytes;
  if (last && p.row_in_part + 1 == a.rowsPerPart.divisor && end + i < a.partBytes)
    part[end + i] = 0;
}

/// Whether nothing reads the part, as the rank would send it to itself.
__device__ __forceinline__ bool is_own_part(const Codec &a, unsigned part) {
  return a.ranks > 1 && part % a.ranks == a.ownParts;
}

/// Writes zeros in place of a row of an own part, and of what stands before and behind it: thread
/// `thread` of `threads`.
__device__ __forceinline__ void clear_row(const Codec &a, const Place &p, unsigned thread,
                                          unsigned threads) {
  unsigned char *part = part_at(a, p.part);
  const bool is_last = p.row_in_part + 1 == a.rowsPerPart.divisor;
  const long long row = header_bytes + p.row_in_part * a.payloadRowBytes;
  const long long begin = p.row_in_part == 0 ? 0 : row;
  const long long end = is_last ? a.partBytes : row + a.payloadRowBytes;
  unsigned char *from = part + begin;
  const long long words = misalignment(from, 4) == 0 ? (end - begin) / 4 : 0;
  for (long long i = thread; i < words; i += threads)
    reinterpret_cast<unsigned *>(from)[i] = 0;
  for (long long i = 4 * words + thread; i < end - begin; i += threads)
    from[i] = 0;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

enum class PartState { good, absent, bad };

/// Whether this rank is the sender, whose rows are not read from its payload.
__device__ __forceinline__ bool is_own(const Codec &a, unsigned sender) {
  return a.own && sender == a.ownSender;
}

/// Compares the header of a part with what is expected, and tells of one that differs. `part`
/// counts those of all senders, `in_tensor` those of one. The first sender whose payload is read
/// tells how many rows the others have.
__device__ __forceinline__ PartState check_part(const Codec &a, unsigned part, unsigned in_tensor,
                                                bool tells) {
  const unsigned char *header = part_at(a, part);
  unsigned word[4];
  if (misalignment(header, 16) == 0) {
    load_word<16>(word, header);
  } else {
    for (int i = 0; i < 4; ++i)
      word[i] = get<4>(header + 4 * i);
  }
  if (a.mayBeAbsent && (word[0] | word[1] | word[2] | word[3]) == 0)
    return PartState::absent;
  const unsigned reference = is_own(a, 0) ? a.parts + in_tensor : in_tensor;
  const unsigned first = part == reference ? word[2] : get<4>(part_at(a, reference) + 8);
  const unsigned least = a.senders > 1 ? 0 : rows_of(a, in_tensor);
  if (word[0] == a.header[0] && word[1] == a.header[1] && word[2] >= least &&
      word[2] <= a.header[2] && word[3] == a.header[3] && word[2] == first)
    return PartState::good;
  if (tells && atomicCAS(&a.fault->command, 0ull, a.command) == 0) {
    a.fault->value = first;
    a.fault->position = part;
    for (int i = 0; i < 4; ++i)
      a.fault->header[i] = word[i];
  }
  return PartState::bad;
}

/// Checks the parts of all senders, also those without a row, with the threads of all blocks.
__device__ __forceinline__ void check_parts(const Codec &a) {
  const long long parts = (long long)a.senders * a.parts;
  for (long long part = (long long)blockIdx.x * blockDim.x + threadIdx.x; part < parts;
       part += (long long)gridDim.x * blockDim.x)
    if (!is_own(a, unsigned(part) / a.parts))
      check_part(a, unsigned(part), unsigned(part) % a.parts, true);
}

struct Spike {
  float value;
  unsigned place;
};

/// Reads the header of a group. `T`: the type of the tensor that was encoded.
template <class E, class T>
__device__ __forceinline__ GroupValues read_header(const Codec &a, const unsigned char *row,
                                                   unsigned group, Spike (&spikes)[2]) {
  using Half = scale_type<E>;
  const unsigned char *from =
      row + (E::scale == Scale::nvfp4 ? 4 : 0) + (long long)group * a.groupHeaderBytes;
  GroupValues g{};
  if constexpr (E::scale == Scale::e8m0) {
    const unsigned e = *from++;
    g.scale = e == 255 ? nan() : float_of(e == 0 ? 0x400000u : e << 23);
  } else if constexpr (E::scale == Scale::nvfp4) {
    g.scale = multiply(E4m3::decode(*from++ & 0x7fu), float_of(get<4>(row)));
    if (magnitude(g.scale) < 0x1p-126f)
      g.scale = 0.0f;
  } else {
    g.scale = widen_bits<Half>(get<2>(from));
    from += 2;
  }
  if constexpr (E::form == Form::asymmetric) {
    g.offset = widen_bits<Half>(get<2>(from));
    from += 2;
  }
  if constexpr (E::form == Form::zero_point)
    g.zero = *from++;
  const bool refused = !is_finite(g.scale) || !is_finite(g.offset);
  if (refused)
    g = {nan(), 0.0f, 0};
  if constexpr (E::spikes) {
    for (int i = 0; i < 2; ++i, from += sizeof(T)) {
      if constexpr (sizeof(T) == 4)
        spikes[i].value = float_of(get<4>(from));
      else
        spikes[i].value = widen_bits<T>(get<2>(from));
      if (refused)
        spikes[i].value = nan();
    }
    constexpr int place_bytes = E::group > 256 ? 2 : 1;
    for (int i = 0; i < 2; ++i, from += place_bytes)
      spikes[i].place = get<place_bytes>(from);
  }
  return g;
}

/// Decodes the lane's octet of a row, which begins with element `first`.
template <class E, class T>
__device__ __forceinline__ void decode_octet(const Codec &a, const unsigned char *from,
                                             const Place &p, unsigned first, int n,
                                             float (&y)[octet]) {
  Codes<E::bits> codes = {};
  if (n > 0)
    codes.read(from + a.codesOffset + (long long)(first / octet) * E::bits, bytes_of(n, E::bits),
               a.alignedPayload);
  if constexpr (E::form == Form::cast) {
#pragma unroll
    for (int i = 0; i < octet; ++i)
      y[i] = widen_bits<typename E::element>(codes.code(i));
  } else {
    const unsigned group = first / unsigned(E::group), begin = group * E::group;
    Spike spikes[2] = {};
    GroupValues values = {};
    if (n > 0)
      values = read_header<E, T>(a, from, group, spikes);
#pragma unroll
    for (int i = 0; i < octet; ++i)
      y[i] = value_of<E>(codes.code(i), values);
    if constexpr (E::spikes) {
      const unsigned left = a.columns - begin;
      const unsigned count = left < unsigned(E::group) ? left : unsigned(E::group);
      if (n > 0 && (spikes[0].place >= count || spikes[1].place >= count) && first == begin &&
          atomicCAS(&a.fault->command, 0ull, a.command) == 0) {
        a.fault->value = spikes[0].place >= count ? spikes[0].place : spikes[1].place;
        a.fault->position = p.row;
        a.fault->elements = count;
      }
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int i = 0; i < octet; ++i)
          if (first - begin + unsigned(i) == spikes[s].place)
            y[i] = spikes[s].value;
    }
    if constexpr (E::rotation != 0)
      rotate<E::rotation>(y, is_whole<E::rotation>(first, a.columns));
  }
}

/// Adds the lane's octet of all senders' rows, in their order. False if a part is bad, which is
/// told elsewhere: then it counts as zeros. All lanes call it. `T`: the type of the tensor that was
/// encoded.
template <class E, class T>
__device__ __forceinline__ bool sum_octet(const Codec &a, const Place &p, unsigned first, int n,
                                          float (&sum)[octet]) {
  bool good = true;
#pragma unroll 1
  for (unsigned sender = 0; sender < a.senders; ++sender) {
    float y[octet] = {};
    if (is_own(a, sender)) {
      const void *row = static_cast<const char *>(a.own) + p.row * a.ownRowBytes;
      const T *from = static_cast<const T *>(row) + first; // one by one, to spare registers
#pragma unroll
      for (int i = 0; i < octet; ++i)
        if (i < n)
          y[i] = as_float(from[i]);
    } else {
      const unsigned part = sender * a.parts + p.part;
      const PartState state = check_part(a, part, p.part, false); // the same for all lanes
      good &= state != PartState::bad;
      if (state == PartState::good)
        decode_octet<E, T>(a, row_at(a, part, p.row_in_part), p, first, n, y);
    }
#pragma unroll
    for (int i = 0; i < octet; ++i)
      sum[i] = sender == 0 ? y[i] : add(sum[i], y[i]);
  }
  return good;
}

} // namespace codec
} // namespace braid
