//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandViews.h"
#include "braid/Base/Support.h"

#include "braid/Base/HostTensor.h"
#include "braid/Program/Program.h"

#include <algorithm>
#include <cmath>

namespace braid::runtime {

namespace {

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
