//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The geometry of slice lists (Parameter.h): checks, and the intersection of a slice and a box.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_SLICES_H
#define BRAID_BASE_SLICES_H

#include "braid/Base/Parameter.h"

#include <optional>

namespace braid::runtime {

/// Checks that sizes are positive and that the bytes fit 64 bits. Callers add the tensor's name to
/// the message.
Status verifyShape(const std::vector<int64_t> &shape, DType dtype);

/// The parameter that the slices of a quantized one describe: its matrix in f32, with as many
/// columns as the slices reach. Any other parameter is its own.
Parameter sourceOf(const Parameter &parameter);

/// Checks ranks and permutations, that slices lie inside their tensor and the parameter, and that
/// no two overlap, and the type of a quantized parameter. The message names the slice; callers add
/// the parameter.
Status verifySlices(const Parameter &parameter);

/// The checks of every WeightSource before it reads: the parameter as above, and that the box lies
/// inside it.
Status verifyRead(const Parameter &parameter, const Box &box);

/// The elements of a slice within a box of its parameter.
struct SlicePart {
  std::vector<int64_t> sizes;
  int64_t sourceOffset = 0;           ///< in the checkpoint tensor, in elements
  std::vector<int64_t> sourceStrides; ///< by dimension of the parameter, in elements
  int64_t destOffset = 0;             ///< in the row-major box, in elements
};
/// The intersection of a slice that has passed verifySlices and a box; nothing if it is empty.
std::optional<SlicePart> intersect(const Slice &slice, const Box &box);

} // namespace braid::runtime
#endif // BRAID_BASE_SLICES_H
