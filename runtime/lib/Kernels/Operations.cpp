//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Operations.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::runtime {

int64_t Tensor::numElements() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

int64_t Tensor::spanBytes() const {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    last += (shape[d] - 1) * strides[d];
  return numElements() == 0 ? 0 : (last + 1) * byteSize(dtype);
}

bool Tensor::contiguous() const {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected)
      return false;
    expected *= shape[d];
  }
  return true;
}

int64_t Tensor::rows() const {
  return shape.empty() || shape.back() == 0 ? 0 : numElements() / shape.back();
}

Integers integersOf(const LibraryArguments &a, const char *operand) {
  if (!a.has(operand))
    return {nullptr, false, 0};
  const Tensor tensor = a.tensor(operand);
  return {tensor.data, tensor.dtype == DType::i64, tensor.strides[0]};
}

Result<int64_t> Tensor::rowStride() const {
  if (shape.empty())
    return Status::error("expects at least one dimension");
  if (shape.back() != 1 && strides.back() != 1)
    return Status::error("expects a contiguous last dimension of ", shapeString(shape));
  // Dimensions of size 1 do not matter; the others must nest without gaps.
  int64_t stride = shape.back(), extent = 0;
  for (size_t d = shape.size() - 1; d-- > 0;) {
    if (shape[d] == 1)
      continue;
    if (extent == 0)
      stride = strides[d];
    else if (strides[d] != extent)
      return Status::error("expects rows of ", shapeString(shape), " at one stride, got strides ",
                           shapeString(strides));
    extent = strides[d] * shape[d];
  }
  return stride;
}

int64_t shareOut(int64_t work, int64_t grain, int64_t members) {
  return std::max<int64_t>(1, std::min(members, work / grain));
}
int64_t shareOut(double flops, int64_t grain, int64_t members) {
  const double most = std::floor(flops / static_cast<double>(grain));
  return static_cast<int64_t>(std::clamp(most, 1.0, static_cast<double>(members)));
}

//===----------------------------------------------------------------------===//
// Generated kernels
//===----------------------------------------------------------------------===//

Result<LaunchCommand> resolveLaunch(KernelFunction function, const std::vector<Tensor> &operands,
                                    const std::vector<bool> &rowOperand, int64_t rows,
                                    int64_t threads) {
  LaunchCommand command;
  command.function = function;
  int64_t work = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor &t = operands[i];
    if (rowOperand[i] && (t.shape.empty() || t.shape[0] != rows))
      return Status::error("expects operand ", i, " to have ", rows, " rows, got ",
                           shapeString(t.shape));
    work = std::max(work, t.numElements());
  }
  int64_t members = std::min(shareOut(work, 16384, threads), std::max<int64_t>(rows, 1));
  for (int64_t member = 0; member < members; ++member) {
    Range range = partOf(rows, member, members);
    LaunchCommand::Part part;
    std::vector<size_t> begins;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Tensor &t = operands[i];
      begins.push_back(part.words.size());
      std::byte *data = t.data;
      if (rowOperand[i])
        data += range.begin * t.strides[0] * byteSize(t.dtype);
      part.words.push_back(reinterpret_cast<intptr_t>(data));
      part.words.push_back(reinterpret_cast<intptr_t>(data));
      part.words.push_back(0);
      for (size_t d = 0; d < t.shape.size(); ++d)
        part.words.push_back(d == 0 && rowOperand[i] ? range.end - range.begin : t.shape[d]);
      for (int64_t stride : t.strides)
        part.words.push_back(stride);
    }
    for (size_t begin : begins)
      part.descriptors.push_back(part.words.data() + begin);
    command.parts.push_back(std::move(part)); // moving a vector keeps its elements in place
  }
  return command;
}

void execute(const LaunchCommand &command, const NamedCommand &, ExecutionContext &context) {
  context.share(static_cast<int64_t>(command.parts.size()), [&](int64_t member) {
    command.function(command.parts[static_cast<size_t>(member)].descriptors.data());
  });
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

Result<GatherCommand> resolveGather(const LibraryArguments &a, int64_t threads) {
  const Tensor source = a.tensor("table"), ids = a.tensor("ids"), out = a.tensor("out");
  ASSIGN_OR_RETURN(int64_t sourceStride, source.rowStride());
  ASSIGN_OR_RETURN(int64_t outStride, out.rowStride());
  int64_t size = byteSize(source.dtype);
  GatherCommand command{};
  command.source = source.data;
  command.tableRows = source.shape[0];
  command.part = a.part;
  command.limit = a.integers[0] ? a.integers[0] : source.shape[0] * a.parts;
  command.rowBytes = source.shape[1] * size;
  command.sourceStrideBytes = sourceStride * size;
  command.ids = ids.data;
  command.wideIds = ids.dtype == DType::i64;
  command.out = out.data;
  command.outStrideBytes = outStride * size;
  command.count = ids.numElements();
  command.members = shareOut(out.numElements(), 65536, threads);
  return command;
}

void execute(const GatherCommand &command, const NamedCommand &source, ExecutionContext &context) {
  auto id = [&](int64_t i) {
    return command.wideIds
               ? reinterpret_cast<const int64_t *>(command.ids)[i]
               : static_cast<int64_t>(reinterpret_cast<const int32_t *>(command.ids)[i]);
  };
  context.share(command.members, [&](int64_t member) {
    Range range = partOf(command.count, member, command.members);
    for (int64_t i = range.begin; i < range.end; ++i) {
      int64_t row = id(i);
      if (row < 0 || row >= command.limit) {
        context.control.fail(Status::error("rank ", context.self.rank, ": ", describe(source),
                                           ": id ", row, " at position ", i, " is outside of [0, ",
                                           command.limit, ")",
                                           Code::invalid)); // ids are inputs
        return;
      }
      std::byte *out = command.out + i * command.outStrideBytes;
      row -= command.part * command.tableRows;
      if (row >= 0 && row < command.tableRows)
        std::memcpy(out, command.source + row * command.sourceStrideBytes,
                    static_cast<size_t>(command.rowBytes));
      else // zero bytes are zero in every type
        std::memset(out, 0, static_cast<size_t>(command.rowBytes));
    }
  });
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Result<PositionIdsCommand> resolvePositionIds(const LibraryArguments &a) {
  const Tensor ids = a.tensor("ids"), out = a.tensor("out");
  return PositionIdsCommand{ids.data,       out.data,      ids.dtype == DType::i64, a.integers[0],
                            ids.shape[0],   ids.shape[1],  ids.strides[0],          ids.strides[1],
                            out.strides[0], out.strides[1]};
}

template <typename T> static void countPositions(const PositionIdsCommand &c) {
  const T *ids = reinterpret_cast<const T *>(c.ids);
  T *out = reinterpret_cast<T *>(c.out);
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t s = 0, tokens = 0; s < c.seq; ++s) {
      bool token = ids[b * c.idsBatch + s * c.idsStride] != c.padding;
      tokens += token;
      out[b * c.outBatch + s * c.outStride] = static_cast<T>(c.padding + (token ? tokens : 0));
    }
}

void execute(const PositionIdsCommand &c, const NamedCommand &, ExecutionContext &) {
  if (c.wide)
    countPositions<int64_t>(c);
  else
    countPositions<int32_t>(c);
}

//===----------------------------------------------------------------------===//
// Copy
//===----------------------------------------------------------------------===//

Result<CopyCommand> resolveCopy(const Tensor &source, const Tensor &dest) {
  if (source.dtype != dest.dtype || source.shape != dest.shape)
    return Status::error("expects equal types and shapes, got ", name(source.dtype), " ",
                         shapeString(source.shape), " and ", name(dest.dtype), " ",
                         shapeString(dest.shape));
  return CopyCommand{source.data, dest.data,
                     runsOf(source.shape, byteSize(source.dtype), source.strides, dest.strides)};
}

Result<CopyCommand> resolvePart(const LibraryArguments &a) {
  Tensor part = a.tensor("source");
  const Tensor dest = a.tensor("dest");
  const auto dim = static_cast<size_t>(a.integers[0]);
  part.shape[dim] /= a.parts;
  part.data += shiftedPosition(a.part, a.integers[1], a.parts) * part.shape[dim] *
               part.strides[dim] * byteSize(part.dtype);
  return resolveCopy(part, dest);
}

AppendCommand resolveAppend(const LibraryArguments &a) {
  const Tensor source = a.tensor("source"), cache = a.tensor("cache");
  const auto dim = static_cast<size_t>(a.integers[0]);
  const int64_t size = byteSize(source.dtype);
  auto inner = [](const std::vector<int64_t> &all) {
    return std::vector<int64_t>(all.begin() + 1, all.end());
  };
  AppendCommand command{};
  command.source = source.data;
  command.cache = cache.data;
  command.runs = runsOf(inner(source.shape), size, inner(source.strides), inner(cache.strides));
  command.positions = integersOf(a, "position");
  command.rows = source.shape[0];
  command.last = cache.shape[dim] - source.shape[dim];
  command.sourceRowBytes = source.strides[0] * size;
  command.cacheRowBytes = cache.strides[0] * size;
  command.stepBytes = cache.strides[dim] * size;
  return command;
}

void execute(const CopyCommand &command, const NamedCommand &, ExecutionContext &) {
  copyRuns(command.runs, command.source, command.dest);
}

} // namespace braid::runtime
