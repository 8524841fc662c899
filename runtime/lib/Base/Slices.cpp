//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Slices.h"

#include "braid/Base/HostTensor.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Base/Support.h"

#include <algorithm>

namespace braid::runtime {

Status verifyShape(const std::vector<int64_t> &shape, DType dtype) {
  for (int64_t size : shape)
    if (size < 1)
      return Status::error("expects sizes of at least 1, got shape ", shapeString(shape));
  std::optional<int64_t> count = checkedNumElements(shape);
  if (!count || !checkedMul(*count, byteSize(dtype)))
    return Status::error("shape ", shapeString(shape), " is too large");
  return {};
}

namespace {

Status verifySlice(const Slice &slice, const std::vector<int64_t> &globalShape) {
  size_t rank = globalShape.size();
  if (slice.tensor.empty())
    return Status::error("expects the name of a tensor");
  const std::pair<const char *, const std::vector<int64_t> *> vectors[] = {
      {"tensor shape", &slice.tensorShape},
      {"source offsets", &slice.sourceOffsets},
      {"dest offsets", &slice.destOffsets},
      {"sizes", &slice.sizes}};
  for (const auto &[what, values] : vectors)
    if (values->size() != rank)
      return Status::error("expects ", what, " of rank ", rank, ", got ", shapeString(*values));
  RETURN_IF_ERROR(verifyShape(slice.tensorShape, DType::f64));
  if (!slice.permutation.empty()) {
    std::vector<bool> seen(rank, false);
    bool valid = slice.permutation.size() == rank;
    for (size_t d = 0; d < rank && valid; ++d) {
      int64_t dim = slice.permutation[d];
      valid = dim >= 0 && dim < static_cast<int64_t>(rank) && !seen[static_cast<size_t>(dim)];
      if (valid)
        seen[static_cast<size_t>(dim)] = true;
    }
    if (!valid)
      return Status::error("expects a permutation of ", rank, " dimensions, got ",
                           shapeString(slice.permutation));
  }
  for (size_t d = 0; d < rank; ++d) {
    size_t dim = slice.permutation.empty() ? d : static_cast<size_t>(slice.permutation[d]);
    int64_t size = slice.sizes[d], available = slice.tensorShape[dim];
    if (size < 1 || size > available || slice.sourceOffsets[d] < 0 ||
        slice.sourceOffsets[d] > available - size)
      return Status::error("takes ", size, " from offset ", slice.sourceOffsets[d],
                           " in dimension ", d, ", which has size ", available, " in the tensor");
    if (size > globalShape[d] || slice.destOffsets[d] < 0 ||
        slice.destOffsets[d] > globalShape[d] - size)
      return Status::error("puts ", size, " at offset ", slice.destOffsets[d], " in dimension ", d,
                           ", which has size ", globalShape[d], " in the parameter");
  }
  return {};
}

bool overlap(const Slice &a, const Slice &b) {
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.destOffsets[d] + a.sizes[d] <= b.destOffsets[d] ||
        b.destOffsets[d] + b.sizes[d] <= a.destOffsets[d])
      return false;
  return true;
}

} // namespace

Parameter sourceOf(const Parameter &parameter) {
  if (!parameter.quantized)
    return parameter;
  Parameter source = parameter;
  source.quantized.reset();
  source.dtype = DType::f32;
  if (parameter.quantized == QuantizedPart::scales) {
    int64_t columns = 1;
    for (const Slice &slice : parameter.slices)
      if (!slice.sizes.empty() && !slice.destOffsets.empty())
        columns = std::max(
            columns, checkedAdd(slice.sizes.back(), slice.destOffsets.back()).value_or(INT64_MAX));
    source.globalShape.push_back(columns);
  }
  return source;
}

static Status verifyQuantized(const Parameter &parameter) {
  const bool isValues = parameter.quantized == QuantizedPart::values;
  const DType type = isValues ? DType::i8 : DType::f32;
  const size_t rank = isValues ? 2 : 1;
  if (parameter.dtype != type || parameter.globalShape.size() != rank)
    return Status::error("expects quantized ", isValues ? "values" : "scales", " of ", name(type),
                         " with ", rank, " dimension", rank == 1 ? "" : "s", ", got ",
                         name(parameter.dtype), " ", shapeString(parameter.globalShape));
  const Parameter source = sourceOf(parameter);
  RETURN_IF_ERROR(verifyShape(source.globalShape, source.dtype));
  return verifySlices(source);
}

Status verifySlices(const Parameter &parameter) {
  if (parameter.quantized)
    return verifyQuantized(parameter);
  // Bounds the comparison of all pairs; no fusion of weights makes nearly as many slices.
  constexpr size_t kMaxSlices = 4096;
  const std::vector<Slice> &slices = parameter.slices;
  if (slices.empty() || slices.size() > kMaxSlices)
    return Status::error("expects 1 to ", kMaxSlices, " slices, got ", slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    std::string which = "slice " + std::to_string(i) + " of tensor " + inQuotes(slices[i].tensor);
    if (Status status = verifySlice(slices[i], parameter.globalShape); !status.ok())
      return Status::error(which, " ", status.message());
    for (size_t j = 0; j < i; ++j)
      if (overlap(slices[i], slices[j]))
        return Status::error(which, " overlaps slice ", j);
  }
  return {};
}

Status verifyRead(const Parameter &parameter, const Box &box) {
  Status status = verifyShape(parameter.globalShape, parameter.dtype);
  if (status.ok())
    status = verifySlices(parameter);
  RETURN_IF_ERROR(status.within("parameter " + inQuotes(parameter.name)));
  size_t rank = parameter.globalShape.size();
  bool inside = box.offsets.size() == rank && box.sizes.size() == rank;
  for (size_t d = 0; d < rank && inside; ++d)
    inside = box.sizes[d] >= 0 && box.sizes[d] <= parameter.globalShape[d] && box.offsets[d] >= 0 &&
             box.offsets[d] <= parameter.globalShape[d] - box.sizes[d];
  if (!inside)
    return Status::error("parameter ", inQuotes(parameter.name), ": expects a box inside of ",
                         shapeString(parameter.globalShape), ", got sizes ", shapeString(box.sizes),
                         " at ", shapeString(box.offsets));
  return {};
}

std::optional<SlicePart> intersect(const Slice &slice, const Box &box) {
  SlicePart part;
  std::vector<int64_t> tensorStrides = rowMajorStrides(slice.tensorShape);
  std::vector<int64_t> boxStrides = rowMajorStrides(box.sizes);
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    int64_t begin = std::max(slice.destOffsets[d], box.offsets[d]);
    int64_t end = std::min(slice.destOffsets[d] + slice.sizes[d], box.offsets[d] + box.sizes[d]);
    if (begin >= end)
      return std::nullopt;
    int64_t stride =
        tensorStrides[slice.permutation.empty() ? d : static_cast<size_t>(slice.permutation[d])];
    part.sizes.push_back(end - begin);
    part.sourceStrides.push_back(stride);
    part.sourceOffset += (slice.sourceOffsets[d] + begin - slice.destOffsets[d]) * stride;
    part.destOffset += (begin - box.offsets[d]) * boxStrides[d];
  }
  return part;
}

} // namespace braid::runtime
