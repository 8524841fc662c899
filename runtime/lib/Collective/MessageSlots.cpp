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

namespace {

constexpr int64_t kLine = 64;

std::string where(const Collective &c, int64_t rank) {
  return "rank " + std::to_string(rank) + ": " + signature(c);
}

/// Whether a receive expects what a send sends. Each has a role of its own.
bool match(const Collective &send, const Collective &receive) {
  return send.pairs == receive.pairs &&
         std::equal(send.values.begin(), send.values.end(), receive.values.begin(),
                    receive.values.end(), [](const CollectiveValue &a, const CollectiveValue &b) {
                      return a.dtype == b.dtype && a.numElements() == b.numElements();
                    });
}

} // namespace

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

int64_t MessageSlots::Post::bytes() const {
  int64_t sum = 0;
  for (const CollectiveValue &value : send->values)
    sum += roundedBytes(value);
  return sum;
}

MessageSlot *MessageSlots::find(const Collective &c, size_t index) {
  const int64_t other = peer(c);
  if (other < 0)
    return nullptr;
  const int64_t mine = c.group->ranks[static_cast<size_t>(c.position)];
  const bool sends = c.kind == CollectiveKind::send;
  const Key key = sends ? Key{mine, other, c.tag, index} : Key{other, mine, c.tag, index};
  Post &post = posts[key];
  if (!post.messageSlot) {
    post.messageSlot = pool.create<MessageSlot>(1, pool.sharing());
    post.messageSlot->source = key.source;
  }
  if (sends)
    post.messageSlot->sourceQueue = c.queue;
  (sends ? post.send : post.receive) = c;
  return post.messageSlot;
}

Status MessageSlots::check() const {
  for (const auto &[key, post] : posts) {
    if (!post.receive)
      return Status::error(where(*post.send, key.source) + " has no matching recv on rank " +
                           std::to_string(key.target));
    if (!post.send)
      return Status::error(where(*post.receive, key.target) + " has no matching send on rank " +
                           std::to_string(key.source));
    if (!match(*post.send, *post.receive))
      return Status::error(where(*post.receive, key.target) + " does not match " +
                           signature(*post.send) + " of rank " + std::to_string(key.source));
  }
  return {};
}

Status MessageSlots::prepare() {
  RETURN_IF_ERROR(check());
  int64_t bytes = 0;
  for (const auto &[key, post] : posts)
    bytes += post.bytes();
  // Arguments may move later; the sizes of messages do not change.
  if (memory.data() || bytes == 0)
    return {};
  if (Status status = memory.map(static_cast<size_t>(bytes), pool.sharing()); !status.ok())
    return Status::error("memory for messages: " + status.message());
  std::byte *next = memory.data();
  for (auto &[key, post] : posts) {
    post.messageSlot->data = next;
    next += post.bytes();
  }
  return {};
}

Status MessageSlots::touch(int64_t rank) const {
  for (const auto &[key, post] : posts)
    if (key.source == rank)
      RETURN_IF_ERROR(memory.touch(static_cast<size_t>(post.messageSlot->data - memory.data()),
                                   static_cast<size_t>(post.bytes())));
  return {};
}

void MessageSlots::reset() {
  for (auto &[key, post] : posts) {
    post.messageSlot->sent.set(0);
    post.messageSlot->taken.store(0);
  }
}

void send(const Collective &c, const SymmetricHeap &heap) {
  if (!c.messageSlot)
    return;
  atSchedulePoint("before a send");
  std::byte *to = c.messageSlot->data;
  for (const CollectiveValue &value : c.values) {
    copyRuns(value.part, heap.peer(heap.rank, value.input.offset), to);
    to += MessageSlots::roundedBytes(value);
  }
  c.messageSlot->sent.increment();
}

bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control,
             QueueState &self) {
  if (!c.messageSlot) {
    for (const CollectiveValue &value : c.values)
      clearRuns(value.part, heap.peer(heap.rank, value.output.offset), 0, value.bytes());
    return true;
  }
  const uint32_t next = c.messageSlot->taken.load() + 1;
  if (!control.wait(c.messageSlot->sent, next, self, Waiting::peer, c.messageSlot->source))
    return false;
  const std::byte *from = c.messageSlot->data;
  for (const CollectiveValue &value : c.values) {
    copyRuns(value.part, from, heap.peer(heap.rank, value.output.offset));
    from += MessageSlots::roundedBytes(value);
  }
  atSchedulePoint("received");
  c.messageSlot->taken.store(next, std::memory_order_release);
  return true;
}

} // namespace braid::runtime
