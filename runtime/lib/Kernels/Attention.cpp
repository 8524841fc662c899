//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attention in independent blocks of query rows. The inner loops are in VectorKernels.inc.
//
//===----------------------------------------------------------------------===//
#include "Operations.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <atomic>

namespace braid::runtime {

Result<AttentionCommand> resolveAttention(const LibraryArguments &a, int64_t threads,
                                          int64_t queryBlock, Storage storage) {
  ASSIGN_OR_RETURN(DType type, storedType(a, storage));
  const Tensor query = a.tensor("query"), key = a.tensor("key"), value = a.tensor("value"),
               out = a.tensor("out");
  if (key.shape[1] > INT32_MAX)
    return Status::error("expects fewer than 2^31 keys, got ", key.shape[1]);
  AttentionCommand c{};
  c.dtype = type;
  c.batch = query.shape[0];
  c.kvHeads = key.shape[2];
  AttentionBlock &b = c.block;
  b.group = query.shape[2] / c.kvHeads;
  b.headDim = query.shape[3];
  b.valueDim = value.shape[3];
  b.keys = key.shape[1];
  c.rowsPerHead = query.shape[1] * b.group;
  c.blocksPerHead = (c.rowsPerHead + queryBlock - 1) / queryBlock;
  b.rows = queryBlock;
  b.query = query.as<float>();
  b.key = key.as<float>();
  b.value = value.as<float>();
  b.out = out.as<float>();
  b.queryStride = query.strides[1];
  b.queryHeadStride = query.strides[2];
  b.outStride = out.strides[1];
  b.outHeadStride = out.strides[2];
  b.keyStride = key.strides[1];
  b.valueStride = value.strides[1];
  c.queryBatch = query.strides[0];
  c.keyBatch = key.strides[0];
  c.valueBatch = value.strides[0];
  c.outBatch = out.strides[0];
  c.queryGroup = query.strides[2] * b.group;
  c.outGroup = out.strides[2] * b.group;
  c.keyHead = key.strides[2];
  c.valueHead = value.strides[2];
  if (a.has("log_sum")) {
    const Tensor logSum = a.tensor("log_sum");
    b.logSum = logSum.as<float>();
    b.logSumStride = logSum.strides[1];
    b.logSumHeadStride = logSum.strides[2];
    c.logSumBatch = logSum.strides[0];
    c.logSumGroup = logSum.strides[2] * b.group;
  }
  if (a.has("mask")) {
    const Tensor mask = a.tensor("mask");
    b.mask = mask.data;
    b.wideMask = mask.dtype == DType::i64;
    b.maskStride = mask.strides[1];
    c.maskBatchBytes = mask.strides[0] * byteSize(mask.dtype);
  }
  c.validLength = integersOf(a, "valid_length");
  c.positionOffset = integersOf(a, "position_offset");
  b.scale = static_cast<float>(a.numbers[0]);
  b.causal = a.integers[0] != 0;
  c.members = std::min(shareOut(a.kernel->flops(a), 1 << 19, threads), c.units());
  return c;
}

void execute(const AttentionCommand &c, const NamedCommand &, ExecutionContext &context) {
  const int64_t queryBlock = c.block.rows;
  const size_t scratchBytes =
      static_cast<size_t>(context.kernels.attentionScratch(c.block.headDim, c.block.valueDim)) + 64;
  // Blocks differ in length under a causal or ragged mask, so members take blocks as they become
  // free.
  std::atomic<int64_t> next{0};
  context.share(c.members, [&](int64_t member) {
    std::vector<std::byte> &scratch = context.scratch[static_cast<size_t>(member)];
    if (scratch.size() < scratchBytes)
      scratch.resize(scratchBytes);
    void *aligned = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) &
                                             ~uintptr_t(63));
    for (int64_t unit; (unit = next.fetch_add(1, std::memory_order_relaxed)) < c.units();) {
      int64_t blockIndex = unit % c.blocksPerHead;
      int64_t head = unit / c.blocksPerHead % c.kvHeads;
      int64_t batch = unit / c.blocksPerHead / c.kvHeads;
      AttentionBlock block = c.block;
      block.query += batch * c.queryBatch + head * c.queryGroup;
      block.key += batch * c.keyBatch + head * c.keyHead;
      block.value += batch * c.valueBatch + head * c.valueHead;
      block.out += batch * c.outBatch + head * c.outGroup;
      if (block.logSum)
        block.logSum += batch * c.logSumBatch + head * c.logSumGroup;
      if (block.mask)
        block.mask = static_cast<const std::byte *>(block.mask) + batch * c.maskBatchBytes;
      if (c.validLength) {
        const int64_t length = c.validLength[batch]; // read once
        block.keys = std::clamp<int64_t>(length, 0, block.keys);
      }
      if (c.positionOffset) {
        // Clamped to just outside of the keys: a sum with the given offset could overflow.
        const int64_t offset = c.positionOffset[batch];
        block.positionOffset =
            std::clamp<int64_t>(offset, -c.rowsPerHead / block.group, c.block.keys);
      }
      block.firstRow = blockIndex * queryBlock;
      block.rows = std::min(queryBlock, c.rowsPerHead - block.firstRow);
      context.kernels.attention(block, aligned);
      context.self.progress.fetch_add(1, std::memory_order_relaxed);
    }
  });
}

} // namespace braid::runtime
