//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks on GPUs. The queues of a rank are streams; one thread enqueues the commands of all
// ranks in an order that was computed in advance, and then polls events until all commands have
// ended.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_EXECUTOR_H
#define BRAID_CUDA_EXECUTOR_H

#include "Exchange.h"
#include "runtime/lib/Collective/MessageSlots.h"
#include "runtime/lib/Executor/DeviceExecutor.h"
#include "runtime/lib/Program/CommandOrder.h"

#include <deque>
#include <map>
#include <tuple>

namespace braid::runtime::cuda {

/// The ranks of a collective. No rank is ever missing: a collective is enqueued for all at once.
struct DeviceGroup : ProcessGroup {
  std::vector<PeerReads> reads; ///< by position, without counters: events take their place
  std::vector<int64_t> missing(int64_t) const override { return {}; }
};

/// Memory and groups, for the resolver.
class DeviceTransport : public Transport {
public:
  explicit DeviceTransport(bool nccl) : isNccl(nccl) {}
  const char *name() const override { return isNccl ? "nccl" : "threads"; }
  Status allocate(size_t) override { return {}; }
  SymmetricHeap heap(int64_t rank) const override {
    SymmetricHeap heap = heaps[static_cast<size_t>(rank)];
    heap.rank = rank;
    return heap;
  }
  ProcessGroup *group(const std::vector<int64_t> &members, Queue queue) override;
  MessageSlot *messageSlot(const Collective &pointToPoint, size_t index) override {
    return messageSlots.find(pointToPoint, index);
  }
  PeerReads *peerReads(const Collective &c) override;
  Status prepare() override { return {}; }
  CollectiveRun *begin(const Collective &, const SymmetricHeap &, RunControl &,
                       QueueState &) override {
    return nullptr;
  }
  bool sendOrReceive(const Collective &, const SymmetricHeap &, RunControl &,
                     QueueState &) override {
    return false;
  }
  void reset() override {}

  std::vector<SymmetricHeap> heaps;

private:
  bool isNccl;
  std::map<std::pair<std::vector<int64_t>, Queue>, std::unique_ptr<DeviceGroup>> groups;
  MemoryPool pool{Sharing::process};
  MessageSlots messageSlots{pool, kMessagesInFlight};
};

/// Host memory for copies to a device.
struct Staging {
  HostPages pages;
  size_t bytes = 0;
  CUstream stream = nullptr; ///< that reads it, or null
  DevicePtr device;
};

/// A command on its stream.
struct Slot {
  StreamCommand command;
  Event before, after; ///< `before` only where the time is measured
  bool timed = false;
};

/// A queue of a rank.
struct QueueStream {
  Stream stream;
  std::vector<Slot> slots; ///< by command
  Event begin, end;
  size_t done = 0; ///< commands that are known to have ended in this run
};

/// Ranks whose collectives use one set of communicators, and the queue that they stand on. Messages
/// that are received on another queue than that of their send have communicators of their own,
/// between the two ranks: operations of a communicator stand on one stream of each rank.
struct GroupKey {
  std::vector<int64_t> members;
  Queue queue, receivingQueue;
  bool operator<(const GroupKey &o) const {
    return std::tie(members, queue, receivingQueue) <
           std::tie(o.members, o.queue, o.receivingQueue);
  }
};

struct RankState {
  RankDevice device;
  std::vector<QueueStream> queues;
  Stream upload; ///< for every second copy of staged memory
  std::vector<Event> events;
  std::vector<Event> readEnds; ///< of what is read in place, as RankProgram::reads
  Memory symmetric, local;
  Memory faults;                    ///< of each queue
  HostPages faultCopies;            ///< on the host
  std::vector<Memory> values;       ///< of those outside of the symmetric arena
  std::vector<CUdeviceptr> valueAt; ///< of all, in the order of the entry's procedure
  CUstream stream(Queue queue) const { return queues[queue].stream.get(); }
};

/// What is prepared for one entry, while another one is selected.
struct PreparedEntry {
  struct OfQueue {
    std::vector<Slot> slots;
    Event begin, end;
  };
  struct OfRank {
    std::vector<OfQueue> queues;
    std::vector<Event> events, readEnds;
    std::vector<Memory> constants;
    std::vector<bool> hasFaults;
  };
  std::vector<OfRank> ranks;
  std::vector<Step> steps;
  std::deque<DeviceMessage> messages;
  std::map<const MessageSlot *, DeviceMessage *> lastMessages;
  std::vector<Exchange> exchanges;
  GraphExec graph;
  bool warm = false;
};

/// Puts the rank before the message of an error.
Status ofRank(size_t rank, const Status &status);

class CudaExecutor : public DeviceExecutor {
public:
  CudaExecutor(const DeviceSetup &setup);
  ~CudaExecutor() override;
  Status open();

  Transport &transport() override { return deviceTransport; }
  std::byte *local(int64_t rank) override { return pointer(state(rank).local.get()); }
  std::byte *value(int64_t rank, size_t index) override {
    return pointer(state(rank).valueAt[index]);
  }
  int64_t memoryBytes() const override { return bytes; }
  Status prepare(Workers &workers, size_t entry) override;
  Result<std::byte *> stage(size_t size) override;
  Status uploadStaged(int64_t rank, size_t index, size_t offset, size_t size) override;
  Status finishUploads() override;
  Status upload(int64_t rank, size_t index, const void *data, size_t size) override;
  Status download(int64_t rank, size_t index, void *data, size_t size) override;
  Status run(Workers &workers, size_t entry) override;
  const std::string &architecture() const override { return table.architecture; }
  std::vector<std::string> deviceNames() const override;

private:
  /// Brings what is prepared for an entry to the members below, which all else uses.
  void select(size_t entry);
  RankState &state(int64_t rank) { return ranks[static_cast<size_t>(rank)]; }
  Status transfer(int64_t rank, CUdeviceptr to, CUdeviceptr from, size_t size);
  Status openDevices();
  Status loadKernels();
  Status allocateRank(int64_t rank);
  Result<StreamCommand> makeStreamCommand(RankState &rank, Queue queue, size_t index,
                                          const Command &command);
  Status prepareSlots(RankState &rank, const RankProgram &program);
  static std::vector<OrderedAfter>
  writesAfterReads(const std::vector<const RankProgram *> &programs);
  Status awaitReads(const RankProgram &program, const Command &command, CUstream stream);
  Status prepareExchanges(const std::vector<const RankProgram *> &programs);
  Result<Exchange> makeExchange(const std::vector<Member> &members);
  Result<Exchange> makeBarrierExchange(const std::vector<Member> &members);
  Result<Exchange> makeSend(const Member &sender);
  Result<Exchange> makeReceive(const Member &receiver);
  Result<std::shared_ptr<Communicators>> communicators(const GroupKey &key);

  // A run (ExecutorRun.cpp).
  Status enqueueAll(Workers &workers, unsigned recordFlags);
  Status enqueueBegin(RankState &rank, unsigned recordFlags) const;
  Status enqueueStep(Workers &workers, size_t step, unsigned recordFlags);
  Status enqueueEnd(RankState &rank, unsigned recordFlags) const;
  Status joinStreams();
  Status capture(Workers &workers);
  Status start(Workers &workers);
  bool advance(Workers &workers, Status &failure);
  Status checkGroups() const;
  Status watch(Workers &workers);
  Status watchGraph(Workers &workers);
  Status checkFaults(const Workers &workers) const;
  Status collectTimes(Workers &workers);
  Result<int64_t> timeOf(const RankState &rank, const Event &event, int64_t beginNs) const;
  void giveUp();

  // Members are destroyed in reverse order: memory of the devices before these.
  DeviceSetup setup;
  std::vector<QueueInfo> queues; ///< of each rank
  bool useNccl, useGraph, trace;
  std::string libraryPath; ///< for tests; empty: the system's
  std::shared_ptr<const Driver> driver;
  std::shared_ptr<const Nccl> nccl;
  std::vector<DevicePtr> devices;
  std::vector<std::unique_ptr<Kernels>> kernels; ///< by device
  CudaLaunchTable table;
  DeviceTransport deviceTransport;
  Stream control; ///< from which all others fork, and which they join
  Memory sharedSymmetric;
  std::vector<RankState> ranks;
  Event fork, graphEnd;
  Staging staging[2];
  size_t staged = 0; ///< the index of the one in use
  std::vector<Step> steps;
  std::deque<DeviceMessage> messages; ///< a deque, as exchanges point at them
  std::map<const MessageSlot *, DeviceMessage *> lastMessages;
  std::vector<Exchange> exchanges; ///< by step; empty for other steps
  std::map<GroupKey, std::shared_ptr<Communicators>> groups;
  GraphExec graph;
  bool warm = false;                   ///< has run
  std::vector<PreparedEntry> prepared; ///< by entry
  size_t selected = 0;
  int64_t bytes = 0;
};

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_EXECUTOR_H
