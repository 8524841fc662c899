//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/LibraryKernels.h"

#include "braid/Base/Encoding.h"
#include "braid/Base/MatmulForm.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cmath>

namespace braid::runtime {

namespace {

using Shape = std::vector<int64_t>;
using Group = LibraryKernel::Group;

double elements(const OperandType &operand) {
  double count = 1;
  for (int64_t size : operand.shape)
    count *= static_cast<double>(size);
  return count;
}

Status expectShape(const LibraryCall &call, size_t operand, const Shape &shape) {
  if (!call.has(operand))
    return {};
  return runtime::expectShape(call.kernel->operands[operand].name, call[operand], shape);
}
Status expectRank(const LibraryCall &call, size_t operand, size_t rank) {
  return runtime::expectRank(call.kernel->operands[operand].name, call[operand], rank);
}

/// MatmulForm.h
namespace matmul {
Status check(const LibraryCall &c) { return MatmulForm::of(c).status(); }
double flops(const LibraryCall &c) {
  const Shape &lhs = c[MatmulForm::lhsOperand].shape;
  const bool transposed = c.integers[MatmulForm::transposeLhsFlag] != 0;
  return 2 * elements(c[MatmulForm::outOperand]) *
         static_cast<double>(lhs[lhs.size() - (transposed ? 2 : 1)]);
}
} // namespace matmul

/// out[b, s, h, :] = softmax_t(scale * query[b, s, h, :] . key[b, t, h', :] masked) value[b, t, h',
/// :] with h' = h / (heads / kv_heads). Key t takes part when mask[b, t] != 0 (if given), t <
/// valid_length[b] (if given) and, if causal, t <= s + position_offset[b] (0 if not given). A query
/// without any key gives zeros. log_sum[b, s, h] = log(sum_t exp(scale * query . key)) over the
/// same keys, -infinity without any.
namespace attention {
enum { query, key, value, mask, length, offset, out, logSum };
Status check(const LibraryCall &c) {
  RETURN_IF_ERROR(firstOf({expectRank(c, query, 4), expectRank(c, key, 4)}));
  const Shape &q = c[query].shape, &k = c[key].shape;
  RETURN_IF_ERROR(expectRank(c, value, 4));
  const int64_t valueDim = c[value].shape[3];
  Status status =
      firstOf({expectShape(c, key, {q[0], k[1], k[2], q[3]}),
               expectShape(c, value, {k[0], k[1], k[2], valueDim}),
               expectShape(c, out, {q[0], q[1], q[2], valueDim}),
               expectShape(c, logSum, {q[0], q[1], q[2]}), expectShape(c, mask, {q[0], k[1]}),
               expectShape(c, length, {q[0]}), expectShape(c, offset, {q[0]})});
  if (status.ok() && (k[2] == 0 || q[2] % k[2] != 0))
    return Status::error("expects query heads to divide among ", k[2], " key/value heads, got ",
                         q[2]);
  return status;
}
double flops(const LibraryCall &c) {
  return 2 * static_cast<double>(c[key].shape[1]) * (elements(c[query]) + elements(c[out]));
}
} // namespace attention

/// cos[(b,) s, i] = scale * cos(position * frequencies[i]), in f64 before it is rounded, with
/// position = s, or s + position_offset[b] for tables that have a batch; sin likewise.
namespace rotaryTable {
enum { offset, cos, sin };
Status check(const LibraryCall &c) {
  RETURN_IF_ERROR(expectRank(c, cos, c.has(offset) ? 3 : 2));
  Shape shape = c[cos].shape;
  shape.back() = static_cast<int64_t>(c.numbers.size()) - 1; // after the scale
  return firstOf(
      {expectShape(c, cos, shape), expectShape(c, sin, shape), expectShape(c, offset, {shape[0]})});
}
double flops(const LibraryCall &c) { return 4 * elements(c[cos]); }
} // namespace rotaryTable

/// x is the first and y the second part of a head's row, of equal sizes: out = (x * cos - y * sin,
/// y * cos + x * sin).
namespace rotary {
enum { input, cos, sin, out };
Status check(const LibraryCall &c) {
  RETURN_IF_ERROR(expectRank(c, input, 4));
  const Shape &in = c[input].shape;
  if (in[3] % 2 != 0)
    return Status::error("input: expects an even last dimension, got shape ", shapeString(in));
  Shape table{in[0], in[1], in[3] / 2};
  if (c[cos].rank() == 2)
    table.erase(table.begin());
  return firstOf({expectShape(c, cos, table), expectShape(c, sin, table), expectShape(c, out, in)});
}
double flops(const LibraryCall &c) { return 3 * elements(c[out]); }
} // namespace rotary

/// out[..., :] = table[ids[...], :]; an id outside of the table is an error that names it. With a
/// group, `table` is the shard at this rank's position: an id in another shard gives zeros. With
/// `rows`, the full table has that many rows: the rest is padding, and an id there is outside.
namespace embedding {
enum { table, ids, out };
Status check(const LibraryCall &c) {
  RETURN_IF_ERROR(expectRank(c, table, 2));
  // Strides of zero make large tables of little memory; the ids of all shards together must fit 64
  // bits.
  const Shape &shape = c[table].shape;
  const std::optional<int64_t> rows = checkedMul(shape[0], c.parts);
  if (!rows)
    return Status::error("table: ", c.parts, " times the rows of shape ", shapeString(shape),
                         " are too many");
  if (c.integers[0] < 0 || c.integers[0] > *rows)
    return Status::error("expects rows of 0 to ", *rows, ", got ", c.integers[0]);
  if (!c[ids].isContiguous())
    return Status::error("expects contiguous ids, got ", shapeString(c[ids].shape),
                         " with strides ", shapeString(c[ids].strides));
  Shape result = c[ids].shape;
  result.push_back(shape[1]);
  RETURN_IF_ERROR(expectShape(c, out, result));
  if (!c[out].isFlattenable(c[out].rank() - 1))
    return Status::error("out: expects leading dimensions that can be walked as one, got shape ",
                         shapeString(c[out].shape), " and strides ", shapeString(c[out].strides));
  return {};
}
} // namespace embedding

/// out[b, s] = padding where ids[b, s] is padding, else padding plus the number of ids at positions
/// 0 to s that are not.
namespace positionIds {
enum { ids, out };
Status check(const LibraryCall &c) {
  RETURN_IF_ERROR(firstOf({expectRank(c, ids, 2), expectShape(c, out, c[ids].shape)}));
  // The last position is padding plus the number of ids in a row.
  const bool wide = c[ids].dtype == DType::i64;
  const int64_t most = wide ? INT64_MAX : INT32_MAX, least = wide ? INT64_MIN : INT32_MIN;
  const int64_t length = c[ids].shape[1], padding = c.integers[0];
  if (padding < least || padding > most - std::min(most, length))
    return Status::error("expects padding from which ", length, " positions can be counted in ",
                         name(c[ids].dtype), ", got ", padding);
  return {};
}
} // namespace positionIds

/// dest = the part of source along `dim` at this rank's position plus `shift`.
namespace part {
enum { source, dest };
Status check(const LibraryCall &c) {
  return expectShardOf(c[source], "source", c[dest], "dest", c.integers[0], c.parts);
}
} // namespace part

/// values[i..., :] = the largest of input[i..., :], largest first, indices[i..., :] = their
/// positions. Among equals the lower index comes first; a NaN is larger than every number.
namespace topK {
enum { input, values, indices };
Status check(const LibraryCall &c) {
  const Shape &in = c[input].shape;
  if (in.empty())
    return Status::error("input: expects at least 1 dimension");
  RETURN_IF_ERROR(expectRank(c, values, in.size()));
  Shape result = in;
  result.back() = c[values].shape.back();
  if (result.back() < 1 || result.back() > in.back())
    return Status::error("values: expects 1 to ", in.back(), " of the last dimension, got shape ",
                         shapeString(c[values].shape));
  if (c[indices].dtype == DType::i32 && in.back() > INT32_MAX)
    return Status::error("indices: expects i64 for a last dimension of ", in.back());
  return firstOf({expectShape(c, values, result), expectShape(c, indices, result)});
}
double flops(const LibraryCall &c) { return elements(c[input]); }
} // namespace topK

/// out[b, 0, :] = input[b, s, :], where s is the last position with mask[b, s] != 0; zeros where
/// the mask has none.
namespace lastToken {
enum { input, mask, out };
Status check(const LibraryCall &c) {
  RETURN_IF_ERROR(expectRank(c, input, 3));
  const Shape &in = c[input].shape;
  return firstOf({expectShape(c, mask, {in[0], in[1]}), expectShape(c, out, {in[0], 1, in[2]})});
}
} // namespace lastToken

/// out = the sum, maximum or minimum (ReduceKind as an integer) of input over the dimensions whose
/// bits are set, accumulated in f32 or wider. A NaN gives NaN. exp_sum, of a maximum, is the sum of
/// exp(input - out) over the same elements: those that equal out count as 1, and if out is
/// -infinity, it is 0.
namespace reduceDims {
enum { input, out, expSum };
Status check(const LibraryCall &c) {
  const Shape &in = c[input].shape;
  const int64_t kind = c.integers[0], dims = c.integers[1];
  if (kind < 0 || kind > 2)
    return Status::error("expects kind of 0 to 2, got ", kind);
  if (dims < 1 || dims >> in.size() != 0)
    return Status::error("expects dims of bits below ", in.size(), ", at least one, got ", dims);
  Shape kept;
  for (size_t d = 0; d < in.size(); ++d)
    if ((dims >> d & 1) == 0)
      kept.push_back(in[d]);
  if (c.has(expSum) && kind != 1)
    return Status::error("expects exp_sum of kind 1 only, got kind ", kind);
  return firstOf({expectShape(c, out, kept), expectShape(c, expSum, kept)});
}
double flops(const LibraryCall &c) { return elements(c[input]) * (c.has(expSum) ? 4 : 1); }
} // namespace reduceDims

/// cache[b, i..., position[b] + j, k...] = source[b, i..., j, k...] along `dim`; a position for
/// which not all of source fits is an error.
namespace append {
enum { source, position, cache };
Status check(const LibraryCall &c) {
  Shape shape = c[cache].shape;
  const int64_t dim = c.integers[0];
  if (dim < 1 || dim >= static_cast<int64_t>(shape.size()))
    return Status::error("expects dim of 1 to ", static_cast<int64_t>(shape.size()) - 1, ", got ",
                         dim);
  RETURN_IF_ERROR(expectRank(c, source, shape.size()));
  const auto d = static_cast<size_t>(dim);
  const int64_t size = c[source].shape[d];
  if (size < 1 || size > shape[d])
    return Status::error("source: expects 1 to ", shape[d], " in dimension ", dim, ", got shape ",
                         shapeString(c[source].shape));
  shape[d] = size;
  return firstOf({expectShape(c, source, shape), expectShape(c, position, {shape[0]})});
}
} // namespace append

/// The payloads of Encoding.h: the last dimension of a payload is the bytes of a part, the others
/// count parts. `code` and `type` are Encoding::code and the DType of the tensor that was encoded,
/// whose rows are all dimensions but the last. With a group, of as many ranks as senders,
/// decode_sum does not read the payload at this rank's position: `own` has these rows, as they were
/// before they were encoded.
namespace codec {
enum { input, output };
enum { payload, own = kOwnRows, sum }; // of decode_sum
enum { code, type, absentOrSenders };
enum { first = 1 }; // of encode
Result<int64_t> leadingSize(const LibraryCall &c, size_t operand) {
  const OperandType &view = c[operand];
  const std::string role = c.kernel->operands[operand].name;
  if (view.shape.empty())
    return Status::error(role, ": expects at least 1 dimension");
  if (!view.isFlattenable(view.rank() - 1) || (view.shape.back() != 1 && view.strides.back() != 1))
    return Status::error(role,
                         ": expects leading dimensions that can be walked as one and a contiguous "
                         "last one, got shape ",
                         shapeString(view.shape), " and strides ", shapeString(view.strides));
  const std::optional<int64_t> size =
      checkedNumElements(Shape(view.shape.begin(), view.shape.end() - 1));
  if (!size || *size < 1)
    return Status::error(role, ": expects at least one row and fewer than 2^63, got shape ",
                         shapeString(view.shape));
  return *size;
}
/// Of a tensor whose payloads of `senders` ranks follow each other.
Result<PayloadLayout> layout(const LibraryCall &c, size_t tensor, size_t payload, int64_t dtype,
                             int64_t senders) {
  ASSIGN_OR_RETURN(int64_t rows, leadingSize(c, tensor));
  ASSIGN_OR_RETURN(int64_t parts, leadingSize(c, payload));
  if (c.integers[code] < 0 || c.integers[code] > UINT32_MAX)
    return Status::error("expects the code of an encoding, got ", c.integers[code]);
  ASSIGN_OR_RETURN(Encoding encoding, Encoding::fromCode(static_cast<uint32_t>(c.integers[code])));
  if (dtype < 0 || dtype > static_cast<int64_t>(DType::i8))
    return Status::error("expects the number of an element type, got ", dtype);
  if (senders < 1 || parts % senders != 0)
    return Status::error("payload: expects the parts of ", senders, " ranks, got shape ",
                         shapeString(c[payload].shape));
  ASSIGN_OR_RETURN(PayloadLayout layout,
                   PayloadLayout::of(encoding, static_cast<DType>(dtype), rows,
                                     c[tensor].shape.back(), parts / senders));
  Shape shape = c[payload].shape;
  shape.back() = layout.partBytes;
  RETURN_IF_ERROR(expectShape(c, payload, shape));
  return layout;
}
Result<PayloadLayout> encode(const LibraryCall &c) {
  if (const int64_t position = c.integers[first]; position < 0 || position >= c.parts)
    return Status::error("expects first in [0, ", c.parts, "), got ", position);
  return layout(c, input, output, static_cast<int64_t>(c[input].dtype), 1);
}
Result<PayloadLayout> decode(const LibraryCall &c) {
  if (const int64_t absent = c.integers[absentOrSenders]; absent != 0 && absent != 1)
    return Status::error("expects absent of 0 or 1, got ", absent);
  return layout(c, output, input, c.integers[type], 1);
}
Result<PayloadLayout> decodeSum(const LibraryCall &c) {
  return layout(c, sum, payload, c.integers[type], c.integers[absentOrSenders]);
}
template <auto layoutOf> Status check(const LibraryCall &c) { return layoutOf(c).status(); }
Status checkSum(const LibraryCall &c) {
  RETURN_IF_ERROR(decodeSum(c).status());
  if (!c.has(own))
    return c.parts == 1 ? Status()
                        : Status::error("expects own of a sum in a group of ", c.parts, " ranks");
  const int64_t senders = c.integers[absentOrSenders];
  if (c.parts != senders)
    return Status::error("expects a group of ", senders, " ranks, as many as senders, got ",
                         c.parts);
  RETURN_IF_ERROR(leadingSize(c, own).status());
  return firstOf({expectShape(c, own, c[sum].shape),
                  runtime::expectType("own", c[own], static_cast<DType>(c.integers[type]))});
}
/// A pass for the extremes and one for the codes.
double encodeFlops(const LibraryCall &c) { return 6 * elements(c[input]) * encodedShare(c); }
double decodeFlops(const LibraryCall &c) { return 2 * elements(c[output]); }
double decodeSumFlops(const LibraryCall &c) {
  return 3 * elements(c[sum]) * static_cast<double>(c.integers[absentOrSenders]);
}
} // namespace codec

/// The rows of a tensor as an encoding gives them back, each half of a pair by its code: 0 for
/// none. With a group, rows, or pieces of them, are in `parts` parts for each of its ranks, as in
/// a payload, and those for this rank are as they were.
namespace fakeQuantize {
enum { input, encodings, output };
enum { half, ranks, parts };
Status check(const LibraryCall &c) {
  if (const int64_t got = c.integers[half]; got != 0 && got != 1)
    return Status::error("expects half of 0 (reduce) or 1 (gather), got ", got);
  if (const int64_t got = c.integers[ranks]; got < 1)
    return Status::error("expects at least 1 rank, got ", got);
  if (const int64_t got = c.integers[parts]; got < 1 || got > INT64_MAX / c.parts)
    return Status::error("expects at least 1 part and fewer than 2^63 of all ranks, got ", got);
  for (size_t operand : {size_t(input), size_t(output)}) {
    RETURN_IF_ERROR(codec::leadingSize(c, operand).status());
    if (const DType type = c[operand].dtype; type == DType::f64)
      return Status::error(c.kernel->operands[operand].name, ": expects f32, f16 or bf16, got f64");
  }
  return firstOf({expectShape(c, output, c[input].shape), expectShape(c, encodings, {2})});
}
double flops(const LibraryCall &c) { return 8 * elements(c[input]); }
} // namespace fakeQuantize
/// values[i..., :] and scales[i...] = the row input[i..., :], quantized (RowQuantization.h).
namespace quantizeRows {
enum { input, values, scales };
Status check(const LibraryCall &c) {
  const Shape &in = c[input].shape;
  if (in.empty())
    return Status::error("input: expects at least 1 dimension");
  return firstOf(
      {expectShape(c, values, in), expectShape(c, scales, Shape(in.begin(), in.end() - 1))});
}
/// The largest of a row, then a quotient each.
double flops(const LibraryCall &c) { return 3 * elements(c[input]); }
} // namespace quantizeRows

double nothing(const LibraryCall &) { return 0; }

LibraryOperand in(const char *name, Elements elements) { return {name, Access::read, elements}; }
LibraryOperand maybe(const char *name, Elements elements) {
  return {name, Access::read, elements, true};
}
LibraryOperand out(const char *name, Elements elements) { return {name, Access::write, elements}; }
LibraryOperand maybeOut(const char *name) { return {name, Access::write, Elements::f32, true}; }

} // namespace

const std::vector<LibraryKernel> &libraryKernels() {
  constexpr Elements any = Elements::any, floats = Elements::floats, ids = Elements::ids,
                     same = Elements::asFirst, likeOutput = Elements::likeOutput;
  static const std::vector<LibraryKernel> kernels = {
      {"matmul",
       {in("lhs", Elements::floatsOrI8),
        in("rhs", same),
        maybe("bias", floats),
        maybe("counts", ids),
        maybe("lhs_scale", Elements::f32),
        maybe("rhs_scale", Elements::f32),
        {"out", Access::inout, floats}},
       matmul::check,
       matmul::flops,
       {"transpose_lhs", "transpose_rhs", "accumulate"},
       {},
       false,
       Group::none,
       /*rowRank=*/1,
       /*readsOutputs=*/MatmulForm::accumulateFlag},
      {"attention",
       {in("query", floats), in("key", same), in("value", same), maybe("mask", ids),
        maybe("valid_length", ids), maybe("position_offset", ids), out("out", floats),
        maybeOut("log_sum")},
       attention::check,
       attention::flops,
       {"causal"},
       {"scale"}},
      {"rotary_table",
       {maybe("position_offset", ids), out("cos", floats), out("sin", likeOutput)},
       rotaryTable::check,
       rotaryTable::flops,
       {},
       {"scale", "frequencies"},
       /*listOfNumbers=*/true},
      {"rotary",
       {in("input", floats), in("cos", same), in("sin", same), out("out", same)},
       rotary::check,
       rotary::flops,
       {},
       {},
       false,
       Group::none,
       /*rowRank=*/2},
      {"embedding",
       {in("table", any), in("ids", ids), out("out", same)},
       embedding::check,
       nothing,
       {"rows"},
       {},
       false,
       Group::optional},
      {"top_k",
       {in("input", floats), out("values", same), out("indices", ids)},
       topK::check,
       topK::flops},
      {"reduce_dims",
       {in("input", floats), out("out", same), maybeOut("exp_sum")},
       reduceDims::check,
       reduceDims::flops,
       {"kind", "dims"},
       {},
       false,
       Group::none,
       /*rowRank=*/0},
      {"last_token",
       {in("input", floats), in("mask", ids), out("out", same)},
       lastToken::check,
       nothing},
      {"position_ids",
       {in("ids", ids), out("out", same)},
       positionIds::check,
       nothing,
       {"padding"}},
      {"append",
       {in("source", any), in("position", ids), {"cache", Access::inout, same}},
       append::check,
       nothing,
       {"dim"}},
      {"encode",
       {in("input", floats), out("payload", Elements::bytes)},
       codec::check<codec::encode>,
       codec::encodeFlops,
       {"code", "first"},
       {},
       false,
       Group::optional},
      {"decode",
       {in("payload", Elements::bytes), out("out", floats)},
       codec::check<codec::decode>,
       codec::decodeFlops,
       {"code", "type", "absent"}},
      {"decode_sum",
       {in("payload", Elements::bytes), maybe("own", Elements::encoded), out("out", floats)},
       codec::checkSum,
       codec::decodeSumFlops,
       {"code", "type", "senders"},
       {},
       false,
       Group::optional},
      {"fake_quantize",
       {in("input", floats), in("encodings", ids), out("out", floats)},
       fakeQuantize::check,
       fakeQuantize::flops,
       {"half", "ranks", "parts"},
       {},
       false,
       Group::optional},
      {"quantize_rows",
       {in("input", floats), out("values", Elements::bytes), out("scales", Elements::f32)},
       quantizeRows::check,
       quantizeRows::flops},
      {"part",
       {in("source", any), out("dest", same)},
       part::check,
       nothing,
       {"dim", "shift"},
       {},
       false,
       Group::required,
       /*rowRank=*/0},
  };
  return kernels;
}

const LibraryKernel *findLibraryKernel(const std::string &name) {
  for (const LibraryKernel &kernel : libraryKernels())
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

Status appendError(const LibraryCall &append, int64_t position, int64_t row) {
  const auto dim = static_cast<size_t>(append.integers[0]);
  const int64_t capacity = append[append::cache].shape[dim];
  return Status::error("position ", position, " of row ", row, " is outside of [0, ",
                       capacity - append[append::source].shape[dim], "], for a capacity of ",
                       capacity, Code::invalid); // positions are inputs
}

Result<PayloadLayout> payloadLayout(const LibraryCall &call) {
  const std::string name = call.kernel->name;
  return name == "encode"   ? codec::encode(call)
         : name == "decode" ? codec::decode(call)
                            : codec::decodeSum(call);
}

double encodedShare(const LibraryCall &encode) {
  return encode.parts == 1
             ? 1
             : static_cast<double>(encode.parts - 1) / static_cast<double>(encode.parts);
}

OwnParts OwnParts::of(const LibraryCall &encode, int64_t self) {
  const int64_t ranks = encode.parts;
  return {ranks, (self - encode.integers[codec::first] + ranks) % ranks};
}

size_t codecRows(const LibraryCall &call) {
  return std::string(call.kernel->name) == "encode" ? codec::input : call.kernel->firstOutput();
}
size_t codecPayload(const LibraryCall &call) {
  return std::string(call.kernel->name) == "encode" ? codec::output : codec::payload;
}

} // namespace braid::runtime
