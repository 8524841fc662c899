//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandViews.h"
#include "braid/Base/Support.h"

#include "braid/Base/HostTensor.h"
#include "braid/Base/StatusMacros.h"

#include <set>

namespace braid::runtime {

namespace {

/// `out` is `in` with dimension `dim` divided and dimension `concat` multiplied by `shards`.
Status expectExchanged(const CheckedView &in, const CheckedView &out, const std::string &outRole,
                       uint32_t dim, uint32_t concat, int64_t shards) {
  for (uint32_t d : {dim, concat})
    if (d >= in.rank())
      return Status::error("expects a dimension below ", in.rank(), ", got ", d);
  std::vector<int64_t> shape = in.shape;
  if (shape[dim] % shards != 0)
    return Status::error("expects dimension ", dim, " of shape ", shapeString(in.shape),
                         " to divide by ", shards);
  shape[dim] /= shards;
  std::optional<int64_t> joined = checkedMul(shape[concat], shards);
  shape[concat] = joined.value_or(-1);
  return expectShape(outRole, out, shape);
}

/// Checks that the positions that a collective names are in its group.
Status verifyPositions(const program::CollectiveStart &op, int64_t ranks) {
  auto expect = [&](const char *what, uint32_t position) -> Status {
    if (static_cast<int64_t>(position) < ranks)
      return {};
    return Status::error("expects ", what, " at a position below ", ranks, ", got ", position);
  };
  if (op.kind() == program::CollectiveKind::reduce ||
      op.kind() == program::CollectiveKind::broadcast)
    return expect("a root", op.root());
  const bool message = isMessage(op);
  if ((!message && op.kind() != program::CollectiveKind::permute) || !op.pairs())
    return {};
  if (op.pairs()->size() % 2 != 0)
    return Status::error("expects pairs of positions, got ", op.pairs()->size(), " positions");
  std::set<uint32_t> seen[2];
  for (unsigned i = 0; i < op.pairs()->size(); ++i) {
    const char *what = i % 2 == 0 ? "a source" : "a target";
    uint32_t position = op.pairs()->Get(i);
    RETURN_IF_ERROR(expect(what, position));
    if (!seen[i % 2].insert(position).second)
      return Status::error("expects position ", position, " as ", what, " once");
    if (message && i % 2 == 1 && op.pairs()->Get(i - 1) == position)
      return Status::error("expects no position to send to itself, got ", position);
  }
  return {};
}

/// Checks an all_to_all_v: its values are blocks of one capacity, its last value has a count for
/// each block.
Status verifyCounted(const std::vector<CheckedView> &inputs, int64_t ranks) {
  if (inputs.size() < 2)
    return Status::error("expects at least one value beside the counts");
  const CheckedView &counts = inputs.back();
  const std::string last = "input " + std::to_string(inputs.size() - 1);
  RETURN_IF_ERROR(expectRank(last, counts, 1));
  if (counts.dtype != DType::i32 && counts.dtype != DType::i64)
    return Status::error(last, ": expects counts of i32 or i64, got ", name(counts.dtype));
  if (counts.shape[0] % ranks != 0)
    return Status::error("expects ", counts.shape[0], " blocks to divide by ", ranks);
  for (size_t i = 0; i + 1 < inputs.size(); ++i)
    if (inputs[i].rank() < 2 || inputs[i].shape[0] != counts.shape[0] ||
        inputs[i].shape[1] != inputs[0].shape[1])
      return Status::error("input ", i, ": expects ", counts.shape[0],
                           " blocks by one capacity, got ", shapeString(inputs[i].shape));
  return {};
}

/// Checks the values of a send, which has inputs only, or of a recv, which has outputs only.
Status verifyMessage(const program::CollectiveStart &op, Views &views) {
  const bool sends = op.kind() == program::CollectiveKind::send;
  const auto &values = sends ? *op.inputs() : *op.outputs();
  if (values.size() == 0 || (sends ? op.outputs() : op.inputs())->size() != 0)
    return Status::error("expects ", sends ? "inputs and no outputs" : "outputs and no inputs",
                         ", got ", op.inputs()->size(), " and ", op.outputs()->size(), " values");
  for (unsigned i = 0; i < values.size(); ++i)
    views.take(*values.Get(i), (sends ? "input " : "output ") + std::to_string(i),
               sends ? Access::read : Access::write, true);
  return views.status;
}

/// Checks the inputs and outputs of any other collective over a group of `ranks`.
Status verifyValues(const program::CollectiveStart &op, int64_t ranks, Views &views) {
  size_t count = op.inputs()->size();
  if (count == 0 || op.outputs()->size() != count)
    return Status::error("expects as many outputs as inputs and at least one, got ",
                         op.outputs()->size(), " and ", count);
  std::vector<CheckedView> inputs;
  for (unsigned i = 0; i < count; ++i) {
    std::string inRole = "input " + std::to_string(i), outRole = "output " + std::to_string(i);
    CheckedView in = views.take(*op.inputs()->Get(i), inRole, Access::read, true);
    CheckedView out = views.take(*op.outputs()->Get(i), outRole, Access::write, true);
    if (!views.ok())
      return views.status;
    Status status = expectType(outRole, out, in.dtype);
    RETURN_IF_ERROR(status);
    switch (op.kind()) {
    case program::CollectiveKind::all_reduce:
    case program::CollectiveKind::reduce:
    case program::CollectiveKind::broadcast:
    case program::CollectiveKind::permute:
    case program::CollectiveKind::all_to_all_v:
      status = expectShape(outRole, out, in.shape);
      break;
    case program::CollectiveKind::reduce_scatter:
      status = expectShardOf(in, inRole, out, outRole, op.dim(), ranks);
      break;
    case program::CollectiveKind::all_gather:
      status = expectShardOf(out, outRole, in, inRole, op.dim(), ranks);
      break;
    case program::CollectiveKind::all_to_all:
      status = expectExchanged(in, out, outRole, op.dim(), op.concat_dim(), ranks);
      break;
    case program::CollectiveKind::send:
    case program::CollectiveKind::recv:
      break;
    }
    RETURN_IF_ERROR(status);
    inputs.push_back(std::move(in));
  }
  if (op.kind() == program::CollectiveKind::all_to_all_v)
    return verifyCounted(inputs, ranks);
  return {};
}

} // namespace

Status verifyCollective(const program::CollectiveStart &op, const program::Procedure &procedure,
                        const Mesh &mesh, Views &views) {
  if (op.kind() < program::CollectiveKind::all_reduce || op.kind() > program::CollectiveKind::recv)
    return Status::error("unknown collective ", int(op.kind()));
  if (op.reduce() < program::ReduceKind::sum || op.reduce() > program::ReduceKind::min)
    return Status::error("unknown reduction ", int(op.reduce()));
  ASSIGN_OR_RETURN(int64_t ranks, groupSize(*op.axes(), mesh));
  RETURN_IF_ERROR(verifyPositions(op, ranks));
  const bool message = isMessage(op);
  RETURN_IF_ERROR(message ? verifyMessage(op, views) : verifyValues(op, ranks, views));
  return verifySetEvent(op.done(), procedure);
}

} // namespace braid::runtime
