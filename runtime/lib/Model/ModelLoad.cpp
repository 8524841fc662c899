//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a model makes before it runs: memory, kernels, the commands of all ranks, weights.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "ModelState.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Program/Program.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

namespace braid::runtime {

static bool operator==(const Slice &a, const Slice &b) {
  auto fields = [](const Slice &s) {
    return std::tie(s.tensor, s.tensorShape, s.permutation, s.sourceOffsets, s.destOffsets,
                    s.sizes);
  };
  return fields(a) == fields(b);
}

/// Whether two entries' parameters are the same memory.
static bool operator==(const Parameter &a, const Parameter &b) {
  auto fields = [](const Parameter &p) {
    return std::tie(p.name, p.dtype, p.init, p.globalShape, p.sharding.dims, p.on.axes,
                    p.quantized);
  };
  return fields(a) == fields(b) && a.slices == b.slices;
}

/// The number of the value in the list, which is added if `isSame` holds for none.
template <typename Value, typename IsSame>
static size_t addTo(std::vector<const Value *> &list, const Value &value, IsSame isSame) {
  auto found = std::find_if(list.begin(), list.end(),
                            [&](const Value *other) { return isSame(*other, value); });
  const auto number = static_cast<size_t>(found - list.begin());
  if (found == list.end())
    list.push_back(&value);
  return number;
}

Status Model::State::addEntries() {
  for (const Entry &entry : bundle->manifest().entries) {
    auto own = std::make_unique<Execution::State>();
    own->entry = &entry;
    own->number = entries.size();
    own->model = this;
    auto found = std::find_if(program->entries.begin(), program->entries.end(),
                              [&](const auto &e) { return e->name == entry.name; });
    if (found == program->entries.end())
      return Status::error("the program has no entry '" + entry.name + "'");
    own->rootProcedure = (*found)->procedure;
    const program::ProcedureT &root = *program->procedures[own->rootProcedure];
    localBytes = std::max<uint64_t>(localBytes, root.local_bytes);
    symmetricBytes = std::max<uint64_t>(symmetricBytes, root.symmetric_bytes);
    own->inputSet.assign(entry.operands.size(), false);
    for (const Parameter &p : entry.parameters)
      own->arguments.push_back(
          addTo(parameters, p, [](const Parameter &a, const Parameter &b) { return a == b; }));
    for (const EntryValue &v : entry.states) // of one type and sharding in all entries
      own->arguments.push_back(addTo(
          states, v, [](const EntryValue &a, const EntryValue &b) { return a.name == b.name; }));
    entries.push_back(std::move(own));
  }
  size_t next = parameters.size() + states.size();
  for (const auto &own : entries) {
    for (size_t i = own->stateIndex(0); i < own->operandIndex(0); ++i)
      own->arguments[i] += parameters.size();
    for (size_t i = own->entry->operands.size() + own->entry->results.size(); i > 0; --i)
      own->arguments.push_back(next++);
  }
  return {};
}

Status Model::State::load() {
  program.reset(program::GetProgram(bundle->program().data())->UnPack());
  RETURN_IF_ERROR(addEntries());
  RETURN_IF_ERROR(placeValues());
  RETURN_IF_ERROR(usesDevice() ? Status() : loadKernels());
  RETURN_IF_ERROR(allocateArenas());
  workers = std::make_unique<Workers>(
      numRanks(), local(), queuesOf(*program), options().threadsPerRank, options().timeLimitSeconds,
      &ranksTransport(), usesProcesses() ? Sharing::forks : Sharing::process);
  if (options().pin) {
    ASSIGN_OR_RETURN(Pinning pinning, Pinning::create(numRanks(), options().threadsPerRank));
    workers->pinning = std::move(pinning);
  }
  workers->trace = options().trace;
  workers->stall = options().stall;
  RETURN_IF_ERROR(resolveAll());
  int64_t threads = 0;
  for (const auto &rank : workers->ranks)
    threads += options().threadsPerRank - 1 +
               std::count(rank->hasThread.begin(), rank->hasThread.end(), true);
  // Ranks of other processes of this host are alike, and need its cores too.
  const int64_t onHost = communicator() ? communicator()->ranksOfHost() : local().count;
  threads = threads * onHost / local().count;
  const int64_t computing = onHost * options().threadsPerRank;
  SpinLimits spins{spinFor(threads), spinOnOwnCores(threads), spinOnOwnCores(computing)};
  if (options().spinMicroseconds)
    for (SpinLimit *limit : {&spins.links, &spins.events, &spins.idle})
      limit->ns = static_cast<int64_t>(*options().spinMicroseconds * 1e3);
  workers->control.setSpins(spins);
  if (usesProcesses()) {
    std::vector<const PerRank<RankProgram> *> programs;
    for (const auto &entry : entries)
      programs.push_back(&entry->programs);
    processes = std::make_unique<RankProcesses>(*workers, programs,
                                                [this](size_t entry) { entries[entry]->enter(); });
  }
  return {};
}

Status Model::State::loadKernels() {
  if (options().kernels)
    kernelIsa = "supplied by the caller";
  else if (std::any_of(program->kernels.begin(), program->kernels.end(),
                       [](const auto &kernel) { return !kernel->library; })) {
    ASSIGN_OR_RETURN(library, KernelLibraryHandle::load(*bundle));
    kernelIsa = library->isa();
  }
  for (const auto &kernel : program->kernels) {
    if (kernel->library) {
      kernels.push_back(nullptr);
      continue;
    }
    if (options().kernels) {
      auto found = options().kernels->find(kernel->symbol);
      if (found == options().kernels->end())
        return Status::error("the table of kernels lacks '" + kernel->symbol + "'");
      kernels.push_back(found->second);
      continue;
    }
    ASSIGN_OR_RETURN(KernelFunction function, library->find(kernel->symbol));
    kernels.push_back(function);
  }
  return {};
}

Status Model::State::allocateArenas() {
  if (usesDevice()) {
    RETURN_IF_ERROR(allocateValues());
    DeviceSetup setup;
    setup.bundle = bundle;
    setup.program = program.get();
    for (const auto &entry : entries)
      setup.roots.push_back(entry->rootProcedure);
    setup.options = &options();
    setup.localBytes = localBytes;
    setup.symmetricBytes = symmetricBytes;
    for (const auto &rank : values) {
      setup.values.emplace_back();
      for (const ValueMemory &value : rank)
        setup.values.back().push_back({value.bytes, value.symmetricOffset});
    }
    ASSIGN_OR_RETURN(device, createCudaExecutor(setup));
    kernelIsa = device->architecture();
    return {};
  }
  if (communicator()) {
    ASSIGN_OR_RETURN(transport, communicator()->createTransport(options().messagesInFlight));
  } else
    transport =
        usesProcesses()
            ? createShmTransport(numRanks(), options().messagesInFlight, options().machine)
            : createThreadsTransport(numRanks(), options().messagesInFlight, options().machine);
  RETURN_IF_ERROR(transport->allocate(symmetricBytes));
  localArenas = PerRank<HostMemory>(local());
  for (int64_t rank : local()) {
    // The sum does not overflow: rank 0 has no skew, and sizes near the limit are refused there.
    const size_t skew = static_cast<size_t>(rank) % 16 * kArenaSkew;
    if (Status status = localArenas[rank].map(localBytes + skew); !status.ok())
      return Status::error("local memory of rank " + std::to_string(rank) + ": " +
                           status.message());
  }
  return allocateValues();
}

/// Large arenas all begin at a huge page, but those of different ranks should not compete for the
/// same cache sets.
std::byte *Model::State::localArena(int64_t rank) const {
  const HostMemory &arena = localArenas[rank];
  return arena.data() + (arena.bytes() - localBytes);
}

std::string Model::State::describeValue(size_t value) const {
  for (const auto &entry : entries)
    for (size_t argument = 0; argument < entry->arguments.size(); ++argument)
      if (entry->arguments[argument] == value)
        return entry->describeArgument(argument);
  return "value " + std::to_string(value);
}

Status Model::State::placeValues() {
  const Mesh &mesh = bundle->manifest().mesh;
  values = PerRank<std::vector<ValueMemory>>(local());
  std::vector<uint64_t> shardBytes; // by value, the same for all ranks that have it
  // By value and by where a shard of it begins: the first rank that has it.
  std::map<std::pair<size_t, std::vector<int64_t>>, int64_t> first;
  for (int64_t rank : local()) {
    std::vector<ValueMemory> &own = values[rank];
    shardBytes.clear();
    auto add = [&](const auto &described) -> Status {
      Result<Box> box = localBox(mesh, rank, described.shardedShape(), described.sharding);
      if (!box.ok())
        return Status::error(describeValue(own.size()) + ": " + box.status().message());
      ValueMemory value;
      const uint64_t bytes = static_cast<uint64_t>(elementsOf(*box)) *
                             static_cast<uint64_t>(byteSize(described.dtype));
      shardBytes.push_back(bytes);
      if (!described.on.contains(mesh, rank)) {
        value.isHere = false;
        own.push_back(std::move(value));
        return {};
      }
      value.bytes = static_cast<size_t>(bytes);
      if (auto [owner, isFirst] = first.try_emplace({own.size(), box->offsets}, rank); !isFirst)
        value.replicaOf = owner->second;
      value.box = std::move(*box);
      own.push_back(std::move(value));
      return {};
    };
    for (const Parameter *p : parameters)
      RETURN_IF_ERROR(add(*p));
    for (const EntryValue *v : states)
      RETURN_IF_ERROR(add(*v));
    for (const auto &entry : entries) {
      for (const EntryValue &v : entry->entry->operands)
        RETURN_IF_ERROR(add(v));
      for (const EntryValue &v : entry->entry->results)
        RETURN_IF_ERROR(add(v));
    }
  }
  // Behind the largest frame, at one offset on all ranks.
  const uint64_t frame = symmetricBytes;
  std::set<size_t> symmetric;
  for (const auto &entry : entries)
    for (uint32_t argument : program->procedures[entry->rootProcedure]->symmetric_arguments)
      symmetric.insert(entry->arguments[argument]);
  for (size_t index : symmetric) {
    const uint64_t bytes = shardBytes[index];
    const std::optional<uint64_t> begin = checkedAdd(symmetricBytes, kFrameAlignment - 1);
    const uint64_t offset = begin.value_or(0) / kFrameAlignment * kFrameAlignment;
    const std::optional<uint64_t> end = checkedAdd(offset, bytes);
    if (!begin || !end)
      return Status::error(describeValue(index) + " of " + std::to_string(bytes) +
                           " bytes does not fit behind a symmetric frame of " +
                           std::to_string(frame));
    for (auto &rank : values)
      rank[index].symmetricOffset = offset;
    symmetricBytes = *end;
  }
  return {};
}

Status Model::State::allocateWeights(int64_t rank) {
  std::vector<ValueMemory *> all;
  size_t bytes = 0;
  for (size_t v = 0; v < parameters.size(); ++v)
    if (ValueMemory &value = values[rank][v]; value.isHere && !value.symmetricOffset) {
      all.push_back(&value);
      bytes += MemoryPool::roomFor(value.bytes);
    }
  if (all.empty())
    return {};
  if (Status s = weights[rank].map(bytes, Sharing::process); !s.ok())
    return Status::error("parameters on rank " + std::to_string(rank) + ": " + s.message());
  MemoryPool pool(Sharing::process, weights[rank].data(), bytes);
  for (ValueMemory *value : all)
    value->owned = static_cast<std::byte *>(pool.allocate(value->bytes));
  return {};
}

Status Model::State::allocateValues() {
  constexpr size_t kLarge = size_t(1) << 16; // the number of mappings is limited
  rankPools = PerRank<std::unique_ptr<MemoryPool>>(local());
  weights = PerRank<HostMemory>(local());
  for (int64_t rank : local()) {
    MemoryPool &rankPool = *(rankPools[rank] = std::make_unique<MemoryPool>(Sharing::process));
    std::vector<ValueMemory> &own = values[rank];
    if (!usesDevice())
      RETURN_IF_ERROR(allocateWeights(rank));
    for (size_t v = 0; v < own.size(); ++v) {
      ValueMemory &value = own[v];
      // Weights of a device have no memory here.
      if (!value.isHere || value.owned || (v < parameters.size() && usesDevice()))
        continue;
      // The model's process and the rank both use states, inputs and results.
      const bool shared = usesProcesses() && v >= parameters.size();
      if (value.symmetricOffset && !usesDevice()) {
        value.owned = transport->heap(rank).peer(rank, *value.symmetricOffset);
      } else if (value.bytes < kLarge) {
        value.owned =
            static_cast<std::byte *>((shared ? exchangePool : rankPool).allocate(value.bytes));
      } else {
        if (Status s = value.pages.map(value.bytes, shared ? Sharing::forks : Sharing::process);
            !s.ok())
          return Status::error(describeValue(v) + " on rank " + std::to_string(rank) + ": " +
                               s.message());
        value.owned = value.pages.data();
      }
    }
  }
  return {};
}

ResolveInput Execution::State::resolveInput(int64_t r, const CommandTimes *times) const {
  Model::State &m = *model;
  ResolveInput input;
  input.program = m.program.get();
  input.mesh = &m.bundle->manifest().mesh;
  if (!m.device) {
    input.kernels = &m.kernels;
    input.matmuls = &m.matmuls;
  }
  input.entry = entry->name;
  input.rank = r;
  input.threads = m.options().threadsPerRank;
  for (size_t a = 0; a < arguments.size(); ++a)
    input.arguments.push_back(m.device ? m.device->value(r, arguments[a]) : value(r, a).used());
  input.local = m.device ? m.device->local(r) : m.localArena(r);
  input.symmetric = m.ranksTransport().heap(r);
  input.localBytes = m.localBytes;
  input.symmetricBytes = m.symmetricBytes;
  input.transport = &m.ranksTransport();
  input.copyPayloads = m.options().copyPayloads;
  input.queryBlock = m.workers->kernels.queryBlock;
  input.times = times;
  return input;
}

Status Execution::State::moveArguments() {
  std::vector<std::vector<MovedCommand>> moved;
  for (const auto &[r, numbers] : movedArguments) {
    ASSIGN_OR_RETURN(std::vector<MovedCommand> commands,
                     runtime::moveArguments(resolveInput(r), programs[r], numbers));
    moved.push_back(std::move(commands));
  }
  // From here on nothing fails: either all ranks use the new memory, or all the old.
  auto commands = moved.begin();
  for (const auto &[r, numbers] : movedArguments) {
    RankProgram &rank = programs[r];
    for (MovedCommand &command : *commands++)
      rank.queues[command.queue][command.command] = std::move(command.replacement);
  }
  movedArguments.clear();
  return {};
}

Status Execution::State::resolve() {
  programs = PerRank<RankProgram>(model->local());
  events = PerRank<std::unique_ptr<Counter[]>>(model->local());
  const Communicator *communicator = model->communicator();
  const std::shared_ptr<const cost::Machine> machine =
      communicator ? communicator->machine() : model->options().machine;
  std::optional<CommandTimes> times;
  if (machine && model->options().trace)
    times.emplace(*machine, model->ranksTransport().name(), model->local(),
                  communicator ? communicator->ranksOfHost() : model->local().count,
                  model->options().threadsPerRank);
  for (int64_t r : model->local()) {
    Result<RankProgram> resolved = runtime::resolve(resolveInput(r, times ? &*times : nullptr));
    RETURN_IF_ERROR(resolved.status());
    events[r] = std::make_unique<Counter[]>(resolved->numEvents);
    programs[r] = std::move(*resolved);
  }
  if (times) {
    std::vector<const RankProgram *> all;
    for (const RankProgram &program : programs)
      all.push_back(&program);
    prediction = std::make_unique<Prediction>(*machine, *times, model->local(), std::move(all),
                                              communicator != nullptr);
  }
  return {};
}

void Execution::State::enter() {
  for (int64_t r : programs.ranks()) {
    Rank &rank = *model->workers->ranks[r];
    rank.program = &programs[r];
    rank.events = events[r].get();
  }
}

Status Model::State::resolveAll() {
  Status status;
  // In a thread of its own, as oneDNN plans with a number of threads that belongs to the thread.
  std::thread([&] {
    try {
      useOneThread();
      for (size_t e = 0; e < entries.size() && status.ok(); ++e)
        status = entries[e]->resolve();
    } catch (const std::exception &e) {
      status = Status::error(e.what());
    }
  }).join();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(ranksTransport().prepare());
  for (int64_t r : local()) {
    Rank &rank = *workers->ranks[r];
    rank.heap = ranksTransport().heap(r);
    for (const auto &entry : entries)
      for (size_t q = 0; q < rank.hasThread.size(); ++q)
        rank.hasThread[q] = rank.hasThread[q] || entry->programs[r].ownThread[q];
  }
  for (const auto &entry : entries) {
    entry->enter();
    RETURN_IF_ERROR(device ? device->prepare(*workers, entry->number) : Status());
  }
  if (const auto &stall = options().stall; stall && !stall->command.empty()) {
    auto named = [&](const Command &c) { return c.name == stall->command; };
    auto has = [&](const auto &entry) {
      const RankProgram &stalled = entry->programs[stall->rank];
      return std::any_of(stalled.queues.begin(), stalled.queues.end(), [&](const auto &commands) {
        return std::any_of(commands.begin(), commands.end(), named);
      });
    };
    if (local().contains(stall->rank) && std::none_of(entries.begin(), entries.end(), has))
      return Status::error("the program has no command named '" + stall->command + "' to stall at");
  }
  return {};
}

Status Model::State::uploadWeights(WeightSource &source,
                                   const std::function<void(size_t, size_t)> &progress) {
  constexpr int64_t kChunkBytes = int64_t(32) << 20; // of pinned host memory, twice
  const size_t count = parameters.size(), total = count * values.size();
  size_t done = 0;
  for (int64_t rank : local())
    for (size_t i = 0; i < count; ++i) {
      const Parameter &parameter = *parameters[i];
      const int64_t size = byteSize(parameter.dtype);
      auto upload = [&](const Box &chunk, int64_t begin) -> Status {
        const auto bytes = static_cast<size_t>(elementsOf(chunk) * size);
        ASSIGN_OR_RETURN(std::byte * staged, device->stage(bytes));
        RETURN_IF_ERROR(readParameter(source, parameter, chunk, staged));
        return device->uploadStaged(rank, i, static_cast<size_t>(begin * size), bytes);
      };
      if (values[rank][i].isHere)
        RETURN_IF_ERROR(forEachChunk(values[rank][i].box, kChunkBytes / size, upload));
      if (progress)
        progress(++done, total);
    }
  return device->finishUploads();
}

Status Model::State::prepareRank(int64_t rank, WeightSource *source,
                                 const std::function<void()> &parameterDone) {
  workers->pinning.pinRank(rank);
  const HostMemory &arena = localArenas[rank];
  Status touched = arena.touch(0, arena.bytes());
  if (touched.ok())
    touched = transport->touch(rank);
  if (!touched.ok())
    return Status::error("arenas of rank " + std::to_string(rank) + ": " + touched.message());
  if (!source)
    return {};
  auto &own = values[rank];
  std::atomic<size_t> next{0};
  std::mutex failing;
  size_t failed = SIZE_MAX; // the first one in the order of parameters
  Status failure;
  auto load = [&] {
    for (size_t i; (i = next.fetch_add(1)) < parameters.size();) {
      Status status;
      try {
        status =
            loadParameter(*source, bundle->manifest().mesh, rank, *parameters[i], own[i].data());
      } catch (const std::exception &e) {
        status = Status::error("parameter '" + parameters[i]->name + "': " + e.what());
      }
      if (!status.ok()) {
        std::lock_guard<std::mutex> lock(failing);
        if (i < failed)
          failure = status;
        failed = std::min(failed, i);
        next.store(parameters.size());
        return;
      }
      parameterDone();
    }
  };
  std::vector<std::thread> helpers;
  const auto cores = static_cast<int64_t>(usableCores());
  for (int64_t i = 1; i < cores / local().count; ++i)
    helpers.emplace_back(load);
  load();
  for (std::thread &helper : helpers)
    helper.join();
  return failure;
}

Status Model::State::prepareRanks(WeightSource &source,
                                  const std::function<void(size_t, size_t)> &progress) {
  const size_t total = parameters.size() * values.size();
  PerRank<Status> outcomes(local());
  std::atomic<size_t> done{0}, ended{0};
  Counter changes;
  auto count = [&](std::atomic<size_t> &number) {
    ++number;
    changes.increment();
  };
  std::vector<std::thread> ranks;
  for (int64_t r : local())
    ranks.emplace_back([&, r] {
      outcomes[r] = prepareRank(r, &source, [&] { count(done); });
      count(ended);
    });
  // Progress is reported on the caller's thread.
  size_t reported = 0;
  for (bool last = false; !last;) {
    const uint32_t seen = changes.value();
    last = ended == ranks.size();
    if (const size_t now = done; now != reported && progress)
      progress(reported = now, total);
    if (!last)
      changes.waitOnce(seen + 1, -1);
  }
  for (std::thread &rank : ranks)
    rank.join();
  for (Status &status : outcomes)
    RETURN_IF_ERROR(status);
  return {};
}

Status Model::State::startProcesses(WeightSource *source,
                                    const std::function<void(size_t, size_t)> &progress) {
  const size_t total = parameters.size() * values.size();
  auto prepare = [&](int64_t rank, std::atomic<uint64_t> &done) {
    atSchedulePoint("before its memory is touched");
    return prepareRank(rank, source, [&] {
      done.fetch_add(1);
      atSchedulePoint("has a parameter");
    });
  };
  auto watch = [&](uint64_t done) {
    if (progress && source)
      progress(static_cast<size_t>(done), total);
  };
  return processes->start(prepare, watch, source ? source->descriptors() : std::vector<int>());
}

} // namespace braid::runtime
