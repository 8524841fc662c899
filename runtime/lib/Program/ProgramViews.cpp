//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandViews.h"

#include "braid/Base/HostTensor.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Program/Program.h"

#include <algorithm>

namespace braid::runtime {

bool CheckedView::isInjective() const {
  std::vector<std::pair<int64_t, int64_t>> dims; // stride, size
  for (size_t d = 0; d < rank(); ++d)
    if (shape[d] > 1)
      dims.emplace_back(strides[d], shape[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 1; // elements that the dimensions of smaller stride span
  for (auto [stride, size] : dims) {
    if (stride < reach)
      return false;
    reach += stride * (size - 1); // within the checked end of the view
  }
  return true;
}

namespace {

/// Checks that a view lies in the buffer that it names; buffers have been checked before.
Status checkBuffer(const CheckedView &view, int32_t index, const program::Procedure &procedure) {
  const uint32_t count = procedure.buffers() ? procedure.buffers()->size() : 0;
  if (index < 0 || static_cast<uint32_t>(index) >= count)
    return Status::error("expects a buffer below ", count, ", got ", index);
  const program::Buffer &buffer = *procedure.buffers()->Get(static_cast<uint32_t>(index));
  uint64_t begin = buffer.offset_bytes(), end = begin + buffer.size_bytes();
  if (view.space != buffer.space() || view.begin < begin || view.end > end)
    return Status::error("view of bytes ", view.begin, " to ", view.end,
                         " is not within its buffer ", index, " of bytes ", begin, " to ", end);
  return {};
}

/// Bytes from the first to the last place of a view whose elements have `elementBytes`; none if
/// they do not fit in 64 bits.
Result<std::optional<uint64_t>> reachOf(const program::Position &position, uint64_t elementBytes,
                                        const Mesh &mesh) {
  RETURN_IF_ERROR(groupSize(*position.axes(), mesh).status());
  if (position.count() < 1)
    return Status::error("expects at least one place by position, got ", position.count());
  if (position.stride_bytes() % elementBytes != 0)
    return Status::error("expects places at multiples of ", elementBytes, " bytes, got ",
                         position.stride_bytes());
  return checkedMul(static_cast<uint64_t>(position.count() - 1), position.stride_bytes());
}

} // namespace

Status checkSymmetricArguments(const program::Procedure &procedure) {
  if (!procedure.symmetric_arguments())
    return {};
  const auto &arguments = *procedure.symmetric_arguments();
  if (!isAligned(arguments))
    return Status::error("symmetric arguments do not stand at a multiple of 4 bytes");
  for (unsigned i = 0; i < arguments.size(); ++i)
    if (arguments[i] >= procedure.num_arguments() || (i != 0 && arguments[i] <= arguments[i - 1]))
      return Status::error("expects symmetric arguments that ascend below ",
                           procedure.num_arguments(), ", got ", arguments[i]);
  return {};
}

bool isSymmetricArgument(const program::Procedure &procedure, uint32_t argument) {
  const auto *arguments = procedure.symmetric_arguments();
  return arguments && std::binary_search(arguments->begin(), arguments->end(), argument);
}

Status checkBuffers(const program::Procedure &procedure) {
  if (!procedure.buffers())
    return {};
  for (unsigned i = 0; i < procedure.buffers()->size(); ++i) {
    const program::Buffer &buffer = *procedure.buffers()->Get(i);
    if (buffer.space() != program::Space::local && buffer.space() != program::Space::symmetric)
      return Status::error("buffer ", i, ": expects local or symmetric memory");
    bool local = buffer.space() == program::Space::local;
    uint64_t frame = local ? procedure.local_bytes() : procedure.symmetric_bytes();
    std::optional<uint64_t> end = checkedAdd(buffer.offset_bytes(), buffer.size_bytes());
    if (!end || *end > frame)
      return Status::error("buffer ", i, " of ", buffer.size_bytes(), " bytes at ",
                           buffer.offset_bytes(), " is not within a ",
                           local ? "local" : "symmetric", " frame of ", frame, " bytes");
  }
  return {};
}

Result<CheckedView> checkView(const program::View &view, const program::Procedure &procedure,
                              const Mesh &mesh) {
  if (view.space() > program::Space::symmetric || view.space() < program::Space::argument)
    return Status::error("unknown memory space ", int(view.space()));
  if (view.dtype() < program::DType::f32 || view.dtype() > program::DType::i8)
    return Status::error("unknown type ", int(view.dtype()));
  if (!isAligned(*view.shape()) || !isAligned(*view.strides()))
    return Status::error("shape or strides do not stand at a multiple of 8 bytes");
  CheckedView result{{static_cast<DType>(view.dtype()),
                      {view.shape()->begin(), view.shape()->end()},
                      {view.strides()->begin(), view.strides()->end()}},
                     view.space(),
                     view.index(),
                     view.offset_bytes(),
                     0};
  if (result.rank() > kMaxViewRank)
    return Status::error("expects at most ", kMaxViewRank, " dimensions, got shape of ",
                         result.rank());
  if (result.strides.size() != result.rank())
    return Status::error("expects as many strides as sizes, got shape ", shapeString(result.shape),
                         " and strides ", shapeString(result.strides));
  uint64_t bytes = static_cast<uint64_t>(byteSize(result.dtype));
  std::optional<int64_t> last = 0;
  for (size_t d = 0; d < result.rank(); ++d) {
    if (result.shape[d] < 1 || result.strides[d] < 0)
      return Status::error("expects positive sizes and no negative strides, got shape ",
                           shapeString(result.shape), " and strides ", shapeString(result.strides));
    std::optional<int64_t> span = checkedMul(result.shape[d] - 1, result.strides[d]);
    last = last && span ? checkedAdd(*last, *span) : std::nullopt;
    // A dimension of size 1 may have any stride that does not overflow.
    std::optional<int64_t> extent = checkedMul(result.shape[d], result.strides[d]);
    if (!extent || !checkedMul(*extent, byteSize(result.dtype)))
      last = std::nullopt;
  }
  std::optional<uint64_t> end;
  if (last && checkedNumElements(result.shape))
    end = checkedMul(static_cast<uint64_t>(*last) + 1, bytes);
  result.bytes = end.value_or(0);
  if (end)
    end = checkedAdd(*end, result.begin);
  if (end && view.position()) {
    ASSIGN_OR_RETURN(std::optional<uint64_t> reach, reachOf(*view.position(), bytes, mesh));
    end = reach ? checkedAdd(*end, *reach) : std::nullopt;
  }
  if (!end)
    return Status::error("view of shape ", shapeString(result.shape), " and strides ",
                         shapeString(result.strides), " is too large");
  result.end = *end;
  if (result.begin % bytes != 0)
    return Status::error("expects an offset at a multiple of ", bytes, " bytes for ",
                         name(result.dtype), ", got ", result.begin);
  if (result.space == program::Space::argument) {
    if (result.argument >= procedure.num_arguments())
      return Status::error("expects an argument below ", procedure.num_arguments(), ", got ",
                           result.argument);
    if (view.buffer() != -1)
      return Status::error("expects no buffer for an argument, got ", view.buffer());
    return result;
  }
  bool local = result.space == program::Space::local;
  uint64_t frame = local ? procedure.local_bytes() : procedure.symmetric_bytes();
  if (result.end > frame)
    return Status::error("view ends at byte ", result.end, " of a ", local ? "local" : "symmetric",
                         " frame of ", frame, " bytes");
  if (view.buffer() != -1)
    RETURN_IF_ERROR(checkBuffer(result, view.buffer(), procedure));
  return result;
}

} // namespace braid::runtime
