//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Commands of kernels and copies, with absolute addresses.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_KERNELCOMMANDS_H
#define BRAID_KERNELS_KERNELCOMMANDS_H

#include "Matmul.h"
#include "VectorKernels.h"
#include "braid/Base/StridedRuns.h"
#include "braid/Runtime/KernelLibrary.h"
#include "runtime/lib/Sync/Team.h"

#include <vector>

namespace braid::runtime {

/// A launch of a generated kernel, with one part for each member of the team.
struct LaunchCommand {
  struct Part {
    std::vector<int64_t> words; ///< the memref descriptors, one after the other
    std::vector<void *> descriptors;
  };
  KernelFunction function = nullptr;
  std::vector<Part> parts;
};

/// A vector of i32 or i64, read as i64.
struct Integers {
  const std::byte *data; ///< or null
  bool wide;             ///< i64, else i32
  int64_t stride;        ///< in elements
  explicit operator bool() const { return data != nullptr; }
  int64_t operator[](int64_t i) const {
    return wide ? reinterpret_cast<const int64_t *>(data)[i * stride]
                : static_cast<int64_t>(reinterpret_cast<const int32_t *>(data)[i * stride]);
  }
};

/// Members take parts in turn.
struct MatmulCommand {
  struct Part {
    std::shared_ptr<MatmulCall> call;
    const float *lhs, *rhs, *bias; ///< that the call is bound to
    float *out;
    Range rows; ///< of its group, with counts
    int64_t group;
  };
  std::vector<Part> parts;
  int64_t members = 0;
  Integers counts{}; ///< of the valid rows of each group, or none
  int64_t groups = 0, capacity = 0, columns = 0, outStride = 0; ///< with counts
};

// The addresses of the next three commands are of type `dtype`, which is f32 on the CPU.
struct AttentionCommand {
  AttentionBlock block; ///< strides and sizes; the addresses are of batch 0, head 0
  DType dtype;
  int64_t batch, kvHeads, rowsPerHead, blocksPerHead;
  int64_t queryBatch, keyBatch, valueBatch, outBatch; ///< strides in elements
  int64_t queryGroup, keyHead, valueHead, outGroup;   ///< from one key/value head to the next
  int64_t logSumBatch, logSumGroup;
  int64_t maskBatchBytes;
  Integers validLength, positionOffset;
  int64_t members;
  int64_t units() const { return batch * kvHeads * blocksPerHead; }
};

struct RotaryTableCommand {
  std::vector<double> frequencies;
  double scale;
  Integers positionOffset;
  float *cos, *sin;
  DType dtype;
  int64_t batch, seq;
  int64_t cosBatch, sinBatch, cosRow, sinRow; ///< strides in elements
  int64_t members;
};

struct RotaryCommand {
  RotaryRow row; ///< strides and sizes; the addresses are of batch 0, position 0
  DType dtype;
  int64_t batch, seq;
  int64_t inBatch, inRow, outBatch, outRow; ///< strides in elements
  int64_t cosBatch, cosRow, sinBatch, sinRow;
  int64_t members;
};

struct GatherCommand {
  const std::byte *source;
  int64_t tableRows, rowBytes, sourceStrideBytes;
  int64_t part;  ///< the position of the shard `source`
  int64_t limit; ///< upper bound of ids, exclusive
  const std::byte *ids;
  bool wideIds; ///< i64, else i32
  std::byte *out;
  int64_t outStrideBytes, count;
  int64_t members;
};

struct PositionIdsCommand {
  const std::byte *ids;
  std::byte *out;
  bool wide; ///< i64, else i32
  int64_t padding, batch, seq;
  int64_t idsBatch, idsStride, outBatch, outStride; ///< strides in elements
};

/// Copies rows to positions that are known when it runs.
struct AppendCommand {
  const std::byte *source;
  std::byte *cache;
  StridedRuns runs; ///< of one row, to position 0
  Integers positions;
  int64_t rows, last; ///< the last position at which the source fits
  int64_t sourceRowBytes, cacheRowBytes, stepBytes;
};

struct CopyCommand {
  const std::byte *source;
  std::byte *dest;
  StridedRuns runs;
};

} // namespace braid::runtime
#endif // BRAID_KERNELS_KERNELCOMMANDS_H
