//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Letters.h"
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

int64_t Letters::peer(const Collective &half) {
  const bool sends = half.kind == CollectiveKind::send;
  for (auto [from, to] : half.pairs)
    if ((sends ? from : to) == half.position)
      return half.group->ranks[static_cast<size_t>(sends ? to : from)];
  return -1;
}

int64_t Letters::roundedBytes(const CollectiveValue &value) {
  return (bytesOf(value) + kLine - 1) / kLine * kLine;
}

int64_t Letters::Post::bytes() const {
  int64_t sum = 0;
  for (const CollectiveValue &value : send->values)
    sum += roundedBytes(value);
  return sum;
}

Letter *Letters::find(const Collective &half, size_t index) {
  const int64_t other = peer(half);
  if (other < 0)
    return nullptr;
  const int64_t mine = half.group->ranks[static_cast<size_t>(half.position)];
  const bool sends = half.kind == CollectiveKind::send;
  const Key key =
      sends ? Key{mine, other, half.channel, index} : Key{other, mine, half.channel, index};
  Post &post = posts[key];
  if (!post.letter) {
    post.letter = pool.create<Letter>(1, pool.sharing());
    post.letter->source = key.source;
  }
  (sends ? post.send : post.receive) = half;
  return post.letter;
}

Status Letters::check() const {
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

Status Letters::prepare() {
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
    post.letter->data = next;
    next += post.bytes();
  }
  return {};
}

void Letters::reset() {
  for (auto &[key, post] : posts) {
    post.letter->sent.set(0);
    post.letter->taken.store(0);
  }
}

void send(const Collective &c, const SymmetricHeap &heap) {
  if (!c.letter)
    return;
  atSchedulePoint("before a send");
  std::byte *to = c.letter->data;
  for (const CollectiveValue &value : c.values) {
    std::memcpy(to, heap.peer(heap.rank, value.inputOffset), static_cast<size_t>(bytesOf(value)));
    to += Letters::roundedBytes(value);
  }
  c.letter->sent.increment();
}

bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control,
             QueueState &self) {
  if (!c.letter) {
    for (const CollectiveValue &value : c.values)
      std::memset(heap.peer(heap.rank, value.outputOffset), 0, static_cast<size_t>(bytesOf(value)));
    return true;
  }
  const uint32_t next = c.letter->taken.load() + 1;
  if (!control.wait(c.letter->sent, next, self, Waiting::peer, c.letter->source))
    return false;
  const std::byte *from = c.letter->data;
  for (const CollectiveValue &value : c.values) {
    std::memcpy(heap.peer(heap.rank, value.outputOffset), from,
                static_cast<size_t>(bytesOf(value)));
    from += Letters::roundedBytes(value);
  }
  atSchedulePoint("received");
  c.letter->taken.store(next, std::memory_order_release);
  return true;
}

} // namespace braid::runtime
