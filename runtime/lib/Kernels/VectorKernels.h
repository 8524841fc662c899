//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime's own inner loops, compiled for each instruction set and chosen at run time.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_VECTORKERNELS_H
#define BRAID_KERNELS_VECTORKERNELS_H

#include "Codec.h"

#include <cstdint>

namespace braid::runtime {

/// Attention of one block of query rows against all keys. A query row is (position s, head of the
/// group g); all rows of a block share a key/value head. Strides in elements; the last
/// dimension of every tensor is contiguous.
struct AttentionBlock {
  const float *query, *key, *value; ///< at this batch and (kv) head
  float *out;
  float *logSum;                          ///< or null
  int64_t logSumStride, logSumHeadStride; ///< per position s, per head of the group
  int64_t queryStride, queryHeadStride;   ///< per position s, per head of the group
  int64_t outStride, outHeadStride;
  int64_t keyStride, valueStride; ///< per key
  int64_t group;                  ///< query heads that share the key/value head
  int64_t firstRow, rows;         ///< row = s * group + g; rows <= queryBlock
  int64_t keys;                   ///< after valid_length
  int64_t headDim, valueDim;      ///< of queries and keys, and of values and out
  const void *mask;               ///< of this batch, or null
  bool wideMask;                  ///< i64, else i32
  int64_t maskStride;
  int64_t positionOffset;
  bool causal;
  float scale;
};

/// Rotates the heads of one position by its angles; strides in elements.
struct RotaryRow {
  const float *in, *cos, *sin;
  float *out; ///< equal to `in`, or no overlap
  int64_t heads, pairs;
  int64_t inHead, outHead; ///< from one head to the next
};

struct VectorKernels {
  const char *isa;    ///< "avx512", "avx2", "generic"
  int64_t queryBlock; ///< most rows of an AttentionBlock
  /// Bytes of 64-byte aligned scratch memory that `attention` needs.
  int64_t (*attentionScratch)(int64_t headDim, int64_t valueDim);
  void (*attention)(const AttentionBlock &block, void *scratch);
  void (*rotary)(const RotaryRow &row);
  /// out[i] = sources[0][i] op sources[1][i] op ...; ReduceKind and DType as integers. Half
  /// precision is added in f32 and rounded once. `out` may be one of the sources, which may lie at
  /// any address. A NaN in any source gives NaN.
  void (*reduce)(int kind, int dtype, void *out, const void *const *sources, int numSources,
                 int64_t count);
  /// The same; sums of f32, f16 and bf16 of up to four sources go around the caches, for what does
  /// not stay in them: an ordinary store reads the memory first. `out` is none of the sources.
  void (*reducePastCaches)(int kind, int dtype, void *out, const void *const *sources,
                           int numSources, int64_t count);
  /// out[i] = 2^x[i], relative error below 1e-6 from -126 on, 0 below -126.5; for tests.
  void (*exp2)(const float *x, float *out, int64_t count);
  const CodecKernels *codec;
};

/// The best kernels for this host.
const VectorKernels &vectorKernels();

// One per translation unit; null when not compiled for this architecture.
const VectorKernels *vectorKernelsGeneric();
const VectorKernels *vectorKernelsAvx2();
const VectorKernels *vectorKernelsAvx512();

} // namespace braid::runtime
#endif // BRAID_KERNELS_VECTORKERNELS_H
