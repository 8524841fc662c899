//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rotary position embedding: the tables, and the rotation of heads, whose inner loop is in
// VectorKernels.inc.
//
//===----------------------------------------------------------------------===//
#include "Operations.h"
#include "braid/Base/StatusMacros.h"

#include <cmath>

namespace braid::runtime {

/// Sets the strides of a command's tables over batches and positions.
template <typename Op> static void setTableStrides(Op &c, const Tensor &cos, const Tensor &sin) {
  // All batches may share one table.
  auto batchStride = [](const Tensor &table) { return table.rank() == 3 ? table.strides[0] : 0; };
  auto rowStride = [](const Tensor &table) { return table.strides[table.strides.size() - 2]; };
  c.cosBatch = batchStride(cos);
  c.sinBatch = batchStride(sin);
  c.cosRow = rowStride(cos);
  c.sinRow = rowStride(sin);
}

/// Runs body(batch, position) on the team.
template <typename Op, typename Body>
static void forEachPosition(const Op &c, ExecutionContext &context, Body body) {
  context.share(c.members, [&](int64_t member) {
    Range range = partOf(c.batch * c.seq, member, c.members);
    for (int64_t i = range.begin; i < range.end; ++i)
      body(i / c.seq, i % c.seq);
  });
}

Result<RotaryTableCommand> resolveRotaryTable(const LibraryArguments &a, int64_t threads,
                                              Storage storage) {
  ASSIGN_OR_RETURN(DType dtype, storedType(a, storage));
  const Tensor cos = a.tensor("cos"), sin = a.tensor("sin");
  RotaryTableCommand c{};
  c.positionOffset = integersOf(a, "position_offset");
  c.frequencies.assign(a.numbers.begin() + 1, a.numbers.end());
  c.scale = a.numbers[0];
  c.dtype = dtype;
  c.cos = cos.as<float>();
  c.sin = sin.as<float>();
  c.batch = c.positionOffset ? cos.shape[0] : 1;
  c.seq = cos.shape[cos.shape.size() - 2];
  setTableStrides(c, cos, sin);
  c.members = shareOut(cos.numElements(), 1024, threads);
  return c;
}

void execute(const RotaryTableCommand &c, const NamedCommand &, ExecutionContext &context) {
  forEachPosition(c, context, [&](int64_t b, int64_t s) {
    int64_t offset = c.positionOffset ? c.positionOffset[b] : 0;
    // An f32 angle of some thousands would have few digits after the point.
    double position = static_cast<double>(s) + static_cast<double>(offset);
    float *cos = c.cos + b * c.cosBatch + s * c.cosRow;
    float *sin = c.sin + b * c.sinBatch + s * c.sinRow;
    for (size_t i = 0; i < c.frequencies.size(); ++i) {
      double angle = position * c.frequencies[i];
      cos[i] = static_cast<float>(c.scale * std::cos(angle));
      sin[i] = static_cast<float>(c.scale * std::sin(angle));
    }
  });
}

Result<RotaryCommand> resolveRotary(const LibraryArguments &a, int64_t threads, Storage storage) {
  ASSIGN_OR_RETURN(DType dtype, storedType(a, storage));
  const Tensor input = a.tensor("input"), cos = a.tensor("cos"), sin = a.tensor("sin"),
               out = a.tensor("out");
  RotaryCommand c{};
  c.dtype = dtype;
  c.batch = input.shape[0];
  c.seq = input.shape[1];
  c.row.heads = input.shape[2];
  c.row.pairs = input.shape[3] / 2;
  c.row.in = input.as<float>();
  c.row.cos = cos.as<float>();
  c.row.sin = sin.as<float>();
  c.row.out = out.as<float>();
  c.row.inHead = input.strides[2];
  c.row.outHead = out.strides[2];
  c.inBatch = input.strides[0];
  c.inRow = input.strides[1];
  c.outBatch = out.strides[0];
  c.outRow = out.strides[1];
  setTableStrides(c, cos, sin);
  c.members = shareOut(input.numElements(), 16384, threads);
  return c;
}

void execute(const RotaryCommand &c, const NamedCommand &, ExecutionContext &context) {
  forEachPosition(c, context, [&](int64_t b, int64_t s) {
    RotaryRow row = c.row;
    row.in += b * c.inBatch + s * c.inRow;
    row.cos += b * c.cosBatch + s * c.cosRow;
    row.sin += b * c.sinBatch + s * c.sinRow;
    row.out += b * c.outBatch + s * c.outRow;
    context.kernels.rotary(row);
  });
}

} // namespace braid::runtime
