//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The geometry of slice lists (Parameter.h): checks, and what of a slice falls into a box.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_SLICES_H
#define BRAID_BASE_SLICES_H

#include "braid/Base/Parameter.h"

#include <optional>

namespace braid::runtime {

/// Sizes positive and their product in bytes within 64 bits. The message does not name the tensor;
/// callers do.
Status verifyShape(const std::vector<int64_t> &shape, DType dtype);

/// Every vector of the parameter's rank, permutations that are ones, slices inside of their tensor
/// and of the parameter, no two of them on the same element. The message names the slice, not the
/// parameter.
Status verifySlices(const Parameter &parameter);

/// What every WeightSource checks before it reads: the parameter as above, and a box inside of it.
Status verifyRead(const Parameter &parameter, const Box &box);

/// Where the elements are that a slice puts into a box of its parameter.
struct SlicePart {
  std::vector<int64_t> sizes;
  int64_t sourceOffset = 0;           ///< in the checkpoint tensor, in elements
  std::vector<int64_t> sourceStrides; ///< by dimension of the parameter, in elements
  int64_t destOffset = 0;             ///< in the row-major box, in elements
};
/// Nothing when slice and box have no element in common. The slice has passed verifySlices.
std::optional<SlicePart> intersect(const Slice &slice, const Box &box);

} // namespace braid::runtime
#endif // BRAID_BASE_SLICES_H
