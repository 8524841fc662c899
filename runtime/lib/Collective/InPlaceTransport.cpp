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
#include "InPlaceExchange.h"
#include "MessageSlots.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/HostMemory.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <map>

namespace braid::runtime {

namespace {

/// Arrives at the next step and waits until all other ranks have arrived.
bool barrier(InPlaceGroup &group, size_t position, RunControl &control, QueueState &self) {
  BarrierSlot &mine = group.slots[position];
  uint32_t step = ++mine.step;
  mine.arrivals.set(step);
  for (size_t i = 0; i < group.ranks.size(); ++i)
    if (i != position &&
        !control.wait(group.slots[i].arrivals, step, self, Waiting::peer, group.ranks[i]))
      return false;
  return !control.failed();
}

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
    std::unique_ptr<InPlaceGroup> &slot = groups[{ranks, queue}];
    if (!slot)
      slot = std::make_unique<InPlaceGroup>(ranks, queue, pool);
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

  void reset() override {
    messageSlots.reset();
    for (auto &[key, group] : groups)
      for (size_t i = 0; i < group->ranks.size(); ++i) {
        group->slots[i].step = 0;
        group->slots[i].arrivals.set(0);
      }
  }

  bool run(const Collective &c, const SymmetricHeap &heap, RunControl &control,
           QueueState &self) override {
    if (c.kind == CollectiveKind::send)
      return send(c, heap, control, self) && !control.failed();
    if (c.kind == CollectiveKind::recv)
      return receive(c, heap, control, self);
    InPlaceGroup &group = *static_cast<InPlaceGroup *>(c.group);
    const Exchange exchange(c, heap, kernels);
    const auto position = static_cast<size_t>(c.position);
    auto fail = [&](const std::string &message, Code code) {
      control.fail(Status::error("rank " + std::to_string(heap.rank) + ": " + message, code));
      return false;
    };
    group.slots[position].collective = &c;
    if (Status counts = exchange.checkCounts(); !counts.ok())
      return fail(counts.message(), counts.code());
    atSchedulePoint("reached a collective");
    if (!barrier(group, position, control, self))
      return false;
    for (size_t i = 0; i < group.ranks.size(); ++i) {
      const Collective &other = *group.slots[i].collective;
      const bool alike = agree(c, other);
      if (alike && isSameOperation(c, other))
        continue;
      return fail(signature(c) + " does not match " + signature(other) + " of rank " +
                      std::to_string(group.ranks[i]) +
                      (alike ? ", as these ranks reach them in different orders" : ""),
                  Code::rankFailed);
    }
    exchange.run();
    atSchedulePoint("exchanged");
    if (c.kind == CollectiveKind::allReduce) {
      if (!barrier(group, position, control, self))
        return false;
      exchange.copyOthers();
      atSchedulePoint("copied from the others");
    }
    // A rank that left now could overwrite memory that a slower peer still reads.
    return barrier(group, position, control, self);
  }

private:
  int64_t numRanks;
  const VectorKernels &kernels;
  size_t stride = 0;
  HostMemory memory;
  MemoryPool pool; ///< barriers
  MessageSlots messageSlots;
  std::map<std::pair<std::vector<int64_t>, Queue>, std::unique_ptr<InPlaceGroup>> groups;
};

} // namespace

std::unique_ptr<Transport> createThreadsTransport(int64_t ranks, int64_t messagesInFlight) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::process, messagesInFlight);
}

std::unique_ptr<Transport> createShmTransport(int64_t ranks, int64_t messagesInFlight) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::forks, messagesInFlight);
}

} // namespace braid::runtime
