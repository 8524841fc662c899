//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the schedule of a collective for one rank: steps whose messages are there, as far as can be
// done without waiting. Messages are read in place, in memory of the sender that this rank sees, or
// come over a link (PairKind).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_ENGINE_H
#define BRAID_COLLECTIVE_ENGINE_H

#include "CollectiveParts.h"
#include "Fabric.h"
#include "Plan.h"
#include "runtime/lib/Kernels/VectorKernels.h"
#include "runtime/lib/Net/Lateness.h"
#include "runtime/lib/Net/Link.h"

namespace braid::runtime {

/// Where the values of a collective lie in this rank's memory.
struct OperandMemory {
  std::byte *input = nullptr, *output = nullptr;
};

/// Runs one collective after the other; several engines may have collectives of one group under
/// way, each begun in the group's order. Memory that a run needs is kept for the next one.
class Engine {
public:
  /// `link`: for ranks whose memory is not seen; null where all are on the host.
  explicit Engine(const VectorKernels &kernels, net::Link *link = nullptr)
      : kernels(kernels), link(link) {}
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// Makes room for a collective with a plan, so that runs of it allocate nothing but memory of
  /// messages over a link, and that only at first.
  void reserve(const Collective &collective);
  /// Begins a collective with a plan. `scratch` has room for that of the schedule, in memory that
  /// ranks of the host see. An error of counts names them.
  Status begin(const Collective &collective, GroupMember &member, const SymmetricHeap &heap,
               std::byte *scratch);
  /// The same on other memory than the symmetric heap, for groups without direct peers; `memory`
  /// has an entry for each value.
  Status begin(const Collective &collective, GroupMember &member,
               const std::vector<OperandMemory> &memory, std::byte *scratch);
  /// Does what can be done without waiting. True when the outputs are complete and no peer reads
  /// the inputs any more. Errors: a peer runs another collective, or is lost (lostPeer).
  Result<bool> advance();

  /// What advance() lacked: a counter that ranks of the host set, or, where that is null, a
  /// message over the link.
  struct Awaited {
    Counter *counter = nullptr;
    uint32_t target = 0;
    int64_t rank = -1; ///< -1: an older collective of this rank
  };
  Awaited awaited() const { return lacking; }
  /// After an error: the rank whose connection is lost, or -1.
  int64_t lostPeer() const { return lost; }
  bool hasLinks() const { return plan && plan->hasLinks; }
  /// How late, in ns, advance() may learn of messages over the link.
  int64_t latenessNs() const;
  /// Grows with every step.
  uint64_t progress() const { return steps; }
  /// After a failure: gives up what is under way when nowNs() reaches `until`, and closes the link
  /// if that is the only way.
  void abandon(int64_t until);

  /// Where the work of steps is noted; null: nowhere.
  std::vector<StepSpan> *trace = nullptr;

private:
  /// Memory that is written before it is read, and therefore not cleared.
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes = 0;
  };
  /// A message over the link, and its memory where the piece is not one run or is to be reduced.
  struct LinkMessage final : net::Transfer::Reader {
    explicit LinkMessage(Engine &engine) : engine(engine) {}
    bool read(const std::byte *bytes) override { return engine.workOnArrival(*this, bytes); }
    std::byte *data() const { return buffer.memory.get(); }

    Engine &engine;
    net::Transfer transfer;
    Buffer buffer;
    int64_t bufferBytes = 0; ///< of this message
    uint32_t step = 0;       ///< that needs it
    /// Where the link has it, while the step works on it there.
    const std::byte *inLink = nullptr;
    bool isUsed = false; ///< the step has done its work
  };

  Status start(const Collective &collective, GroupMember &member, std::byte *scratch);
  PairKind kindOf(int64_t position) const { return plan->pairs[static_cast<size_t>(position)]; }
  int64_t rankOf(int64_t position) const { return c->group->ranks[static_cast<size_t>(position)]; }
  /// Waiting is told by false, and `lacking`.
  Result<bool> runInTurn();
  Result<bool> runWindow();
  Result<bool> tryStep(uint32_t number);
  Result<bool> perform(uint32_t number);
  /// What a step does with its bytes, once its messages are there.
  void work(uint32_t number);
  /// Does the work of a step with its last message where the link has that, so that it is not
  /// copied; false if the step cannot be done yet.
  bool workOnArrival(LinkMessage &last, const std::byte *bytes);
  Result<bool> send(uint32_t number);
  Result<bool> sendStaged(uint32_t number);
  Result<bool> areDependenciesDone(const ScheduleStep &step);
  Result<bool> areMessagesThere(uint32_t number);
  /// Whether a message has not come, or not been taken; `lacking` says so then.
  Result<bool> isMissing(Arrival::What what, int64_t position, uint32_t message);
  /// Compares the collective that a rank of the host has reached with this one.
  Status compare(int64_t position);
  /// The one that a rank of the host has reached; it stays there while it waits for this rank.
  const SharedCollective &sharedOf(int64_t position) const;

  // Through staging.
  uint64_t stagedTag() const { return c->linkTag | (sequence & 0xffff); }
  /// Whether a message is there; it is an error if it has another size.
  Result<bool> isStaged(const ScheduleStep &step, const StepSource &source, uint32_t message);
  /// Something of this rank is awaited; an error if it is lost.
  Status awaitBell(int64_t position);

  // Over the link.
  uint64_t tagOf(uint32_t message) const;
  /// Posts the receives of a step, in place where the step only writes what comes; those that need
  /// memory only as long as there is some, except those of the first step that is not done.
  Status post(uint32_t number);
  /// `bufferBytes`: 0 for none.
  LinkMessage &acquire(uint32_t message, int64_t bufferBytes);
  void release(uint32_t message);
  /// Frees the memory of messages that have left.
  Status releaseSent();
  bool isComplete(uint32_t message) const {
    return posted[message] && (posted[message]->transfer.done() || posted[message]->inLink);
  }
  Status outcome(uint32_t message);
  /// Whether a step has worked on the last of its messages already; `message`: its first one.
  bool isWorkDone(const ScheduleStep &step, uint32_t message) const;

  // Bytes (EngineBytes.cpp).
  /// The memory of a piece of some rank, or of a message.
  struct Place {
    Space space = Space::scratch;
    const std::byte *base = nullptr; ///< of its part of the value; of the piece in scratch memory
    int64_t partByte = -1;           ///< where the piece begins in its part; -1: packed
  };
  Place placeOf(const Piece &piece) const;
  /// `message`: of the step, where the source comes over the link.
  Place placeOf(uint32_t source, uint32_t message) const;
  Place placeOf(const Piece &piece, std::byte *input, std::byte *output,
                std::byte *scratchMemory) const;
  const CollectiveValue &valueOf(const Piece &piece) const { return c->values[piece.value]; }
  template <typename Visit>
  void forEachRunOf(const Piece &piece, int64_t partByte, int64_t begin, int64_t end,
                    Visit visit) const;
  /// A piece that is one run in memory begins here; null for one that is several.
  std::byte *inPlace(const Piece &piece) const;
  void reduce(const ScheduleStep &step, uint32_t firstMessage);
  void copy(const Piece &piece, const Place &from, const Place &to, int64_t begin, int64_t end);
  void clear(const Piece &piece, int64_t begin, int64_t end) const;
  Status checkCounts() const;
  /// Visits the bytes [begin, middle) of each block of a piece that its counts name, and the bytes
  /// [middle, end) that they leave out.
  template <typename Visit> void forEachBlock(const ScheduleStep &step, Visit visit) const;
  int64_t countedBytes(const ScheduleStep &step) const;
  /// Copies the rows that the counts name, and clears the others. A packed source has only those.
  void copyCounted(const ScheduleStep &step, const Place &from, const Place &to);
  void packCounted(const ScheduleStep &step, const Place &from, const Place &packed);

  const VectorKernels &kernels;
  net::Link *link;
  const Collective *c = nullptr;
  const CollectivePlan *plan = nullptr;
  GroupMember *member = nullptr;
  const SymmetricHeap *heap = nullptr;
  std::vector<OperandMemory> memory;
  std::byte *scratch = nullptr;
  uint32_t sequence = 0;
  std::vector<uint32_t> sendsBefore, takesBefore; ///< by position: numbers of the first messages
  std::vector<bool> isCompared;                   ///< by position
  std::vector<bool> isDone;  ///< by step; a send over a link is when it is posted
  uint32_t front = 0;        ///< steps before it are done
  uint32_t sentUpTo = 0;     ///< sends over the link before it have left
  uint32_t awaitsTaken = 0;  ///< all ranks before this one have taken all
  uint32_t bellBefore = 0;   ///< the staging's, before advance() looked at what is there
  std::vector<Place> places; ///< of the sources of a step
  std::vector<const void *> addresses;
  std::vector<LinkMessage *> posted; ///< by message; null: not posted
  std::vector<std::unique_ptr<LinkMessage>> linkMessages;
  std::vector<LinkMessage *> idle;
  std::vector<Buffer> idleBuffers;
  int64_t stagedBytes = 0; ///< of all messages under way
  uint64_t steps = 0;
  net::Lateness lateness; ///< of messages that come over links
  Awaited lacking;
  int64_t lost = -1;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_ENGINE_H
