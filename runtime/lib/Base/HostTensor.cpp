//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/HostTensor.h"

#include "braid/Base/Float16.h"
#include "braid/Base/StridedCopy.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace braid::runtime {

HostTensor HostTensor::zeros(DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor{dtype, std::move(shape), {}};
  tensor.data.resize(static_cast<size_t>(tensor.numElements() * byteSize(dtype)));
  return tensor;
}

int64_t HostTensor::numElements() const {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

std::string shapeString(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

namespace {

/// Bytes from the first element of `tensor` to the first one of the box.
int64_t boxOffsetBytes(const HostTensor &tensor, const Box &box) {
  assert(box.offsets.size() == tensor.shape.size() && box.sizes.size() == tensor.shape.size() &&
         "a box has the rank of its tensor");
  std::vector<int64_t> strides = rowMajorStrides(tensor.shape);
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    assert(box.offsets[d] >= 0 && box.sizes[d] >= 0 &&
           box.offsets[d] <= tensor.shape[d] - box.sizes[d] && "a box lies inside of its tensor");
    offset += box.offsets[d] * strides[d];
  }
  return offset * byteSize(tensor.dtype);
}

bool isFloat(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

int64_t integer(const HostTensor &tensor, size_t i) {
  switch (tensor.dtype) {
  case DType::i64:
    return tensor.as<int64_t>()[i];
  case DType::i32:
    return tensor.as<int32_t>()[i];
  default:
    return tensor.as<int8_t>()[i];
  }
}

double element(const HostTensor &tensor, size_t i) {
  switch (tensor.dtype) {
  case DType::f64:
    return tensor.as<double>()[i];
  case DType::f32:
    return tensor.as<float>()[i];
  case DType::f16:
    return f16ToFloat(tensor.as<uint16_t>()[i]);
  case DType::bf16:
    return bf16ToFloat(tensor.as<uint16_t>()[i]);
  default:
    return static_cast<double>(integer(tensor, i));
  }
}

} // namespace

HostTensor extractBox(const HostTensor &tensor, const Box &box) {
  HostTensor part = HostTensor::zeros(tensor.dtype, box.sizes);
  int64_t offset = boxOffsetBytes(tensor, box);
  if (!part.data.empty())
    stridedCopy(part.data.data(), rowMajorStrides(box.sizes), tensor.data.data() + offset,
                rowMajorStrides(tensor.shape), box.sizes, byteSize(tensor.dtype));
  return part;
}

void insertBox(HostTensor &tensor, const Box &box, const HostTensor &part) {
  assert(part.dtype == tensor.dtype && part.shape == box.sizes && "the part fills the box");
  int64_t offset = boxOffsetBytes(tensor, box);
  if (!part.data.empty())
    stridedCopy(tensor.data.data() + offset, rowMajorStrides(tensor.shape), part.data.data(),
                rowMajorStrides(box.sizes), box.sizes, byteSize(tensor.dtype));
}

Result<Difference> compare(const HostTensor &got, const HostTensor &expected) {
  const bool floats = isFloat(got.dtype);
  if (floats != isFloat(expected.dtype))
    return Status::error("expects ", floats ? "floating-point" : "integer",
                         " values to compare with ", name(got.dtype), ", got ",
                         name(expected.dtype));
  if (got.shape != expected.shape)
    return Status::error("expects a tensor of shape ", shapeString(expected.shape), ", got ",
                         shapeString(got.shape));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double squaredDifference = 0, squaredNorm = 0, maxAbs = 0;
  for (size_t i = 0, n = static_cast<size_t>(got.numElements()); i < n; ++i) {
    double a = element(got, i), b = element(expected, i);
    if (std::isinf(a) && a == b)
      continue; // equal; it would make the norm infinite
    double difference = std::abs(a - b);
    // Large integers that differ may be the same number as f64.
    if (!floats && difference == 0 && integer(got, i) != integer(expected, i))
      difference = 1;
    if (!std::isfinite(difference))
      return Difference{kInfinity, kInfinity};
    squaredDifference += difference * difference;
    squaredNorm += b * b;
    maxAbs = std::max(maxAbs, difference);
  }
  if (squaredDifference == 0)
    return Difference{0, maxAbs};
  // Squares of huge f64 values overflow; a NaN quotient must not pass a check.
  double relative = std::sqrt(squaredDifference / squaredNorm);
  return Difference{std::isfinite(squaredNorm) && std::isfinite(relative) ? relative : kInfinity,
                    maxAbs};
}

} // namespace braid::runtime
