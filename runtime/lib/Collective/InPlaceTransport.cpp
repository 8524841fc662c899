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
#include "Engine.h"
#include "MessageSlots.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <map>
#include <mutex>

namespace braid::runtime {

namespace {

class InPlaceTransport : public Transport {
public:
  InPlaceTransport(int64_t ranks, Sharing sharing, int64_t messagesInFlight)
      : numRanks(ranks), kernels(vectorKernels()), pool(sharing),
        messageSlots(pool, messagesInFlight) {}

  const char *name() const override {
    return pool.sharing() == Sharing::process ? "threads" : "shm";
  }

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
    std::unique_ptr<DirectGroup> &slot = groups[{ranks, queue}];
    if (!slot)
      slot = std::make_unique<DirectGroup>(ranks, queue, pool);
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
    const ScheduleRequest request = requestOf(c, static_cast<int64_t>(c.group->ranks.size()));
    std::lock_guard<std::mutex> lock(planning);
    for (const Planned &other : plans)
      if (other.group == c.group && other.position == c.position && other.request == request) {
        c.plan = other.plan;
        return {};
      }
    ASSIGN_OR_RETURN(CollectivePlan made, makePlan(request, c.position));
    if (made.schedule.scratchBytes > 0)
      made.scratch =
          static_cast<std::byte *>(pool.allocate(static_cast<size_t>(made.schedule.scratchBytes)));
    c.plan = std::make_shared<const CollectivePlan>(std::move(made));
    plans.push_back({request, c.group, c.position, c.plan});
    return {};
  }

  void reset() override {
    messageSlots.reset();
    for (auto &[key, group] : groups)
      group->reset();
  }

  bool run(const Collective &c, const SymmetricHeap &heap, RunControl &control,
           QueueState &self) override {
    if (c.kind == CollectiveKind::send)
      return send(c, heap, control, self) && !control.failed();
    if (c.kind == CollectiveKind::recv)
      return receive(c, heap, control, self);
    return Engine(c, heap, kernels, control, self).run();
  }

private:
  int64_t numRanks;
  const VectorKernels &kernels;
  size_t stride = 0;
  HostMemory memory;
  MemoryPool pool; ///< barriers
  MessageSlots messageSlots;
  std::map<std::pair<std::vector<int64_t>, Queue>, std::unique_ptr<DirectGroup>> groups;
  /// What was planned, as many collectives of a program are alike.
  struct Planned {
    ScheduleRequest request;
    const ProcessGroup *group;
    int64_t position;
    std::shared_ptr<const CollectivePlan> plan;
  };
  std::mutex planning; ///< ranks of threads may plan at the same time
  std::vector<Planned> plans;
};

} // namespace

std::unique_ptr<Transport> createThreadsTransport(int64_t ranks, int64_t messagesInFlight) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::process, messagesInFlight);
}

std::unique_ptr<Transport> createShmTransport(int64_t ranks, int64_t messagesInFlight) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::forks, messagesInFlight);
}

} // namespace braid::runtime
