//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandViews.h"

#include "braid/Base/HostTensor.h"
#include "braid/Base/Support.h"

#include <algorithm>

namespace braid::runtime {

CheckedView Views::take(const program::View &view, const std::string &role, Access access,
                        bool collective) {
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

std::optional<CheckedView> Views::takeOptional(const program::View *view, const std::string &role) {
  if (!view)
    return std::nullopt;
  return take(*view, role, Access::read);
}

void Views::use(const CheckedView &view, const std::string &role, Access access, bool collective) {
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

Status expectShape(const std::string &role, const CheckedView &view,
                   const std::vector<int64_t> &shape) {
  if (view.shape == shape)
    return {};
  return Status::error(role + ": expects shape " + shapeString(shape) + ", got " +
                       shapeString(view.shape));
}

Status expectRank(const std::string &role, const CheckedView &view, size_t rank) {
  if (view.rank() == rank)
    return {};
  return Status::error(role + ": expects " + std::to_string(rank) + " dimensions, got shape " +
                       shapeString(view.shape));
}

Status expectType(const std::string &role, const CheckedView &view, DType type) {
  if (view.dtype == type)
    return {};
  return Status::error(role + ": expects " + name(type) + ", got " + name(view.dtype));
}

Status expectFloat(const std::string &role, const CheckedView &view) {
  if (view.isFloat())
    return {};
  return Status::error(role + ": expects a floating-point type, got " + name(view.dtype));
}

Status expectIntegers(const std::string &role, const CheckedView &view) {
  if (view.dtype == DType::i32 || view.dtype == DType::i64)
    return {};
  return Status::error(role + ": expects i32 or i64, got " + name(view.dtype));
}

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

Status firstOf(std::initializer_list<Status> checks) {
  for (const Status &check : checks)
    if (!check.ok())
      return check;
  return {};
}

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

Status verifyEvent(uint32_t event, const program::Procedure &procedure) {
  if (event < procedure.num_events())
    return {};
  return Status::error("expects an event below " + std::to_string(procedure.num_events()) +
                       ", got " + std::to_string(event));
}

} // namespace braid::runtime
