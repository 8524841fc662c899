//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveExtents.h"
#include "MessageSlots.h"

#include <algorithm>

namespace braid::runtime {

void setExtents(const Collective &c, const Tensor &input, CollectiveValue &value) {
  const auto dim = static_cast<size_t>(c.dim), concat = static_cast<size_t>(c.concatDim);
  const size_t least = std::min(dim, concat), most = std::max(dim, concat);
  const auto ranks = static_cast<int64_t>(c.group->ranks.size());
  std::vector<int64_t> chunk = input.shape;
  value.dtype = input.dtype;
  value.inner = 1;
  switch (c.kind) {
  case CollectiveKind::reduceScatter:
    chunk[dim] /= ranks;
    [[fallthrough]];
  case CollectiveKind::allGather:
    for (size_t d = 0; d < chunk.size(); ++d)
      (d < dim ? value.outer : value.inner) *= chunk[d];
    return;
  case CollectiveKind::allToAll:
    chunk[dim] /= ranks;
    for (size_t d = 0; d < chunk.size(); ++d)
      (d < least                   ? value.outer
       : d > most || least == most ? value.inner
       : d == least                ? value.first
       : d == most                 ? value.second
                                   : value.between) *= chunk[d];
    return;
  case CollectiveKind::allToAllV: // blocks, rows of a block, elements of a row; a count is a block
    value.outer = chunk[0] / ranks;
    for (size_t d = 1; d < chunk.size(); ++d)
      (d == 1 ? value.first : value.inner) *= chunk[d];
    return;
  default:
    value.inner = input.numElements();
  }
}

std::pair<int64_t, int64_t> reducedRange(int64_t elements, int64_t position, int64_t ranks) {
  constexpr int64_t kLine = 64;
  const int64_t lines = (elements + kLine - 1) / kLine;
  return {std::min(elements, lines * position / ranks * kLine),
          std::min(elements, lines * (position + 1) / ranks * kLine)};
}

int64_t sourceOf(const Collective &c) {
  if (c.kind == CollectiveKind::broadcast)
    return c.root;
  for (auto [from, to] : c.pairs)
    if (to == c.position)
      return from;
  return -1;
}

AllToAllStrides allToAllStrides(const Collective &c, const CollectiveValue &value, int64_t ranks) {
  // With one dimension for both, the chunks lie as in all_gather and reduce_scatter.
  const bool same = c.dim == c.concatDim;
  const int64_t inner = value.inner * byteSize(value.dtype);
  auto strides = [&](bool alongFirst) {
    ChunkStrides s;
    s.between = (alongFirst ? value.second : ranks * value.second) * inner;
    s.first = value.between * s.between;
    s.outer = (alongFirst ? ranks * value.first : value.first) * s.first;
    s.chunk = alongFirst ? value.first * s.first : value.second * inner;
    return s;
  };
  return {strides(same || c.dim < c.concatDim), strides(same || c.dim > c.concatDim),
          value.second * inner};
}

int64_t countCapacity(const Collective &c) {
  int64_t rows = INT64_MAX;
  for (size_t v = 0; v + 1 < c.values.size(); ++v)
    rows = std::min(rows, c.values[v].first);
  return rows;
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
