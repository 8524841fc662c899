//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MessageSlots.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace braid::runtime {

static constexpr int64_t kLine = 64;

int64_t MessageSlots::peer(const Collective &c) {
  const bool sends = c.kind == CollectiveKind::send;
  for (auto [from, to] : c.pairs)
    if ((sends ? from : to) == c.position)
      return c.group->ranks[static_cast<size_t>(sends ? to : from)];
  return -1;
}

int64_t MessageSlots::roundedBytes(const CollectiveValue &value) {
  return (value.bytes() + kLine - 1) / kLine * kLine;
}

MessageSlot *MessageSlots::find(const Collective &c, size_t index) {
  const int64_t other = peer(c);
  if (other < 0)
    return nullptr;
  const int64_t mine = c.group->ranks[static_cast<size_t>(c.position)];
  const bool sends = c.kind == CollectiveKind::send;
  Key key = sends ? Key{mine, other, c.tag, index} : Key{other, mine, c.tag, index};
  key.index %= static_cast<size_t>(inFlight);
  MessageSlot *&slot = slots[key];
  if (!slot) {
    slot = pool.create<MessageSlot>(1);
    *slot = MessageSlot(pool);
    slot->source = key.source;
    slot->target = key.target;
  }
  (sends ? slot->sourceQueue : slot->targetQueue) = c.queue;
  int64_t bytes = 0;
  for (const CollectiveValue &value : c.values)
    bytes += roundedBytes(value);
  slot->bytes = std::max(slot->bytes, bytes);
  return slot;
}

Status MessageSlots::prepare() {
  int64_t bytes = 0;
  for (const auto &[key, slot] : slots)
    bytes += slot->bytes;
  // Arguments may move later; the sizes of messages do not change.
  if (memory.data() || bytes == 0)
    return {};
  if (Status status = memory.map(static_cast<size_t>(bytes), pool.sharing()); !status.ok())
    return Status::error("memory for messages: " + status.message());
  std::byte *next = memory.data();
  for (auto &[key, slot] : slots) {
    slot->data = next;
    next += slot->bytes;
  }
  return {};
}

Status MessageSlots::touch(int64_t rank) const {
  for (const auto &[key, slot] : slots)
    if (key.source == rank)
      RETURN_IF_ERROR(memory.touch(static_cast<size_t>(slot->data - memory.data()),
                                   static_cast<size_t>(slot->bytes)));
  return {};
}

void MessageSlots::reset() {
  for (auto &[key, slot] : slots) {
    slot->sent->set(0);
    slot->taken->set(0);
  }
}

bool send(const Collective &c, const SymmetricHeap &heap, RunControl &control, QueueState &self) {
  if (!c.messageSlot)
    return true;
  MessageSlot &slot = *c.messageSlot;
  atSchedulePoint("before a send");
  if (!control.wait(*slot.taken, slot.sent->value(), self, Waiting::peer, slot.target))
    return false;
  std::byte *to = slot.data;
  for (const CollectiveValue &value : c.values) {
    copyRuns(value.part, heap.peer(heap.rank, value.input.offset), to);
    to += MessageSlots::roundedBytes(value);
  }
  slot.sent->increment();
  return true;
}

bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control,
             QueueState &self) {
  if (!c.messageSlot) {
    for (const CollectiveValue &value : c.values)
      clearRuns(value.part, heap.peer(heap.rank, value.output.offset), 0, value.bytes());
    return true;
  }
  MessageSlot &slot = *c.messageSlot;
  if (!control.wait(*slot.sent, slot.taken->value() + 1, self, Waiting::peer, slot.source))
    return false;
  const std::byte *from = slot.data;
  for (const CollectiveValue &value : c.values) {
    copyRuns(value.part, from, heap.peer(heap.rank, value.output.offset));
    from += MessageSlots::roundedBytes(value);
  }
  atSchedulePoint("received");
  slot.taken->increment();
  return true;
}

} // namespace braid::runtime
