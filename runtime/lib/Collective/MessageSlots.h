//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Messages from a send to its receive. A send must not wait for the receive, or a ring of ranks
// that all send first would deadlock; so each send has memory of its own for its message.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_MESSAGESLOTS_H
#define BRAID_COLLECTIVE_MESSAGESLOTS_H

#include "Transport.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <map>
#include <optional>

namespace braid::runtime {

/// The message of one send to one receive. In a run every slot is sent and taken once. Ranks of a
/// device have their messages elsewhere; for them a slot identifies the send of a receive.
struct MessageSlot {
  explicit MessageSlot(Sharing sharing) : sent(sharing) {}
  Counter sent;                   ///< runs in which it was sent
  std::atomic<uint32_t> taken{0}; ///< runs in which it was taken
  std::byte *data = nullptr;
  int64_t source = 0;
  Queue sourceQueue = kComputeQueue; ///< that the send stands on
  bool waitedFor() const { return !sent.reached(taken.load(std::memory_order_acquire) + 1); }
};

class MessageSlots {
public:
  explicit MessageSlots(MemoryPool &pool) : pool(pool) {}
  MessageSlots(const MessageSlots &) = delete;
  MessageSlots &operator=(const MessageSlots &) = delete;

  /// The slot of a send or receive; null when this rank takes no part in it. `index` counts the
  /// sends or receives of this rank that come before, with the same peer and tag.
  MessageSlot *find(const Collective &c, size_t index);
  /// Checks that every send has a matching receive.
  Status check() const;
  /// Checks the same and maps memory for all messages.
  Status prepare();
  /// Allocates the pages of the messages that a rank sends.
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
  struct Post {
    MessageSlot *messageSlot;
    std::optional<Collective> send, receive;
    int64_t bytes() const;
  };

  MemoryPool &pool;
  std::map<Key, Post> posts;
  HostMemory memory;
};

/// Copies a send's values to its message and returns at once.
void send(const Collective &c, const SymmetricHeap &heap);
/// Waits for the message and copies its values; a rank that is no target receives zeros. False when
/// the run failed.
bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control, QueueState &self);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_MESSAGESLOTS_H
