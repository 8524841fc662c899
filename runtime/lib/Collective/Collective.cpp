//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MessageSlots.h"

#include <algorithm>
#include <tuple>

namespace braid::runtime {

std::vector<RankQueue> Collective::missing() const {
  std::vector<RankQueue> result;
  if (isPointToPoint(kind)) {
    if (!messageSlot)
      return {};
    const MessageSlot &slot = *messageSlot;
    if (kind == CollectiveKind::recv && slot.awaitsMessage())
      result.push_back({slot.source, slot.sourceQueue});
    else if (kind == CollectiveKind::send && slot.awaitsRoom())
      result.push_back({slot.target, slot.targetQueue});
  } else if (group) {
    for (int64_t rank : group->missing(position))
      result.push_back({rank, group->queue});
  }
  return result;
}

std::string signature(const Collective &c) {
  std::string text = name(c.kind) + (c.name.empty() ? std::string() : " '" + c.name + "'") + " (";
  if (hasReduction(c.kind))
    text += std::string(name(c.reduce)) + ", ";
  for (size_t i = 0; i < c.values.size(); ++i)
    text += (i ? " and " : "") + std::to_string(c.values[i].numElements()) + " " +
            name(c.values[i].dtype);
  switch (c.kind) {
  case CollectiveKind::allReduce:
  case CollectiveKind::allToAllV:
    break;
  case CollectiveKind::allToAll:
    text += ", dim " + std::to_string(c.dim) + ", concat " + std::to_string(c.concatDim);
    break;
  case CollectiveKind::reduceScatter:
  case CollectiveKind::allGather:
    text += ", dim " + std::to_string(c.dim);
    break;
  case CollectiveKind::reduce:
  case CollectiveKind::broadcast:
    text += ", root " + std::to_string(c.root);
    break;
  case CollectiveKind::permute:
  case CollectiveKind::send:
  case CollectiveKind::recv:
    text += ", pairs [";
    for (size_t i = 0; i < c.pairs.size(); ++i)
      text += (i ? ", " : "") + std::to_string(c.pairs[i].first) + " -> " +
              std::to_string(c.pairs[i].second);
    text += "]";
  }
  if (isPointToPoint(c.kind))
    text += ", tag " + std::to_string(c.tag);
  text += ", role '" + c.role + "')";
  return c.path ? text + " in " + *c.path : text;
}

bool agree(const Collective &a, const Collective &b) {
  auto operation = [](const Collective &c) {
    return std::tie(c.kind, c.algorithm, c.role, c.dim, c.concatDim, c.root, c.pairs);
  };
  auto types = [](const CollectiveValue &v) {
    return std::tie(v.dtype, v.input.shape, v.input.strides, v.output.shape, v.output.strides);
  };
  return operation(a) == operation(b) && (!hasReduction(a.kind) || a.reduce == b.reduce) &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [&](const auto &x, const auto &y) { return types(x) == types(y); });
}

bool isSameOperation(const Collective &a, const Collective &b) {
  return a.name == b.name && (a.path && b.path ? *a.path == *b.path : a.path == b.path);
}

} // namespace braid::runtime
