//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SharedArenas.h"
#include "EngineRun.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <thread>

namespace braid::runtime {

/// For what groups tell each other; and so many times the symmetric memory for scratch. Pages of
/// either exist when they are used.
static constexpr size_t kRecordBytes = size_t(64) << 20, kScratchTimes = 8;

/// At the beginning of an arena. Addresses are those of its owner.
struct SharedArenas::Header {
  std::byte *base = nullptr;
  size_t heapOffset = 0;
  const Entry *directory = nullptr;
  size_t entries = 0;
  const SlotEntry *slots = nullptr;
  size_t numSlots = 0;
  std::atomic<uint32_t> version{0}; ///< of all before; 0: nothing is there yet
};

/// A group of a rank.
struct SharedArenas::Entry {
  uint64_t group = 0; ///< a hash of its ranks and queue
  Arrival *arrival = nullptr;
  DirectPair *pairs = nullptr;
};

static uint64_t hashOf(const EngineGroup &group) {
  uint64_t hash = group.queue + 1;
  for (int64_t rank : group.ranks)
    hash = (hash ^ static_cast<uint64_t>(rank)) * 1099511628211U + 1;
  return hash;
}

SharedArenas::Header &SharedArenas::headerOf(size_t hostRank) const {
  return *reinterpret_cast<Header *>(arenas[hostRank].data());
}

Result<std::unique_ptr<SharedArenas>> SharedArenas::create(const Exchange &exchange,
                                                           const std::vector<int64_t> &hostRanks,
                                                           int64_t rank, int64_t numRanks,
                                                           size_t heapBytes) {
  constexpr size_t kPage = 4096, kHeader = 256;
  static_assert(sizeof(Header) <= kHeader);
  heapBytes = (std::max<size_t>(heapBytes, 1) + kPage - 1) / kPage * kPage;
  if (heapBytes > SIZE_MAX / (2 * kScratchTimes))
    return Status::error("more than addresses reach");
  const size_t heapOffset = kRecordBytes + kScratchTimes * heapBytes;
  std::unique_ptr<SharedArenas> own(new SharedArenas);
  ASSIGN_OR_RETURN(own->arenas, exchange(heapOffset + heapBytes, heapBytes));
  own->hostRanks = hostRanks;
  own->self =
      static_cast<size_t>(std::find(hostRanks.begin(), hostRanks.end(), rank) - hostRanks.begin());
  own->heapBytes = heapBytes;
  own->bases.resize(static_cast<size_t>(numRanks));
  std::byte *mine = own->arenas[own->self].data();
  auto *header = new (mine) Header;
  header->base = mine;
  header->heapOffset = heapOffset;
  own->bases[static_cast<size_t>(rank)] = mine + heapOffset;
  own->records = std::make_unique<MemoryPool>(Sharing::forks, mine + kHeader, heapOffset - kHeader);
  return own;
}

std::unique_ptr<GroupMember> SharedArenas::makeMember(const EngineGroup &group, size_t position) {
  const size_t count = group.ranks.size();
  auto member = std::make_unique<GroupMember>(
      count, records->create<Arrival>(1, records->sharing()), *records);
  for (size_t i = 0; i < count; ++i)
    if (std::find(hostRanks.begin(), hostRanks.end(), group.ranks[i]) != hostRanks.end())
      member->pairs[i] = PairKind::direct;
  groups.push_back(
      {&group, member.get(), position, records->create<DirectPair>(count, records->sharing())});
  return member;
}

bool SharedArenas::offer(int64_t tag, size_t number, MessageSlot &slot) {
  constexpr size_t kOfCounters = 1024;
  const auto bytes = static_cast<size_t>(slot.bytes);
  if (records->room() / 2 < bytes + kOfCounters)
    return false;
  const MessageSlot made(*records);
  slot.sent = made.sent;
  slot.taken = made.taken;
  slot.data = static_cast<std::byte *>(records->allocate(bytes));
  offered.push_back({slot.target, tag, number, slot});
  return true;
}

void SharedArenas::await(int64_t tag, size_t number, MessageSlot &slot) {
  awaited.push_back({tag, number, &slot});
}

Status SharedArenas::connect(double timeLimitSeconds) {
  auto *slots = records->create<SlotEntry>(offered.size());
  std::copy(offered.begin(), offered.end(), slots);
  auto *directory = records->create<Entry>(groups.size());
  for (size_t g = 0; g < groups.size(); ++g)
    directory[g] = {hashOf(*groups[g].group), groups[g].member->arrival, groups[g].pairs};
  Header &mine = headerOf(self);
  mine.directory = directory;
  mine.entries = groups.size();
  mine.slots = slots;
  mine.numSlots = offered.size();
  mine.version.store(++version, std::memory_order_release);

  const int64_t end = nowNs() + static_cast<int64_t>(timeLimitSeconds * 1e9);
  for (size_t h = 0; h < hostRanks.size(); ++h) {
    const Header &theirs = headerOf(h);
    while (theirs.version.load(std::memory_order_acquire) < version) {
      if (timeLimitSeconds > 0 && nowNs() >= end)
        return Status::error(
            "rank ", hostRanks[h], " of this host has not prepared its ", "collectives within ",
            seconds(static_cast<int64_t>(timeLimitSeconds * 1e9)), Code::rankFailed);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const std::ptrdiff_t shift = arenas[h].data() - theirs.base;
    bases[static_cast<size_t>(hostRanks[h])] = arenas[h].data() + theirs.heapOffset;
    auto here = [&](auto *address) {
      return reinterpret_cast<decltype(address)>(reinterpret_cast<uintptr_t>(address) +
                                                 static_cast<uintptr_t>(shift));
    };
    for (const Awaited &message : awaited) {
      if (message.slot->source != hostRanks[h] || message.slot->sent)
        continue;
      const SlotEntry *begin = here(theirs.slots), *end = begin + theirs.numSlots;
      const SlotEntry *found = std::find_if(begin, end, [&](const SlotEntry &one) {
        return one.target == hostRanks[self] && one.tag == message.tag &&
               one.number == message.number;
      });
      if (found == end)
        continue;
      message.slot->sent = here(found->slot.sent);
      message.slot->taken = here(found->slot.taken);
      message.slot->data = here(found->slot.data);
    }
    const Entry *entries = here(theirs.directory);
    for (const Made &made : groups) {
      const std::vector<int64_t> &ranks = made.group->ranks;
      const auto found = std::find(ranks.begin(), ranks.end(), hostRanks[h]);
      if (found == ranks.end())
        continue;
      const auto at = static_cast<size_t>(found - ranks.begin());
      const Entry *entry = std::find_if(entries, entries + theirs.entries, [&](const Entry &one) {
        return one.group == hashOf(*made.group);
      });
      if (entry == entries + theirs.entries)
        return Status::error("rank ", hostRanks[h], " has no collective with rank ",
                             hostRanks[self], ", which has one with it", Code::rankFailed);
      GroupMember &member = *made.member;
      member.shift[at] = shift;
      member.arrivals[at] = here(entry->arrival);
      member.from[at] = here(entry->pairs) + made.position;
      member.to[at] = made.pairs + at;
    }
  }
  return {};
}

Status SharedArenas::touch() const {
  for (const SlotEntry &entry : offered)
    RETURN_IF_ERROR(arenas[self].touch(static_cast<size_t>(entry.slot.data - arenas[self].data()),
                                       static_cast<size_t>(entry.slot.bytes)));
  return arenas[self].touch(headerOf(self).heapOffset, heapBytes);
}

} // namespace braid::runtime
