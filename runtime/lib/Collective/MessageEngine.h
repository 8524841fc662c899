//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the schedule of one collective over a link. Steps run as soon as what they depend on is
// done: sends and receives of several pieces are under way at once.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_MESSAGEENGINE_H
#define BRAID_COLLECTIVE_MESSAGEENGINE_H

#include "Transport.h"
#include "braid/Collective/Schedule.h"
#include "runtime/lib/Kernels/VectorKernels.h"
#include "runtime/lib/Net/Link.h"

#include <memory>

namespace braid::runtime {

/// The schedule of a collective of a rank, and memory for its messages. Made before the first run
/// of the collective, so that later runs allocate nothing.
class MessagePlan {
public:
  /// `tag`: of the collective's messages, with room for the number of the run and of the message in
  /// its low 32 bits. Errors: of makeSchedule.
  static Result<std::unique_ptr<MessagePlan>> create(const Collective &c, uint64_t tag);

private:
  friend class MessageEngine;
  /// A message to or from this rank.
  struct Message {
    net::Transfer transfer;
    uint32_t step = 0;              ///< that sends or takes it
    int64_t peer = 0, bytes = 0;    ///< the peer's position
    uint32_t number = 0;            ///< among those between the two ranks
    std::vector<std::byte> staging; ///< where the piece is not one run, or is to be reduced
    bool isPosted = false;
  };
  struct StepState {
    std::vector<size_t> messages; ///< a send's own; of other steps those that are sources, in order
    bool isDone = false;
  };
  uint64_t tag = 0;
  uint32_t runs = 0;
  Schedule schedule;
  std::vector<std::byte> scratch;
  std::vector<std::unique_ptr<Message>> messages; ///< transfers do not move
  std::vector<StepState> steps;
  std::vector<const void *> sources; ///< of a reduction
};

class MessageEngine {
public:
  MessageEngine(const Collective &collective, MessagePlan &plan, const SymmetricHeap &heap,
                net::Link &link, const VectorKernels &kernels)
      : c(collective), plan(plan), heap(heap), link(link), kernels(kernels) {}

  /// Begins a run of the collective.
  void begin();
  /// Does what can be done without waiting. An error names the peer that is lost.
  Status advance();
  bool isDone() const { return remaining == 0; }
  /// The rank of a peer whose message is awaited, or -1.
  int64_t awaitedRank() const;
  /// After a failure: gives up what is under way when nowNs() reaches `until`, and closes the link
  /// if that is the only way.
  void abandon(int64_t until);

private:
  using Message = MessagePlan::Message;
  int64_t rankOf(int64_t position) const { return c.group->ranks[static_cast<size_t>(position)]; }
  uint64_t tagOf(const Message &message) const;
  bool areDependenciesDone(const ScheduleStep &step) const;
  /// Posts the receives of a step; in place where the step only writes what comes.
  void post(size_t step);
  /// False when the step waits for a message.
  Result<bool> perform(size_t step);
  void reduce(const ScheduleStep &step, const MessagePlan::StepState &state);

  /// A piece that is one run in memory begins here; null for one that is several.
  std::byte *inPlace(const Piece &piece) const;
  /// Copies a piece to packed memory, or from it.
  void pack(const Piece &piece, std::byte *packed) const;
  void unpack(const Piece &piece, const std::byte *packed) const;
  template <typename Visit>
  void forEachRunOf(const Piece &piece, int64_t begin, int64_t end, Visit visit) const;

  /// Of an all_to_all_v: clears the rows of a part that its counts leave out.
  void clearUncounted(const ScheduleStep &step) const;

  const Collective &c;
  MessagePlan &plan;
  const SymmetricHeap &heap;
  net::Link &link;
  const VectorKernels &kernels;
  size_t remaining = 0;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_MESSAGEENGINE_H
