//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandViews.h"

#include "braid/Base/HostTensor.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>

namespace braid::runtime {

CheckedView Views::take(const program::View &view, const std::string &role, Access access,
                        bool symmetric) {
  CheckedView result{};
  if (!status.ok())
    return result;
  Result<CheckedView> checked = checkView(view, procedure, mesh);
  if (!checked.ok()) {
    status = checked.status().within(role);
    return result;
  }
  result = std::move(*checked);
  if (access != Access::read && !result.isInjective())
    status = Status::error(role, ": writes through strides ", shapeString(result.strides),
                           " that overlap for shape ", shapeString(result.shape));
  else if (symmetric && result.space == program::Space::local)
    status = Status::error(role, ": expects symmetric memory, got local");
  else if (symmetric && result.space == program::Space::argument &&
           !isSymmetricArgument(procedure, result.argument))
    status = Status::error(role, ": expects symmetric memory, got argument ", result.argument,
                           ", which may lie anywhere");
  else if (result.space == program::Space::argument)
    use(result, role, access);
  return result;
}

void Views::use(const CheckedView &view, const std::string &role, Access access) {
  auto [entry, isFirst] = uses.try_emplace(view.argument);
  ArgumentUse &use = entry->second;
  if (isFirst)
    use.dtype = view.dtype;
  if (use.dtype != view.dtype)
    status = Status::error(role, ": argument ", view.argument, " is used as ", name(view.dtype),
                           " here and as ", name(use.dtype), " elsewhere");
  use.bytes = std::max(use.bytes, view.end);
  use.written |= access != Access::read;
}

Result<int64_t> groupSize(const flatbuffers::Vector<flatbuffers::Offset<program::AxisRef>> &axes,
                          const Mesh &mesh) {
  std::vector<AxisRef> refs;
  for (const program::AxisRef *axis : axes)
    refs.push_back({axis->name()->str(), axis->pre(), axis->size()});
  if (refs.empty())
    return Status::error("expects at least one mesh axis");
  RETURN_IF_ERROR(mesh.verify(refs));
  return mesh.numShards(refs);
}

Status verifyEvent(uint32_t event, const program::Procedure &procedure) {
  const uint64_t limit = uint64_t(procedure.num_events()) + procedure.num_event_arguments();
  if (event < limit)
    return {};
  return Status::error("expects an event below ", limit, ", got ", event);
}

Status verifySetEvent(uint32_t event, const program::Procedure &procedure) {
  RETURN_IF_ERROR(verifyEvent(event, procedure));
  if (event < procedure.num_events())
    return {};
  return Status::error("expects to set an event of the procedure, got event argument ",
                       event - procedure.num_events());
}

} // namespace braid::runtime
