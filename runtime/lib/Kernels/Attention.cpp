//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attention as a set of independent blocks of query rows. The inner loops are in VectorKernels.inc.
//
//===----------------------------------------------------------------------===//
#include "Operations.h"

#include <algorithm>
#include <atomic>

namespace braid::runtime {

static Status checkAttention(const AttentionOperands &o, Storage storage) {
  Result<DType> type = storedType("query, key, value and out", o.query, storage);
  if (!type.ok())
    return type.status();
  for (const Tensor *t : {&o.query, &o.key, &o.value, &o.out}) {
    if (t->dtype != *type)
      return Status::error(std::string("expects query, key, value and out of ") + name(*type) +
                           ", got " + name(t->dtype));
    if (t->rank() != 4)
      return Status::error("expects query, key, value and out of four dimensions, got " +
                           shapeString(t->shape));
    if (t->shape[3] != 1 && t->strides[3] != 1)
      return Status::error("expects a contiguous last dimension of " + shapeString(t->shape));
  }
  const auto &q = o.query.shape, &k = o.key.shape;
  if (o.out.shape != q || o.value.shape != k || q[0] != k[0] || q[3] != k[3] || k[2] == 0 ||
      q[2] % k[2] != 0)
    return Status::error("expects query and out [b, s, h, d] and key and value [b, t, g, d] with h "
                         "a multiple of g, got " +
                         shapeString(q) + ", " + shapeString(k) + ", " +
                         shapeString(o.value.shape) + " and " + shapeString(o.out.shape));
  if (k[1] > INT32_MAX)
    return Status::error("expects fewer than 2^31 keys, got " + std::to_string(k[1]));
  auto expect = [](const char *what, const Tensor *t, const std::vector<int64_t> &shape) {
    if (t && ((t->dtype != DType::i64 && t->dtype != DType::i32) || t->shape != shape))
      return Status::error(std::string("expects ") + what + " of i32 or i64 " + shapeString(shape) +
                           ", got " + name(t->dtype) + " " + shapeString(t->shape));
    return Status();
  };
  if (Status s = expect("mask", o.mask, {q[0], k[1]}); !s.ok())
    return s;
  if (Status s = expect("valid_length", o.validLength, {q[0]}); !s.ok())
    return s;
  return expect("position_offset", o.positionOffset, {q[0]});
}

Result<AttentionCommand> resolveAttention(const AttentionOperands &o, int64_t threads,
                                          int64_t queryBlock, Storage storage) {
  if (Status status = checkAttention(o, storage); !status.ok())
    return status;
  AttentionCommand c{};
  c.dtype = o.query.dtype;
  c.batch = o.query.shape[0];
  c.kvHeads = o.key.shape[2];
  AttentionBlock &b = c.block;
  b.group = o.query.shape[2] / c.kvHeads;
  b.headDim = o.query.shape[3];
  b.keys = o.key.shape[1];
  c.rowsPerHead = o.query.shape[1] * b.group;
  c.blocksPerHead = (c.rowsPerHead + queryBlock - 1) / queryBlock;
  b.rows = queryBlock;
  b.query = o.query.as<float>();
  b.key = o.key.as<float>();
  b.value = o.value.as<float>();
  b.out = o.out.as<float>();
  b.queryStride = o.query.strides[1];
  b.queryHeadStride = o.query.strides[2];
  b.outStride = o.out.strides[1];
  b.outHeadStride = o.out.strides[2];
  b.keyStride = o.key.strides[1];
  b.valueStride = o.value.strides[1];
  c.queryBatch = o.query.strides[0];
  c.keyBatch = o.key.strides[0];
  c.valueBatch = o.value.strides[0];
  c.outBatch = o.out.strides[0];
  c.queryGroup = o.query.strides[2] * b.group;
  c.outGroup = o.out.strides[2] * b.group;
  c.keyHead = o.key.strides[2];
  c.valueHead = o.value.strides[2];
  if (o.mask) {
    b.mask = o.mask->data;
    b.wideMask = o.mask->dtype == DType::i64;
    b.maskStride = o.mask->strides[1];
    c.maskBatchBytes = o.mask->strides[0] * byteSize(o.mask->dtype);
  }
  if (o.validLength)
    c.validLength = integersOf(*o.validLength);
  if (o.positionOffset)
    c.positionOffset = integersOf(*o.positionOffset);
  b.scale = o.scale;
  b.causal = o.causal;
  int64_t work = o.query.numElements() * b.keys * 2;
  c.members = std::min(shareOut(work, 1 << 18, threads), std::max<int64_t>(c.units(), 1));
  return c;
}

void execute(const AttentionCommand &c, const NamedCommand &, ExecutionContext &context) {
  const int64_t queryBlock = c.block.rows;
  const size_t scratchBytes =
      static_cast<size_t>(context.kernels.attentionScratch(c.block.headDim)) + 64;
  // Blocks differ in length under a causal or ragged mask, so members take the next one when they
  // are done.
  std::atomic<int64_t> next{0};
  context.team.run(
      c.members,
      [&](int64_t member) {
        std::vector<std::byte> &scratch = context.scratch[static_cast<size_t>(member)];
        if (scratch.size() < scratchBytes)
          scratch.resize(scratchBytes);
        void *aligned = reinterpret_cast<void *>(
            (reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t(63));
        for (int64_t unit; (unit = next.fetch_add(1, std::memory_order_relaxed)) < c.units();) {
          int64_t blockIndex = unit % c.blocksPerHead;
          int64_t head = unit / c.blocksPerHead % c.kvHeads;
          int64_t batch = unit / c.blocksPerHead / c.kvHeads;
          AttentionBlock block = c.block;
          block.query += batch * c.queryBatch + head * c.queryGroup;
          block.key += batch * c.keyBatch + head * c.keyHead;
          block.value += batch * c.valueBatch + head * c.valueHead;
          block.out += batch * c.outBatch + head * c.outGroup;
          if (block.mask)
            block.mask = static_cast<const std::byte *>(block.mask) + batch * c.maskBatchBytes;
          if (c.validLength) {
            const int64_t length = c.validLength[batch]; // read once
            block.keys = std::clamp<int64_t>(length, 0, block.keys);
          }
          if (c.positionOffset) {
            // Beyond all keys, or before all of them, is as far as it matters; a sum with the
            // given number could overflow.
            const int64_t offset = c.positionOffset[batch];
            block.positionOffset =
                std::clamp<int64_t>(offset, -c.rowsPerHead / block.group, c.block.keys);
          }
          block.firstRow = blockIndex * queryBlock;
          block.rows = std::min(queryBlock, c.rowsPerHead - block.firstRow);
          context.kernels.attention(block, aligned);
          context.self.progress.fetch_add(1, std::memory_order_relaxed);
        }
      },
      context.control, context.self);
}

} // namespace braid::runtime
