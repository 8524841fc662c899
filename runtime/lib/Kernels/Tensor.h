//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_TENSOR_H
#define BRAID_KERNELS_TENSOR_H

#include "braid/Base/HostTensor.h"

#include <cstddef>

namespace braid::runtime {

/// A view with its address.
struct Tensor {
  std::byte *data = nullptr;
  DType dtype = DType::f32;
  std::vector<int64_t> shape, strides;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t numElements() const;
  bool contiguous() const;
  /// From the first byte to the end of the last one.
  int64_t spanBytes() const;
  /// The stride of all dimensions before the last, if there is one; the last dimension must be
  /// contiguous.
  Result<int64_t> rowStride() const;
  int64_t rows() const;
  template <typename T> T *as() const { return reinterpret_cast<T *>(data); }
};

} // namespace braid::runtime
#endif // BRAID_KERNELS_TENSOR_H
