//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Operations.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

int64_t Tensor::numElements() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
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

Integers integersOf(const Tensor &tensor) {
  return {tensor.data, tensor.dtype == DType::i64, tensor.strides[0]};
}

Result<DType> storedType(const char *what, const Tensor &tensor, Storage storage) {
  const DType type = tensor.dtype;
  const bool half = type == DType::f16 || type == DType::bf16;
  if (type == DType::f32 || (half && storage == Storage::halves))
    return type;
  return Status::error(std::string("expects ") + what + " of " +
                       (storage == Storage::halves ? "f32, f16 or bf16" : "f32") + ", got " +
                       name(type));
}

Result<int64_t> Tensor::rowStride() const {
  if (shape.empty())
    return Status::error("expects at least one dimension");
  if (shape.back() != 1 && strides.back() != 1)
    return Status::error("expects a contiguous last dimension of " + shapeString(shape));
  // Dimensions of size 1 have no say; the others must nest without gaps.
  int64_t stride = shape.back(), extent = 0;
  for (size_t d = shape.size() - 1; d-- > 0;) {
    if (shape[d] == 1)
      continue;
    if (extent == 0)
      stride = strides[d];
    else if (strides[d] != extent)
      return Status::error("expects rows of " + shapeString(shape) +
                           " at one stride, got strides " + shapeString(strides));
    extent = strides[d] * shape[d];
  }
  return stride;
}

int64_t shareOut(int64_t work, int64_t grain, int64_t members) {
  return std::max<int64_t>(1, std::min(members, work / grain));
}

static Status expectF32(const char *what, const Tensor &tensor) {
  if (tensor.dtype != DType::f32)
    return Status::error(std::string("expects ") + what + " of f32, got " + name(tensor.dtype));
  return {};
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
      return Status::error("expects operand " + std::to_string(i) + " to have " +
                           std::to_string(rows) + " rows, got " + shapeString(t.shape));
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
  context.team.run(
      static_cast<int64_t>(command.parts.size()),
      [&](int64_t member) {
        command.function(command.parts[static_cast<size_t>(member)].descriptors.data());
      },
      context.control, context.self);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Result<ProductCommand> resolveProduct(const Tensor &lhs, const Tensor &rhs, const Tensor *bias,
                                      const Tensor &out, int64_t threads, ProductCache &products) {
  for (auto [what, tensor] : {std::pair<const char *, const Tensor *>{"lhs", &lhs},
                              {"rhs", &rhs},
                              {"bias", bias},
                              {"out", &out}})
    if (tensor)
      if (Status status = expectF32(what, *tensor); !status.ok())
        return status;
  if (lhs.shape.empty() || rhs.rank() != 2 || out.shape.empty() ||
      lhs.shape.back() != rhs.shape[1] || out.shape.back() != rhs.shape[0] ||
      lhs.rows() != out.rows() ||
      (bias && (bias->numElements() != rhs.shape[0] || !bias->contiguous())))
    return Status::error("expects [.., k] x [n, k] (+ [n]) -> [.., n], got " +
                         shapeString(lhs.shape) + " x " + shapeString(rhs.shape) +
                         (bias ? " + " + shapeString(bias->shape) : "") + " -> " +
                         shapeString(out.shape));
  Result<int64_t> lhsStride = lhs.rowStride(), rhsStride = rhs.rowStride(),
                  outStride = out.rowStride();
  for (const Result<int64_t> *stride : {&lhsStride, &rhsStride, &outStride})
    if (!stride->ok())
      return stride->status();
  int64_t m = lhs.rows(), n = rhs.shape[0], k = rhs.shape[1];
  ProductCommand command;
  if (m == 0 || n == 0)
    return command;
  int64_t members = shareOut(m * n * k, 1 << 18, threads);
  // Rows keep a member's part of `lhs` in its cache; a few rows would starve the registers of a
  // product's inner loop.
  bool byRows = m >= members * 16;
  for (int64_t member = 0; member < members; ++member) {
    Range part = partOf(byRows ? m : n, member, members);
    if (part.begin == part.end)
      continue;
    int64_t size = part.end - part.begin;
    int64_t row = byRows ? part.begin : 0, column = byRows ? 0 : part.begin;
    Result<std::shared_ptr<const Product>> product =
        products.get({byRows ? size : m, byRows ? n : size, k, *lhsStride, *rhsStride, *outStride,
                      bias != nullptr});
    if (!product.ok())
      return product.status();
    ProductCommand::Part bound{
        nullptr, lhs.as<float>() + row * *lhsStride, rhs.as<float>() + column * *rhsStride,
        bias ? bias->as<float>() + column : nullptr, out.as<float>() + row * *outStride + column};
    bound.call = (*product)->bind(bound.lhs, bound.rhs, bound.bias, bound.out);
    command.parts.push_back(std::move(bound));
  }
  return command;
}

void execute(const ProductCommand &command, const NamedCommand &, ExecutionContext &context) {
  context.team.run(
      static_cast<int64_t>(command.parts.size()),
      [&](int64_t member) { command.parts[static_cast<size_t>(member)].call->run(); },
      context.control, context.self);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

Result<GatherCommand> resolveGather(const Tensor &source, const Tensor &ids, const Tensor &out,
                                    int64_t part, int64_t parts, int64_t rows, int64_t threads) {
  if (ids.dtype != DType::i64 && ids.dtype != DType::i32)
    return Status::error(std::string("expects ids of i64 or i32, got ") + name(ids.dtype));
  if (source.dtype != out.dtype || source.rank() != 2 || out.shape.empty() ||
      out.shape.back() != source.shape[1] || out.rows() != ids.numElements() || !ids.contiguous())
    return Status::error(
        "expects table [n, d], contiguous ids [..] and out [.., d] of the table's type, got " +
        shapeString(source.shape) + ", " + shapeString(ids.shape) + " and " +
        shapeString(out.shape));
  Result<int64_t> sourceStride = source.rowStride(), outStride = out.rowStride();
  if (!sourceStride.ok())
    return sourceStride.status();
  if (!outStride.ok())
    return outStride.status();
  int64_t size = byteSize(source.dtype);
  GatherCommand command{};
  command.source = source.data;
  command.tableRows = source.shape[0];
  command.part = part;
  command.parts = parts;
  command.limit = rows ? rows : source.shape[0] * parts;
  command.rowBytes = source.shape[1] * size;
  command.sourceStrideBytes = *sourceStride * size;
  command.ids = ids.data;
  command.wideIds = ids.dtype == DType::i64;
  command.out = out.data;
  command.outStrideBytes = *outStride * size;
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
  context.team.run(
      command.members,
      [&](int64_t member) {
        Range range = partOf(command.count, member, command.members);
        for (int64_t i = range.begin; i < range.end; ++i) {
          int64_t row = id(i);
          if (row < 0 || row >= command.limit) {
            context.control.fail(Status::error(
                "rank " + std::to_string(context.self.rank) + ": " + describe(source) + ": id " +
                    std::to_string(row) + " at position " + std::to_string(i) +
                    " is outside of [0, " + std::to_string(command.limit) + ")",
                Code::invalid)); // the ids came in from outside
            return;
          }
          std::byte *out = command.out + i * command.outStrideBytes;
          row -= command.part * command.tableRows;
          if (row >= 0 && row < command.tableRows)
            std::memcpy(out, command.source + row * command.sourceStrideBytes,
                        static_cast<size_t>(command.rowBytes));
          else // zero has this form in every type
            std::memset(out, 0, static_cast<size_t>(command.rowBytes));
        }
      },
      context.control, context.self);
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Result<PositionIdsCommand> resolvePositionIds(const Tensor &ids, int64_t padding,
                                              const Tensor &out) {
  if ((ids.dtype != DType::i64 && ids.dtype != DType::i32) || ids.rank() != 2 ||
      out.dtype != ids.dtype || out.shape != ids.shape)
    return Status::error(std::string("expects ids and out [b, s] of i64 or i32, got ") +
                         name(ids.dtype) + " " + shapeString(ids.shape) + " and " +
                         name(out.dtype) + " " + shapeString(out.shape));
  return PositionIdsCommand{ids.data,       out.data,      ids.dtype == DType::i64, padding,
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
    return Status::error(std::string("expects equal types and shapes, got ") + name(source.dtype) +
                         " " + shapeString(source.shape) + " and " + name(dest.dtype) + " " +
                         shapeString(dest.shape));
  int64_t size = byteSize(source.dtype);
  CopyCommand command{source.data, dest.data, size, {}, {}, {}};
  // From the last dimension on, what is contiguous on both sides becomes one run, and neighbouring
  // loops that continue each other on both sides become one loop.
  for (size_t d = source.shape.size(); d-- > 0;) {
    int64_t count = source.shape[d];
    int64_t from = source.strides[d] * size, to = dest.strides[d] * size;
    if (count == 0)
      command.runBytes = 0;
    if (count <= 1)
      continue;
    if (command.counts.empty() && from == command.runBytes && to == command.runBytes) {
      command.runBytes *= count;
    } else if (!command.counts.empty() &&
               from == command.sourceStrides.front() * command.counts.front() &&
               to == command.destStrides.front() * command.counts.front()) {
      command.counts.front() *= count;
    } else {
      command.counts.insert(command.counts.begin(), count);
      command.sourceStrides.insert(command.sourceStrides.begin(), from);
      command.destStrides.insert(command.destStrides.begin(), to);
    }
  }
  return command;
}

static void copyNest(const CopyCommand &command, size_t depth, const std::byte *source,
                     std::byte *dest) {
  if (depth == command.counts.size()) {
    std::memcpy(dest, source, static_cast<size_t>(command.runBytes));
    return;
  }
  for (int64_t i = 0; i < command.counts[depth]; ++i)
    copyNest(command, depth + 1, source + i * command.sourceStrides[depth],
             dest + i * command.destStrides[depth]);
}

void runCopy(const CopyCommand &command) {
  if (command.runBytes > 0)
    copyNest(command, 0, command.source, command.dest);
}

void execute(const CopyCommand &command, const NamedCommand &, ExecutionContext &) {
  runCopy(command);
}

} // namespace braid::runtime
