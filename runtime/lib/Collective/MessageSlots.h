//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values between a send and its receive. A send must not wait for the receive, or a ring of ranks
// that all send first would deadlock; so each send has memory of its own for its values.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_MESSAGESLOTS_H
#define BRAID_COLLECTIVE_MESSAGESLOTS_H

#include "Transport.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <map>
#include <optional>

namespace braid::runtime {

/// What one send of one run leaves for one receive. In a run every slot is sent and taken once.
/// Ranks of a device have their values elsewhere; to them a slot says what belongs together.
struct MessageSlot {
  explicit MessageSlot(Sharing sharing) : sent(sharing) {}
  Counter sent;                   ///< runs in which it was sent
  std::atomic<uint32_t> taken{0}; ///< runs in which it was taken
  std::byte *data = nullptr;
  int64_t source = 0;
  bool waitedFor() const { return !sent.reached(taken.load(std::memory_order_acquire) + 1); }
};

class MessageSlots {
public:
  explicit MessageSlots(MemoryPool &pool) : pool(pool) {}
  MessageSlots(const MessageSlots &) = delete;
  MessageSlots &operator=(const MessageSlots &) = delete;

  /// The slot that a send leaves, or a receive takes; null when this rank has no part in it.
  /// `index` counts the halves of this rank that come before, with the same peer and tag.
  MessageSlot *find(const Collective &half, size_t index);
  /// Checks that every send has a matching receive.
  Status check() const;
  /// Checks the same and allocates memory for all.
  Status prepare();
  void reset();

  /// The rank that `half` sends to or receives from, or -1.
  static int64_t peer(const Collective &half);

  /// The distance from one value to the next.
  static int64_t roundedBytes(const CollectiveValue &value);

private:
  struct Key {
    int64_t source, target, tag;
    size_t index;
    bool operator<(const Key &o) const {
      return std::tie(source, target, tag, index) < std::tie(o.source, o.target, o.tag, o.index);
    }
  };
  struct Post {
    MessageSlot *messageSlot;
    std::optional<Collective> send, receive;
    int64_t bytes() const;
  };

  MemoryPool &pool;
  std::map<Key, Post> posts;
  HostMemory memory;
};

/// Stores a send's values and returns at once.
void send(const Collective &c, const SymmetricHeap &heap);
/// Waits for the values and copies them; ranks that are no target receive zeros. False when the run
/// failed.
bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control, QueueState &self);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_MESSAGESLOTS_H
