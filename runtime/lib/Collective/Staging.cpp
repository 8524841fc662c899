//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Staging.h"

#include <algorithm>
#include <new>

namespace braid::runtime {

/// Messages of different pairs share no line. A rank has its bell, then the messages to each rank,
/// then its slots.
static constexpr size_t kLine = 64, kPage = 4096;

static size_t numSlots(const Staging::Shape &shape) { return shape.depth * (shape.ranks - 1); }
static size_t firstSlot(const Staging::Shape &shape) {
  const size_t bytes = sizeof(Counter) + shape.ranks * shape.depth * kLine;
  return (bytes + kPage - 1) / kPage * kPage;
}
static size_t slotStep(const Staging::Shape &shape) {
  return (static_cast<size_t>(shape.slotBytes) + kLine - 1) / kLine * kLine;
}

Staging::Shape Staging::shapeFor(size_t ranks) {
  constexpr int64_t kSlotBytes = int64_t(128) << 10;
  constexpr size_t kSlots = 16;
  constexpr uint32_t kLeastDepth = 2;
  // A power of two, as numbers of messages wrap around.
  uint32_t depth = kLeastDepth;
  while (2 * depth * (std::max<size_t>(ranks, 2) - 1) <= kSlots)
    depth *= 2;
  return {ranks, kSlotBytes, depth};
}

size_t Staging::bytes(const Shape &shape) {
  return firstSlot(shape) + numSlots(shape) * slotStep(shape);
}

Staging::Staging(const Shape &itsShape, size_t itsPosition, std::byte *const *itsMemory)
    : shape(itsShape), position(itsPosition), memory(itsMemory), slots(numSlots(itsShape)) {
  static_assert(sizeof(Message) <= kLine);
  new (memory[position]) Counter(Sharing::forks);
  for (size_t peer = 0; peer < shape.ranks; ++peer)
    for (uint32_t number = 0; number < shape.depth; ++number)
      new (messageOf(position, peer, number)) Message;
}

Staging::Message *Staging::messageOf(size_t sender, size_t receiver, uint32_t number) const {
  return reinterpret_cast<Message *>(memory[sender] + sizeof(Counter) +
                                     (receiver * shape.depth + number % shape.depth) * kLine);
}

std::byte *Staging::slotOf(size_t rank, uint32_t slot) const {
  return memory[rank] + firstSlot(shape) + slot * slotStep(shape);
}

int64_t Staging::slotWith(uint64_t stamp) const {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].stamp == stamp)
      return static_cast<int64_t>(i);
  return -1;
}

uint32_t Staging::acquire(uint64_t stamp, const std::vector<DirectPair *> &to) {
  // A pair has at most `depth` slots, so that one with room finds a slot here. The first ones are
  // the likeliest to be in a cache.
  size_t free = 0;
  auto isFree = [&](Slot &slot) {
    auto &readers = slot.readers;
    readers.erase(
        std::remove_if(readers.begin(), readers.end(),
                       [&](const auto &one) { return to[one.first]->taken.reached(one.second); }),
        readers.end());
    return readers.empty();
  };
  while (!isFree(slots[free]))
    ++free;
  slots[free].stamp = stamp;
  return static_cast<uint32_t>(free);
}

void Staging::send(size_t peer, DirectPair &pair, uint32_t number, const Message &message) {
  *messageOf(position, peer, number) = message;
  slots[message.slot].readers.emplace_back(peer, number + 1);
  pair.sent.set(number + 1);
  ring(peer);
}

} // namespace braid::runtime
