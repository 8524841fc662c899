//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks of one host: one allocation holds every rank's symmetric memory, and ranks read their peers
// in place. Ranks are threads of one process, or processes forked after all collectives were
// created, so that pointers are valid in all of them.
//
//===----------------------------------------------------------------------===//
#include "EngineRun.h"
#include "MessageSlots.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/ScheduleChoice.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <map>
#include <mutex>

namespace braid::runtime {

namespace {

class InPlaceTransport : public Transport {
public:
  InPlaceTransport(int64_t ranks, Sharing sharing, int64_t messagesInFlight,
                   std::shared_ptr<const cost::Machine> machine)
      : numRanks(ranks), kernels(vectorKernels()), pool(sharing),
        messageSlots(pool, messagesInFlight), chooser(name(), std::move(machine)) {}

  const char *name() const final { return pool.sharing() == Sharing::process ? "threads" : "shm"; }

  Status allocate(size_t bytes) override {
    const auto count = static_cast<size_t>(numRanks);
    Status status = Status::error("more than addresses reach");
    if (bytes <= SIZE_MAX / 4 / count) {
      stride = (bytes + 4095) / 4096 * 4096 + kArenaSkew;
      status = memory.map(stride * count, pool.sharing());
    }
    return status.ok() ? status
                       : Status::error("symmetric memory of " + std::to_string(bytes) +
                                       " bytes for each of " + std::to_string(numRanks) +
                                       " ranks: " + status.message());
  }

  SymmetricHeap heap(int64_t rank) const override {
    return {memory.data(), stride, rank, numRanks};
  }

  ProcessGroup *group(const std::vector<int64_t> &ranks, Queue queue) override {
    std::unique_ptr<EngineGroup> &slot = groups[{ranks, queue}];
    if (!slot)
      slot = makeGroup(ranks, queue);
    return slot.get();
  }

  MessageSlot *messageSlot(const Collective &pointToPoint, size_t index) override {
    return messageSlots.find(pointToPoint, index);
  }
  Status prepare() override { return messageSlots.prepare(); }

  Status touch(int64_t rank) override {
    RETURN_IF_ERROR(memory.touch(static_cast<size_t>(rank) * stride, stride - kArenaSkew));
    return messageSlots.touch(rank);
  }

  Status plan(Collective &c) override {
    if (isPointToPoint(c.kind))
      return {};
    // Threads of several ranks may plan at the same time.
    GroupMember &member = memberOf(c);
    ScheduleRequest request = requestOf(c);
    c.chosen = chooser.choose(request);
    ASSIGN_OR_RETURN(c.plan, plans.find(request, member.pairs, c.position));
    std::lock_guard<std::mutex> lock(planning);
    c.shared = SharedCollective::make(c, pool);
    member.reserve(c, pool);
    return {};
  }

  PeerReads *peerReads(const Collective &c) override {
    const bool isDirect = c.plan && c.plan->algorithm == ScheduleAlgorithm::direct;
    return isDirect ? &memberOf(c).reads : nullptr;
  }

  void reset() override {
    messageSlots.reset();
    for (auto &[key, group] : groups)
      group->reset();
  }

  CollectiveRun *begin(const Collective &c, const SymmetricHeap &heap, RunControl &control,
                       QueueState &self) override {
    return EngineRun::begin(c, memberOf(c), heap, control, self);
  }
  bool sendOrReceive(const Collective &c, const SymmetricHeap &heap, RunControl &control,
                     QueueState &self) override {
    return c.kind == CollectiveKind::send ? send(c, heap, control, self)
                                          : receive(c, heap, control, self);
  }

private:
  static GroupMember &memberOf(const Collective &c) {
    return *static_cast<EngineGroup *>(c.group)->members[static_cast<size_t>(c.position)];
  }
  std::unique_ptr<EngineGroup> makeGroup(const std::vector<int64_t> &ranks, Queue queue) {
    auto group = std::make_unique<EngineGroup>(ranks, queue);
    const size_t count = ranks.size();
    auto *arrivals = pool.create<Arrival>(count, pool.sharing());
    auto *pairs = pool.create<DirectPair>(count * count, pool.sharing());
    auto *reads = pool.create<Counter>(count, pool.sharing());
    for (size_t i = 0; i < count; ++i) {
      group->members[i] = std::make_unique<GroupMember>(count, arrivals + i, pool);
      GroupMember &member = *group->members[i];
      member.pairs.assign(count, PairKind::direct);
      for (size_t j = 0; j < count; ++j) {
        member.arrivals[j] = arrivals + j;
        member.to[j] = pairs + i * count + j;
        member.from[j] = pairs + j * count + i;
      }
      member.reads.own = reads + i;
      member.reads.number = &member.progress->reads;
      for (size_t j = 0; j < count; ++j)
        if (j != i) {
          member.reads.ranks.push_back(ranks[j]);
          member.reads.peers.push_back(reads + j);
        }
      for (size_t run = 0; run < kCollectivesInFlight; ++run)
        member.runs.push_back(std::make_unique<EngineRun>(kernels));
    }
    return group;
  }

  int64_t numRanks;
  const VectorKernels &kernels;
  size_t stride = 0;
  HostMemory memory;
  MemoryPool pool; ///< barriers
  MessageSlots messageSlots;
  std::map<std::pair<std::vector<int64_t>, Queue>, std::unique_ptr<EngineGroup>> groups;
  cost::ScheduleChooser chooser;
  PlanTable plans;
  std::mutex planning; ///< of the pool
};

} // namespace

std::unique_ptr<Transport> createThreadsTransport(int64_t ranks, int64_t messagesInFlight,
                                                  std::shared_ptr<const cost::Machine> machine) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::process, messagesInFlight,
                                            std::move(machine));
}

std::unique_ptr<Transport> createShmTransport(int64_t ranks, int64_t messagesInFlight,
                                              std::shared_ptr<const cost::Machine> machine) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::forks, messagesInFlight,
                                            std::move(machine));
}

} // namespace braid::runtime
