//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/StridedCopy.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

namespace {

struct Dim {
  int64_t size, destStride, sourceStride; // strides in bytes
};

/// Copies both dimensions in tiles, so that cache lines of the strided side are reused.
template <int64_t bytes>
void copyPlane(char *dest, const char *source, const Dim &outer, const Dim &inner) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < outer.size; i0 += kTile)
    for (int64_t j0 = 0; j0 < inner.size; j0 += kTile)
      for (int64_t i = i0; i < std::min(i0 + kTile, outer.size); ++i)
        for (int64_t j = j0; j < std::min(j0 + kTile, inner.size); ++j)
          std::memcpy(dest + i * outer.destStride + j * inner.destStride,
                      source + i * outer.sourceStride + j * inner.sourceStride, bytes);
}

void copyPlane(char *dest, const char *source, const Dim &outer, const Dim &inner, int64_t bytes) {
  if (inner.destStride == bytes && inner.sourceStride == bytes) {
    for (int64_t i = 0; i < outer.size; ++i)
      std::memcpy(dest + i * outer.destStride, source + i * outer.sourceStride,
                  static_cast<size_t>(inner.size * bytes));
    return;
  }
  switch (bytes) {
  case 1:
    return copyPlane<1>(dest, source, outer, inner);
  case 2:
    return copyPlane<2>(dest, source, outer, inner);
  case 4:
    return copyPlane<4>(dest, source, outer, inner);
  default:
    return copyPlane<8>(dest, source, outer, inner);
  }
}

void copyDims(char *dest, const char *source, const std::vector<Dim> &dims, size_t from,
              int64_t bytes) {
  if (from + 2 == dims.size())
    return copyPlane(dest, source, dims[from], dims[from + 1], bytes);
  for (int64_t i = 0; i < dims[from].size; ++i)
    copyDims(dest + i * dims[from].destStride, source + i * dims[from].sourceStride, dims, from + 1,
             bytes);
}

} // namespace

std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

void forEachRow(const std::vector<int64_t> &sizes, const std::vector<int64_t> &aStrides,
                const std::vector<int64_t> &bStrides,
                const std::function<void(int64_t, int64_t)> &body) {
  for (int64_t size : sizes)
    if (size == 0)
      return;
  size_t outer = sizes.empty() ? 0 : sizes.size() - 1;
  std::vector<int64_t> index(outer, 0);
  int64_t a = 0, b = 0;
  while (true) {
    body(a, b);
    size_t d = outer;
    for (; d-- > 0;) {
      a += aStrides[d];
      b += bStrides[d];
      if (++index[d] < sizes[d])
        break;
      a -= aStrides[d] * sizes[d];
      b -= bStrides[d] * sizes[d];
      index[d] = 0;
    }
    if (d == SIZE_MAX)
      return;
  }
}

void stridedCopy(void *dest, const std::vector<int64_t> &destStrides, const void *source,
                 const std::vector<int64_t> &sourceStrides, const std::vector<int64_t> &sizes,
                 int64_t elementBytes) {
  std::vector<Dim> dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0)
      return;
    Dim dim{sizes[d], destStrides[d] * elementBytes, sourceStrides[d] * elementBytes};
    if (dim.size == 1)
      continue;
    // Merges two dimensions that are contiguous to each other on both sides.
    if (!dims.empty() && dims.back().destStride == dim.destStride * dim.size &&
        dims.back().sourceStride == dim.sourceStride * dim.size)
      dims.back() = {dims.back().size * dim.size, dim.destStride, dim.sourceStride};
    else
      dims.push_back(dim);
  }
  while (dims.size() < 2)
    dims.insert(dims.begin(), Dim{1, 0, 0});
  if (dims[dims.size() - 1].size == 1)
    dims.back().destStride = dims.back().sourceStride = elementBytes;
  // The order of the loops does not matter to the result. The second innermost is the dimension in
  // which the source is densest.
  size_t dense = dims.size() - 2;
  for (size_t d = 0; d + 2 < dims.size(); ++d)
    if (dims[d].sourceStride < dims[dense].sourceStride)
      dense = d;
  std::swap(dims[dense], dims[dims.size() - 2]);
  copyDims(static_cast<char *>(dest), static_cast<const char *>(source), dims, 0, elementBytes);
}

/// Converts contiguous elements, without branches so that the compiler vectorizes it.
template <typename Bits>
static void widenRow(char *to, const char *from, int64_t count, Bits bits) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, from + i * 2, sizeof half);
    const uint32_t wide = bits(half);
    std::memcpy(to + i * 4, &wide, sizeof wide);
  }
}

static uint32_t bf16Bits(uint16_t half) { return uint32_t(half) << 16; }

static uint32_t f16Bits(uint16_t half) {
  // Exponent and mantissa at the places of f32 give a number 2^112 times too small, subnormal or
  // not.
  const uint32_t placed = (half & 0x7fffu) << 13;
  float scaled;
  std::memcpy(&scaled, &placed, sizeof scaled);
  scaled *= 0x1p112F;
  uint32_t bits;
  std::memcpy(&bits, &scaled, sizeof bits);
  const uint32_t special = 0u - static_cast<uint32_t>((half & 0x7c00u) == 0x7c00u); // inf and nan
  bits = (bits & ~special) | ((placed | 0x7f800000u) & special);
  return bits | (half & 0x8000u) << 16;
}

void stridedWiden(void *dest, const std::vector<int64_t> &destStrides, const void *source,
                  const std::vector<int64_t> &sourceStrides, const std::vector<int64_t> &sizes,
                  bool isBf16) {
  int64_t count = sizes.empty() ? 1 : sizes.back();
  int64_t to = sizes.empty() ? 1 : destStrides[sizes.size() - 1];
  int64_t from = sizes.empty() ? 1 : sourceStrides.back();
  forEachRow(sizes, destStrides, sourceStrides, [&](int64_t toRow, int64_t fromRow) {
    char *row = static_cast<char *>(dest) + toRow * 4;
    const char *sourceRow = static_cast<const char *>(source) + fromRow * 2;
    const bool dense = to == 1 && from == 1;
    for (int64_t i = 0; i < (dense ? 1 : count); ++i) {
      char *first = row + i * to * 4;
      const char *sourceFirst = sourceRow + i * from * 2;
      if (isBf16)
        widenRow(first, sourceFirst, dense ? count : 1, bf16Bits);
      else
        widenRow(first, sourceFirst, dense ? count : 1, f16Bits);
    }
  });
}

} // namespace braid::runtime
