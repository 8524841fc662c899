//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Tensor.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace braid::interp {

bool isFloat(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

namespace {
/// Rounds to `bits` explicit mantissa bits with exponents in [minExponent, maxExponent].
double roundToFormat(double value, int bits, int minExponent, int maxExponent) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = std::max(std::ilogb(value), minExponent);
  // One rounding from f64 to the format; a step through f32 would round twice.
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, bits - exponent)), exponent - bits);
  if (std::ilogb(rounded) > maxExponent)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

double decodeHalf(uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f;
  double mantissa = bits & 0x3ff;
  double magnitude;
  if (exponent == 0x1f)
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, -24);
  else
    magnitude = std::ldexp(mantissa + 1024, exponent - 25);
  return (bits & 0x8000) ? -magnitude : magnitude;
}

/// `value` must be representable.
uint16_t encodeHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return sign | 0x7e00;
  if (std::isinf(value))
    return sign | 0x7c00;
  double magnitude = std::fabs(value);
  if (magnitude < std::ldexp(1.0, -14))
    return sign | static_cast<uint16_t>(std::ldexp(magnitude, 24));
  int exponent = std::ilogb(magnitude);
  auto mantissa = static_cast<uint16_t>(std::ldexp(magnitude, 10 - exponent) - 1024);
  return sign | static_cast<uint16_t>((exponent + 15) << 10) | mantissa;
}

double decodeBFloat(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t encodeBFloat(double value) {
  float narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  // Truncating a NaN's mantissa could give an infinity.
  return static_cast<uint16_t>(std::isnan(value) ? (bits >> 16) | 0x40 : bits >> 16);
}

template <typename T, typename To, typename Fn>
std::vector<To> decodeAll(const runtime::HostTensor &host, int64_t count, Fn decode) {
  std::vector<To> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    T raw;
    std::memcpy(&raw, host.data.data() + i * sizeof(T), sizeof(T));
    values[i] = decode(raw);
  }
  return values;
}

template <typename T, typename From, typename Fn>
void encodeAll(runtime::HostTensor &host, const From *values, int64_t count, Fn encode) {
  host.data.resize(static_cast<size_t>(count) * sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    T raw = encode(values[i]);
    std::memcpy(host.data.data() + static_cast<size_t>(i) * sizeof(T), &raw, sizeof(T));
  }
}
} // namespace

double roundTo(DType type, double value) {
  switch (type) {
  case DType::f32:
    return roundToFormat(value, 23, -126, 127);
  case DType::f16:
    return roundToFormat(value, 10, -14, 15);
  case DType::bf16:
    return roundToFormat(value, 7, -126, 127);
  default:
    return value;
  }
}

int64_t numElements(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Tensor Tensor::ofFloats(DType type, Shape shape, std::vector<double> values) {
  assert(interp::isFloat(type) &&
         static_cast<int64_t>(values.size()) == interp::numElements(shape));
  Tensor result;
  result.type = type;
  result.dims = std::move(shape);
  result.floatData = std::make_shared<const std::vector<double>>(std::move(values));
  return result;
}

Tensor Tensor::ofInts(DType type, Shape shape, std::vector<int64_t> values) {
  assert(!interp::isFloat(type) &&
         static_cast<int64_t>(values.size()) == interp::numElements(shape));
  Tensor result;
  result.type = type;
  result.dims = std::move(shape);
  result.intData = std::make_shared<const std::vector<int64_t>>(std::move(values));
  return result;
}

Tensor Tensor::zeros(DType type, Shape shape) {
  auto count = static_cast<size_t>(interp::numElements(shape));
  if (interp::isFloat(type))
    return ofFloats(type, std::move(shape), std::vector<double>(count));
  return ofInts(type, std::move(shape), std::vector<int64_t>(count));
}

Tensor Tensor::fromHost(const runtime::HostTensor &host) {
  int64_t count = interp::numElements(host.shape);
  auto asDouble = [](auto raw) { return static_cast<double>(raw); };
  auto asInt = [](auto raw) { return static_cast<int64_t>(raw); };
  switch (host.dtype) {
  case DType::f32:
    return ofFloats(host.dtype, host.shape, decodeAll<float, double>(host, count, asDouble));
  case DType::f64:
    return ofFloats(host.dtype, host.shape, decodeAll<double, double>(host, count, asDouble));
  case DType::f16:
    return ofFloats(host.dtype, host.shape, decodeAll<uint16_t, double>(host, count, decodeHalf));
  case DType::bf16:
    return ofFloats(host.dtype, host.shape, decodeAll<uint16_t, double>(host, count, decodeBFloat));
  case DType::i32:
    return ofInts(host.dtype, host.shape, decodeAll<int32_t, int64_t>(host, count, asInt));
  case DType::i64:
    return ofInts(host.dtype, host.shape, decodeAll<int64_t, int64_t>(host, count, asInt));
  case DType::i8:
    return ofInts(host.dtype, host.shape, decodeAll<int8_t, int64_t>(host, count, asInt));
  }
  return {};
}

runtime::HostTensor Tensor::toHost() const {
  runtime::HostTensor host;
  host.dtype = type;
  host.shape = dims;
  int64_t count = numElements();
  switch (type) {
  case DType::f32:
    encodeAll<float>(host, floats(), count, [](double v) { return static_cast<float>(v); });
    break;
  case DType::f64:
    encodeAll<double>(host, floats(), count, [](double v) { return v; });
    break;
  case DType::f16:
    encodeAll<uint16_t>(host, floats(), count,
                        [](double v) { return encodeHalf(roundTo(DType::f16, v)); });
    break;
  case DType::bf16:
    encodeAll<uint16_t>(host, floats(), count,
                        [](double v) { return encodeBFloat(roundTo(DType::bf16, v)); });
    break;
  case DType::i32:
    encodeAll<int32_t>(host, ints(), count, [](int64_t v) { return static_cast<int32_t>(v); });
    break;
  case DType::i64:
    encodeAll<int64_t>(host, ints(), count, [](int64_t v) { return v; });
    break;
  case DType::i8:
    encodeAll<int8_t>(host, ints(), count, [](int64_t v) { return static_cast<int8_t>(v); });
    break;
  }
  return host;
}

Tensor Tensor::reshaped(Shape shape) const {
  assert(interp::numElements(shape) == numElements());
  Tensor result = *this;
  result.dims = std::move(shape);
  return result;
}

Tensor Tensor::roundedToStorage() const {
  if (!isFloat() || type == DType::f64)
    return *this;
  std::vector<double> values(*floatData);
  for (double &value : values)
    value = roundTo(type, value);
  return ofFloats(type, dims, std::move(values));
}

std::string Tensor::typeString() const { return runtime::name(type) + runtime::shapeString(dims); }

Shape unflatten(int64_t linear, const Shape &shape) {
  Shape result(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    result[i] = linear % shape[i];
    linear /= shape[i];
  }
  return result;
}

namespace {
/// Calls fn(offset in a tensor of shape `full`, offset in the box, length) for every run of
/// contiguous elements of a box.
template <typename Fn> void forEachRun(const Shape &full, const runtime::Box &box, Fn fn) {
  int64_t count = numElements(box.sizes);
  if (count == 0)
    return;
  int64_t length = full.empty() ? 1 : box.sizes.back();
  for (int64_t part = 0; part < count; part += length) {
    Shape index = unflatten(part, box.sizes);
    int64_t offset = 0;
    for (size_t d = 0; d < full.size(); ++d)
      offset = offset * full[d] + box.offsets[d] + index[d];
    fn(offset, part, length);
  }
}
} // namespace

Tensor extractBox(const Tensor &tensor, const runtime::Box &box) {
  auto copy = [&](auto source, auto values) {
    forEachRun(tensor.shape(), box, [&](int64_t from, int64_t to, int64_t length) {
      std::copy(source + from, source + from + length, values.begin() + to);
    });
    return values;
  };
  auto count = static_cast<size_t>(numElements(box.sizes));
  if (tensor.isFloat())
    return Tensor::ofFloats(tensor.dtype(), box.sizes,
                            copy(tensor.floats(), std::vector<double>(count)));
  return Tensor::ofInts(tensor.dtype(), box.sizes,
                        copy(tensor.ints(), std::vector<int64_t>(count)));
}

Tensor assemble(DType type, Shape shape, const std::vector<PlacedTensor> &parts) {
  auto count = static_cast<size_t>(numElements(shape));
  auto fill = [&](auto values, auto elements) {
    for (const PlacedTensor &placed : parts)
      forEachRun(shape, placed.box, [&](int64_t to, int64_t from, int64_t length) {
        auto source = elements(placed.part) + from;
        std::copy(source, source + length, values.begin() + to);
      });
    return values;
  };
  if (isFloat(type)) {
    std::vector<double> values =
        fill(std::vector<double>(count), [](const Tensor &t) { return t.floats(); });
    return Tensor::ofFloats(type, std::move(shape), std::move(values));
  }
  std::vector<int64_t> values =
      fill(std::vector<int64_t>(count), [](const Tensor &t) { return t.ints(); });
  return Tensor::ofInts(type, std::move(shape), std::move(values));
}

int64_t firstDifference(const Tensor &a, const Tensor &b) {
  int64_t count = a.numElements();
  for (int64_t i = 0; i < count; ++i) {
    if (a.isFloat()) {
      double x = a.floats()[i], y = b.floats()[i];
      if (!(x == y) && !(std::isnan(x) && std::isnan(y)))
        return i;
    } else if (a.ints()[i] != b.ints()[i]) {
      return i;
    }
  }
  return -1;
}

double relativeL2(const Tensor &a, const Tensor &b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double distance = 0, norm = 0;
  int64_t count = a.numElements();
  for (int64_t i = 0; i < count; ++i) {
    double x = a.isFloat() ? a.floats()[i] : static_cast<double>(a.ints()[i]);
    double y = b.isFloat() ? b.floats()[i] : static_cast<double>(b.ints()[i]);
    if (std::isinf(x) && x == y)
      continue;
    if (!std::isfinite(x) || !std::isfinite(y))
      return infinity;
    distance += (x - y) * (x - y);
    norm += y * y;
  }
  return norm == 0 ? std::sqrt(distance) : std::sqrt(distance / norm);
}

} // namespace braid::interp
