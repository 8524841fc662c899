//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls of 8-bit integers, and rows that are quantized for them (braid/Base/RowQuantization.h),
// by functions that are compiled for each instruction set. All of them give the same bits.
//
// oneDNN is not used here: without VNNI its s8 matmuls add pairs of products in 16 bits, where they
// saturate, and for few rows they are slower than its f32 matmuls. Here numbers are widened to 16
// bits, whose products are added in pairs in 32 bits.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_INT8_H
#define BRAID_KERNELS_INT8_H

#include <cstdint>

namespace braid::runtime {

/// out[i][j] = (sum over k of lhs[i][k] * rhs[j][k]) * lhsScale[i] * rhsScale[j] (+ bias[j]), in
/// this order. Strides in elements between rows, whose elements are contiguous.
struct Int8Matmul {
  const int8_t *lhs, *rhs;
  const float *lhsScale, *rhsScale, *bias; ///< bias may be null
  float *out;
  int64_t m, n, k;
  int64_t lhsStride, rhsStride, outStride;
};

struct Int8Kernels {
  const char *isa; ///< "avx512vnni", "avx512", "avx2", "generic"
  /// quantizeRow of RowQuantization.h.
  float (*quantizeRow)(const float *x, int64_t count, int8_t *values);
  /// Bytes of 64-byte aligned scratch memory that `matmul` needs.
  int64_t (*scratchBytes)(int64_t k);
  void (*matmul)(const Int8Matmul &matmul, void *scratch);
};

/// The best kernels for this host.
const Int8Kernels &int8Kernels();

// One per translation unit; null when not compiled for this architecture.
const Int8Kernels *int8KernelsGeneric();
const Int8Kernels *int8KernelsAvx2();
const Int8Kernels *int8KernelsAvx512();
const Int8Kernels *int8KernelsVnni();

} // namespace braid::runtime
#endif // BRAID_KERNELS_INT8_H
