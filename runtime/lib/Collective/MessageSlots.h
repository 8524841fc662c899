//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Messages from a send to its receive. A send ends when its message is in a slot, so that a ring of
// ranks that all send first does not deadlock. The messages from one rank to another on one tag
// take turns in a number of slots; a send waits for its slot's previous message to be received.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_MESSAGESLOTS_H
#define BRAID_COLLECTIVE_MESSAGESLOTS_H

#include "Transport.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <map>

namespace braid::runtime {

/// Memory of a message. Ranks of a device have their messages elsewhere; for them a slot identifies
/// the sends and receives that share memory.
struct MessageSlot {
  MessageSlot() = default;
  /// Its counters are in the pool.
  explicit MessageSlot(MemoryPool &pool)
      : sent(pool.create<Counter>(1, pool.sharing())),
        taken(pool.create<Counter>(1, pool.sharing())) {}
  /// Messages so far. Null as long as the sender, which makes them, has not been found.
  Counter *sent = nullptr, *taken = nullptr;
  std::byte *data = nullptr;
  int64_t bytes = 0; ///< of its largest message
  int64_t source = 0, target = 0;
  /// That the sends and the receives stand on.
  Queue sourceQueue = kComputeQueue, targetQueue = kComputeQueue;
  bool awaitsMessage() const { return sent && !sent->reached(taken->value() + 1); }
  bool awaitsRoom() const { return taken && !taken->reached(sent->value()); }
};

class MessageSlots {
public:
  /// `inFlight`: the slots of a sender, a target and a tag.
  MessageSlots(MemoryPool &pool, int64_t inFlight) : pool(pool), inFlight(inFlight) {}
  MessageSlots(const MessageSlots &) = delete;
  MessageSlots &operator=(const MessageSlots &) = delete;

  /// The slot of a send or receive; null when this rank takes no part in it. `index` counts the
  /// sends or receives of this rank that come before, with the same peer and tag.
  MessageSlot *find(const Collective &c, size_t index);
  /// Maps memory for all slots. That every send has its receive, the program's verifier has
  /// checked.
  Status prepare();
  /// Allocates the pages of the slots to which a rank sends.
  Status touch(int64_t rank) const;
  void reset();

  /// The rank that `c` sends to or receives from, or -1.
  static int64_t peer(const Collective &c);

  /// The distance from one value of a message to the next.
  static int64_t roundedBytes(const CollectiveValue &value);

private:
  struct Key {
    int64_t source, target, tag;
    size_t index;
    bool operator<(const Key &o) const {
      return std::tie(source, target, tag, index) < std::tie(o.source, o.target, o.tag, o.index);
    }
  };

  MemoryPool &pool;
  const int64_t inFlight;
  std::map<Key, MessageSlot *> slots; ///< by the index of the first message
  HostMemory memory;
};

/// Waits for room and copies a send's values to it. False when the run failed.
bool send(const Collective &c, const SymmetricHeap &heap, RunControl &control, QueueState &self);
/// Waits for the message and copies its values; a rank that is no target receives zeros. False when
/// the run failed.
bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control, QueueState &self);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_MESSAGESLOTS_H
