//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The arguments of the kernels of library.cuh and codec.cuh: each takes one of these structures by
// value. Both the kernels and the runtime that launches them include this, so it uses built-in
// types only.
// Strides are in elements unless they say bytes.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_LIBRARY_ARGUMENTS_H
#define BRAID_CUDA_LIBRARY_ARGUMENTS_H

#ifdef __CUDACC__
#define BRAID_HOST_AND_DEVICE __host__ __device__
#else
#define BRAID_HOST_AND_DEVICE
#endif

namespace braid {
namespace library {

/// Threads of a block, for all of them.
constexpr int kThreads = 256;
constexpr int kMaxDims = 8;
constexpr int kMaxSources = 64;
constexpr int kMaxOperands = 8;
constexpr int kMaxScalars = 4;
/// The most elements of a head per lane in attention; each warp has one query.
constexpr int kMaxHeadPerLane = 8;

/// One operand of a kernel, as its descriptor lists it (braid/Base/LibraryKernels.h).
struct Operand {
  void *data; ///< or null
  int dtype;  ///< f32, f16, bf16, f64, i32, i64, i8, as program.fbs numbers them
  int rank;
  long long sizes[kMaxDims], strides[kMaxDims];
};

/// The arguments of a kernel without a structure of its own: operands and scalars as its descriptor
/// lists them. Each warp has one row.
struct Call {
  Operand operands[kMaxOperands];
  long long integers[kMaxScalars];
  double numbers[kMaxScalars];
  long long rows, part, parts;
};

/// The first id, count or position that is out of bounds, or part of a payload that is not what is
/// expected; zeros if there is none.
struct Fault {
  unsigned long long command; ///< as given by the launch
  long long value, position;
  // Of payloads.
  long long elements = 0;  ///< of the group that has a spike at `value` in row `position`; else 0
  unsigned header[4] = {}; ///< of part `position`, where the same part of the first sender has
                           ///< `value` rows
};

/// A vector, or one dimension of a tensor, of i32 or i64.
struct Integers {
  const void *data; ///< or null
  long long stride;
  int wide; ///< i64, else i32
};

/// Contiguous runs of bytes under a loop nest, moved in units of 1, 2, 4, 8 or 16 bytes; addresses,
/// strides and runs are multiples of the unit. Each thread has one unit; `units` of them from
/// `first` on, counted from the nest's first run.
struct Copy {
  const void *source;
  void *dest;
  long long first, units;
  long long runUnits; ///< of a run
  int unit, rank;
  long long counts[kMaxDims], sourceStrides[kMaxDims], destStrides[kMaxDims]; ///< strides in bytes
};

/// Copies the counted rows of each block and zeros the others. The elements are blocks of rows, in
/// this order. `dest` equals `source`, with the same strides, or does not overlap it.
struct CopyCounted {
  Copy copy;          ///< of all rows
  Integers counts;    ///< of each block
  long long rows;     ///< of a block
  long long rowUnits; ///< of a row
};

/// Checks that counts are from 0 to `most`. Each thread has one count.
struct CheckCounts {
  Integers counts;
  long long count, most;
  Fault *fault;
  unsigned long long command;
};

/// A copy to positions that are known when it runs: each row of `copy` is `rowUnits` units, and
/// goes `stepBytes` times its position further on. Positions are at most `last`.
struct Append {
  Copy copy;
  Integers positions;
  long long rowUnits, stepBytes, last;
  Fault *fault;
  unsigned long long command;
};

/// Rows of a table, or zeros for ids of another shard of it. Each block has one row.
struct Gather {
  const void *source, *ids;
  void *out;
  long long count;
  long long rows, firstRow; ///< of this shard of the table, and before it
  long long limit;          ///< upper bound of ids, exclusive; rows from it on are padding
  long long rowBytes, sourceStrideBytes, outStrideBytes;
  int wideIds; ///< i64, else i32
  int unit;    ///< bytes, as of a Copy
  Fault *fault;
  unsigned long long command;
};

/// Each thread has one angle. Tables are f32, f16 or bf16, as the kernel's name says.
struct RotaryTable {
  const double *frequencies;
  double scale;
  Integers positionOffset;
  void *cos, *sin;
  long long batch, seq, pairs;
  long long cosBatch, sinBatch, cosRow, sinRow;
};

/// Each thread has one pair of elements. `out` equals `in` or does not overlap it. All are f32, f16
/// or bf16, as the kernel's name says.
struct Rotary {
  const void *in, *cos, *sin;
  void *out;
  long long batch, seq, heads, pairs;
  long long inBatch, inRow, inHead, outBatch, outRow, outHead;
  long long cosBatch, cosRow, sinBatch, sinRow;
};

/// Each warp has one query of one head. All are f32, f16 or bf16, as the kernel's name says.
struct Attention {
  const void *query, *key, *value;
  void *out;
  long long batch, queries, heads, keys, headDim, valueDim;
  long long group; ///< heads that share a head of keys and values
  long long queryBatch, queryRow, queryHead, outBatch, outRow, outHead;
  long long keyBatch, keyRow, keyHead, valueBatch, valueRow, valueHead;
  Integers mask; ///< of the first batch
  long long maskBatch;
  Integers validLength, positionOffset;
  float scale;
  int causal;
  float *logSum; ///< or null
  long long logSumBatch, logSumRow, logSumHead;
};

/// out[i, j] = sum * lhsScale[i] * rhsScale[j] (+ bias[j]), in this order, where the sum is sums[i,
/// j] or, without these, that of lhs[i, :] * rhs[j, :]. Each thread has one element.
struct Int8Matmul {
  const signed char *lhs, *rhs;
  const int *sums; ///< or null; without gaps between rows
  const float *lhsScale, *rhsScale;
  const float *bias; ///< or null
  float *out;
  long long rows, columns, inner;
  long long lhsStride, rhsStride, outStride; ///< between rows
};

/// out[i] = sources[0][i] op sources[1][i] op ..., in that order; f16 and bf16 in f32, rounded
/// once. Each thread has one element; `count` of them from `first` on. They lie in contiguous runs
/// of `run` elements under a loop nest. `out` may be one of the sources, with the same strides.
struct Reduce {
  const void *sources[kMaxSources];
  void *out;
  long long first, count, run;
  int rank;
  long long counts[kMaxDims], sourceStrides[kMaxDims], outStrides[kMaxDims]; ///< in elements
  int numSources;
  int kind;  ///< 0 sum, 1 max, 2 min; a NaN in any source gives NaN
  int dtype; ///< f32, f16, bf16, f64, i32, i64, i8, as program.fbs numbers them
};

/// Divides numbers below 2^31: n * multiplier >> shift.
struct Divisor {
  unsigned divisor, multiplier;
  int shift;
};

/// The lanes of a warp that encode a group, each 8 of its elements at a time: a power of two.
BRAID_HOST_AND_DEVICE constexpr int codecLanes(long long group) {
  int lanes = 2;
  while (lanes < 32 && lanes * 8 < group)
    lanes *= 2;
  return lanes;
}
/// The elements of a row that a warp decodes, or casts.
constexpr int kCodecElements = 32 * 8;

/// A tensor and its payload (braid/Base/Encoding.h). To encode, each warp has 32 / codecLanes
/// groups of a row, of those rows too that pad the last parts; with nvfp4, each block has a row. To
/// decode, and for casts, each warp has kCodecElements of a row.
struct Codec {
  void *tensor;
  long long rowBytes; ///< from one row of the tensor to the next
  unsigned char *payload;
  unsigned char *const *partsAt; ///< of parts that lie anywhere; null: they follow each other
  long long partStride, payloadRowBytes, codesOffset, partBytes; ///< bytes
  long long rows;                                                ///< of the tensor
  unsigned columns, groups, parts, warps;
  Divisor rowsPerPart, warpsPerRow;
  int groupHeaderBytes;
  int alignedTensor;  ///< every eighth element of a row begins at a multiple of 16 bytes
  int alignedPayload; ///< parts begin at multiples of 4 bytes
  unsigned header[4]; ///< of a part; the rows are those of a part that is full
  // To encode.
  unsigned ranks;    ///< every so many parts, one is the rank's own, which is zeros; 1: none is
  unsigned ownParts; ///< the first of these
  // To decode.
  unsigned senders; ///< whose payloads follow each other and are added
  /// The rows of the sender that this rank is, as they were; null: all of them are in payloads.
  const void *own;
  long long ownRowBytes; ///< from one of these rows to the next
  unsigned ownSender;
  int mayBeAbsent; ///< a part with a header of zeros
  Fault *fault;
  unsigned long long command;
};

} // namespace library
} // namespace braid
#endif // BRAID_CUDA_LIBRARY_ARGUMENTS_H
