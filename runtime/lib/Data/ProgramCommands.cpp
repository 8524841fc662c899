//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramVerifier.h"

#include "Support.h"
#include "braid/Runtime/HostTensor.h"
#include "braid/Runtime/Program.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace braid::runtime {

namespace {

enum class Access { read, write };

/// The views of one command, with the first error that any of them has; checks of shapes come after
/// `ok`.
class Views {
public:
  Views(const program::Procedure &procedure, ArgumentUses &uses)
      : procedure(procedure), uses(uses) {}

  /// A view after an error is an empty one; nothing is concluded from it.
  CheckedView take(const program::View &view, const std::string &role, Access access,
                   bool collective = false) {
    CheckedView result{};
    if (!status.ok())
      return result;
    Result<CheckedView> checked = checkView(view, procedure);
    if (!checked.ok()) {
      status = Status::error(role + ": " + checked.status().message());
      return result;
    }
    result = std::move(*checked);
    if (access == Access::write && !result.isInjective())
      status = Status::error(role + ": writes through strides " + shapeString(result.strides) +
                             " that overlap for shape " + shapeString(result.shape));
    else if (collective && result.space == program::Space::local)
      status = Status::error(role + ": expects symmetric memory, got local");
    else if (result.space == program::Space::argument)
      use(result, role, access, collective);
    return result;
  }
  std::optional<CheckedView> takeOptional(const program::View *view, const std::string &role) {
    if (!view)
      return std::nullopt;
    return take(*view, role, Access::read);
  }
  bool ok() const { return status.ok(); }

  Status status;

private:
  void use(const CheckedView &view, const std::string &role, Access access, bool collective) {
    auto [entry, isFirst] = uses.try_emplace(view.argument);
    ArgumentUse &use = entry->second;
    if (isFirst)
      use.dtype = view.dtype;
    if (use.dtype != view.dtype)
      status = Status::error(role + ": argument " + std::to_string(view.argument) + " is used as " +
                             name(view.dtype) + " here and as " + name(use.dtype) + " elsewhere");
    use.bytes = std::max(use.bytes, view.end);
    use.written |= access == Access::write;
    use.symmetric |= collective;
  }

  const program::Procedure &procedure;
  ArgumentUses &uses;
};

Status expectShape(const char *role, const CheckedView &view, const std::vector<int64_t> &shape) {
  if (view.shape == shape)
    return {};
  return Status::error(std::string(role) + ": expects shape " + shapeString(shape) + ", got " +
                       shapeString(view.shape));
}

Status expectRank(const char *role, const CheckedView &view, size_t rank) {
  if (view.rank() == rank)
    return {};
  return Status::error(std::string(role) + ": expects " + std::to_string(rank) +
                       " dimensions, got shape " + shapeString(view.shape));
}

Status expectType(const char *role, const CheckedView &view, DType type) {
  if (view.dtype == type)
    return {};
  return Status::error(std::string(role) + ": expects " + name(type) + ", got " + name(view.dtype));
}

Status expectFloat(const char *role, const CheckedView &view) {
  if (view.isFloat())
    return {};
  return Status::error(std::string(role) + ": expects a floating-point type, got " +
                       name(view.dtype));
}

Status expectIntegers(const char *role, const CheckedView &view) {
  if (view.dtype == DType::i32 || view.dtype == DType::i64)
    return {};
  return Status::error(std::string(role) + ": expects i32 or i64, got " + name(view.dtype));
}

/// The first failure of several checks, all of which are cheap and safe to make.
Status firstOf(std::initializer_list<Status> checks) {
  for (const Status &check : checks)
    if (!check.ok())
      return check;
  return {};
}

Status verifyLaunch(const program::Launch &op, const program::Program &program, Views &views) {
  if (op.kernel() >= program.kernels()->size())
    return Status::error("expects a kernel below " + std::to_string(program.kernels()->size()) +
                         ", got " + std::to_string(op.kernel()));
  const program::Kernel &kernel = *program.kernels()->Get(op.kernel());
  size_t count = op.operands()->size();
  if (count != kernel.num_operands())
    return Status::error("kernel " + inQuotes(kernel.symbol()->str()) + " expects " +
                         std::to_string(kernel.num_operands()) + " operands, got " +
                         std::to_string(count));
  if (op.row_operand()->size() != count)
    return Status::error("expects 'row_operand' for " + std::to_string(count) + " operands, got " +
                         std::to_string(op.row_operand()->size()));
  for (unsigned i = 0; i < count; ++i) {
    std::string role = "operand " + std::to_string(i);
    Access access = i < count - kernel.num_outputs() ? Access::read : Access::write;
    CheckedView view = views.take(*op.operands()->Get(i), role, access);
    if (!views.ok())
      return views.status;
    if (op.row_operand()->Get(i) && (view.rank() == 0 || view.shape[0] != op.rows()))
      return Status::error(role + ": expects " + std::to_string(op.rows()) + " rows, got shape " +
                           shapeString(view.shape));
  }
  return {};
}

Status verifyProduct(const program::Product &op, Views &views) {
  CheckedView lhs = views.take(*op.lhs(), "lhs", Access::read);
  CheckedView rhs = views.take(*op.rhs(), "rhs", Access::read);
  std::optional<CheckedView> bias = views.takeOptional(op.bias(), "bias");
  CheckedView out = views.take(*op.out(), "out", Access::write);
  if (!views.ok())
    return views.status;
  if (lhs.rank() == 0)
    return Status::error("lhs: expects at least 1 dimension");
  if (Status status = expectRank("rhs", rhs, 2); !status.ok())
    return status;
  std::vector<int64_t> outShape = lhs.shape;
  outShape.back() = rhs.shape[0];
  Status status = firstOf({expectShape("rhs", rhs, {rhs.shape[0], lhs.shape.back()}),
                           expectShape("out", out, outShape), expectFloat("lhs", lhs),
                           expectType("rhs", rhs, lhs.dtype), expectFloat("out", out)});
  if (status.ok() && bias)
    status = firstOf({expectShape("bias", *bias, {rhs.shape[0]}), expectFloat("bias", *bias)});
  if (!status.ok())
    return status;
  for (const auto &[role, view] : {std::pair("lhs", &lhs), std::pair("out", &out)})
    if (!view->isFlattenable(view->rank() - 1))
      return Status::error(std::string(role) +
                           ": expects leading dimensions that can be walked as one, got shape " +
                           shapeString(view->shape) + " and strides " + shapeString(view->strides));
  return {};
}

Status verifyAttention(const program::Attention &op, Views &views) {
  CheckedView query = views.take(*op.query(), "query", Access::read);
  CheckedView key = views.take(*op.key(), "key", Access::read);
  CheckedView value = views.take(*op.value(), "value", Access::read);
  CheckedView out = views.take(*op.out(), "out", Access::write);
  std::optional<CheckedView> mask = views.takeOptional(op.mask(), "mask");
  std::optional<CheckedView> length = views.takeOptional(op.valid_length(), "valid_length");
  std::optional<CheckedView> offset = views.takeOptional(op.position_offset(), "position_offset");
  if (!views.ok())
    return views.status;
  if (Status status = firstOf({expectRank("query", query, 4), expectRank("key", key, 4)});
      !status.ok())
    return status;
  int64_t batch = query.shape[0], heads = query.shape[2], kvHeads = key.shape[2];
  Status status =
      firstOf({expectShape("key", key, {batch, key.shape[1], kvHeads, query.shape[3]}),
               expectShape("value", value, key.shape), expectShape("out", out, query.shape),
               expectFloat("query", query), expectType("key", key, query.dtype),
               expectType("value", value, query.dtype), expectFloat("out", out)});
  if (status.ok() && mask)
    status =
        firstOf({expectShape("mask", *mask, {batch, key.shape[1]}), expectIntegers("mask", *mask)});
  for (const auto &[role, view] :
       {std::pair("valid_length", &length), std::pair("position_offset", &offset)})
    if (status.ok() && *view)
      status = firstOf({expectShape(role, **view, {batch}), expectIntegers(role, **view)});
  if (!status.ok())
    return status;
  if (heads % kvHeads != 0)
    return Status::error("expects query heads to divide among " + std::to_string(kvHeads) +
                         " key/value heads, got " + std::to_string(heads));
  if (!std::isfinite(op.scale()))
    return Status::error("expects a finite scale");
  return {};
}

Status verifyRotaryTable(const program::RotaryTable &op, Views &views) {
  std::optional<CheckedView> offset = views.takeOptional(op.position_offset(), "position_offset");
  CheckedView cos = views.take(*op.cos(), "cos", Access::write);
  CheckedView sin = views.take(*op.sin(), "sin", Access::write);
  if (!views.ok())
    return views.status;
  if (Status status = expectRank("cos", cos, offset ? 3 : 2); !status.ok())
    return status;
  // FlatBuffers looks at the vector's length only, not at where its numbers stand.
  const auto &frequencies = *op.frequencies();
  if (reinterpret_cast<uintptr_t>(frequencies.Data()) % alignof(double) != 0)
    return Status::error("expects frequencies that are aligned");
  std::vector<int64_t> shape = cos.shape;
  shape.back() = frequencies.size();
  Status status = firstOf({expectShape("cos", cos, shape), expectShape("sin", sin, shape),
                           expectFloat("cos", cos), expectType("sin", sin, cos.dtype)});
  if (status.ok() && offset)
    status = firstOf({expectShape("position_offset", *offset, {shape[0]}),
                      expectIntegers("position_offset", *offset)});
  if (!status.ok())
    return status;
  if (!std::isfinite(op.scale()) ||
      !std::all_of(frequencies.begin(), frequencies.end(),
                   [](double frequency) { return std::isfinite(frequency); }))
    return Status::error("expects finite frequencies and a finite scale");
  return {};
}

Status verifyRotary(const program::Rotary &op, Views &views) {
  CheckedView input = views.take(*op.input(), "input", Access::read);
  CheckedView cos = views.take(*op.cos(), "cos", Access::read);
  CheckedView sin = views.take(*op.sin(), "sin", Access::read);
  CheckedView out = views.take(*op.out(), "out", Access::write);
  if (!views.ok())
    return views.status;
  if (Status status = expectRank("input", input, 4); !status.ok())
    return status;
  if (input.shape[3] % 2 != 0)
    return Status::error("input: expects an even last dimension, got shape " +
                         shapeString(input.shape));
  std::vector<int64_t> table{input.shape[0], input.shape[1], input.shape[3] / 2};
  if (cos.rank() == 2)
    table.erase(table.begin());
  return firstOf({expectShape("cos", cos, table), expectShape("sin", sin, table),
                  expectShape("out", out, input.shape), expectFloat("input", input),
                  expectType("cos", cos, input.dtype), expectType("sin", sin, input.dtype),
                  expectType("out", out, input.dtype)});
}

/// Number of ranks in a group over these axes.
Result<int64_t> groupSize(const flatbuffers::Vector<flatbuffers::Offset<program::AxisRef>> &axes,
                          const Mesh &mesh) {
  std::vector<AxisRef> refs;
  for (const program::AxisRef *axis : axes)
    refs.push_back({axis->name()->str(), axis->pre(), axis->size()});
  if (refs.empty())
    return Status::error("expects at least one mesh axis");
  if (Status status = mesh.verify(refs); !status.ok())
    return status;
  return mesh.numShards(refs);
}

Status verifyGather(const program::Gather &op, const Mesh &mesh, Views &views) {
  CheckedView source = views.take(*op.source(), "source", Access::read);
  CheckedView ids = views.take(*op.ids(), "ids", Access::read);
  CheckedView out = views.take(*op.out(), "out", Access::write);
  if (!views.ok())
    return views.status;
  if (Status status = expectRank("source", source, 2); !status.ok())
    return status;
  int64_t parts = 1;
  if (op.axes()) {
    Result<int64_t> size = groupSize(*op.axes(), mesh);
    if (!size.ok())
      return size.status();
    parts = *size;
  }
  if (Status status = expectIntegers("ids", ids); !status.ok())
    return status;
  // Strides of zero make large tables of little memory; the ids of all parts together must be
  // numbers.
  std::optional<int64_t> whole = checkedMul(source.shape[0], parts);
  if (!whole)
    return Status::error("source: " + std::to_string(parts) + " times the rows of shape " +
                         shapeString(source.shape) + " are too many");
  if (op.rows() < 0 || op.rows() > *whole)
    return Status::error("expects rows of 0 to " + std::to_string(*whole) + ", got " +
                         std::to_string(op.rows()));
  std::vector<int64_t> outShape = ids.shape;
  outShape.push_back(source.shape[1]);
  return firstOf({expectShape("out", out, outShape), expectType("out", out, source.dtype)});
}

Status verifyPositionIds(const program::PositionIds &op, Views &views) {
  CheckedView ids = views.take(*op.ids(), "ids", Access::read);
  CheckedView out = views.take(*op.out(), "out", Access::write);
  if (!views.ok())
    return views.status;
  if (Status status = expectIntegers("ids", ids); !status.ok())
    return status;
  if (Status status = firstOf({expectRank("ids", ids, 2), expectShape("out", out, ids.shape),
                               expectType("out", out, ids.dtype)});
      !status.ok())
    return status;
  // The last position is padding plus the number of ids in a row.
  const bool wide = ids.dtype == DType::i64;
  const int64_t most = wide ? INT64_MAX : INT32_MAX, least = wide ? INT64_MIN : INT32_MIN;
  if (op.padding() < least || op.padding() > most - std::min(most, ids.shape[1]))
    return Status::error("expects padding from which " + std::to_string(ids.shape[1]) +
                         " positions can be counted in " + name(ids.dtype) + ", got " +
                         std::to_string(op.padding()));
  return {};
}

Status verifyCopy(const program::Copy &op, Views &views) {
  CheckedView source = views.take(*op.source(), "source", Access::read);
  CheckedView dest = views.take(*op.dest(), "dest", Access::write);
  if (!views.ok())
    return views.status;
  return firstOf({expectShape("dest", dest, source.shape), expectType("dest", dest, source.dtype)});
}

/// `whole` is `part` times `shards` along `dim`.
Status expectCut(const CheckedView &whole, const std::string &wholeRole, const CheckedView &part,
                 const std::string &partRole, uint32_t dim, int64_t shards) {
  if (dim >= part.rank())
    return Status::error("expects a dimension below " + std::to_string(part.rank()) + ", got " +
                         std::to_string(dim));
  std::vector<int64_t> shape = part.shape;
  std::optional<int64_t> joined = checkedMul(shape[dim], shards);
  shape[dim] = joined.value_or(0);
  if (!joined || whole.shape != shape)
    return Status::error(wholeRole + ": expects " + std::to_string(shards) + " times " + partRole +
                         " of shape " + shapeString(part.shape) + " along dimension " +
                         std::to_string(dim) + ", got " + shapeString(whole.shape));
  return {};
}

Status verifyLocalSlice(const program::LocalSlice &op, const Mesh &mesh, Views &views) {
  CheckedView source = views.take(*op.source(), "source", Access::read);
  CheckedView dest = views.take(*op.dest(), "dest", Access::write);
  if (!views.ok())
    return views.status;
  Result<int64_t> shards = groupSize(*op.axes(), mesh);
  if (!shards.ok())
    return shards.status();
  return firstOf({expectCut(source, "source", dest, "dest", op.dim(), *shards),
                  expectType("dest", dest, source.dtype)});
}

/// `out` is `in` with dimension `dim` divided and dimension `concat` multiplied by `shards`.
Status expectExchanged(const CheckedView &in, const CheckedView &out, const std::string &outRole,
                       uint32_t dim, uint32_t concat, int64_t shards) {
  for (uint32_t d : {dim, concat})
    if (d >= in.rank())
      return Status::error("expects a dimension below " + std::to_string(in.rank()) + ", got " +
                           std::to_string(d));
  std::vector<int64_t> shape = in.shape;
  if (shape[dim] % shards != 0)
    return Status::error("expects dimension " + std::to_string(dim) + " of shape " +
                         shapeString(in.shape) + " to divide by " + std::to_string(shards));
  shape[dim] /= shards;
  std::optional<int64_t> joined = checkedMul(shape[concat], shards);
  shape[concat] = joined.value_or(-1);
  return expectShape(outRole.c_str(), out, shape);
}

/// The positions that a collective names are of its group.
Status verifyPositions(const program::CollectiveStart &op, int64_t ranks) {
  auto expect = [&](const char *what, uint32_t position) -> Status {
    if (static_cast<int64_t>(position) < ranks)
      return {};
    return Status::error(std::string("expects ") + what + " at a position below " +
                         std::to_string(ranks) + ", got " + std::to_string(position));
  };
  if (op.kind() == program::CollectiveKind::reduce ||
      op.kind() == program::CollectiveKind::broadcast)
    return expect("a root", op.root());
  const bool half =
      op.kind() == program::CollectiveKind::send || op.kind() == program::CollectiveKind::recv;
  if ((!half && op.kind() != program::CollectiveKind::permute) || !op.pairs())
    return {};
  if (op.pairs()->size() % 2 != 0)
    return Status::error("expects pairs of positions, got " + std::to_string(op.pairs()->size()) +
                         " positions");
  std::set<uint32_t> seen[2];
  for (unsigned i = 0; i < op.pairs()->size(); ++i) {
    const char *what = i % 2 == 0 ? "a source" : "a target";
    uint32_t position = op.pairs()->Get(i);
    if (Status status = expect(what, position); !status.ok())
      return status;
    if (!seen[i % 2].insert(position).second)
      return Status::error(std::string("expects position ") + std::to_string(position) + " as " +
                           what + " once");
    if (half && i % 2 == 1 && op.pairs()->Get(i - 1) == position)
      return Status::error("expects no position to send to itself, got " +
                           std::to_string(position));
  }
  return {};
}

/// The values of an all_to_all_v are blocks with one capacity, as many as the counts, which come
/// last.
Status verifyCounted(const std::vector<CheckedView> &inputs, int64_t ranks) {
  if (inputs.size() < 2)
    return Status::error("expects at least one value beside the counts");
  const CheckedView &counts = inputs.back();
  const std::string last = "input " + std::to_string(inputs.size() - 1);
  if (Status status = expectRank(last.c_str(), counts, 1); !status.ok())
    return status;
  if (counts.dtype != DType::i32 && counts.dtype != DType::i64)
    return Status::error(last + ": expects counts of i32 or i64, got " + name(counts.dtype));
  if (counts.shape[0] % ranks != 0)
    return Status::error("expects " + std::to_string(counts.shape[0]) + " blocks to divide by " +
                         std::to_string(ranks));
  for (size_t i = 0; i + 1 < inputs.size(); ++i)
    if (inputs[i].rank() < 2 || inputs[i].shape[0] != counts.shape[0] ||
        inputs[i].shape[1] != inputs[0].shape[1])
      return Status::error("input " + std::to_string(i) + ": expects " +
                           std::to_string(counts.shape[0]) + " blocks by one capacity, got " +
                           shapeString(inputs[i].shape));
  return {};
}

/// A send has inputs only, a recv outputs only.
Status verifyHalf(const program::CollectiveStart &op, Views &views) {
  const bool sends = op.kind() == program::CollectiveKind::send;
  const auto &values = sends ? *op.inputs() : *op.outputs();
  if (values.size() == 0 || (sends ? op.outputs() : op.inputs())->size() != 0)
    return Status::error(std::string("expects ") +
                         (sends ? "inputs and no outputs" : "outputs and no inputs") + ", got " +
                         std::to_string(op.inputs()->size()) + " and " +
                         std::to_string(op.outputs()->size()) + " values");
  for (unsigned i = 0; i < values.size(); ++i)
    views.take(*values.Get(i), (sends ? "input " : "output ") + std::to_string(i),
               sends ? Access::read : Access::write, true);
  return views.status;
}

/// What a collective takes and gives, over a group of `ranks`.
Status verifyValues(const program::CollectiveStart &op, int64_t ranks, Views &views) {
  size_t count = op.inputs()->size();
  if (count == 0 || op.outputs()->size() != count)
    return Status::error("expects as many outputs as inputs and at least one, got " +
                         std::to_string(op.outputs()->size()) + " and " + std::to_string(count));
  std::vector<CheckedView> inputs;
  for (unsigned i = 0; i < count; ++i) {
    std::string inRole = "input " + std::to_string(i), outRole = "output " + std::to_string(i);
    CheckedView in = views.take(*op.inputs()->Get(i), inRole, Access::read, true);
    CheckedView out = views.take(*op.outputs()->Get(i), outRole, Access::write, true);
    if (!views.ok())
      return views.status;
    Status status = expectType(outRole.c_str(), out, in.dtype);
    if (!status.ok())
      return status;
    switch (op.kind()) {
    case program::CollectiveKind::all_reduce:
    case program::CollectiveKind::reduce:
    case program::CollectiveKind::broadcast:
    case program::CollectiveKind::permute:
    case program::CollectiveKind::all_to_all_v:
      status = expectShape(outRole.c_str(), out, in.shape);
      break;
    case program::CollectiveKind::reduce_scatter:
      status = expectCut(in, inRole, out, outRole, op.dim(), ranks);
      break;
    case program::CollectiveKind::all_gather:
      status = expectCut(out, outRole, in, inRole, op.dim(), ranks);
      break;
    case program::CollectiveKind::all_to_all:
      status = expectExchanged(in, out, outRole, op.dim(), op.concat_dim(), ranks);
      break;
    case program::CollectiveKind::send:
    case program::CollectiveKind::recv:
      break;
    }
    if (!status.ok())
      return status;
    inputs.push_back(std::move(in));
  }
  if (op.kind() == program::CollectiveKind::all_to_all_v)
    return verifyCounted(inputs, ranks);
  return {};
}

Status verifyCollective(const program::CollectiveStart &op, const program::Procedure &procedure,
                        Queue queue, const Mesh &mesh, Views &views) {
  if (queue != Queue::communication)
    return Status::error("expects a collective on the communication queue");
  if (op.kind() < program::CollectiveKind::all_reduce || op.kind() > program::CollectiveKind::recv)
    return Status::error("unknown collective " + std::to_string(int(op.kind())));
  if (op.reduce() < program::ReduceKind::sum || op.reduce() > program::ReduceKind::min)
    return Status::error("unknown reduction " + std::to_string(int(op.reduce())));
  Result<int64_t> ranks = groupSize(*op.axes(), mesh);
  if (!ranks.ok())
    return ranks.status();
  if (Status status = verifyPositions(op, *ranks); !status.ok())
    return status;
  const bool half =
      op.kind() == program::CollectiveKind::send || op.kind() == program::CollectiveKind::recv;
  if (Status status = half ? verifyHalf(op, views) : verifyValues(op, *ranks, views); !status.ok())
    return status;
  if (op.done() >= procedure.num_events())
    return Status::error("expects an event below " + std::to_string(procedure.num_events()) +
                         ", got " + std::to_string(op.done()));
  return {};
}

Status verifyEvent(uint32_t event, const program::Procedure &procedure) {
  if (event < procedure.num_events())
    return {};
  return Status::error("expects an event below " + std::to_string(procedure.num_events()) +
                       ", got " + std::to_string(event));
}

/// A callee's frame, or its events, inside of the caller's.
Status expectInside(const char *what, uint64_t base, uint64_t size, uint64_t available) {
  std::optional<uint64_t> end = checkedAdd(base, size);
  if (end && *end <= available)
    return {};
  return Status::error(std::string("expects ") + what + " of the callee below " +
                       std::to_string(available) + ", got " + std::to_string(size) + " from " +
                       std::to_string(base));
}

Status verifyCall(const program::Call &op, const program::Program &program,
                  const program::Procedure &procedure, const std::vector<ArgumentUses> &callees,
                  Views &views) {
  const program::Procedure &callee = *program.procedures()->Get(op.procedure());
  Status status = firstOf(
      {expectInside("local bytes", op.local_base_bytes(), callee.local_bytes(),
                    procedure.local_bytes()),
       expectInside("symmetric bytes", op.symmetric_base_bytes(), callee.symmetric_bytes(),
                    procedure.symmetric_bytes()),
       expectInside("events", op.event_base(), callee.num_events(), procedure.num_events())});
  if (!status.ok())
    return status;
  for (uint64_t base : {op.local_base_bytes(), op.symmetric_base_bytes()})
    if (base % kFrameAlignment != 0)
      return Status::error("expects a callee's frame at a multiple of " +
                           std::to_string(kFrameAlignment) + " bytes, got " + std::to_string(base));
  if (op.arguments()->size() != callee.num_arguments())
    return Status::error("expects " + std::to_string(callee.num_arguments()) + " arguments, got " +
                         std::to_string(op.arguments()->size()));
  const ArgumentUses &uses = callees[op.procedure()];
  for (unsigned i = 0; i < op.arguments()->size(); ++i) {
    std::string role = "argument " + std::to_string(i);
    auto use = uses.find(i);
    bool used = use != uses.end();
    Access access = used && use->second.written ? Access::write : Access::read;
    CheckedView view =
        views.take(*op.arguments()->Get(i), role, access, used && use->second.symmetric);
    if (!views.ok())
      return views.status;
    if (!used)
      continue;
    if (view.dtype != use->second.dtype)
      return Status::error(role + ": the callee expects " + name(use->second.dtype) + ", got " +
                           name(view.dtype));
    if (view.end - view.begin < use->second.bytes)
      return Status::error(role + ": the callee expects " + std::to_string(use->second.bytes) +
                           " bytes, got " + std::to_string(view.end - view.begin));
    // The callee plans its frame without knowing what its arguments are.
    bool local = view.space == program::Space::local;
    uint64_t base = local ? op.local_base_bytes() : op.symmetric_base_bytes();
    uint64_t size = local ? callee.local_bytes() : callee.symmetric_bytes();
    if (view.space != program::Space::argument && view.begin < base + size && base < view.end)
      return Status::error(role + ": lies in the callee's frame");
  }
  return {};
}

} // namespace

Status CommandVerifier::verify(const program::Command &command, const program::Procedure &procedure,
                               Queue queue, ArgumentUses &uses) const {
  Views views(procedure, uses);
  switch (command.op_type()) {
  case program::Operation::Launch:
    return verifyLaunch(*command.op_as_Launch(), program, views);
  case program::Operation::Product:
    return verifyProduct(*command.op_as_Product(), views);
  case program::Operation::Attention:
    return verifyAttention(*command.op_as_Attention(), views);
  case program::Operation::RotaryTable:
    return verifyRotaryTable(*command.op_as_RotaryTable(), views);
  case program::Operation::Rotary:
    return verifyRotary(*command.op_as_Rotary(), views);
  case program::Operation::Gather:
    return verifyGather(*command.op_as_Gather(), mesh, views);
  case program::Operation::PositionIds:
    return verifyPositionIds(*command.op_as_PositionIds(), views);
  case program::Operation::Copy:
    return verifyCopy(*command.op_as_Copy(), views);
  case program::Operation::LocalSlice:
    return verifyLocalSlice(*command.op_as_LocalSlice(), mesh, views);
  case program::Operation::CollectiveStart:
    return verifyCollective(*command.op_as_CollectiveStart(), procedure, queue, mesh, views);
  case program::Operation::CollectiveWait:
    return verifyEvent(command.op_as_CollectiveWait()->event(), procedure);
  case program::Operation::Record:
    return verifyEvent(command.op_as_Record()->event(), procedure);
  case program::Operation::Await:
    return verifyEvent(command.op_as_Await()->event(), procedure);
  case program::Operation::Call:
    return verifyCall(*command.op_as_Call(), program, procedure, callees, views);
  case program::Operation::NONE:
    break;
  }
  return Status::error("unknown operation " + std::to_string(int(command.op_type())));
}

} // namespace braid::runtime
