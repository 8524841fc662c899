//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A dense row-major tensor in host memory.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_HOSTTENSOR_H
#define BRAID_BASE_HOSTTENSOR_H

#include "braid/Base/DType.h"
#include "braid/Base/Mesh.h"

#include <cstddef>
#include <string>
#include <vector>

namespace braid::runtime {

struct HostTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data; ///< numElements() * byteSize(dtype), row-major

  static HostTensor zeros(DType dtype, std::vector<int64_t> shape);
  int64_t numElements() const;
  template <typename T> T *as() { return reinterpret_cast<T *>(data.data()); }
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(data.data()); }
};

/// "[2, 3]"
std::string shapeString(const std::vector<int64_t> &shape);

/// Copy a box (Mesh.h) out of, or into, a larger tensor of the same type. The caller ensures that
/// the box lies inside the tensor and that the part has its shape (asserted).
HostTensor extractBox(const HostTensor &tensor, const Box &box);
void insertBox(HostTensor &tensor, const Box &box, const HostTensor &part);

/// Relative L2 distance |a - b| / |b| over tensors of equal shape (f64 accumulation), and the
/// largest absolute difference. NaN anywhere, or unequal infinities, give infinity; integers give 0
/// only if they are equal. Errors: integers beside floats, unequal shapes.
struct Difference {
  double relativeL2 = 0, maxAbs = 0;
};
Result<Difference> compare(const HostTensor &got, const HostTensor &expected);

} // namespace braid::runtime
#endif // BRAID_BASE_HOSTTENSOR_H
