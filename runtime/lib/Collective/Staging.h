//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Messages between ranks of a host whose values lie in memory that the other ranks do not see. Each
// rank has slots in memory that they see: it copies a piece to a slot, and whoever is to have the
// piece reads it there. The slots of a rank are few, so that they stay in its cache. A pair's
// counters tell which messages are there and which are not needed any more (DirectPair).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_STAGING_H
#define BRAID_COLLECTIVE_STAGING_H

#include "Fabric.h"

namespace braid::runtime {

class Staging {
public:
  /// The same on all ranks of a group.
  struct Shape {
    size_t ranks = 2;
    int64_t slotBytes = 0; ///< no message is longer
    uint32_t depth = 1;    ///< messages of a pair that are not taken; a power of two
  };
  /// With so many bytes a copy costs more than the counters, and all slots are in a cache.
  static Shape shapeFor(size_t ranks);
  /// Of the memory of a rank.
  static size_t bytes(const Shape &shape);

  struct Message {
    uint64_t tag = 0; ///< of its collective
    int64_t bytes = 0;
    uint32_t slot = 0;
  };

  /// Prepares the memory of the rank at this position. `memory`: by position, as it is seen here;
  /// that of others need not be there yet.
  Staging(const Shape &shape, size_t position, std::byte *const *memory);

  /// Rings whenever another rank has sent this one a message, or taken one of it.
  Counter &bell() const { return bellOf(position); }
  void ring(size_t peer) const { bellOf(peer).increment(); }
  int64_t slotBytes() const { return shape.slotBytes; }

  bool hasRoom(const DirectPair &pair) const {
    return pair.sent.value() - pair.taken.value() < shape.depth;
  }
  /// The slot with these bytes, as long as nothing else was put there; -1: none.
  int64_t slotWith(uint64_t stamp) const;
  /// A slot for these bytes; `to`: the pairs of this rank. There is one when a pair has room.
  uint32_t acquire(uint64_t stamp, const std::vector<DirectPair *> &to);
  std::byte *data(uint32_t slot) const { return slotOf(position, slot); }
  /// Sends the peer the message of this number, which has room.
  void send(size_t peer, DirectPair &pair, uint32_t number, const Message &message);

  /// A message from the peer that was sent and not taken.
  const Message &from(size_t peer, uint32_t number) const {
    return *messageOf(peer, position, number);
  }
  const std::byte *data(size_t peer, const Message &message) const {
    return slotOf(peer, message.slot % static_cast<uint32_t>(slots.size()));
  }

private:
  /// What this rank knows of one of its slots.
  struct Slot {
    uint64_t stamp = 0;                               ///< of what is there; 0: nothing yet
    std::vector<std::pair<size_t, uint32_t>> readers; ///< and what they have taken afterwards
  };
  Counter &bellOf(size_t rank) const { return *reinterpret_cast<Counter *>(memory[rank]); }
  Message *messageOf(size_t sender, size_t receiver, uint32_t number) const;
  std::byte *slotOf(size_t rank, uint32_t slot) const;

  const Shape shape;
  const size_t position;
  std::byte *const *const memory;
  std::vector<Slot> slots;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_STAGING_H
