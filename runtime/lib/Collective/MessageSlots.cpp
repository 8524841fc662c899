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

int64_t bytesOf(const CollectiveValue &value) {
  return value.numElements() * byteSize(value.dtype);
}

std::string where(const Collective &c, int64_t rank) {
  return "rank " + std::to_string(rank) + ": " + signature(c);
}

/// A send and its matching receive.
bool fit(const Collective &send, const Collective &receive) {
  return send.pairs == receive.pairs && send.role == receive.role &&
         std::equal(send.values.begin(), send.values.end(), receive.values.begin(),
                    receive.values.end(), [](const CollectiveValue &a, const CollectiveValue &b) {
                      return a.dtype == b.dtype && a.numElements() == b.numElements();
                    });
}

} // namespace

int64_t MessageSlots::peer(const Collective &half) {
  const bool sends = half.kind == CollectiveKind::send;
  for (auto [from, to] : half.pairs)
    if ((sends ? from : to) == half.position)
      return half.group->ranks[static_cast<size_t>(sends ? to : from)];
  return -1;
}

int64_t MessageSlots::roundedBytes(const CollectiveValue &value) {
  return (bytesOf(value) + kLine - 1) / kLine * kLine;
}

int64_t MessageSlots::Post::bytes() const {
  int64_t sum = 0;
  for (const CollectiveValue &value : send->values)
    sum += roundedBytes(value);
  return sum;
}

MessageSlot *MessageSlots::find(const Collective &half, size_t index) {
  const int64_t other = peer(half);
  if (other < 0)
    return nullptr;
  const int64_t mine = half.group->ranks[static_cast<size_t>(half.position)];
  const bool sends = half.kind == CollectiveKind::send;
  const Key key = sends ? Key{mine, other, half.tag, index} : Key{other, mine, half.tag, index};
  Post &post = posts[key];
  if (!post.messageSlot) {
    post.messageSlot = pool.create<MessageSlot>(1, pool.sharing());
    post.messageSlot->source = key.source;
  }
  (sends ? post.send : post.receive) = half;
  return post.messageSlot;
}

Status MessageSlots::check() const {
  for (const auto &[key, post] : posts) {
    if (!post.receive)
      return Status::error(where(*post.send, key.source) + " is received by nobody on rank " +
                           std::to_string(key.target));
    if (!post.send)
      return Status::error(where(*post.receive, key.target) + " is sent by nobody on rank " +
                           std::to_string(key.source));
    if (!fit(*post.send, *post.receive))
      return Status::error(where(*post.receive, key.target) + " meets " + signature(*post.send) +
                           " of rank " + std::to_string(key.source));
  }
  return {};
}

Status MessageSlots::prepare() {
  RETURN_IF_ERROR(check());
  int64_t bytes = 0;
  for (const auto &[key, post] : posts)
    bytes += post.bytes();
  // Addresses of arguments may change later; the values sent do not.
  if (memory.data() || bytes == 0)
    return {};
  Status status = pool.sharing() == Sharing::forks ? memory.reserve(static_cast<size_t>(bytes))
                                                   : memory.map(static_cast<size_t>(bytes));
  if (!status.ok())
    return Status::error("values that are sent from rank to rank: " + status.message());
  std::byte *next = memory.data();
  for (auto &[key, post] : posts) {
    post.messageSlot->data = next;
    next += post.bytes();
  }
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
    std::memcpy(to, heap.peer(heap.rank, value.inputOffset), static_cast<size_t>(bytesOf(value)));
    to += MessageSlots::roundedBytes(value);
  }
  c.messageSlot->sent.increment();
}

bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control,
             QueueState &self) {
  if (!c.messageSlot) {
    for (const CollectiveValue &value : c.values)
      std::memset(heap.peer(heap.rank, value.outputOffset), 0, static_cast<size_t>(bytesOf(value)));
    return true;
  }
  const uint32_t next = c.messageSlot->taken.load() + 1;
  if (!control.wait(c.messageSlot->sent, next, self, Waiting::peer, c.messageSlot->source))
    return false;
  const std::byte *from = c.messageSlot->data;
  for (const CollectiveValue &value : c.values) {
    std::memcpy(heap.peer(heap.rank, value.outputOffset), from,
                static_cast<size_t>(bytesOf(value)));
    from += MessageSlots::roundedBytes(value);
  }
  atSchedulePoint("received");
  c.messageSlot->taken.store(next, std::memory_order_release);
  return true;
}

} // namespace braid::runtime
