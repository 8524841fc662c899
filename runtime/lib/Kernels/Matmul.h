//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls by oneDNN. The only file that knows the library.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_MATMUL_H
#define BRAID_KERNELS_MATMUL_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <memory>

namespace braid::runtime {

/// out[m, n] = sum_k lhs[m, k] * rhs[n, k] (+ bias[n]), f32. Strides in elements between rows;
/// columns are contiguous.
struct MatmulShape {
  int64_t m, n, k;
  int64_t lhsStride, rhsStride, outStride;
  bool bias;
};

/// A matmul of certain memory. All that the library wants to be told is made when it is bound, so
/// that a run allocates nothing of ours; oneDNN allocates small tables of its own in each.
class MatmulCall {
public:
  virtual ~MatmulCall() = default;
  /// Computes on the calling thread alone; one thread at a time.
  virtual void run() = 0;
};

/// One shape, ready to be bound.
class Matmul {
public:
  virtual ~Matmul() = default;
  /// `bias` is null where the shape has none. The matmul must outlive the call.
  virtual std::unique_ptr<MatmulCall> bind(const float *lhs, const float *rhs, const float *bias,
                                           float *out) const = 0;
};

/// Matmuls by shape.
class MatmulCache {
public:
  MatmulCache();
  ~MatmulCache();
  /// To be called on a thread for which useOneThread() was called: oneDNN decides here how many
  /// threads a matmul uses.
  Result<std::shared_ptr<const Matmul>> get(const MatmulShape &shape);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Makes oneDNN compute on the calling thread alone; affects no other thread.
void useOneThread();

/// Whether useOneThread() does what it says: of a oneDNN with this cpu_runtime (dnnl_version) where
/// omp_set_num_threads is or is not there. Other kinds of it have threads of their own, which
/// nobody would notice.
Status checkOneThread(unsigned cpuRuntime, bool hasOpenMP);

} // namespace braid::runtime
#endif // BRAID_KERNELS_MATMUL_H
