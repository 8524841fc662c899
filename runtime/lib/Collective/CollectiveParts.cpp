//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveParts.h"
#include "MessageSlots.h"
#include "braid/Base/StridedCopy.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

void setParts(const Collective &c, int64_t ranks, CollectiveValue &value) {
  const int64_t size = byteSize(value.dtype);
  const bool sends = c.kind == CollectiveKind::send, receives = c.kind == CollectiveKind::recv;
  // A message is packed.
  const StridedView &source = receives ? value.output : value.input;
  const StridedView &dest = sends ? value.input : value.output;
  const std::vector<int64_t> packed = rowMajorStrides(source.shape);
  auto dim = static_cast<size_t>(c.dim), concat = static_cast<size_t>(c.concatDim);
  std::vector<int64_t> part = source.shape;
  value.sourceStep = value.destStep = 0;
  switch (c.kind) {
  case CollectiveKind::allGather:
    value.destStep = part[dim] * dest.strides[dim] * size;
    break;
  case CollectiveKind::allToAllV:
    dim = concat = 0;
    [[fallthrough]];
  case CollectiveKind::reduceScatter:
  case CollectiveKind::allToAll:
    part[dim] /= ranks;
    value.sourceStep = part[dim] * source.strides[dim] * size;
    if (c.kind != CollectiveKind::reduceScatter)
      value.destStep = part[concat] * dest.strides[concat] * size;
    break;
  default:
    break;
  }
  value.part =
      runsOf(part, size, receives ? packed : source.strides, sends ? packed : dest.strides);
}

ScheduleRequest requestOf(const Collective &c) {
  ScheduleRequest request;
  request.kind = c.kind;
  request.ranks = static_cast<int64_t>(c.group->ranks.size());
  request.root = c.root;
  request.pairs = c.pairs;
  request.topology = c.group->topology;
  for (const CollectiveValue &value : c.values) {
    ScheduleValue one{value.bytes(), byteSize(value.dtype), false};
    one.inPlace = c.kind == CollectiveKind::allReduce && value.input.offset == value.output.offset;
    request.values.push_back(one);
  }
  return request;
}

ScheduleRequest requestOf(const Collective &c, const std::string &transport) {
  ScheduleRequest request = requestOf(c);
  chooseSchedule(request, transport);
  return request;
}

ByteRange reducedRange(const CollectiveValue &value, int64_t position, int64_t ranks) {
  constexpr int64_t kLine = 64;
  const int64_t elements = value.numElements(), size = byteSize(value.dtype);
  const int64_t lines = (elements + kLine - 1) / kLine;
  return {std::min(elements, lines * position / ranks * kLine) * size,
          std::min(elements, lines * (position + 1) / ranks * kLine) * size};
}

int64_t sourceOf(const Collective &c) {
  if (c.kind == CollectiveKind::broadcast)
    return c.root;
  for (auto [from, to] : c.pairs)
    if (to == c.position)
      return from;
  return -1;
}

CountedBlocks blocksOf(const CollectiveValue &value, int64_t ranks) {
  const std::vector<int64_t> &shape = value.input.shape;
  const int64_t blocks = shape[0] / ranks, rows = shape.size() > 1 ? shape[1] : 1;
  return {blocks, rows, value.part.bytes() / (blocks * rows)};
}

int64_t countCapacity(const Collective &c) {
  int64_t rows = INT64_MAX;
  for (size_t v = 0; v + 1 < c.values.size(); ++v)
    rows = std::min(rows, c.values[v].input.shape[1]);
  return rows;
}

int64_t countOfBlock(const std::byte *counts, DType dtype, int64_t stride, int64_t block) {
  const std::byte *count = counts + block * stride * byteSize(dtype);
  if (dtype == DType::i64) {
    int64_t wide;
    std::memcpy(&wide, count, 8);
    return wide;
  }
  int32_t narrow;
  std::memcpy(&narrow, count, 4);
  return narrow;
}

Status checkOwnCounts(const Collective &c, const std::byte *counts) {
  const CollectiveValue &value = c.values.back();
  const int64_t capacity = countCapacity(c);
  for (int64_t block = 0; block < value.input.shape[0]; ++block)
    if (const int64_t count = countOfBlock(counts, value.dtype, value.input.strides[0], block);
        count < 0 || count > capacity)
      return countError(c, count, block);
  return {};
}

Status countError(const Collective &c, int64_t count, int64_t block) {
  return Status::error(signature(c) + " expects counts in [0, " + std::to_string(countCapacity(c)) +
                           "], got " + std::to_string(count) + " at block " + std::to_string(block),
                       Code::rankFailed);
}

bool isSource(const Collective &c) {
  switch (c.kind) {
  case CollectiveKind::reduce:
    return c.position != c.root;
  case CollectiveKind::broadcast:
    return c.position == c.root;
  case CollectiveKind::permute:
    return std::any_of(c.pairs.begin(), c.pairs.end(), [&](auto pair) {
      return pair.first == c.position && pair.second != c.position;
    });
  case CollectiveKind::send:
    return MessageSlots::peer(c) >= 0;
  default:
    return true;
  }
}

} // namespace braid::runtime
