//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Codec.h"

#include "braid/Base/MatmulForm.h"
#include "braid/Base/RowPieces.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace braid::interp {

namespace {

using Outputs = Result<std::vector<Tensor>>;

Outputs single(Result<Tensor> result) {
  RETURN_IF_ERROR(result.status());
  return std::vector<Tensor>{std::move(*result)};
}

Outputs multiply(const KernelCall &c) {
  using Form = runtime::MatmulForm;
  MatmulOperands operands;
  operands.lhs = c.inputs[Form::lhsOperand];
  operands.rhs = c.inputs[Form::rhsOperand];
  operands.bias = c.inputs[Form::biasOperand];
  operands.counts = c.inputs[Form::countsOperand];
  operands.lhsScale = c.inputs[Form::lhsScale];
  operands.rhsScale = c.inputs[Form::rhsScale];
  operands.transposeLhs = c.integers[Form::transposeLhsFlag] != 0;
  operands.transposeRhs = c.integers[Form::transposeRhsFlag] != 0;
  if (c.integers[Form::accumulateFlag] != 0)
    operands.addend = c.inputs[Form::outOperand];
  operands.type = c.outputs[0].dtype;
  return single(matmul(operands));
}

Outputs attend(const KernelCall &c) {
  AttentionOperands operands;
  operands.query = c.inputs[0];
  operands.key = c.inputs[1];
  operands.value = c.inputs[2];
  operands.mask = c.inputs[3];
  operands.validLength = c.inputs[4];
  operands.positionOffset = c.inputs[5];
  operands.scale = c.numbers[0];
  operands.causal = c.integers[0] != 0;
  std::vector<Tensor> outputs(c.outputs.size());
  ASSIGN_OR_RETURN(outputs[0], attention(operands, outputs.size() > 1 ? &outputs[1] : nullptr));
  return outputs;
}

Outputs angles(const KernelCall &c) {
  const ValueType &table = c.outputs[0];
  ASSIGN_OR_RETURN(RotaryTables tables,
                   rotaryTables(table.dtype, table.shape[table.shape.size() - 2],
                                {c.numbers.begin() + 1, c.numbers.end()}, c.numbers[0],
                                c.inputs[0]));
  return std::vector<Tensor>{std::move(tables.cos), std::move(tables.sin)};
}

/// Sorts each row completely.
Outputs largest(const KernelCall &c) {
  const Tensor &input = *c.inputs[0];
  const int64_t n = input.shape().back(), k = c.outputs[0].shape.back();
  std::vector<double> values;
  std::vector<int64_t> indices, order(static_cast<size_t>(n));
  for (const double *row = input.floats(), *end = row + input.numElements(); row < end; row += n) {
    auto rank = [&](int64_t i) {
      const bool isNaN = std::isnan(row[i]);
      return std::tuple(isNaN, isNaN ? 0 : row[i], -i);
    };
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rank(a) > rank(b); });
    for (int64_t i = 0; i < k; ++i) {
      indices.push_back(order[static_cast<size_t>(i)]);
      values.push_back(row[indices.back()]);
    }
  }
  return std::vector<Tensor>{
      Tensor::ofFloats(input.dtype(), c.outputs[0].shape, std::move(values)),
      Tensor::ofInts(c.outputs[1].dtype, c.outputs[1].shape, std::move(indices))};
}

/// Element by element, each at its place in the result.
Outputs reduceDims(const KernelCall &c) {
  const Tensor &input = *c.inputs[0];
  const Shape &shape = c.outputs[0].shape;
  std::vector<double> values(static_cast<size_t>(numElements(shape)));
  std::vector<bool> seen(values.size());
  auto placeOf = [&](int64_t i) {
    const Shape at = unflatten(i, input.shape());
    size_t place = 0;
    for (size_t d = 0; d < at.size(); ++d)
      if ((c.integers[1] >> d & 1) == 0)
        place = place * static_cast<size_t>(input.dim(d)) + static_cast<size_t>(at[d]);
    return place;
  };
  for (int64_t i = 0; i < input.numElements(); ++i) {
    const size_t place = placeOf(i);
    const double x = input.floats()[i], before = values[place];
    if (!seen[place])
      values[place] = x;
    else if (c.integers[0] == 0)
      values[place] += x;
    else if (!std::isnan(before))
      values[place] = std::isnan(x)        ? x
                      : c.integers[0] == 1 ? std::max(before, x)
                                           : std::min(before, x);
    seen[place] = true;
  }
  if (c.outputs.size() == 1)
    return single(Tensor::ofFloats(input.dtype(), shape, std::move(values)));
  const double none = -std::numeric_limits<double>::infinity();
  std::vector<double> sums(values.size());
  for (int64_t i = 0; i < input.numElements(); ++i) {
    const double x = input.floats()[i], most = values[placeOf(i)];
    if (most != none)
      sums[placeOf(i)] += x == most ? 1 : std::exp(x - most);
  }
  return std::vector<Tensor>{Tensor::ofFloats(input.dtype(), shape, std::move(values)),
                             Tensor::ofFloats(DType::f32, shape, std::move(sums))};
}

/// The row of each sequence's last token; zeros where the mask has none.
Outputs lastToken(const KernelCall &c) {
  const Tensor &input = *c.inputs[0], &mask = *c.inputs[1];
  const int64_t seq = input.shape()[1], hidden = input.shape()[2];
  std::vector<double> values;
  for (int64_t b = 0; b < input.shape()[0]; ++b) {
    const double *row = nullptr;
    for (int64_t s = b * seq; s < (b + 1) * seq; ++s)
      if (mask.ints()[s] != 0)
        row = input.floats() + s * hidden;
    for (int64_t h = 0; h < hidden; ++h)
      values.push_back(row ? row[h] : 0);
  }
  return single(Tensor::ofFloats(input.dtype(), c.outputs[0].shape, std::move(values)));
}

/// Element by element, each where its row's position puts it.
Outputs append(const KernelCall &c) {
  const Tensor &source = *c.inputs[0], &position = *c.inputs[1], &cache = *c.inputs[2];
  const auto dim = static_cast<size_t>(c.integers[0]);
  const int64_t capacity = cache.shape()[dim], last = capacity - source.shape()[dim];
  for (int64_t row = 0; row < position.numElements(); ++row)
    if (const int64_t at = position.ints()[row]; at < 0 || at > last)
      return Status::error("position " + std::to_string(at) + " of row " + std::to_string(row) +
                           " is outside of [0, " + std::to_string(last) + "], for a capacity of " +
                           std::to_string(capacity));
  auto write = [&](const auto *old, const auto *elements) {
    std::vector values(old, old + cache.numElements());
    for (int64_t i = 0; i < source.numElements(); ++i) {
      Shape at = unflatten(i, source.shape());
      at[dim] += position.ints()[at[0]];
      int64_t place = 0;
      for (size_t d = 0; d < at.size(); ++d)
        place = place * cache.shape()[d] + at[d];
      values[static_cast<size_t>(place)] = elements[i];
    }
    return values;
  };
  if (runtime::isInteger(cache.dtype()))
    return single(Tensor::ofInts(cache.dtype(), cache.shape(), write(cache.ints(), source.ints())));
  return single(
      Tensor::ofFloats(cache.dtype(), cache.shape(), write(cache.floats(), source.floats())));
}

/// The encoding and the sizes of a payload, as the kernel's arguments say.
struct Payload {
  runtime::Encoding encoding;
  DType type = DType::f32;
  int64_t columns = 0, rowsPerPart = 0, parts = 0, partBytes = 0;
};

int64_t leadingSize(const Shape &shape) {
  return numElements(Shape(shape.begin(), shape.end() - 1));
}

Result<Payload> payloadOf(const KernelCall &c, DType type, const Shape &tensor,
                          const Shape &payload, int64_t senders) {
  Payload result;
  ASSIGN_OR_RETURN(result.encoding,
                   runtime::Encoding::fromCode(static_cast<uint32_t>(c.integers[0])));
  result.type = type;
  result.columns = tensor.back();
  result.parts = leadingSize(payload) / senders;
  result.rowsPerPart = (leadingSize(tensor) + result.parts - 1) / result.parts;
  result.partBytes = payload.back();
  return result;
}

std::vector<uint8_t> headerOf(const Payload &p, int64_t rows) {
  std::vector<uint8_t> bytes{'B', 'Q', 1, static_cast<uint8_t>(p.type)};
  for (uint32_t field :
       {p.encoding.code(), static_cast<uint32_t>(rows), static_cast<uint32_t>(p.columns)})
    for (int i = 0; i < 4; ++i)
      bytes.push_back(static_cast<uint8_t>(field >> 8 * i));
  return bytes;
}

Outputs encode(const KernelCall &c) {
  const Tensor &input = *c.inputs[0];
  ASSIGN_OR_RETURN(Payload p, payloadOf(c, input.dtype(), input.shape(), c.outputs[0].shape, 1));
  const Tensor stored = input.roundedToStorage();
  const int64_t rows = leadingSize(input.shape());
  std::vector<int64_t> bytes;
  for (int64_t part = 0; part < p.parts; ++part) {
    const int64_t first = std::min(part * p.rowsPerPart, rows);
    const int64_t count = std::min(p.rowsPerPart, rows - first);
    // What a rank would send to itself is zeros.
    const bool isOwn = c.parts > 1 && (c.integers[1] + part) % c.parts == c.part;
    std::vector<uint8_t> whole = isOwn ? std::vector<uint8_t>() : headerOf(p, count);
    for (int64_t row = first; row < first + count && !isOwn; ++row) {
      const double *from = stored.floats() + row * p.columns;
      std::vector<float> values;
      for (int64_t i = 0; i < p.columns; ++i)
        values.push_back(static_cast<float>(from[i]));
      const std::vector<uint8_t> encoded = encodeRow(p.encoding, p.type, values);
      whole.insert(whole.end(), encoded.begin(), encoded.end());
    }
    whole.resize(static_cast<size_t>(p.partBytes));
    for (uint8_t byte : whole)
      bytes.push_back(static_cast<int8_t>(byte));
  }
  return single(Tensor::ofInts(DType::i8, c.outputs[0].shape, std::move(bytes)));
}

/// The rows of a part, in f32; rows that do not exist are zeros.
Result<std::vector<float>> decodePart(const Payload &p, const int64_t *bytes, bool absent) {
  std::vector<uint8_t> header;
  for (int i = 0; i < 16; ++i)
    header.push_back(static_cast<uint8_t>(bytes[i]));
  int64_t rows = 0;
  for (size_t i = 8; i < 12; ++i)
    rows |= int64_t(header[i]) << 8 * (i - 8);
  const bool isAbsent = absent && header == std::vector<uint8_t>(16);
  if (!isAbsent && (header != headerOf(p, rows) || rows > p.rowsPerPart))
    return Status::error("expects a payload of " + p.encoding.str() + " with up to " +
                         std::to_string(p.rowsPerPart) + " rows of " + std::to_string(p.columns) +
                         " columns, got another header");
  ASSIGN_OR_RETURN(runtime::PayloadLayout layout,
                   runtime::PayloadLayout::of(p.encoding, p.type, p.rowsPerPart, p.columns, 1));
  std::vector<float> values;
  for (int64_t row = 0; row < p.rowsPerPart; ++row) {
    std::vector<uint8_t> encoded;
    for (int64_t i = 0; i < layout.rowBytes; ++i)
      encoded.push_back(static_cast<uint8_t>(bytes[16 + row * layout.rowBytes + i]));
    std::vector<float> decoded(static_cast<size_t>(p.columns));
    if (!isAbsent) {
      ASSIGN_OR_RETURN(decoded, decodeRow(p.encoding, p.type, p.columns, encoded));
    }
    values.insert(values.end(), decoded.begin(), decoded.end());
  }
  return values;
}

/// The tensors of all senders, added in their order. The second input, if there is one, is that of
/// this rank, as it is.
Outputs decodeAll(const KernelCall &c, int64_t senders, bool absent) {
  const Tensor &payload = *c.inputs[0];
  const ValueType &type = c.outputs[0];
  ASSIGN_OR_RETURN(Payload p, payloadOf(c, static_cast<DType>(c.integers[1]), type.shape,
                                        payload.shape(), senders));
  const auto count = static_cast<size_t>(numElements(type.shape));
  std::vector<float> sum;
  const Tensor *own = c.inputs.size() > 1 ? c.inputs[1] : nullptr;
  for (int64_t sender = 0; sender < senders; ++sender) {
    std::vector<float> values;
    const bool isOwn = own && sender == c.part;
    if (isOwn) {
      const Tensor stored = own->roundedToStorage();
      for (size_t i = 0; i < count; ++i)
        values.push_back(static_cast<float>(stored.floats()[i]));
    }
    for (int64_t part = 0; part < p.parts && !isOwn; ++part) {
      ASSIGN_OR_RETURN(
          std::vector<float> rows,
          decodePart(p, payload.ints() + (sender * p.parts + part) * p.partBytes, absent));
      values.insert(values.end(), rows.begin(), rows.end());
    }
    values.resize(count);
    if (sender == 0)
      sum = std::move(values);
    else
      for (size_t i = 0; i < count; ++i)
        sum[i] += values[i];
  }
  std::vector<double> result;
  for (float value : sum)
    result.push_back(static_cast<double>(castTo(type.dtype, value)));
  return single(Tensor::ofFloats(type.dtype, type.shape, std::move(result)));
}

/// Rows as the half of the pair that the codes say gives them back, or as they are. With a group,
/// rows that the rank adds itself are as they are.
Outputs fakeQuantize(const KernelCall &c) {
  const Tensor &input = *c.inputs[0], &codes = *c.inputs[1];
  const ValueType &type = c.outputs[0];
  const int64_t columns = input.shape().back(), rows = leadingSize(input.shape());
  std::vector<std::optional<runtime::Encoding>> halves(2);
  for (size_t i = 0; i < 2; ++i)
    if (const int64_t code = codes.ints()[i]; code < 0 || code > UINT32_MAX) {
      return Status::error("expects the code of an encoding or 0, got " + std::to_string(code));
    } else if (code != 0) {
      ASSIGN_OR_RETURN(halves[i], runtime::Encoding::fromCode(static_cast<uint32_t>(code)));
    }
  const auto &half = halves[static_cast<size_t>(c.integers[0])];
  const int64_t pieces = halves[0] && halves[1] ? runtime::rowPieces({*halves[0], *halves[1]}, rows,
                                                                     columns, c.integers[1])
                                                : 1;
  const Tensor stored = input.roundedToStorage();
  std::vector<double> result;
  const int64_t length = columns / pieces, parts = c.integers[2] * c.parts,
                rowsOfPart = (rows * pieces + parts - 1) / parts;
  for (int64_t begin = 0; begin < stored.numElements(); begin += length) {
    std::vector<float> values;
    for (int64_t i = begin; i < begin + length; ++i)
      values.push_back(static_cast<float>(stored.floats()[i]));
    const bool isOwn = c.parts > 1 && begin / length / rowsOfPart % c.parts == c.part;
    const bool isEncoded = half && !isOwn;
    if (isEncoded) {
      ASSIGN_OR_RETURN(
          values, decodeRow(*half, input.dtype(), length, encodeRow(*half, input.dtype(), values)));
    }
    for (float value : values)
      result.push_back(static_cast<double>(isEncoded ? castTo(type.dtype, value) : value));
  }
  return single(Tensor::ofFloats(type.dtype, type.shape, std::move(result)));
}

} // namespace

Result<std::vector<Tensor>> computeLibraryKernel(const std::string &name, const KernelCall &call) {
  using Compute = Outputs (*)(const KernelCall &);
  static const std::map<std::string, Compute> kernels = {
      {"matmul", multiply},
      {"attention", attend},
      {"rotary_table", angles},
      {"rotary",
       [](const KernelCall &c) {
         return single(rotary(*c.inputs[0], *c.inputs[1], *c.inputs[2]));
       }},
      {"embedding",
       [](const KernelCall &c) {
         return single(embedding(*c.inputs[1], *c.inputs[0], {c.part, c.parts, c.integers[0]}));
       }},
      {"top_k", largest},
      {"reduce_dims", reduceDims},
      {"last_token", lastToken},
      {"append", append},
      {"encode", encode},
      {"decode", [](const KernelCall &c) { return decodeAll(c, 1, c.integers[2] != 0); }},
      {"decode_sum", [](const KernelCall &c) { return decodeAll(c, c.integers[2], false); }},
      {"fake_quantize", fakeQuantize},
      {"quantize_rows",
       [](const KernelCall &c) -> Outputs {
         QuantizedRows rows = quantizeRows(*c.inputs[0]);
         return std::vector<Tensor>{std::move(rows.values), std::move(rows.scales)};
       }},
      {"position_ids",
       [](const KernelCall &c) { return single(positionIds(*c.inputs[0], c.integers[0])); }},
      {"part",
       [](const KernelCall &c) {
         return single(sliceShard(*c.inputs[0], c.integers[0],
                                  runtime::shiftedPosition(c.part, c.integers[1], c.parts),
                                  c.parts));
       }},
  };
  auto kernel = kernels.find(name);
  if (kernel == kernels.end())
    return Status::error("the interpreter knows no library kernel '" + name + "'");
  return kernel->second(call);
}

} // namespace braid::interp
