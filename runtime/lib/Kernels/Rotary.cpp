//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rotary position embedding: the tables, and the turning of heads. The inner loop of the latter is
// in VectorKernels.inc.
//
//===----------------------------------------------------------------------===//
#include "Operations.h"

#include <cmath>

namespace braid::runtime {

static Status checkRows(const char *what, const Tensor &tensor, DType dtype,
                        const std::vector<int64_t> &shape) {
  if (tensor.dtype != dtype || tensor.shape != shape)
    return Status::error(std::string("expects ") + what + " of " + name(dtype) + " " +
                         shapeString(shape) + ", got " + name(tensor.dtype) + " " +
                         shapeString(tensor.shape));
  if (shape.back() != 1 && tensor.strides.back() != 1)
    return Status::error(std::string("expects a contiguous last dimension of ") + what);
  return {};
}

/// Where a command's tables are, from batch to batch and from position to position.
template <typename Op> static void setTableStrides(Op &c, const Tensor &cos, const Tensor &sin) {
  // All batches may share one.
  auto batchStride = [](const Tensor &table) { return table.rank() == 3 ? table.strides[0] : 0; };
  auto rowStride = [](const Tensor &table) { return table.strides[table.strides.size() - 2]; };
  c.cosBatch = batchStride(cos);
  c.sinBatch = batchStride(sin);
  c.cosRow = rowStride(cos);
  c.sinRow = rowStride(sin);
}

/// body(batch, position) on the team, each member for some of them.
template <typename Op, typename Body>
static void forEachPosition(const Op &c, ExecutionContext &context, Body body) {
  context.team.run(
      c.members,
      [&](int64_t member) {
        Range range = partOf(c.batch * c.seq, member, c.members);
        for (int64_t i = range.begin; i < range.end; ++i)
          body(i / c.seq, i % c.seq);
      },
      context.control, context.self);
}

Result<RotaryTableCommand> resolveRotaryTable(const std::vector<double> &frequencies, double scale,
                                              const Tensor *positionOffset, const Tensor &cos,
                                              const Tensor &sin, int64_t threads, Storage storage) {
  Result<DType> dtype = storedType("cos and sin", cos, storage);
  if (!dtype.ok())
    return dtype.status();
  if (cos.rank() != (positionOffset ? 3 : 2))
    return Status::error("expects tables of " + std::to_string(positionOffset ? 3 : 2) +
                         " dimensions, got " + shapeString(cos.shape));
  std::vector<int64_t> shape = cos.shape;
  shape.back() = static_cast<int64_t>(frequencies.size());
  for (auto [what, table] : {std::pair<const char *, const Tensor *>{"cos", &cos}, {"sin", &sin}})
    if (Status status = checkRows(what, *table, *dtype, shape); !status.ok())
      return status;
  RotaryTableCommand c{};
  if (positionOffset) {
    if ((positionOffset->dtype != DType::i64 && positionOffset->dtype != DType::i32) ||
        positionOffset->shape != std::vector{shape[0]})
      return Status::error("expects position_offset of i32 or i64 " + shapeString({shape[0]}) +
                           ", got " + name(positionOffset->dtype) + " " +
                           shapeString(positionOffset->shape));
    c.positionOffset = integersOf(*positionOffset);
  }
  c.frequencies = frequencies;
  c.scale = scale;
  c.dtype = *dtype;
  c.cos = cos.as<float>();
  c.sin = sin.as<float>();
  c.batch = positionOffset ? shape[0] : 1;
  c.seq = shape[shape.size() - 2];
  setTableStrides(c, cos, sin);
  c.members = shareOut(cos.numElements(), 1024, threads);
  return c;
}

void execute(const RotaryTableCommand &c, const NamedCommand &, ExecutionContext &context) {
  forEachPosition(c, context, [&](int64_t b, int64_t s) {
    int64_t offset = c.positionOffset ? c.positionOffset[b] : 0;
    // In f32 an angle of some thousands has few digits left after the point.
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

Result<RotaryCommand> resolveRotary(const Tensor &input, const Tensor &cos, const Tensor &sin,
                                    const Tensor &out, int64_t threads, Storage storage) {
  Result<DType> dtype = storedType("input", input, storage);
  if (!dtype.ok())
    return dtype.status();
  if (input.rank() != 4 || input.shape[3] % 2 != 0)
    return Status::error("expects input [b, s, h, 2 * n], got " + shapeString(input.shape));
  std::vector<int64_t> table{input.shape[0], input.shape[1], input.shape[3] / 2};
  if (cos.rank() == 2)
    table.erase(table.begin());
  for (auto [what, tensor, shape] :
       {std::tuple<const char *, const Tensor *, const std::vector<int64_t> *>{"input", &input,
                                                                               &input.shape},
        {"cos", &cos, &table},
        {"sin", &sin, &table},
        {"out", &out, &input.shape}})
    if (Status status = checkRows(what, *tensor, *dtype, *shape); !status.ok())
      return status;
  RotaryCommand c{};
  c.dtype = *dtype;
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
