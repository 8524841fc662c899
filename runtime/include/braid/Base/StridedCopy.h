//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_STRIDEDCOPY_H
#define BRAID_BASE_STRIDEDCOPY_H

#include <cstdint>
#include <functional>
#include <vector>

namespace braid::runtime {

/// Row-major strides, in elements.
std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &shape);

/// Calls `body(a, b)` for the first element of each innermost row of a box; a and b are element
/// offsets by the strides. The row itself has sizes.back() elements (one, for rank 0). Nothing is
/// called for an empty box.
void forEachRow(const std::vector<int64_t> &sizes, const std::vector<int64_t> &aStrides,
                const std::vector<int64_t> &bStrides,
                const std::function<void(int64_t, int64_t)> &body);

/// Copies a box of elements of `elementBytes` (1, 2, 4 or 8) between two strided layouts, aligned
/// or not. Runs that are contiguous on both sides are copied at once, transpositions in tiles.
void stridedCopy(void *dest, const std::vector<int64_t> &destStrides, const void *source,
                 const std::vector<int64_t> &sourceStrides, const std::vector<int64_t> &sizes,
                 int64_t elementBytes);

/// The same from bf16 or f16 to f32, without loss; the source need not be aligned.
void stridedWiden(void *dest, const std::vector<int64_t> &destStrides, const void *source,
                  const std::vector<int64_t> &sourceStrides, const std::vector<int64_t> &sizes,
                  bool isBf16);

} // namespace braid::runtime
#endif // BRAID_BASE_STRIDEDCOPY_H
