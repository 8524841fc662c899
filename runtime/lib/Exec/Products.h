//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matrix products by oneDNN. The only file that knows the library.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_PRODUCTS_H
#define BRAID_EXEC_PRODUCTS_H

#include "braid/Runtime/Status.h"

#include <cstdint>
#include <memory>

namespace braid::runtime {

/// out[m, n] = sum_k lhs[m, k] * rhs[n, k] (+ bias[n]), f32. Strides in elements between rows;
/// columns are contiguous.
struct ProductShape {
  int64_t m, n, k;
  int64_t lhsStride, rhsStride, outStride;
  bool bias;
};

/// One shape, ready to run. May be run by several threads at once, on the calling thread alone.
class Product {
public:
  virtual ~Product() = default;
  virtual void run(const float *lhs, const float *rhs, const float *bias, float *out) const = 0;
};

/// Products by shape.
class ProductCache {
public:
  ProductCache();
  ~ProductCache();
  /// To be called on a thread for which useOneThread() was called: oneDNN decides here how many
  /// threads a product uses.
  Result<std::shared_ptr<const Product>> get(const ProductShape &shape);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Makes oneDNN compute on the calling thread alone; affects no other thread.
void useOneThread();

} // namespace braid::runtime
#endif // BRAID_EXEC_PRODUCTS_H
