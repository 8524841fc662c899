//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Operations.h"
#include "braid/Base/CollectiveKind.h"
#include "braid/Base/MatmulForm.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::runtime {

size_t LibraryArguments::place(const char *operand) const {
  size_t i = 0;
  while (std::strcmp(kernel->operands[i].name, operand) != 0)
    ++i;
  return i;
}

Tensor LibraryArguments::tensor(const char *operand) const {
  const size_t i = place(operand);
  return {data[i], operands[i]->dtype, operands[i]->shape, operands[i]->strides};
}

Result<DType> storedType(const LibraryArguments &arguments, Storage storage) {
  std::optional<DType> type;
  for (size_t i = 0; i < arguments.operands.size(); ++i) {
    if (!arguments.LibraryCall::has(i) || !arguments[i].isFloat() ||
        arguments.kernel->operands[i].elements == Elements::f32 ||
        arguments.kernel->operands[i].elements == Elements::encoded)
      continue;
    const OperandType &operand = arguments[i];
    const DType got = operand.dtype;
    const bool half = got == DType::f16 || got == DType::bf16;
    if (type ? got != *type : got != DType::f32 && !(half && storage == Storage::halves))
      return Status::error("expects ", arguments.kernel->operands[i].name, " of ",
                           type                         ? name(*type)
                           : storage == Storage::halves ? "f32, f16 or bf16"
                                                        : "f32",
                           ", got ", name(got));
    type = got;
    if (operand.shape.back() != 1 && operand.strides.back() != 1)
      return Status::error("expects a contiguous last dimension of ",
                           arguments.kernel->operands[i].name, " ", shapeString(operand.shape),
                           ", got strides ", shapeString(operand.strides));
  }
  return *type;
}

namespace {

/// A command that an `execute` of Operations.h runs.
template <typename Op> class OperationRun : public LibraryRun {
public:
  explicit OperationRun(Op op) : op(std::move(op)) {}
  void run(const NamedCommand &source, ExecutionContext &context) const override {
    execute(op, source, context);
  }

private:
  Op op;
};

template <typename Op> Result<LibraryCommand> ready(Result<Op> op) {
  RETURN_IF_ERROR(op.status());
  return LibraryCommand(std::make_shared<OperationRun<Op>>(std::move(*op)));
}

//===----------------------------------------------------------------------===//
// top_k
//===----------------------------------------------------------------------===//

/// Offset of a row in elements; all dimensions but the last count rows.
int64_t rowOffset(const Tensor &tensor, int64_t row) {
  int64_t offset = 0;
  for (size_t d = tensor.shape.size() - 1; d-- > 0; row /= tensor.shape[d])
    offset += row % tensor.shape[d] * tensor.strides[d];
  return offset;
}

/// Largest first; a NaN is larger than every number.
bool comesBefore(float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

class TopK : public LibraryRun {
public:
  TopK(const LibraryArguments &a, int64_t threads)
      : input(a.tensor("input")), values(a.tensor("values")), indices(a.tensor("indices")),
        rows(a.rows()), members(std::min(rows, shareOut(a.kernel->flops(a), 1 << 14, threads))) {}

  void run(const NamedCommand &, ExecutionContext &context) const override {
    context.share(members, [&](int64_t member) {
      const Range part = partOf(rows, member, members);
      for (int64_t row = part.begin; row < part.end; ++row)
        if (indices.dtype == DType::i64)
          choose<int64_t>(row);
        else
          choose<int32_t>(row);
    });
  }

private:
  /// Inserts each element into the largest so far, after equal ones.
  template <typename Id> void choose(int64_t row) const {
    const float *in = input.as<float>() + rowOffset(input, row);
    float *value = values.as<float>() + rowOffset(values, row);
    Id *index = indices.as<Id>() + rowOffset(indices, row);
    const int64_t k = values.shape.back(), step = values.strides.back(),
                  indexStep = indices.strides.back();
    for (int64_t i = 0, count = 0; i < input.shape.back(); ++i) {
      const float x = in[i * input.strides.back()];
      if (count == k && !comesBefore(x, value[(k - 1) * step]))
        continue;
      int64_t at = count < k ? count++ : k - 1;
      for (; at > 0 && comesBefore(x, value[(at - 1) * step]); --at) {
        value[at * step] = value[(at - 1) * step];
        index[at * indexStep] = index[(at - 1) * indexStep];
      }
      value[at * step] = x;
      index[at * indexStep] = static_cast<Id>(i);
    }
  }

  Tensor input, values, indices;
  int64_t rows, members;
};

Result<LibraryCommand> resolveTopK(const LibraryArguments &a, int64_t threads) {
  RETURN_IF_ERROR(storedType(a, Storage::f32).status());
  return LibraryCommand(std::make_shared<TopK>(a, threads));
}

//===----------------------------------------------------------------------===//
// last_token
//===----------------------------------------------------------------------===//

class LastToken : public LibraryRun {
public:
  explicit LastToken(const LibraryArguments &a)
      : input(a.tensor("input")), mask(a.tensor("mask")), out(a.tensor("out")) {}

  void run(const NamedCommand &, ExecutionContext &) const override {
    const int64_t size = byteSize(input.dtype);
    for (int64_t b = 0; b < input.shape[0]; ++b) {
      const Integers valid{mask.data + b * mask.strides[0] * byteSize(mask.dtype),
                           mask.dtype == DType::i64, mask.strides[1]};
      int64_t last = input.shape[1] - 1;
      while (last >= 0 && valid[last] == 0)
        --last;
      std::byte *row = out.data + b * out.strides[0] * size;
      const auto bytes = static_cast<size_t>(input.shape[2] * size);
      if (last >= 0)
        std::memcpy(row, input.data + (b * input.strides[0] + last * input.strides[1]) * size,
                    bytes);
      else // zero has this form in every type
        std::memset(row, 0, bytes);
    }
  }

private:
  Tensor input, mask, out;
};

Result<LibraryCommand> resolveLastToken(const LibraryArguments &a) {
  // Rows are copied, so any stored type will do.
  RETURN_IF_ERROR(storedType(a, Storage::halves).status());
  return LibraryCommand(std::make_shared<LastToken>(a));
}

//===----------------------------------------------------------------------===//
// reduce_dims
//===----------------------------------------------------------------------===//

/// A dimension of input, and of the outputs if it is kept.
struct ReducedDim {
  int64_t size, in, out, expSum;
};

/// Calls `body` with the offsets in input of all positions of `dims`.
template <typename Body>
void forEachPosition(const std::vector<ReducedDim> &dims, size_t d, int64_t in, const Body &body) {
  if (d == dims.size())
    return body(in);
  for (int64_t i = 0; i < dims[d].size; ++i)
    forEachPosition(dims, d + 1, in + i * dims[d].in, body);
}

/// Adjacent elements of out, a run of its last dimension, are reduced together, so that columns are
/// read along rows.
class ReduceDims : public LibraryRun {
public:
  ReduceDims(const LibraryArguments &a, int64_t threads)
      : input(a.tensor("input").as<float>()), out(a.tensor("out").as<float>()),
        kind(static_cast<ReduceKind>(a.integers[0])) {
    const Tensor in = a.tensor("input"), result = a.tensor("out");
    const bool pair = a.has("exp_sum");
    const Tensor sums = pair ? a.tensor("exp_sum") : Tensor();
    expSum = pair ? sums.as<float>() : nullptr;
    for (size_t d = 0, k = 0; d < in.shape.size(); ++d)
      if ((a.integers[1] >> d & 1) != 0) {
        reduced.push_back({in.shape[d], in.strides[d], 0, 0});
      } else {
        kept.push_back({in.shape[d], in.strides[d], result.strides[k], pair ? sums.strides[k] : 0});
        ++k;
      }
    // Where the rows themselves are reduced, one element at a time reads along a row.
    if (!kept.empty() && kept.back().in <= reduced.back().in) {
      columns = kept.back();
      kept.pop_back();
    }
    for (const ReducedDim &dim : kept)
      outer *= dim.size;
    blocks = (columns.size + kBlock - 1) / kBlock;
    members = std::min(outer * blocks, shareOut(a.kernel->flops(a), 1 << 15, threads));
  }

  void run(const NamedCommand &, ExecutionContext &context) const override {
    context.share(members, [&](int64_t member) {
      const Range part = partOf(outer * blocks, member, members);
      for (int64_t unit = part.begin; unit < part.end; ++unit)
        reduce(unit);
    });
  }

private:
  static constexpr int64_t kBlock = 128;

  void reduce(int64_t unit) const {
    int64_t in = 0, to = 0, sumTo = 0, row = unit / blocks;
    for (size_t d = kept.size(); d-- > 0; row /= kept[d].size) {
      in += row % kept[d].size * kept[d].in;
      to += row % kept[d].size * kept[d].out;
      sumTo += row % kept[d].size * kept[d].expSum;
    }
    const int64_t begin = unit % blocks * kBlock, size = std::min(kBlock, columns.size - begin);
    double values[kBlock];
    bool first = true;
    forEachPosition(reduced, 0, in + begin * columns.in, [&](int64_t at) {
      for (int64_t i = 0; i < size; ++i) {
        const double x = static_cast<double>(input[at + i * columns.in]);
        values[i] = first ? x : combine(values[i], x);
      }
      first = false;
    });
    for (int64_t i = 0; i < size; ++i)
      out[to + (begin + i) * columns.out] = static_cast<float>(values[i]);
    if (!expSum)
      return;
    float maxima[kBlock];
    double sums[kBlock] = {};
    for (int64_t i = 0; i < size; ++i)
      maxima[i] = static_cast<float>(values[i]);
    forEachPosition(reduced, 0, in + begin * columns.in, [&](int64_t at) {
      for (int64_t i = 0; i < size; ++i) {
        const float x = input[at + i * columns.in];
        // The difference of equal infinities would be no number.
        sums[i] += x == maxima[i] ? 1.0 : static_cast<double>(std::exp(x - maxima[i]));
      }
    });
    for (int64_t i = 0; i < size; ++i)
      expSum[sumTo + (begin + i) * columns.expSum] =
          maxima[i] == -INFINITY ? 0.0f : static_cast<float>(sums[i]);
  }

  double combine(double a, double b) const {
    if (kind == ReduceKind::sum)
      return a + b;
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? a : b;
    return kind == ReduceKind::max ? std::max(a, b) : std::min(a, b);
  }

  const float *input;
  float *out, *expSum = nullptr; ///< expSum may be null
  ReduceKind kind;
  std::vector<ReducedDim> kept, reduced;
  ReducedDim columns{1, 0, 0, 0};
  int64_t outer = 1, blocks = 1, members = 1;
};

Result<LibraryCommand> resolveReduceDims(const LibraryArguments &a, int64_t threads) {
  for (size_t i : {size_t(0), size_t(1)})
    if (a[i].dtype != DType::f32)
      return Status::error("reduce_dims of ", name(a[i].dtype),
                           " is not implemented on target 'cpu'");
  return LibraryCommand(std::make_shared<ReduceDims>(a, threads));
}

//===----------------------------------------------------------------------===//
// append
//===----------------------------------------------------------------------===//

class Append : public LibraryRun {
public:
  explicit Append(const LibraryArguments &a) : call(a), at(resolveAppend(a)) {}

  void run(const NamedCommand &source, ExecutionContext &context) const override {
    for (int64_t row = 0; row < at.rows; ++row)
      if (const int64_t position = at.positions[row]; position < 0 || position > at.last) {
        context.control.fail(
            appendError(call, position, row)
                .within("rank " + std::to_string(context.self.rank) + ": " + describe(source)));
        return;
      }
    for (int64_t row = 0; row < at.rows; ++row)
      copyRuns(at.runs, at.source + row * at.sourceRowBytes,
               at.cache + row * at.cacheRowBytes + at.positions[row] * at.stepBytes);
  }

private:
  LibraryCall call;
  AppendCommand at;
};

/// How the CPU runs each kernel.
struct CpuKernel {
  const char *name;
  Result<LibraryCommand> (*resolve)(const LibraryArguments &a, const CpuResources &r);
};
constexpr CpuKernel kCpuKernels[] = {
    {"matmul",
     [](auto &a, auto &r) {
       return a[MatmulForm::lhsOperand].dtype == DType::i8
                  ? resolveInt8Matmul(a, r.threads)
                  : ready(resolveMatmul(a, r.threads, *r.matmuls));
     }},
    {"quantize_rows", [](auto &a, auto &r) { return resolveQuantizeRows(a, r.threads); }},
    {"attention",
     [](auto &a, auto &r) { return ready(resolveAttention(a, r.threads, r.queryBlock)); }},
    {"rotary_table", [](auto &a, auto &r) { return ready(resolveRotaryTable(a, r.threads)); }},
    {"rotary", [](auto &a, auto &r) { return ready(resolveRotary(a, r.threads)); }},
    {"embedding", [](auto &a, auto &r) { return ready(resolveGather(a, r.threads)); }},
    {"position_ids", [](auto &a, auto &) { return ready(resolvePositionIds(a)); }},
    {"part", [](auto &a, auto &) { return ready(resolvePart(a)); }},
    {"top_k", [](auto &a, auto &r) { return resolveTopK(a, r.threads); }},
    {"reduce_dims", [](auto &a, auto &r) { return resolveReduceDims(a, r.threads); }},
    {"last_token", [](auto &a, auto &) { return resolveLastToken(a); }},
    {"encode", [](auto &a, auto &r) { return resolveEncode(a, r.threads); }},
    {"decode", [](auto &a, auto &r) { return resolveDecode(a, r.threads); }},
    {"decode_sum", [](auto &a, auto &r) { return resolveDecode(a, r.threads); }},
    {"fake_quantize", [](auto &a, auto &r) { return resolveFakeQuantize(a, r); }},
    {"append",
     [](auto &a, auto &) -> Result<LibraryCommand> { return {std::make_shared<Append>(a)}; }},
};

} // namespace

Result<LibraryCommand> resolveLibrary(const LibraryArguments &arguments,
                                      const CpuResources &resources) {
  for (const CpuKernel &kernel : kCpuKernels)
    if (std::strcmp(kernel.name, arguments.kernel->name) == 0)
      return kernel.resolve(arguments, resources);
  return Status::error("has no kernel '", arguments.kernel->name, "' on target 'cpu'");
}

} // namespace braid::runtime
