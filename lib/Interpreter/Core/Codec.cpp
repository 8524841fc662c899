//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Codec.h"

#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

// Every operation is rounded.
#pragma STDC FP_CONTRACT OFF

namespace braid::interp {

namespace {

using runtime::DType;
using runtime::Encoding;
using runtime::Result;
using runtime::Status;
using Element = Encoding::Element;
using Form = Encoding::Form;
using Scale = Encoding::Scale;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A binary floating-point format with subnormal numbers.
struct Format {
  int bits, mantissa, bias;
  double largest;
  /// The exponent of the smallest normal number.
  int least() const { return 1 - bias; }
  /// Distance of the numbers around a finite x.
  double quantum(double x) const {
    int exponent = least();
    if (x != 0)
      exponent = std::max(exponent, std::ilogb(x));
    return std::ldexp(1.0, exponent - mantissa);
  }
  double value(int code) const {
    const int exponent = code >> mantissa & ((1 << (bits - 1 - mantissa)) - 1);
    const int fraction = code & ((1 << mantissa) - 1);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, least() - mantissa)
                      : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
    return code >> (bits - 1) != 0 ? -magnitude : magnitude;
  }
  /// The code of a number that is one of this format.
  int code(double x) const {
    const double magnitude = std::fabs(x);
    int result = 0;
    if (magnitude >= std::ldexp(1.0, least())) {
      const int exponent = std::ilogb(magnitude);
      result = (exponent + bias) << mantissa |
               (static_cast<int>(std::ldexp(magnitude, mantissa - exponent)) - (1 << mantissa));
    } else {
      result = static_cast<int>(std::ldexp(magnitude, mantissa - least()));
    }
    return std::signbit(x) ? result | 1 << (bits - 1) : result;
  }
  /// The nearest number, ties to even, at most the largest one.
  double nearest(double x) const {
    const double q = quantum(x);
    return std::copysign(std::min(std::fabs(std::nearbyint(x / q) * q), largest), x);
  }
};

constexpr Format kF16{16, 10, 15, 65504};
const Format kBf16{16, 7, 127, std::ldexp(255.0, 120)};
constexpr Format kE4M3{8, 3, 7, 448}, kE5M2{8, 2, 15, 57344}, kE3M2{6, 2, 3, 28},
    kE2M3{6, 3, 1, 7.5}, kE2M1{4, 1, 1, 6};
/// A sign of e4m3, and the code of its NaN.
constexpr int kE4M3Sign = 0x80, kE4M3NaN = 0x7f;

const Format &formatOf(Element element) {
  switch (element) {
  case Element::bf16:
    return kBf16;
  case Element::f16:
    return kF16;
  case Element::e4m3:
    return kE4M3;
  case Element::e5m2:
    return kE5M2;
  case Element::e3m2:
    return kE3M2;
  case Element::e2m3:
    return kE2M3;
  case Element::e2m1:
  case Element::integer:
    break;
  }
  return kE2M1;
}

/// The code of a cast, infinities and NaNs too.
int castCode(const Format &format, float x) {
  const int exponents = ((1 << (format.bits - 1 - format.mantissa)) - 1) << format.mantissa;
  if (std::isnan(x))
    return exponents | 1 << (format.mantissa - 1);
  if (std::isinf(x))
    return exponents | (x < 0 ? 1 << (format.bits - 1) : 0);
  return format.code(format.nearest(static_cast<double>(x)));
}
float castValue(const Format &format, int code) {
  const int exponents = ((1 << (format.bits - 1 - format.mantissa)) - 1) << format.mantissa;
  const int fraction = code & ((1 << format.mantissa) - 1);
  if ((code & exponents) != exponents)
    return static_cast<float>(format.value(code));
  if (fraction != 0)
    return kNaN;
  return code >> (format.bits - 1) != 0 ? -INFINITY : INFINITY;
}

/// The number of a code, which no encoder writes if it is not finite.
float elementValue(Element element, int code) {
  if (element == Element::e5m2)
    return castValue(kE5M2, code);
  if (element == Element::e4m3 && (code & ~kE4M3Sign) == kE4M3NaN)
    return kNaN;
  return static_cast<float>(formatOf(element).value(code));
}

void put(std::vector<uint8_t> &bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i)
    bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
}
uint64_t get(const std::vector<uint8_t> &bytes, size_t &at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= uint64_t(bytes[at++]) << 8 * i;
  return value;
}

uint32_t bitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
float floatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// An element in the bytes of a tensor's type.
int elementBytes(DType type) { return type == DType::f32 ? 4 : 2; }
uint64_t storedBits(DType type, float x) {
  if (type == DType::f32)
    return bitsOf(std::isnan(x) ? kNaN : x);
  return static_cast<uint64_t>(castCode(type == DType::f16 ? kF16 : kBf16, x));
}
float storedValue(DType type, uint64_t bits) {
  if (type == DType::f32)
    return floatOf(static_cast<uint32_t>(bits));
  return castValue(type == DType::f16 ? kF16 : kBf16, static_cast<int>(bits));
}

/// H x / sqrt(R) of each block of R.
void rotate(std::vector<float> &group, size_t size) {
  const float factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  for (size_t begin = 0; begin + size <= group.size(); begin += size) {
    for (size_t h = 1; h < size; h *= 2)
      for (size_t i = 0; i < size; ++i)
        if ((i & h) == 0) {
          const float a = group[begin + i], b = group[begin + i + h];
          group[begin + i] = a + b;
          group[begin + i + h] = a - b;
        }
    for (size_t i = 0; i < size; ++i)
      group[begin + i] *= factor;
  }
}

/// What stands before the codes of a group.
struct Header {
  bool refused = false;
  float scale = 0, offset = 0; ///< as they are stored
  int scaleCode = 0, offsetCode = 0;
  int zero = 0;
};

class RowCodec {
public:
  RowCodec(const Encoding &encoding, DType type) : e(encoding), type(type) {}

  std::vector<uint8_t> encode(const std::vector<float> &row) const;
  Result<std::vector<float>> decode(int64_t columns, const std::vector<uint8_t> &bytes) const;

private:
  size_t groupSize(int64_t columns) const {
    return static_cast<size_t>(e.isCast() ? columns : e.group);
  }
  int scaleBytes() const { return e.scale == Scale::f16 || e.scale == Scale::bf16 ? 2 : 1; }
  int positionBytes() const { return e.group > 256 ? 2 : 1; }
  const Format &wide() const { return e.scale == Scale::bf16 ? kBf16 : kF16; }
  double levels() const { return std::ldexp(1.0, static_cast<int>(e.bits)) - 1; }
  double largestSymmetric() const { return std::ldexp(1.0, static_cast<int>(e.bits) - 1) - 1; }

  /// Rounds up or down to the scale's type; refuses what is beyond.
  void store(double x, bool up, float &value, int &code, bool &refused) const {
    const Format &format = wide();
    if (!std::isfinite(x)) {
      refused = true;
      return;
    }
    const double q = format.quantum(x);
    double rounded = (up ? std::ceil(x / q) : std::floor(x / q)) * q;
    if (std::fabs(rounded) > format.largest) {
      refused = up || rounded < 0;
      rounded = format.largest;
    }
    if (up && e.scale == Scale::bf16 && rounded != 0)
      rounded = std::max(rounded, std::ldexp(1.0, -126));
    rounded = rounded == 0 ? 0 : rounded;
    value = static_cast<float>(rounded);
    code = format.code(rounded);
  }
  Header headerOf(const std::vector<float> &group, const std::vector<bool> &isSpike,
                  float rowFactor) const;
  std::array<size_t, 2> spikesOf(const std::vector<float> &group) const;
  int codeOf(float x, const Header &header, float inverse) const;
  float valueOf(int code, const Header &header) const;

  const Encoding &e;
  DType type;
};

Header RowCodec::headerOf(const std::vector<float> &group, const std::vector<bool> &isSpike,
                          float rowFactor) const {
  Header header;
  float smallest = 0, largest = 0, magnitude = 0;
  bool first = true;
  for (size_t i = 0; i < group.size(); ++i) {
    header.refused |= !std::isfinite(group[i]);
    if (isSpike[i])
      continue;
    smallest = first ? group[i] : std::min(smallest, group[i]);
    largest = first ? group[i] : std::max(largest, group[i]);
    magnitude = std::max(magnitude, std::fabs(group[i]));
    first = false;
  }
  if (header.refused)
    return header;
  if (e.scale == Scale::e8m0) {
    const int exponent =
        magnitude < std::numeric_limits<float>::min() ? -127 : std::ilogb(magnitude);
    const int chosen = std::clamp(exponent - std::ilogb(formatOf(e.element).largest), -127, 127);
    header.scaleCode = chosen + 127;
    header.scale = std::ldexp(1.0f, chosen);
    return header;
  }
  if (e.scale == Scale::nvfp4) {
    if (rowFactor == 0)
      return header;
    const float wanted = magnitude / 6.0f / rowFactor;
    const double q = kE4M3.quantum(static_cast<double>(wanted));
    const double up = std::min(std::ceil(static_cast<double>(wanted) / q) * q, kE4M3.largest);
    header.scale = static_cast<float>(up) * rowFactor;
    header.scaleCode = kE4M3.code(up);
    if (header.scale < std::numeric_limits<float>::min()) {
      header.scale = 0;
      header.scaleCode = 0;
    }
    return header;
  }
  float wanted = magnitude / static_cast<float>(formatOf(e.element).largest);
  if (e.element == Element::integer && e.form == Form::asymmetric) {
    store(static_cast<double>(smallest), false, header.offset, header.offsetCode, header.refused);
    if (header.refused)
      return header;
    const float range = largest - header.offset;
    wanted = range / static_cast<float>(levels());
  } else if (e.element == Element::integer && e.form == Form::symmetric) {
    wanted = magnitude / static_cast<float>(largestSymmetric());
  } else if (e.element == Element::integer) {
    smallest = std::min(smallest, 0.0f);
    largest = std::max(largest, 0.0f);
    const float range = largest - smallest;
    wanted = range / static_cast<float>(levels());
  }
  store(static_cast<double>(wanted), true, header.scale, header.scaleCode, header.refused);
  // What the largest code would decode to.
  const float steps = static_cast<float>(e.element != Element::integer ? formatOf(e.element).largest
                                         : e.form == Form::symmetric   ? largestSymmetric()
                                                                       : levels());
  const float reach = steps * header.scale;
  header.refused |= std::isinf(header.offset + reach);
  if (!header.refused && e.element == Element::integer && e.form == Form::zeroPoint &&
      header.scale != 0) {
    const float inverse = 1.0f / header.scale;
    header.zero = static_cast<int>(
        std::clamp(std::nearbyint(-smallest * inverse), 0.0f, static_cast<float>(levels())));
  }
  return header;
}

/// Of a group of finite numbers; other groups are refused, whichever these are.
std::array<size_t, 2> RowCodec::spikesOf(const std::vector<float> &group) const {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  // The first of the smallest or largest elements, but for one.
  auto extreme = [&](bool largest, size_t without) {
    size_t best = kNone;
    for (size_t i = 0; i < group.size(); ++i)
      if (i != without &&
          (best == kNone || (largest ? group[i] > group[best] : group[i] < group[best])))
        best = i;
    return best == kNone ? without : best;
  };
  auto spanWithout = [&](const std::array<size_t, 2> &pair) {
    float smallest = 0, largest = 0;
    bool first = true;
    for (size_t i = 0; i < group.size(); ++i) {
      if (i == pair[0] || i == pair[1])
        continue;
      smallest = first ? group[i] : std::min(smallest, group[i]);
      largest = first ? group[i] : std::max(largest, group[i]);
      first = false;
    }
    if (e.element != Element::integer || e.form == Form::symmetric)
      return std::max(std::fabs(smallest), std::fabs(largest));
    if (e.form == Form::zeroPoint) {
      smallest = std::min(smallest, 0.0f);
      largest = std::max(largest, 0.0f);
    }
    return largest - smallest;
  };
  const size_t low = extreme(false, kNone), high = extreme(true, kNone);
  std::array<size_t, 2> chosen = {low, extreme(true, low)};
  for (const std::array<size_t, 2> &pair : {std::array<size_t, 2>{high, extreme(true, high)},
                                            std::array<size_t, 2>{low, extreme(false, low)}})
    if (spanWithout(pair) < spanWithout(chosen))
      chosen = pair;
  return chosen;
}

int RowCodec::codeOf(float x, const Header &header, float inverse) const {
  if (e.element != Element::integer) {
    const float scaled = x * inverse;
    const Format &format = formatOf(e.element);
    return format.code(format.nearest(static_cast<double>(scaled)));
  }
  const auto top = static_cast<float>(levels()), side = static_cast<float>(largestSymmetric());
  switch (e.form) {
  case Form::asymmetric: {
    const float above = x - header.offset;
    return static_cast<int>(std::clamp(std::nearbyint(above * inverse), 0.0f, top));
  }
  case Form::symmetric:
    return static_cast<int>(std::clamp(std::nearbyint(x * inverse), -side, side)) &
           static_cast<int>(levels());
  case Form::zeroPoint:
    return static_cast<int>(
        std::clamp(std::nearbyint(x * inverse) + static_cast<float>(header.zero), 0.0f, top));
  }
  return 0;
}

float RowCodec::valueOf(int code, const Header &header) const {
  if (header.refused)
    return kNaN;
  if (e.element != Element::integer)
    return elementValue(e.element, code) * header.scale;
  switch (e.form) {
  case Form::asymmetric: {
    const float above = static_cast<float>(code) * header.scale;
    return header.offset + above;
  }
  case Form::symmetric: {
    const int half = 1 << (e.bits - 1);
    return static_cast<float>(code >= half ? code - 2 * half : code) * header.scale;
  }
  case Form::zeroPoint:
    return static_cast<float>(code - header.zero) * header.scale;
  }
  return 0;
}

std::vector<uint8_t> RowCodec::encode(const std::vector<float> &row) const {
  const size_t size = groupSize(static_cast<int64_t>(row.size()));
  std::vector<uint8_t> headers, codes;
  std::vector<std::vector<float>> groups;
  for (size_t begin = 0; begin < row.size(); begin += size)
    groups.emplace_back(row.begin() + static_cast<int64_t>(begin),
                        row.begin() + static_cast<int64_t>(std::min(begin + size, row.size())));
  float rowFactor = 0;
  for (std::vector<float> &group : groups) {
    if (e.rotation != 0)
      rotate(group, static_cast<size_t>(e.rotation));
    // Groups that are refused do not count.
    float magnitude = 0;
    bool finite = true;
    for (float x : group) {
      finite &= std::isfinite(x);
      magnitude = std::max(magnitude, std::fabs(x));
    }
    if (finite)
      rowFactor = std::max(rowFactor, magnitude);
  }
  rowFactor = rowFactor / (448.0f * 6.0f);
  if (rowFactor < std::numeric_limits<float>::min())
    rowFactor = 0;
  if (e.scale == Scale::nvfp4)
    put(headers, bitsOf(rowFactor), 4);
  for (const std::vector<float> &group : groups) {
    std::vector<bool> isSpike(group.size());
    std::array<size_t, 2> spikes = {};
    if (e.spikes) {
      spikes = spikesOf(group);
      for (size_t spike : spikes)
        isSpike[spike] = true;
    }
    const bool grouped = !e.isCast();
    const Header header = grouped ? headerOf(group, isSpike, rowFactor) : Header();
    if (grouped) {
      const int refusedScale = e.scale == Scale::e8m0    ? 255
                               : e.scale == Scale::nvfp4 ? 0x7f
                               : e.scale == Scale::bf16  ? 0x7fc0
                                                         : 0x7e00;
      put(headers, static_cast<uint64_t>(header.refused ? refusedScale : header.scaleCode),
          scaleBytes());
      if (e.element == Element::integer && e.form == Form::asymmetric)
        put(headers, static_cast<uint64_t>(header.refused ? 0 : header.offsetCode), 2);
      if (e.element == Element::integer && e.form == Form::zeroPoint)
        put(headers, static_cast<uint64_t>(header.refused ? 0 : header.zero), 1);
      if (e.spikes) {
        for (size_t spike : spikes)
          put(headers, storedBits(type, header.refused ? kNaN : group[spike]), elementBytes(type));
        for (size_t spike : spikes)
          put(headers, header.refused ? 0 : spike, positionBytes());
      }
    }
    const float inverse = header.scale == 0 ? 0 : 1.0f / header.scale;
    std::vector<uint8_t> packed((group.size() * static_cast<size_t>(e.bits) + 7) / 8);
    for (size_t i = 0; i < group.size(); ++i) {
      int code = 0;
      if (e.isCast())
        code = castCode(formatOf(e.element), group[i]);
      else if (!header.refused && !isSpike[i])
        code = codeOf(group[i], header, inverse);
      for (size_t b = 0; b < static_cast<size_t>(e.bits); ++b) {
        const size_t bit = i * static_cast<size_t>(e.bits) + b;
        packed[bit / 8] = static_cast<uint8_t>(packed[bit / 8] | (code >> b & 1) << bit % 8);
      }
    }
    codes.insert(codes.end(), packed.begin(), packed.end());
  }
  headers.insert(headers.end(), codes.begin(), codes.end());
  return headers;
}

Result<std::vector<float>> RowCodec::decode(int64_t columns,
                                            const std::vector<uint8_t> &bytes) const {
  const size_t size = groupSize(columns), n = static_cast<size_t>(columns);
  const size_t groups = (n + size - 1) / size;
  size_t at = 0;
  const float rowFactor =
      e.scale == Scale::nvfp4 ? floatOf(static_cast<uint32_t>(get(bytes, at, 4))) : 0;
  size_t codesAt = at + groups * static_cast<size_t>(e.groupHeaderBytes(type));
  std::vector<float> row;
  for (size_t g = 0; g < groups; ++g) {
    const size_t count = std::min(size, n - g * size);
    Header header;
    float spikes[2] = {};
    size_t positions[2] = {};
    if (!e.isCast()) {
      const auto scale = static_cast<int>(get(bytes, at, scaleBytes()));
      switch (e.scale) {
      case Scale::e8m0:
        header.scale = scale == 255 ? kNaN : std::ldexp(1.0f, scale - 127);
        break;
      case Scale::nvfp4:
        header.scale = elementValue(Element::e4m3, scale & ~kE4M3Sign) * rowFactor;
        if (std::fabs(header.scale) < std::numeric_limits<float>::min())
          header.scale = 0;
        break;
      case Scale::f16:
      case Scale::bf16:
        header.scale = castValue(wide(), scale);
        break;
      }
      header.refused = !std::isfinite(header.scale);
      if (e.element == Element::integer && e.form == Form::asymmetric)
        header.offset = castValue(wide(), static_cast<int>(get(bytes, at, 2)));
      header.refused |= !std::isfinite(header.offset);
      if (e.element == Element::integer && e.form == Form::zeroPoint)
        header.zero = static_cast<int>(get(bytes, at, 1));
      if (e.spikes) {
        for (float &spike : spikes)
          spike = storedValue(type, get(bytes, at, elementBytes(type)));
        for (size_t &position : positions) {
          position = get(bytes, at, positionBytes());
          if (position >= count)
            return Status::error("expects a spike position below ", count, ", got ", position);
        }
      }
    }
    std::vector<float> group;
    for (size_t i = 0; i < count; ++i) {
      int code = 0;
      for (size_t b = 0; b < static_cast<size_t>(e.bits); ++b) {
        const size_t bit = i * static_cast<size_t>(e.bits) + b;
        code |= (bytes[codesAt + bit / 8] >> bit % 8 & 1) << b;
      }
      group.push_back(e.isCast() ? castValue(formatOf(e.element), code) : valueOf(code, header));
    }
    codesAt += (count * static_cast<size_t>(e.bits) + 7) / 8;
    if (e.spikes && !header.refused) {
      group[positions[0]] = spikes[0];
      group[positions[1]] = spikes[1];
    }
    if (e.rotation != 0)
      rotate(group, static_cast<size_t>(e.rotation));
    row.insert(row.end(), group.begin(), group.end());
  }
  return row;
}

} // namespace

std::vector<uint8_t> encodeRow(const Encoding &encoding, DType type,
                               const std::vector<float> &row) {
  return RowCodec(encoding, type).encode(row);
}

Result<std::vector<float>> decodeRow(const Encoding &encoding, DType type, int64_t columns,
                                     const std::vector<uint8_t> &bytes) {
  return RowCodec(encoding, type).decode(columns, bytes);
}

float castTo(DType type, float value) { return storedValue(type, storedBits(type, value)); }

} // namespace braid::interp
