//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MessageTransport.h"

#include "EngineRun.h"
#include "MessageSlots.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/ScheduleChoice.h"
#include "runtime/lib/Sync/HostMemory.h"
#include "runtime/lib/Sync/MemoryPool.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace braid::runtime {

namespace {

// A tag: which model (8 bits), whether it is of a send (1 bit); of a collective a hash of the
// operation (23 bits), its number in the group and that of the message (16 bits each); of a send
// its own tag (32 bits). Ranks that run different operations wait for each other until the time
// limit, and the message names both.
constexpr uint64_t kPointToPoint = uint64_t(1) << 55;
constexpr int64_t kAbandonNs = 200000000; ///< for messages of a run that has failed
constexpr uint64_t kHashBits = (uint64_t(1) << 23) - 1;

/// A message of a send or a recv, and the counters that its queue waits for. A send is done when
/// its values are in the slot; the slot is free again when they have left.
struct LinkSlot {
  MessageSlot slot;
  bool isShared = false; ///< in an arena of this host: nothing goes over a link
  std::vector<std::byte> data;
  net::Transfer transfer;
};

class MessageTransport : public Transport {
public:
  MessageTransport(MessageLinks itsLinks, int64_t messagesInFlight)
      : links(std::move(itsLinks)), self(links.pointToPoint->rank()),
        inFlight(static_cast<size_t>(messagesInFlight)), kernels(vectorKernels()),
        chooser("ucx", links.machine), mover([this] {
          beginSchedule(self, kMessageLane);
          moveMessages();
        }) {}
  ~MessageTransport() override {
    stopping.store(true);
    links.pointToPoint->signal();
    mover.join();
  }

  const char *name() const override { return "ucx"; }

  Status allocate(size_t bytes) override {
    std::vector<int64_t> neighbours;
    for (size_t rank = 0; rank < links.places.size(); ++rank)
      if (isNear(static_cast<int64_t>(rank)))
        neighbours.push_back(static_cast<int64_t>(rank));
    Status status;
    if (neighbours.size() > 1 && links.shareArenas) {
      auto made = SharedArenas::create(links.shareArenas, neighbours, self,
                                       links.pointToPoint->ranks(), bytes);
      status = made.status();
      if (made.ok())
        arenas = std::move(*made);
    } else {
      status = memory.map(std::max<size_t>(bytes, 1));
    }
    return status.ok() ? status
                       : Status::error("symmetric memory of ", bytes, " bytes: ", status.message(),
                                       status.code());
  }
  SymmetricHeap heap(int64_t rank) const override {
    if (arenas)
      return {nullptr, 0, rank, links.pointToPoint->ranks(), arenas->heaps()};
    // The memory of other ranks is elsewhere; only addresses of the own rank are used.
    const auto begin = reinterpret_cast<uintptr_t>(memory.data());
    const size_t stride = memory.bytes();
    return {reinterpret_cast<std::byte *>(begin - static_cast<size_t>(rank) * stride), stride, rank,
            links.pointToPoint->ranks()};
  }
  Status touch(int64_t) override {
    return arenas ? arenas->touch() : memory.touch(0, memory.bytes());
  }

  ProcessGroup *group(const std::vector<int64_t> &ranks, Queue queue) override {
    std::unique_ptr<EngineGroup> &group = groups[{ranks, queue}];
    if (!group) {
      group = std::make_unique<EngineGroup>(ranks, queue);
      const auto position =
          static_cast<size_t>(std::find(ranks.begin(), ranks.end(), self) - ranks.begin());
      for (int64_t rank : ranks)
        if (!links.places.empty())
          group->topology.places.push_back(links.places[static_cast<size_t>(rank)]);
      group->members[position] =
          arenas ? arenas->makeMember(*group, position)
                 : std::make_unique<GroupMember>(ranks.size(),
                                                 pool.create<Arrival>(1, pool.sharing()), pool);
      GroupMember &member = *group->members[position];
      for (size_t run = 0; run < kCollectivesInFlight; ++run)
        member.runs.push_back(std::make_unique<EngineRun>(
            kernels, queue == kComputeQueue ? nullptr : links.queues[queue - 1],
            &links.describeLoss));
    }
    return group.get();
  }

  MessageSlot *messageSlot(const Collective &c, size_t index) override {
    const int64_t peer = MessageSlots::peer(c);
    if (peer < 0)
      return nullptr;
    const bool sends = c.kind == CollectiveKind::send;
    std::unique_ptr<LinkSlot> &found = slots[{sends, peer, c.tag, index % inFlight}];
    if (!found) {
      found = std::make_unique<LinkSlot>();
      found->slot.source = sends ? self : peer;
      found->slot.target = sends ? peer : self;
      bySlot[&found->slot] = found.get();
    }
    (sends ? found->slot.sourceQueue : found->slot.targetQueue) = c.queue;
    int64_t bytes = 0;
    for (const CollectiveValue &value : c.values)
      bytes += MessageSlots::roundedBytes(value);
    found->slot.bytes = std::max(found->slot.bytes, bytes);
    return &found->slot;
  }
  Status plan(Collective &c) override {
    if (isPointToPoint(c.kind))
      return {};
    GroupMember &member = memberOf(c);
    ScheduleRequest request = requestOf(c);
    c.chosen = chooser.choose(request);
    ASSIGN_OR_RETURN(c.plan, plans.find(request, member.pairs, c.position));
    MemoryPool &visible = arenas ? arenas->pool() : pool;
    c.shared = SharedCollective::make(c, visible);
    const uint64_t hash = c.shared->operation ^ c.shared->identity;
    c.linkTag = static_cast<uint64_t>(links.model) << 56 | (hash & kHashBits) << 32;
    member.reserve(c, visible);
    return {};
  }
  Status prepare() override {
    auto isNew = [](const LinkSlot &own) { return !own.slot.sent; };
    for (auto &[key, own] : slots) {
      const auto &[sends, peer, tag, index] = key;
      if (!arenas || !isNew(*own) || !isNear(peer))
        continue;
      own->isShared = !sends || arenas->offer(tag, index, own->slot);
      if (!sends)
        arenas->await(tag, index, own->slot);
    }
    if (arenas)
      RETURN_IF_ERROR(arenas->connect(links.timeLimitSeconds));
    for (auto &[key, own] : slots) {
      // Of another host, or its sender has no room for it.
      if (!isNew(*own))
        continue;
      const MessageSlot made(pool);
      own->isShared = false;
      own->slot.sent = made.sent;
      own->slot.taken = made.taken;
      own->data.resize(static_cast<size_t>(own->slot.bytes));
    }
    return {};
  }

  void beginRun(RunControl &control) override {
    if (hasFailed)
      control.fail(Status::error("the model cannot run again on transport 'ucx': a run has failed",
                                 Code::rankFailed));
    if (links.beginRun)
      links.beginRun(control);
    std::lock_guard<std::mutex> lock(mutex);
    current = &control;
  }
  void endRun() override {
    // What was sent must leave before this process may end.
    RunControl::Watch watch;
    for (auto &[key, own] : slots)
      while (std::get<0>(key) && !own->isShared && !current->failed() &&
             !own->slot.taken->waitOnce(own->slot.sent->value(), current->slice()) &&
             current->poll(watch)) {
      }
    const bool failed = current->failed();
    {
      std::lock_guard<std::mutex> lock(mutex);
      current = nullptr;
    }
    if (links.endRun)
      links.endRun(failed);
  }
  void reset() override { hasFailed = true; }

  CollectiveRun *begin(const Collective &c, const SymmetricHeap &heap, RunControl &control,
                       QueueState &queue) override {
    links.queues[c.queue - 1]->setSpin(control.spins().links);
    return EngineRun::begin(c, memberOf(c), heap, control, queue);
  }
  bool sendOrReceive(const Collective &c, const SymmetricHeap &heap, RunControl &control,
                     QueueState &queue) override {
    const bool sends = c.kind == CollectiveKind::send;
    if (c.messageSlot && bySlot.at(c.messageSlot)->isShared)
      return sends ? runtime::send(c, heap, control, queue)
                   : runtime::receive(c, heap, control, queue);
    return sends ? send(c, heap, control, queue) : receive(c, heap, control, queue);
  }

private:
  bool isNear(int64_t rank) const {
    return links.places[static_cast<size_t>(rank)].host ==
           links.places[static_cast<size_t>(self)].host;
  }
  static GroupMember &memberOf(const Collective &c) {
    return *static_cast<EngineGroup *>(c.group)->members[static_cast<size_t>(c.position)];
  }

  bool send(const Collective &c, const SymmetricHeap &heap, RunControl &control,
            QueueState &queue) {
    if (!c.messageSlot)
      return true;
    LinkSlot &own = *bySlot.at(c.messageSlot);
    if (!control.wait(*own.slot.taken, own.slot.sent->value(), queue, Waiting::peer,
                      own.slot.target))
      return false;
    std::byte *to = own.data.data();
    for (const CollectiveValue &value : c.values) {
      copyRuns(value.part, heap.peer(heap.rank, value.input.offset), to);
      to += MessageSlots::roundedBytes(value);
    }
    own.slot.sent->increment();
    post(own, /*isSend=*/true, c.tag, static_cast<size_t>(to - own.data.data()));
    return !control.failed();
  }

  bool receive(const Collective &c, const SymmetricHeap &heap, RunControl &control,
               QueueState &queue) {
    if (!c.messageSlot) {
      for (const CollectiveValue &value : c.values)
        clearRuns(value.part, heap.peer(heap.rank, value.output.offset), 0, value.bytes());
      return true;
    }
    LinkSlot &own = *bySlot.at(c.messageSlot);
    int64_t bytes = 0;
    for (const CollectiveValue &value : c.values)
      bytes += MessageSlots::roundedBytes(value);
    post(own, /*isSend=*/false, c.tag, static_cast<size_t>(bytes));
    if (!control.wait(*own.slot.sent, own.slot.taken->value() + 1, queue, Waiting::peer,
                      own.slot.source))
      return false;
    const std::byte *from = own.data.data();
    for (const CollectiveValue &value : c.values) {
      copyRuns(value.part, from, heap.peer(heap.rank, value.output.offset));
      from += MessageSlots::roundedBytes(value);
    }
    own.slot.taken->increment();
    return true;
  }

  struct Posted {
    LinkSlot *slot;
    bool isSend;
    int64_t tag;
    size_t bytes;
  };
  void post(LinkSlot &slot, bool isSend, int64_t tag, size_t bytes) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      posted.push_back({&slot, isSend, tag, bytes});
    }
    links.pointToPoint->signal();
  }

  /// The thread of sends and recvs.
  void moveMessages() {
    net::Link &link = *links.pointToPoint;
    std::vector<Posted> underWay;
    for (;;) {
      std::deque<Posted> begun;
      {
        std::lock_guard<std::mutex> lock(mutex);
        begun.swap(posted);
      }
      for (const Posted &one : begun) {
        const uint64_t tag = static_cast<uint64_t>(links.model) << 56 | kPointToPoint |
                             static_cast<uint32_t>(one.tag);
        LinkSlot &slot = *one.slot;
        atSchedulePoint("posts a message");
        if (one.isSend)
          link.send(slot.transfer, slot.slot.target, tag, slot.data.data(), one.bytes);
        else
          link.receive(slot.transfer, slot.slot.source, tag, slot.data.data(), one.bytes);
        underWay.push_back(one);
      }
      for (size_t i = 0; i < underWay.size();) {
        LinkSlot &slot = *underWay[i].slot;
        if (!slot.transfer.done()) {
          ++i;
          continue;
        }
        if (const Status &status = slot.transfer.status(); !status.ok())
          fail(underWay[i].isSend ? slot.slot.target : slot.slot.source, status);
        else
          (underWay[i].isSend ? slot.slot.taken : slot.slot.sent)->increment();
        underWay.erase(underWay.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (stopping.load())
        break;
      constexpr int64_t kSliceNs = 100000000;
      if (Status moved = link.progress(nowNs() + kSliceNs); !moved.ok()) {
        fail(-1, moved);
        break;
      }
    }
    // Messages of a run that has failed: their memory must not be in use any more.
    auto isUnderWay = [](const Posted &one) { return !one.slot->transfer.done(); };
    auto anyUnderWay = [&] { return std::any_of(underWay.begin(), underWay.end(), isUnderWay); };
    for (const Posted &one : underWay)
      if (isUnderWay(one))
        link.cancel(one.slot->transfer);
    const int64_t until = nowNs() + kAbandonNs;
    while (anyUnderWay() && nowNs() < until && link.progress(until).ok()) {
    }
    if (anyUnderWay())
      (void)link.close(until + kAbandonNs);
  }
  void fail(int64_t peer, const Status &status) {
    std::lock_guard<std::mutex> lock(mutex);
    if (current)
      current->fail(links.describeLoss && peer >= 0 ? links.describeLoss(peer, status) : status);
  }

  const MessageLinks links;
  const int64_t self;
  const size_t inFlight;
  const VectorKernels &kernels;
  HostMemory memory; ///< symmetric, unless it is in an arena
  std::unique_ptr<SharedArenas> arenas;
  MemoryPool pool{Sharing::process};
  std::map<std::pair<std::vector<int64_t>, Queue>, std::unique_ptr<EngineGroup>> groups;
  cost::ScheduleChooser chooser;
  PlanTable plans;
  std::map<std::tuple<bool, int64_t, int64_t, size_t>, std::unique_ptr<LinkSlot>> slots;
  std::map<const MessageSlot *, LinkSlot *> bySlot;
  bool hasFailed = false;

  std::mutex mutex; ///< of what follows
  std::deque<Posted> posted;
  RunControl *current = nullptr;

  std::atomic<bool> stopping{false};
  std::thread mover; ///< last, as it uses the rest
};

} // namespace

std::unique_ptr<Transport> createMessageTransport(MessageLinks links, int64_t messagesInFlight) {
  return std::make_unique<MessageTransport>(std::move(links), messagesInFlight);
}

} // namespace braid::runtime
