//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Executor.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

Result<std::unique_ptr<DeviceExecutor>> createCudaExecutor(const DeviceSetup &setup) {
  auto executor = std::make_unique<cuda::CudaExecutor>(setup);
  RETURN_IF_ERROR(executor->open());
  return std::unique_ptr<DeviceExecutor>(std::move(executor));
}

namespace cuda {

ProcessGroup *DeviceTransport::group(const std::vector<int64_t> &members, Queue queue) {
  std::unique_ptr<DeviceGroup> &slot = groups[{members, queue}];
  if (!slot) {
    slot = std::make_unique<DeviceGroup>();
    slot->ranks = members;
    slot->queue = queue;
    slot->reads.resize(members.size());
    for (size_t position = 0; position < members.size(); ++position)
      for (size_t peer = 0; peer < members.size(); ++peer)
        if (peer != position)
          slot->reads[position].ranks.push_back(members[peer]);
  }
  return slot.get();
}

PeerReads *DeviceTransport::peerReads(const Collective &c) {
  return isNccl ? nullptr
                : &static_cast<DeviceGroup *>(c.group)->reads[static_cast<size_t>(c.position)];
}

Status ofRank(size_t rank, const Status &status) {
  return status.ok() ? status
                     : Status::error("rank " + std::to_string(rank) + ": " + status.message(),
                                     status.code());
}

static int64_t limitNs(const WorldOptions &options) {
  return static_cast<int64_t>(options.timeLimitSeconds * 1e9);
}

CudaExecutor::CudaExecutor(const DeviceSetup &given)
    : setup(given), queues(queuesOf(*given.program)), useNccl(given.options->transport == "nccl"),
      useGraph(given.options->cudaGraph), trace(given.options->trace),
      libraryPath(given.options->cudaLibrary), deviceTransport(useNccl), ranks(given.values.size()),
      prepared(given.roots.size()) {}

CudaExecutor::~CudaExecutor() {
  // Memory must not be freed while commands use it, of this run or of one that was given up.
  for (RankState &rank : ranks) {
    auto finish = [&](const Stream &stream) {
      if (stream && !rank.device.device->finish(stream.get()).ok())
        giveUp();
    };
    for (const QueueStream &queue : rank.queues)
      finish(queue.stream);
    finish(rank.upload);
  }
}

Status CudaExecutor::open() {
  ASSIGN_OR_RETURN(driver, Driver::load(libraryPath));
  RETURN_IF_ERROR(openDevices());
  RETURN_IF_ERROR(loadKernels());
  ASSIGN_OR_RETURN(control, createStream(devices[0]));
  if (setup.symmetricBytes > SIZE_MAX / 2 / ranks.size())
    return Status::error("the symmetric arena of " + std::to_string(setup.symmetricBytes) +
                         " bytes for each of " + std::to_string(ranks.size()) +
                         " ranks is too large");
  for (size_t r = 0; r < ranks.size(); ++r)
    RETURN_IF_ERROR(ofRank(r, allocateRank(static_cast<int64_t>(r))));
  // Wait until memory is zeroed.
  for (size_t r = 0; r < ranks.size(); ++r)
    RETURN_IF_ERROR(ofRank(r, ranks[r].device.device->finish(ranks[r].stream(kComputeQueue))));
  return {};
}

Status CudaExecutor::openDevices() {
  int count = 0;
  BRAID_CUDA_TRY(*driver, cuDeviceGetCount, &count);
  const int needed = useNccl ? static_cast<int>(ranks.size()) : 1;
  if (count < needed)
    return Status::error(
        useNccl ? "transport 'nccl' expects a GPU for each of " + std::to_string(needed) +
                      " ranks, this machine has " + std::to_string(count) +
                      " (transport 'threads' puts all ranks on one)"
                : std::string("target 'cuda' expects a GPU, this machine has none"));
  for (int i = 0; i < needed; ++i) {
    ASSIGN_OR_RETURN(DevicePtr device, Device::open(driver, i, limitNs(*setup.options)));
    devices.push_back(device);
  }
  for (size_t r = 0; r < ranks.size(); ++r)
    ranks[r].device.device = devices[useNccl ? r : 0];
  if (useNccl && ranks.size() > 1) {
    ASSIGN_OR_RETURN(nccl, Nccl::load(libraryPath));
  }
  return {};
}

Status CudaExecutor::loadKernels() {
  ASSIGN_OR_RETURN(const KernelLibrary *library, chooseLibrary(*setup.bundle, *devices[0]));
  const Bytes *launches = setup.bundle->find(library->launchesMember);
  if (!launches)
    return Status::error("the bundle lacks its member '" + library->launchesMember + "'");
  Result<CudaLaunchTable> parsed = CudaLaunchTable::fromJson(
      std::string(reinterpret_cast<const char *>(launches->data()), launches->size()));
  if (!parsed.ok())
    return Status::error("the bundle's member '" + library->launchesMember +
                         "': " + parsed.status().message());
  table = std::move(*parsed);
  for (const DevicePtr &device : devices) {
    if (!runsOn(library->isa, device->major, device->minor))
      return Status::error("transport 'nccl' expects GPUs of one architecture, got " +
                           devices[0]->name + " and " + device->name);
    ASSIGN_OR_RETURN(std::unique_ptr<Kernels> loaded,
                     Kernels::load(*setup.bundle, *library, table, device));
    kernels.push_back(std::move(loaded));
  }
  for (size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].device.kernels = kernels[useNccl ? r : 0].get();
    ranks[r].device.table = &table;
    ranks[r].device.program = setup.program;
  }
  return {};
}

Status CudaExecutor::allocateRank(int64_t number) {
  RankState &rank = state(number);
  const DevicePtr &device = rank.device.device;
  rank.queues.resize(queues.size());
  for (Queue queue = 0; queue < queues.size(); ++queue) {
    ASSIGN_OR_RETURN(rank.queues[queue].stream, createStream(device, queues[queue].priority));
  }
  ASSIGN_OR_RETURN(rank.upload, createStream(device));
  rank.device.workspaces.resize(queues.size());
  rank.device.sums.resize(queues.size());
  rank.device.hasFaults.assign(queues.size(), false);
  auto get = [&](Memory &memory, size_t size, const std::string &what) -> Status {
    ASSIGN_OR_RETURN(memory, allocate(device, size, rank.stream(kComputeQueue), what));
    bytes += static_cast<int64_t>(size);
    return {};
  };
  // Ranks of one device see each other's memory at a stride; others see only their own memory.
  const size_t stride = (std::max<size_t>(setup.symmetricBytes, 1) + 511) / 512 * 512;
  const size_t before = useNccl ? stride * static_cast<size_t>(number) : 0;
  Memory &symmetric = useNccl ? rank.symmetric : sharedSymmetric;
  if (!symmetric)
    RETURN_IF_ERROR(useNccl ? get(symmetric, stride, "the symmetric arena")
                            : get(symmetric, stride * ranks.size(), "all symmetric arenas"));
  deviceTransport.heaps.push_back(
      {pointer(symmetric.get() - before), stride, number, static_cast<int64_t>(ranks.size())});
  RETURN_IF_ERROR(get(rank.local, setup.localBytes, "the local arena"));
  for (const DeviceSetup::Value &value : setup.values[static_cast<size_t>(number)]) {
    if (value.symmetricOffset) {
      const SymmetricHeap heap = deviceTransport.heap(number);
      rank.valueAt.push_back(address(heap.peer(number, *value.symmetricOffset)));
      continue;
    }
    Memory &memory = rank.values.emplace_back();
    RETURN_IF_ERROR(get(memory, value.bytes, "a parameter, state, input or result"));
    rank.valueAt.push_back(memory.get());
  }
  const size_t faultBytes = queues.size() * sizeof(library::Fault);
  RETURN_IF_ERROR(get(rank.faults, faultBytes, "memory for faults"));
  rank.device.faults = reinterpret_cast<library::Fault *>(pointer(rank.faults.get()));
  ASSIGN_OR_RETURN(rank.faultCopies, allocatePinned(device, faultBytes));
  return {};
}

static Status waitFor(Staging &staging) {
  const CUstream stream = std::exchange(staging.stream, nullptr);
  return stream ? staging.device->finish(stream) : Status();
}

Result<std::byte *> CudaExecutor::stage(size_t size) {
  staged = 1 - staged;
  Staging &own = staging[staged];
  RETURN_IF_ERROR(waitFor(own));
  if (own.bytes < size) {
    own.pages = {}; // the old pages go first
    ASSIGN_OR_RETURN(own.pages, allocatePinned(devices[0], size));
    own.bytes = size;
  }
  return static_cast<std::byte *>(own.pages.get());
}

Status CudaExecutor::uploadStaged(int64_t number, size_t index, size_t offset, size_t size) {
  RankState &rank = state(number);
  Staging &own = staging[staged];
  RETURN_IF_ERROR(rank.device.device->use());
  // Each buffer has a stream, so that a wait for one copy does not wait for the other one.
  own.stream = staged == 0 ? rank.stream(kComputeQueue) : rank.upload.get();
  own.device = rank.device.device;
  return ofRank(static_cast<size_t>(number),
                driver->check(driver->cuMemcpyAsync(rank.valueAt[index] + offset,
                                                    address(own.pages.get()), size, own.stream),
                              "cuMemcpyAsync"));
}

Status CudaExecutor::finishUploads() {
  for (Staging &own : staging) {
    RETURN_IF_ERROR(waitFor(own));
    own = {};
  }
  return {};
}

Status CudaExecutor::transfer(int64_t number, CUdeviceptr to, CUdeviceptr from, size_t size) {
  if (size == 0)
    return {};
  RankState &rank = state(number);
  return ofRank(static_cast<size_t>(number),
                copyNow(*rank.device.device, to, from, size, rank.stream(kComputeQueue)));
}

Status CudaExecutor::upload(int64_t number, size_t index, const void *data, size_t size) {
  return transfer(number, state(number).valueAt[index], address(data), size);
}

Status CudaExecutor::download(int64_t number, size_t index, void *data, size_t size) {
  return transfer(number, address(data), state(number).valueAt[index], size);
}

std::vector<std::string> CudaExecutor::deviceNames() const {
  std::vector<std::string> names;
  for (const DevicePtr &device : devices)
    names.push_back(device->name);
  return names;
}

Result<StreamCommand> CudaExecutor::makeStreamCommand(RankState &rank, Queue queue, size_t index,
                                                      const Command &command) {
  RankDevice &device = rank.device;
  const LaunchPlace place{index + 1, queue, libraryPath, rank.stream(kComputeQueue)};
  if (auto *op = std::get_if<DeviceLaunchCommand>(&command.op))
    return makeLaunch(*op, place, device);
  if (auto *op = std::get_if<LibraryArguments>(&command.op))
    return makeLibrary(*op, place, device);
  if (auto *op = std::get_if<CopyCommand>(&command.op))
    return makeCopy(*op, device);
  return StreamCommand(); // enqueueStep() enqueues events and collectives
}

/// Whether a command's time is in the report.
static bool isMeasured(const Command &command, Queue queue) {
  return std::holds_alternative<CollectiveCommand>(command.op) ||
         (queue == kComputeQueue &&
          (std::holds_alternative<CollectiveWaitCommand>(command.op) || command.mayOverlap));
}

Status CudaExecutor::prepareSlots(RankState &rank, const RankProgram &program) {
  const DevicePtr &device = rank.device.device;
  rank.events.clear();
  rank.readEnds.clear();
  rank.device.constants.clear();
  for (uint32_t e = 0; e < program.numEvents; ++e) {
    ASSIGN_OR_RETURN(rank.events.emplace_back(), createEvent(device, false));
  }
  for (size_t read = 0; read < program.reads.size(); ++read) {
    ASSIGN_OR_RETURN(rank.readEnds.emplace_back(), createEvent(device, false));
  }
  for (Queue queue = 0; queue < queues.size(); ++queue) {
    QueueStream &own = rank.queues[queue];
    ASSIGN_OR_RETURN(own.begin, createEvent(device, true));
    ASSIGN_OR_RETURN(own.end, createEvent(device, true));
    own.slots.clear();
    for (size_t i = 0; i < program.queues[queue].size(); ++i) {
      const Command &command = program.queues[queue][i];
      Slot &slot = own.slots.emplace_back();
      Result<StreamCommand> made = makeStreamCommand(rank, queue, i, command);
      if (!made.ok())
        return Status::error(describe(command) + ": " + made.status().message(),
                             made.status().code());
      slot.command = std::move(*made);
      slot.timed = trace || isMeasured(command, queue);
      if (slot.timed) {
        ASSIGN_OR_RETURN(slot.before, createEvent(device, true));
      }
      ASSIGN_OR_RETURN(slot.after, createEvent(device, slot.timed));
    }
  }
  return {};
}

/// The commands before which a rank waits until its peers have read its payloads: the events that
/// tell so are to be recorded before they are awaited.
std::vector<OrderedAfter>
CudaExecutor::writesAfterReads(const std::vector<const RankProgram *> &programs) {
  std::vector<std::map<uint32_t, size_t>> ends(programs.size()); // by rank and read
  for (size_t r = 0; r < programs.size(); ++r)
    for (size_t i = 0; i < programs[r]->queues[kComputeQueue].size(); ++i)
      if (const Command &command = programs[r]->queues[kComputeQueue][i];
          command.endsRead != Command::kNoRead)
        ends[r][command.endsRead] = i;
  std::vector<OrderedAfter> all;
  for (size_t r = 0; r < programs.size(); ++r)
    for (size_t i = 0; i < programs[r]->queues[kComputeQueue].size(); ++i) {
      OrderedAfter one{{static_cast<int64_t>(r), kComputeQueue, i}, {}};
      // All ranks number reads alike.
      for (uint32_t read : programs[r]->queues[kComputeQueue][i].awaitsReads)
        for (int64_t peer : programs[r]->reads[read].of->ranks)
          one.others.push_back({peer, kComputeQueue, ends[static_cast<size_t>(peer)].at(read)});
      if (!one.others.empty())
        all.push_back(std::move(one));
    }
  return all;
}

Result<std::shared_ptr<Communicators>> CudaExecutor::communicators(const GroupKey &key) {
  std::shared_ptr<Communicators> &slot = groups[key];
  if (!slot) {
    std::vector<int> ordinals;
    for (int64_t member : key.members)
      ordinals.push_back(state(member).device.device->ordinal);
    ASSIGN_OR_RETURN(slot, Communicators::create(nccl, ordinals));
  }
  return slot;
}

Result<Exchange> CudaExecutor::makeBarrierExchange(const std::vector<Member> &members) {
  if (!useNccl || members.size() == 1)
    return makeCopyExchange(members);
  const ProcessGroup &ranksOfQueue = *members.front().collective->group;
  ASSIGN_OR_RETURN(std::shared_ptr<Communicators> group,
                   communicators({ranksOfQueue.ranks, ranksOfQueue.queue, ranksOfQueue.queue}));
  return makeNcclExchange(members, group);
}

Result<Exchange> CudaExecutor::makeSend(const Member &sender) {
  const MessageSlot *messageSlot = sender.collective->messageSlot;
  if (!messageSlot) // the rank is no source
    return Exchange();
  DeviceMessage *&last = lastMessages[messageSlot];
  const DeviceMessage *previous = last;
  DeviceMessage &message = *(last = &messages.emplace_back());
  message.sender = sender;
  const DevicePtr &device = sender.device->device;
  if (previous) {
    message.memory = previous->memory;
  } else {
    ASSIGN_OR_RETURN(Memory memory, allocate(device, static_cast<size_t>(messageSlot->bytes),
                                             sender.stream, "a message"));
    message.memory = std::make_shared<Memory>(std::move(memory));
  }
  ASSIGN_OR_RETURN(message.sent, createEvent(device, false));
  return cuda::makeSend(message, previous);
}

Result<Exchange> CudaExecutor::makeReceive(const Member &receiver) {
  const MessageSlot *messageSlot = receiver.collective->messageSlot;
  if (!messageSlot)
    return makeReceiveOfZeros(receiver);
  // Its send comes first, and the next one to the slot comes later.
  DeviceMessage &message = *lastMessages.at(messageSlot);
  if (message.sender.device->device == receiver.device->device) {
    ASSIGN_OR_RETURN(message.taken, createEvent(receiver.device->device, false));
    return cuda::makeReceive(receiver, message);
  }
  const Queue from = message.sender.collective->queue, to = receiver.collective->queue;
  const std::vector<int64_t> members =
      from == to ? receiver.collective->group->ranks
                 : std::vector<int64_t>{message.sender.heap.rank, receiver.heap.rank};
  ASSIGN_OR_RETURN(std::shared_ptr<Communicators> group, communicators({members, from, to}));
  auto position = [&](const Member &member) {
    return static_cast<size_t>(std::find(members.begin(), members.end(), member.heap.rank) -
                               members.begin());
  };
  return makeNcclReceive(receiver, message, position(message.sender), position(receiver), group);
}

Result<Exchange> CudaExecutor::makeExchange(const std::vector<Member> &members) {
  switch (members.front().collective->kind) {
  case CollectiveKind::send:
    return makeSend(members.front());
  case CollectiveKind::recv:
    return makeReceive(members.front());
  default:
    return makeBarrierExchange(members);
  }
}

Status CudaExecutor::prepareExchanges(const std::vector<const RankProgram *> &programs) {
  exchanges.clear();
  lastMessages.clear();
  messages.clear();
  for (const Step &step : steps) {
    Exchange &exchange = exchanges.emplace_back();
    const Place &first = step.places.front();
    auto commandAt = [&](const Place &place) -> const Command & {
      return programs[static_cast<size_t>(place.rank)]->queues[place.queue][place.index];
    };
    if (!std::holds_alternative<CollectiveCommand>(commandAt(first).op))
      continue;
    std::vector<Member> members;
    for (const Place &place : step.places)
      members.push_back({&std::get<CollectiveCommand>(commandAt(place).op).collective,
                         deviceTransport.heap(place.rank), &state(place.rank).device,
                         state(place.rank).stream(place.queue), place.index + 1});
    if (members.front().collective->kind == CollectiveKind::allToAllV)
      for (const Place &place : step.places)
        state(place.rank).device.hasFaults[place.queue] = true;
    Result<Exchange> made = makeExchange(members);
    if (!made.ok())
      return ofRank(static_cast<size_t>(first.rank),
                    Status::error(describe(commandAt(first)) + ": " + made.status().message(),
                                  made.status().code()));
    exchange = std::move(*made);
  }
  return {};
}

void CudaExecutor::select(size_t entry) {
  if (entry == selected)
    return;
  for (size_t which : {selected, entry}) { // first to its place, then from it
    PreparedEntry &place = prepared[which];
    std::swap(place.steps, steps);
    std::swap(place.messages, messages);
    std::swap(place.lastMessages, lastMessages);
    std::swap(place.exchanges, exchanges);
    std::swap(place.graph, graph);
    std::swap(place.warm, warm);
    place.ranks.resize(ranks.size());
    for (size_t r = 0; r < ranks.size(); ++r) {
      PreparedEntry::OfRank &own = place.ranks[r];
      RankState &rank = ranks[r];
      std::swap(own.events, rank.events);
      std::swap(own.readEnds, rank.readEnds);
      std::swap(own.constants, rank.device.constants);
      own.hasFaults.resize(queues.size());
      std::swap(own.hasFaults, rank.device.hasFaults);
      own.queues.resize(queues.size());
      for (Queue queue = 0; queue < queues.size(); ++queue) {
        std::swap(own.queues[queue].slots, rank.queues[queue].slots);
        std::swap(own.queues[queue].begin, rank.queues[queue].begin);
        std::swap(own.queues[queue].end, rank.queues[queue].end);
      }
    }
  }
  selected = entry;
}

Status CudaExecutor::prepare(Workers &workers, size_t entry) {
  select(entry);
  std::vector<const RankProgram *> programs;
  for (const auto &rank : workers.ranks)
    programs.push_back(rank->program);
  ASSIGN_OR_RETURN(steps, orderCommands(*program::GetProgram(setup.bundle->program().data()),
                                        setup.roots[entry], setup.bundle->manifest(),
                                        writesAfterReads(programs)));
  for (size_t r = 0; r < ranks.size(); ++r)
    RETURN_IF_ERROR(
        ofRank(r, prepareSlots(ranks[r], *workers.ranks[static_cast<int64_t>(r)]->program)));
  RETURN_IF_ERROR(prepareExchanges(programs));
  for (Event *event : {&fork, &graphEnd})
    if (!*event) { // one for all entries
      ASSIGN_OR_RETURN(*event, createEvent(devices[0], false));
    }
  return {};
}

} // namespace cuda
} // namespace braid::runtime
