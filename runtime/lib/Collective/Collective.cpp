//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MessageSlots.h"
#include "Plan.h"

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
    // A rank with which no message is exchanged is not waited for.
    auto exchanges = [&](int64_t rank) {
      const auto at = static_cast<size_t>(
          std::find(group->ranks.begin(), group->ranks.end(), rank) - group->ranks.begin());
      return !plan || plan->sends[at] > 0 || plan->takes[at] > 0;
    };
    for (int64_t rank : group->missing(position))
      if (exchanges(rank))
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

namespace {

/// FNV-1a, which is the same in all processes.
class Hash {
public:
  Hash &add(const std::string &text) {
    for (char c : text)
      add(static_cast<unsigned char>(c));
    return add(uint64_t(256)); // "ab", "c" differs from "a", "bc"
  }
  Hash &add(uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8)
      state = (state ^ (number & 255)) * 1099511628211U;
    return *this;
  }
  Hash &add(const std::vector<int64_t> &numbers) {
    add(numbers.size());
    for (int64_t number : numbers)
      add(static_cast<uint64_t>(number));
    return *this;
  }
  uint64_t value() const { return state; }

private:
  uint64_t state = 14695981039346656037U;
};

} // namespace

uint64_t operationHash(const Collective &c) {
  Hash hash;
  hash.add(static_cast<uint64_t>(c.kind)).add(static_cast<uint64_t>(c.algorithm)).add(c.role);
  if (hasReduction(c.kind))
    hash.add(static_cast<uint64_t>(c.reduce));
  hash.add(std::vector<int64_t>{c.dim, c.concatDim, c.root});
  for (const auto &[source, target] : c.pairs)
    hash.add(std::vector<int64_t>{source, target});
  hash.add(c.group->ranks);
  for (const CollectiveValue &value : c.values)
    hash.add(static_cast<uint64_t>(value.dtype))
        .add(value.input.shape)
        .add(value.input.strides)
        .add(value.output.shape)
        .add(value.output.strides);
  return hash.value();
}

uint64_t identityHash(const Collective &c) {
  return Hash().add(c.name).add(c.path ? *c.path : std::string()).value();
}

bool Transport::run(const Collective &c, const SymmetricHeap &heap, RunControl &control,
                    QueueState &self) {
  if (isPointToPoint(c.kind))
    return sendOrReceive(c, heap, control, self) && !control.failed();
  CollectiveRun *run = begin(c, heap, control, self);
  if (!run)
    return false;
  while (!run->advance() && run->wait()) {
  }
  if (control.failed())
    run->abandon();
  return !control.failed();
}

} // namespace braid::runtime
