//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls by oneDNN. Only Matmul.cpp includes the library.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_MATMUL_H
#define BRAID_KERNELS_MATMUL_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <memory>

namespace braid::runtime {

/// out[m, n] (+)= sum_k lhs[m, k] * rhs[k, n] (+ bias[n]), f32. Strides in elements between stored
/// rows, whose elements are contiguous: a transposed lhs is stored as [k, m], a transposed rhs as
/// [n, k].
struct MatmulShape {
  int64_t m, n, k;
  int64_t lhsStride, rhsStride, outStride;
  bool bias, transposeLhs, transposeRhs, accumulate;
};

/// A matmul bound to its memory. Binding makes all arguments, so that run() allocates nothing
/// except small tables inside oneDNN.
class MatmulCall {
public:
  virtual ~MatmulCall() = default;
  /// Computes on the calling thread alone; one thread at a time.
  virtual void run() = 0;
};

/// A matmul of one shape.
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

/// Whether useOneThread() works, given oneDNN's cpu_runtime (dnnl_version) and whether
/// omp_set_num_threads exists. Other builds of oneDNN would use threads of their own unnoticed.
Status checkOneThread(unsigned cpuRuntime, bool hasOpenMP);

} // namespace braid::runtime
#endif // BRAID_KERNELS_MATMUL_H
