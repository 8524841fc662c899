//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Fabric.h"
#include "EngineRun.h"
#include "Staging.h"

#include <cstring>

namespace braid::runtime {

const SharedCollective *SharedCollective::make(const Collective &c, MemoryPool &pool) {
  const std::string text = braid::runtime::signature(c);
  const size_t values = c.values.size() * sizeof(Value);
  auto *memory =
      static_cast<std::byte *>(pool.allocate(sizeof(SharedCollective) + values + text.size() + 1));
  auto *shared = new (memory) SharedCollective;
  shared->operation = operationHash(c);
  shared->identity = identityHash(c);
  shared->numValues = static_cast<uint32_t>(c.values.size());
  auto *value = reinterpret_cast<Value *>(shared + 1);
  for (const CollectiveValue &one : c.values)
    *value++ = {one.input.offset, one.output.offset};
  std::memcpy(value, text.c_str(), text.size() + 1);
  return shared;
}

GroupMember::GroupMember(size_t ranks, Arrival *itsArrival, MemoryPool &pool)
    : arrival(itsArrival), pairs(ranks), arrivals(ranks), to(ranks), from(ranks), shift(ranks),
      progress(pool.create<Progress>(1)), sends(pool.create<uint32_t>(ranks)),
      takes(pool.create<uint32_t>(ranks)) {}
GroupMember::~GroupMember() = default;

void GroupMember::reserve(const Collective &c, MemoryPool &pool) {
  for (const std::unique_ptr<EngineRun> &run : runs)
    run->reserve(c);
  const int64_t bytes = c.plan->schedule.scratchBytes;
  // In whole cache lines, as runs are beside each other.
  constexpr size_t kLine = 64;
  const size_t wanted = (static_cast<size_t>(bytes) + kLine - 1) / kLine * kLine;
  if (wanted <= scratchBytes)
    return;
  scratch = static_cast<std::byte *>(pool.allocate(wanted * kCollectivesInFlight));
  scratchBytes = wanted;
}

std::vector<int64_t> EngineGroup::missing(int64_t position) const {
  std::vector<int64_t> result;
  const GroupMember *member = members[static_cast<size_t>(position)].get();
  if (!member)
    return result;
  const Arrival &mine = *member->arrival;
  const uint32_t oldest = mine.oldest.load(std::memory_order_relaxed);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (member->arrivals[i] && !member->arrivals[i]->arrivals.reached(oldest))
      result.push_back(ranks[i]);
  const auto what = mine.what.load(std::memory_order_relaxed);
  const int64_t awaited = mine.awaited.load(std::memory_order_relaxed);
  if (!result.empty() || what == Arrival::nothing || awaited < 0)
    return result;
  // The peer may have done its part since, and be elsewhere.
  const auto peer = static_cast<size_t>(awaited);
  const uint32_t target = mine.target.load(std::memory_order_relaxed);
  const bool isThere = what == Arrival::taken  ? member->to[peer]->taken.reached(target)
                       : what == Arrival::sent ? member->from[peer]->sent.reached(target)
                                               : false;
  if (!isThere)
    result.push_back(ranks[peer]);
  return result;
}

void EngineGroup::reset() {
  for (const auto &member : members) {
    if (!member)
      continue;
    *member->progress = {};
    member->arrival->arrivals.set(0);
    member->arrival->oldest.store(1, std::memory_order_relaxed);
    if (member->reads.own)
      member->reads.own->set(0);
    member->arrival->what.store(Arrival::nothing, std::memory_order_relaxed);
    for (size_t i = 0; i < ranks.size(); ++i) {
      member->sends[i] = member->takes[i] = 0;
      if (member->to[i]) {
        member->to[i]->sent.set(0);
        member->to[i]->taken.set(0);
      }
    }
  }
}

} // namespace braid::runtime
