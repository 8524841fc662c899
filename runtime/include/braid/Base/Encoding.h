//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Encodings of tensors for their way between ranks, and the payload that they make: version 1 of
// the wire format, to the bit, and its size.
//
// A tensor is rows of columns; each row is encoded by itself. With an encoding of groups, a row is
// cut into groups of `group` elements, of which the last may be shorter. All arithmetic is in f32,
// with each operation rounded to nearest even and none contracted; `inv` is 1 / scale, computed
// once per group. floor16 and ceil16 round to the type of scales, down and up, and zeros to +0;
// beyond its range, floor16 gives the largest number or -infinity, ceil16 infinity.
//
// A group of x, min and max, M = max |x|, is encoded as (n bits, L = 2^n - 1, Q = 2^(n-1) - 1):
//
//   intN                offset = floor16(min), scale = ceil16((max - offset) / L),
//                       code = clamp(round((x - offset) * inv), 0, L); y = offset + code * scale
//   intN+symmetric      scale = ceil16(M / Q), code = clamp(round(x * inv), -Q, Q), in two's
//                       complement; y = code * scale
//   intN+zero-point     min and max with 0: scale = ceil16((max - min) / L),
//                       zero = clamp(round(-min * inv), 0, L),
//                       code = clamp(round(x * inv) + zero, 0, L); y = (code - zero) * scale
//                       (Flash Communication, section 3.1, which has no 0 in the range)
//   fp8*, fp6*, fp4*    scale = ceil16(M / largest), code = cast(x * inv); y = value(code) * scale
//   mxfp*               groups of 32 with a scale 2^e, stored as e + 127, where
//                       e = clamp(floor(log2(M)) - floor(log2(largest)), -127, 127)
//                       (OCP Microscaling Formats 1.0, section 6.3)
//   nvfp4               groups of 16 of e2m1; the row has a factor F = M / (448 * 6), with the M
//                       of its groups without an infinity or a NaN, and the group the scale
//                       e4m3 = upward(M / 6 / F), at most 448; scale = value(e4m3) * F
//   bf16, f16           cast(x), without groups
//
// cast rounds to nearest even, keeps the sign of zeros, and saturates: a finite number never
// becomes an infinity. y is cast to the tensor's type alike. Where the scale is 0, inv is 0. A bf16
// scale below 2^-126 that is not 0 becomes 2^-126; F, and a scale of nvfp4, below 2^-126 become 0,
// and where either is 0, so is the e4m3. `floor(log2(M))` of a subnormal number is -127, as of 0.
//
// Bounds of y before its cast, with u = 2^-22: |y - x| <= scale * (1/2 + 2^-12) + u * (|x| +
// |offset|) for the three integer forms: round loses 1/2, the roundings of x - offset, inv and
// their product lose less than 2^-12 of a step as codes are below 2^8, and codes reach up to max
// since scale is rounded up. For floats of m mantissa bits whose smallest normal number is t: |y -
// x| <= |x| * 2^-(m+1) + scale * t * 2^-(m+1) + u * |x|, and for mxfp*, where M / scale may exceed
// `largest`, at most (1 - largest / 2^(floor(log2(largest)) + 1)) * |x| more. Where the scale is 0
// though elements differ from y, they are tiny: |y - x| < 2^-134, and < 2^-114 for nvfp4. These are
// kept exactly: with intN, a constant group of a number that the scale's type represents; with an
// offset of 0, codes * scale of a group whose codes reach both ends of their range (of +symmetric
// and floats, either end).
//
// +hadamardR            each R consecutive elements that lie whole in a group are replaced by
//                       H x / sqrt(R), H in Sylvester's order: for h = 1, 2, 4, .. R/2, (a, b) at
//                       distance h becomes (a + b, a - b); at last each is multiplied by
//                       f32(1 / sqrt(R)). Decoding does the same to y.
//                       The bounds hold for the rotated x and the y before it is rotated back.
// +spikes               two of the group's elements travel cast to the tensor's type with their
//                       positions, and their codes are 0. They are one of three pairs: smallest
//                       and largest, largest and next largest, smallest and next smallest. The
//                       pair without which the others have the smallest span is taken, the first
//                       such pair if several do. Equal elements count in the order of their
//                       positions; a group of one has its element twice. The span is what
//                       the scale is made from: max - min, with a zero point that with 0, and M of
//                       +symmetric and floats; min, max and M are those of the other elements (0
//                       without any). After +hadamardR, all are those of the rotated group.
//                       (Flash Communication V2 has the first pair only, from which outliers on
//                       one side leave one in the range.)
// +bf16-scale           scales and offsets are bf16; f16 otherwise.
//
// A group with an infinity or a NaN (after +hadamardR), or whose scale, offset or offset + E *
// scale is an infinity, where E is L, Q or `largest`, is *refused*: its scale is NaN (e8m0 255,
// e4m3 0x7f, f16 0x7e00, bf16 0x7fc0), offset, zero and codes are 0, spikes are NaN at position 0,
// and all of its elements become NaN: damage is seen. Casts keep infinities, and NaNs as the quiet
// NaN of positive sign.
//
// Payloads that no encoder writes decode to something, too: a group whose scale or offset is no
// finite number as a refused one; the codes of e4m3 and e5m2 that are no finite numbers as their
// formats say; signs of e4m3 scales do not count; of two spikes at one position the second counts.
// A spike at a position beyond the group's elements is an error. decode_sum adds the y of all parts
// in f32, in the order of the parts, before the cast.
//
// Payload. The rows of a tensor are cut into `parts` of ceil(rows / parts) rows; those that do not
// exist are bytes of 0, which decode to 0. A part is, little-endian:
//
//   0  u16 0x5142 ("BQ")   2  u8 version, 1   3  u8 DType of the tensor   4  u32 code()
//   8  u32 rows that exist  12  u32 columns   16  rows, each of rowBytes()
//   then bytes of 0 up to a multiple of 16
//
// and a row: F as f32 (nvfp4); for each group its scale (u16; mxfp*, nvfp4: u8), its offset (u16)
// or zero (u8) if it has one, and with spikes both elements in their order (DType of the tensor)
// and their positions (u8 each; u16 if group > 256); then the codes of each group, of ceil(elements
// * bits / 8) bytes: code i is bits [i * bits, (i + 1) * bits) of that little-endian number.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_ENCODING_H
#define BRAID_BASE_ENCODING_H

#include "braid/Base/DType.h"
#include "braid/Base/Status.h"

#include <cstdint>
#include <string>

namespace braid::runtime {

/// Which codes, and how groups are scaled.
struct Encoding {
  enum class Element : uint8_t { bf16, f16, integer, e4m3, e5m2, e3m2, e2m3, e2m1 };
  enum class Form : uint8_t { asymmetric, symmetric, zeroPoint }; ///< of integers
  enum class Scale : uint8_t { f16, bf16, e8m0, nvfp4 };

  Element element = Element::integer;
  int64_t bits = 8;    ///< of a code: 2 to 8 of integers, given by the element otherwise
  int64_t group = 128; ///< elements; 0 for casts, 32 for e8m0, 16 for nvfp4, else 32 to 8192
  Form form = Form::asymmetric;
  Scale scale = Scale::f16;
  int64_t rotation = 0; ///< elements of a Hadamard block, 16 to 256, or 0
  bool spikes = false;

  bool isCast() const { return element == Element::bf16 || element == Element::f16; }
  /// A group's bytes besides codes, spikes included, for a tensor of this type.
  int64_t groupHeaderBytes(DType type) const;

  /// What tests may expect: |y - x| / |x| (L2) of independent normal numbers, to about a fifth. Of
  /// integers the step is the expected range of a group, 2 sqrt(2 ln(group)) deviations, over the
  /// number of steps, and the error is uniform in it; of floats the unit of the last place.
  double expectedError() const;

  /// "int4:128+spikes", with the group where it is not given by the name. Options in the order
  /// symmetric or zero-point, bf16-scale, hadamardR, spikes.
  std::string str() const;
  /// Errors name what is wrong and what was expected; options may come in any order, and a group
  /// that is left out is 128.
  static Result<Encoding> parse(const std::string &text);
  /// 32 bits that determine the encoding; an error if they are none.
  uint32_t code() const;
  static Result<Encoding> fromCode(uint32_t code);

  friend bool operator==(const Encoding &a, const Encoding &b) { return a.code() == b.code(); }
  friend bool operator!=(const Encoding &a, const Encoding &b) { return !(a == b); }
};

/// An encoding for each half of a collective that reduces: what goes to the rank that adds, and the
/// sum that comes back. Other collectives have one half, and both are the same.
struct EncodingPair {
  Encoding reduce, gather;

  /// "int4:128+spikes/int8:128"; one name if both are the same. parse takes either.
  std::string str() const;
  static Result<EncodingPair> parse(const std::string &text);
};

/// Where things are in the payload of a tensor of `rows` x `columns`.
struct PayloadLayout {
  static constexpr int64_t kHeaderBytes = 16;
  static constexpr uint8_t kVersion = 1;

  Encoding encoding;
  DType type = DType::f32;
  int64_t rows = 0, columns = 0, parts = 1;
  // Derived.
  int64_t rowsPerPart = 0, groups = 0;
  int64_t groupHeaderBytes = 0, codesOffset = 0; ///< of codes, in a row
  int64_t rowBytes = 0, partBytes = 0, bytes = 0;

  /// Errors: a type other than f32, f16 and bf16; sizes below 1, or that do not fit a header or 64
  /// bits.
  static Result<PayloadLayout> of(const Encoding &encoding, DType type, int64_t rows,
                                  int64_t columns, int64_t parts);

  /// Byte offset of a row in the payload.
  int64_t rowOffset(int64_t row) const {
    return row / rowsPerPart * partBytes + kHeaderBytes + row % rowsPerPart * rowBytes;
  }
  /// The number of rows of a part that exist.
  int64_t rowsOf(int64_t part) const;
  /// Writes the 16 bytes before a part.
  void writeHeader(std::byte *header, int64_t part) const;
  /// Whether the bytes before a part are those of this layout, with `least` to rowsPerPart rows.
  /// The error says what differs.
  Status checkHeader(const std::byte *header, int64_t least) const;
};

} // namespace braid::runtime
#endif // BRAID_BASE_ENCODING_H
