//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Data exchange between ranks. A transport owns the symmetric memory and runs collectives on it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_TRANSPORT_H
#define BRAID_COLLECTIVE_TRANSPORT_H

#include "braid/Base/Algorithm.h"
#include "braid/Base/MessagesInFlight.h"
#include "braid/Base/StridedRuns.h"
#include "braid/Collective/Topology.h"
#include "braid/Program/Manifest.h"
#include "runtime/lib/Sync/RunControl.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace braid::runtime {

/// Memory that every rank has at the same offsets, so that an offset is enough to name a peer's
/// buffer.
struct SymmetricHeap {
  std::byte *base = nullptr; ///< of rank 0
  size_t stride = 0;         ///< from one rank's memory to the next rank's
  int64_t rank = 0, ranks = 1;
  /// By rank, where the memory of ranks is not evenly apart; null for one that is not seen here.
  std::byte *const *bases = nullptr;
  std::byte *peer(int64_t r, uint64_t offset) const {
    return (bases ? bases[r] : base + static_cast<size_t>(r) * stride) + offset;
  }
};

/// A strided view of symmetric memory. Strides are in elements.
struct StridedView {
  uint64_t offset = 0;
  std::vector<int64_t> shape, strides;
};

/// One value of a collective. A rank takes a part of the value of each source: the sub-view of the
/// source's input that is for this rank, or all of it. It goes to the sub-view of the output that
/// is for that source, or, as do the reduced parts of all sources, to the full output. All ranks of
/// a group have the same shapes and strides. A send has no output and a recv no input; the other
/// side is the message, where elements lie packed.
struct CollectiveValue {
  DType dtype = DType::f32;
  StridedView input, output;
  // Set by setParts (CollectiveParts.h).
  StridedRuns part;       ///< from a source's input to the output
  int64_t sourceStep = 0; ///< bytes from the part of one rank to the next rank's in an input
  int64_t destStep = 0;   ///< and in the output
  /// Of a part.
  int64_t numElements() const { return part.bytes() / byteSize(dtype); }
  int64_t bytes() const { return part.bytes(); }
};

/// What the ranks of a group on one host tell each other when commands read the messages of
/// collectives where they lie. All ranks end these reads in one order, by which they are numbered.
struct PeerReads {
  Counter *own = nullptr;       ///< the reads that this rank has ended
  uint32_t *number = nullptr;   ///< the same; forgotten after a failure
  std::vector<int64_t> ranks;   ///< the peers
  std::vector<Counter *> peers; ///< the reads that each of them has ended
};

/// The ranks that take part in a collective, by position. Every queue has groups of its own: its
/// collectives meet in its order, whatever the other queues do.
struct ProcessGroup {
  virtual ~ProcessGroup() = default;
  /// The ranks that have not arrived at the barrier where the one at this position waits.
  virtual std::vector<int64_t> missing(int64_t position) const = 0;
  std::vector<int64_t> ranks;
  Queue queue = kComputeQueue;
  Topology topology; ///< empty: all ranks are on one host
};

struct MessageSlot;      // MessageSlots.h
struct CollectivePlan;   // Plan.h
struct SharedCollective; // Fabric.h
} // namespace braid::runtime
namespace braid::cost {
struct ChosenSchedule; // braid/Cost/ScheduleChoice.h
struct Machine;
} // namespace braid::cost
namespace braid::runtime {

/// A collective as one rank sees it. A send has inputs only, a recv outputs only.
struct Collective {
  CollectiveKind kind = CollectiveKind::allReduce;
  ReduceKind reduce = ReduceKind::sum;
  Algorithm algorithm = Algorithm::direct;
  std::vector<CollectiveValue> values;
  int64_t dim = 0;       ///< that is split; of all_gather: that is concatenated
  int64_t concatDim = 0; ///< of all_to_all
  int64_t root = 0;      ///< of reduce and broadcast: a position in the group
  /// Of permute, send, recv: source and target positions.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  int64_t tag = 0;                    ///< of send and recv
  MessageSlot *messageSlot = nullptr; ///< of send and recv; null when this rank takes no part
  ProcessGroup *group = nullptr;
  int64_t position = 0; ///< of this rank in the group
  // Set by Transport::plan.
  std::shared_ptr<const CollectivePlan> plan;
  std::shared_ptr<const cost::ChosenSchedule> chosen; ///< why this plan
  const SharedCollective *shared = nullptr;           ///< what ranks of the host read
  uint64_t linkTag = 0;                               ///< of its messages over a link
  /// Later commands read the messages of peers in the peers' inputs (PeerReads): nothing is copied
  /// to the outputs.
  bool readInPlace = false;
  Queue queue = kComputeQueue;
  std::string name, role;
  const std::string *path = nullptr; ///< of the calls that lead to it
  int64_t bytesSent = 0;             ///< by this rank
  /// What this rank waits for: ranks that have not arrived, with their queues that are to arrive.
  std::vector<RankQueue> missing() const;
};

/// "all_reduce 'a' (sum, 8 f32, dim 0, role 'r') in @main"
std::string signature(const Collective &collective);
/// The same number for two ranks that do the same, in all processes.
uint64_t operationHash(const Collective &collective);
/// The same number for the same operation of the program. Different operations may have one
/// operationHash: ranks that reach them in different orders would exchange the wrong values.
uint64_t identityHash(const Collective &collective);

/// So many collectives of a queue may be under way at once.
constexpr size_t kCollectivesInFlight = 4;

/// When a step of a collective's schedule worked, by nowNs().
struct StepSpan {
  uint32_t step;
  int64_t beginNs, endNs;
};

/// A collective that a queue has begun, for the queue's thread.
class CollectiveRun {
public:
  virtual ~CollectiveRun() = default;
  /// Does what can be done without waiting. True when the outputs are complete and no peer reads
  /// this rank's inputs any more; and when the run has failed: the failure is in its control.
  virtual bool advance() = 0;
  /// Waits until advance() may have more to do; false when the run has failed. Of the collectives
  /// of a queue the oldest one waits, and the others are advanced afterwards.
  virtual bool wait() = 0;
  /// Of a failed run: lets go of all memory.
  virtual void abandon() {}
  /// Called before the first advance(): notes when its steps work.
  virtual void traceSteps() {}
  virtual const std::vector<StepSpan> *steps() const { return nullptr; }
};

class Transport {
public:
  virtual ~Transport() = default;
  virtual const char *name() const = 0;
  /// Symmetric memory of `bytes` per rank, zeroed; called once, before any collective.
  virtual Status allocate(size_t bytes) = 0;
  virtual SymmetricHeap heap(int64_t rank) const = 0;
  /// The process group of these ranks on a queue; the same object for the same list and queue. Not
  /// called during a run.
  virtual ProcessGroup *group(const std::vector<int64_t> &ranks, Queue queue) = 0;
  /// The slot of a send or recv of a rank, null when the rank takes no part in it; one that is
  /// further by the number of messages in flight has the same slot. `index` counts
  /// those of the same kind, peer and tag that come before it in the rank's program. Not called
  /// during a run.
  virtual MessageSlot *messageSlot(const Collective &pointToPoint, size_t index) = 0;
  /// Sets the plan of a collective that has its group, position and values. Not called during a
  /// run.
  virtual Status plan(Collective & /*collective*/) { return {}; }
  /// How ranks end reads of a collective's messages where they lie; null where this rank does not
  /// see the inputs of all peers, or the collective's schedule hands on what peers got from others.
  virtual PeerReads *peerReads(const Collective & /*collective*/) { return nullptr; }
  /// Called when the programs of all ranks are resolved: checks that every send has its recv, and
  /// allocates message memory.
  virtual Status prepare() = 0;
  /// Allocates the pages of a rank's symmetric and message memory. A thread or process of the rank
  /// calls it before the first run, so that the pages are near its cores and later writes do not
  /// run out of memory.
  virtual Status touch(int64_t /*rank*/) { return {}; }
  /// Begins a collective, which is not a send or a recv, on the calling queue. The collectives of a
  /// queue end in their order; fewer than kCollectivesInFlight of them are under way. The object
  /// may be used again after its collective. Null when the run has failed.
  virtual CollectiveRun *begin(const Collective &collective, const SymmetricHeap &heap,
                               RunControl &control, QueueState &self) = 0;
  /// Runs a send or a recv to its end on the calling queue. A send ends when its message is in a
  /// slot. False when the run has failed; the failure is in `control`.
  virtual bool sendOrReceive(const Collective &pointToPoint, const SymmetricHeap &heap,
                             RunControl &control, QueueState &self) = 0;
  /// Runs either to its end.
  bool run(const Collective &collective, const SymmetricHeap &heap, RunControl &control,
           QueueState &self);
  /// Called before the queues of a run begin and when they have ended, by the thread that runs it.
  virtual void beginRun(RunControl & /*control*/) {}
  virtual void endRun() {}
  /// Forgets the barriers and messages of a failed run. No queue may be running.
  virtual void reset() = 0;
};

/// All ranks are threads of this process; one object serves all of them. `messagesInFlight`: how
/// many messages of one sender, target and tag have memory. `machine`: by whose times schedules are
/// chosen; may be null.
std::unique_ptr<Transport>
createThreadsTransport(int64_t ranks, int64_t messagesInFlight = kMessagesInFlight,
                       std::shared_ptr<const cost::Machine> machine = nullptr);
/// All ranks are processes. They are forked after memory, groups and the collectives of all ranks
/// have their addresses, which do not change afterwards.
std::unique_ptr<Transport>
createShmTransport(int64_t ranks, int64_t messagesInFlight = kMessagesInFlight,
                   std::shared_ptr<const cost::Machine> machine = nullptr);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_TRANSPORT_H
