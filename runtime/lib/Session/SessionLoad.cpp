//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a session makes before it runs: memory, kernels, the commands of all ranks, weights.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "SessionState.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Program/Program.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace braid::runtime {

Status Session::State::load() {
  const Manifest &manifest = bundle->manifest();
  ASSIGN_OR_RETURN(entry, selectEntry(manifest, options.entry));
  program.reset(program::GetProgram(bundle->program().data())->UnPack());

  auto programEntry = std::find_if(program->entries.begin(), program->entries.end(),
                                   [&](const auto &e) { return e->name == entry->name; });
  if (programEntry == program->entries.end())
    return Status::error("the program has no entry '" + entry->name + "'");
  rootProcedure = (*programEntry)->procedure;
  const program::ProcedureT &root = *program->procedures[rootProcedure];
  localBytes = root.local_bytes;
  RETURN_IF_ERROR(placeValues());
  RETURN_IF_ERROR(usesDevice() ? Status() : loadKernels());
  RETURN_IF_ERROR(allocateArenas());
  inputSet.assign(entry->operands.size(), false);
  weightsLoaded = entry->parameters.empty();

  workers = std::make_unique<Workers>(numRanks(), queuesOf(*program), options.threadsPerRank,
                                      options.timeLimitSeconds, &sessionTransport(),
                                      usesProcesses() ? Sharing::forks : Sharing::process);
  if (options.pin) {
    ASSIGN_OR_RETURN(Pinning pinning, Pinning::create(numRanks(), options.threadsPerRank));
    workers->pinning = std::move(pinning);
  }
  workers->trace = options.trace;
  workers->stall = options.stall;
  RETURN_IF_ERROR(resolveAll());
  int64_t threads = 0;
  for (const auto &rank : workers->ranks) {
    const std::vector<bool> &own = rank->program.ownThread;
    threads += options.threadsPerRank - 1 + std::count(own.begin(), own.end(), true);
  }
  workers->control.setSpin(options.spinMicroseconds
                               ? static_cast<int64_t>(*options.spinMicroseconds * 1e3)
                               : spinFor(threads, usableCores()));
  if (usesProcesses())
    processes = std::make_unique<RankProcesses>(*workers);
  return {};
}

Status Session::State::loadKernels() {
  if (options.kernels)
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
    if (options.kernels) {
      auto found = options.kernels->find(kernel->symbol);
      if (found == options.kernels->end())
        return Status::error("the table of kernels lacks '" + kernel->symbol + "'");
      kernels.push_back(found->second);
      continue;
    }
    ASSIGN_OR_RETURN(KernelFunction function, library->find(kernel->symbol));
    kernels.push_back(function);
  }
  options.kernels = nullptr; // the caller's table need not outlive this call
  return {};
}

Status Session::State::allocateArenas() {
  if (usesDevice()) {
    RETURN_IF_ERROR(allocateValues());
    DeviceSetup setup;
    setup.bundle = bundle;
    setup.program = program.get();
    setup.root = rootProcedure;
    setup.options = &options;
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
  transport = usesProcesses() ? createShmTransport(numRanks(), options.messagesInFlight)
                              : createThreadsTransport(numRanks(), options.messagesInFlight);
  RETURN_IF_ERROR(transport->allocate(symmetricBytes));
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    // The sum does not overflow: rank 0 has no skew, and sizes near the limit are refused there.
    const size_t skew = static_cast<size_t>(rank) % 16 * kArenaSkew;
    if (Status status = localArenas.emplace_back().map(localBytes + skew); !status.ok())
      return Status::error("local memory of rank " + std::to_string(rank) + ": " +
                           status.message());
  }
  return allocateValues();
}

/// Large arenas all begin at a huge page, but those of different ranks should not compete for the
/// same cache sets.
std::byte *Session::State::localArena(int64_t rank) const {
  const HostMemory &arena = localArenas[static_cast<size_t>(rank)];
  return arena.data() + (arena.bytes() - localBytes);
}

std::string Session::State::describeValue(size_t value) const {
  if (value < operandIndex(0))
    return "parameter '" + entry->parameters[value].name + "'";
  if (value < resultIndex(0))
    return "input '" + entry->operands[value - operandIndex(0)].name + "'";
  return "output '" + entry->results[value - resultIndex(0)].name + "'";
}

Status Session::State::placeValues() {
  const Mesh &mesh = bundle->manifest().mesh;
  const program::ProcedureT &root = *program->procedures[rootProcedure];
  symmetricBytes = root.symmetric_bytes;
  values.resize(static_cast<size_t>(numRanks()));
  // By value and by where a shard of it begins: the first rank that has it.
  std::map<std::pair<size_t, std::vector<int64_t>>, int64_t> first;
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    std::vector<ValueMemory> &own = values[static_cast<size_t>(rank)];
    auto add = [&](DType dtype, const std::vector<int64_t> &shape,
                   const Sharding &sharding) -> Status {
      Result<Box> box = localBox(mesh, rank, shape, sharding);
      if (!box.ok())
        return Status::error(describeValue(own.size()) + ": " + box.status().message());
      ValueMemory value;
      value.bytes = static_cast<size_t>(elementsOf(*box) * byteSize(dtype));
      if (auto [owner, isFirst] = first.try_emplace({own.size(), box->offsets}, rank); !isFirst)
        value.replicaOf = owner->second;
      value.box = std::move(*box);
      own.push_back(std::move(value));
      return {};
    };
    for (const Parameter &p : entry->parameters)
      RETURN_IF_ERROR(add(p.dtype, p.globalShape, p.sharding));
    for (const EntryValue &v : entry->operands)
      RETURN_IF_ERROR(add(v.dtype, v.globalShape, v.sharding));
    for (const EntryValue &v : entry->results)
      RETURN_IF_ERROR(add(v.dtype, v.shardedShape(), v.sharding));
  }
  // Behind the frame, at one offset on all ranks.
  for (uint32_t index : root.symmetric_arguments) {
    uint64_t bytes = 0;
    for (const auto &rank : values)
      bytes = std::max<uint64_t>(bytes, rank[index].bytes);
    const std::optional<uint64_t> begin = checkedAdd(symmetricBytes, kFrameAlignment - 1);
    const uint64_t offset = begin.value_or(0) / kFrameAlignment * kFrameAlignment;
    const std::optional<uint64_t> end = checkedAdd(offset, bytes);
    if (!begin || !end)
      return Status::error(describeValue(index) + " of " + std::to_string(bytes) +
                           " bytes does not fit behind a symmetric frame of " +
                           std::to_string(root.symmetric_bytes));
    for (auto &rank : values)
      rank[index].symmetricOffset = offset;
    symmetricBytes = *end;
  }
  return {};
}

Status Session::State::allocateValues() {
  constexpr size_t kLarge = size_t(1) << 16; // the number of mappings is limited
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    MemoryPool &rankPool = rankPools.emplace_back(Sharing::process);
    std::vector<ValueMemory> &own = values[static_cast<size_t>(rank)];
    for (size_t v = 0; v < own.size(); ++v) {
      ValueMemory &value = own[v];
      // The session and the rank both use inputs and results, only the rank a weight. Weights of a
      // device have no memory here.
      const bool exchanged = v >= operandIndex(0), shared = usesProcesses() && exchanged;
      if (!exchanged && usesDevice())
        continue;
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

ResolveInput Session::State::resolveInput(int64_t r) {
  size_t i = static_cast<size_t>(r);
  ResolveInput input;
  input.program = program.get();
  input.mesh = &bundle->manifest().mesh;
  if (!device) {
    input.kernels = &kernels;
    input.matmuls = &matmuls;
  }
  input.entry = entry->name;
  input.rank = r;
  input.threads = options.threadsPerRank;
  for (size_t v = 0; v < values[i].size(); ++v)
    input.arguments.push_back(device ? device->value(r, v) : values[i][v].used());
  input.local = device ? device->local(r) : localArena(r);
  input.symmetric = sessionTransport().heap(r);
  input.localBytes = localBytes;
  input.symmetricBytes = symmetricBytes;
  input.transport = &sessionTransport();
  input.queryBlock = workers->kernels.queryBlock;
  return input;
}

Status Session::State::moveArguments() {
  std::vector<std::vector<MovedCommand>> moved;
  for (const auto &[r, arguments] : movedArguments) {
    ASSIGN_OR_RETURN(std::vector<MovedCommand> commands,
                     runtime::moveArguments(resolveInput(r),
                                            workers->ranks[static_cast<size_t>(r)]->program,
                                            arguments));
    moved.push_back(std::move(commands));
  }
  // From here on nothing fails: either all ranks use the new memory, or all the old.
  auto commands = moved.begin();
  for (const auto &[r, arguments] : movedArguments) {
    RankProgram &rank = workers->ranks[static_cast<size_t>(r)]->program;
    for (MovedCommand &command : *commands++)
      rank.queues[command.queue][command.command] = std::move(command.replacement);
  }
  movedArguments.clear();
  return {};
}

Status Session::State::resolveAll() {
  Status status;
  auto resolveRank = [&](int64_t r) -> Status {
    ResolveInput input = resolveInput(r);
    ASSIGN_OR_RETURN(RankProgram resolved, resolve(input));
    Rank &rank = *workers->ranks[static_cast<size_t>(r)];
    rank.heap = input.symmetric;
    rank.events = std::make_unique<Counter[]>(resolved.numEvents);
    rank.program = std::move(resolved);
    return {};
  };
  // In a thread of its own, as oneDNN plans with a number of threads that belongs to the thread.
  std::thread([&] {
    try {
      useOneThread();
      for (int64_t r = 0; r < numRanks() && status.ok(); ++r)
        status = resolveRank(r);
    } catch (const std::exception &e) {
      status = Status::error(e.what());
    }
  }).join();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(sessionTransport().prepare());
  RETURN_IF_ERROR(device ? device->prepare(*workers) : Status());
  if (options.stall && !options.stall->command.empty()) {
    const RankProgram &stalled = workers->ranks[static_cast<size_t>(options.stall->rank)]->program;
    auto named = [&](const Command &c) { return c.name == options.stall->command; };
    if (std::none_of(stalled.queues.begin(), stalled.queues.end(), [&](const auto &commands) {
          return std::any_of(commands.begin(), commands.end(), named);
        }))
      return Status::error("the program has no command named '" + options.stall->command +
                           "' to stall at");
  }
  return {};
}

Status Session::State::uploadWeights(WeightSource &source,
                                     const std::function<void(size_t, size_t)> &progress) {
  constexpr int64_t kChunkBytes = int64_t(32) << 20; // of pinned host memory, twice
  const size_t count = entry->parameters.size(), total = count * values.size();
  for (size_t rank = 0; rank < values.size(); ++rank)
    for (size_t i = 0; i < count; ++i) {
      const Parameter &parameter = entry->parameters[i];
      const int64_t size = byteSize(parameter.dtype);
      auto upload = [&](const Box &chunk, int64_t begin) -> Status {
        const auto bytes = static_cast<size_t>(elementsOf(chunk) * size);
        ASSIGN_OR_RETURN(std::byte * staged, device->stage(bytes));
        RETURN_IF_ERROR(source.read(parameter, chunk, staged));
        return device->uploadStaged(static_cast<int64_t>(rank), i,
                                    static_cast<size_t>(begin * size), bytes);
      };
      RETURN_IF_ERROR(forEachChunk(values[rank][i].box, kChunkBytes / size, upload));
      if (progress)
        progress(rank * count + i + 1, total);
    }
  return device->finishUploads();
}

Status Session::State::prepareRank(int64_t rank, WeightSource *source,
                                   const std::function<void()> &parameterDone) {
  workers->pinning.pinRank(rank);
  const HostMemory &arena = localArenas[static_cast<size_t>(rank)];
  Status touched = arena.touch(0, arena.bytes());
  if (touched.ok())
    touched = transport->touch(rank);
  if (!touched.ok())
    return Status::error("arenas of rank " + std::to_string(rank) + ": " + touched.message());
  if (!source)
    return {};
  const auto &parameters = entry->parameters;
  auto &own = values[static_cast<size_t>(rank)];
  std::atomic<size_t> next{0};
  std::mutex failing;
  size_t failed = SIZE_MAX; // the first one in the order of parameters
  Status failure;
  auto load = [&] {
    for (size_t i; (i = next.fetch_add(1)) < parameters.size();) {
      Status status;
      try {
        status =
            loadParameter(*source, bundle->manifest().mesh, rank, parameters[i], own[i].data());
      } catch (const std::exception &e) {
        status = Status::error("parameter '" + parameters[i].name + "': " + e.what());
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
  for (int64_t i = 1; i < cores / numRanks(); ++i)
    helpers.emplace_back(load);
  load();
  for (std::thread &helper : helpers)
    helper.join();
  return failure;
}

Status Session::State::prepareRanks(WeightSource &source,
                                    const std::function<void(size_t, size_t)> &progress) {
  const size_t total = entry->parameters.size() * values.size();
  std::vector<Status> outcomes(values.size());
  std::atomic<size_t> done{0}, ended{0};
  Counter changes;
  auto count = [&](std::atomic<size_t> &number) {
    ++number;
    changes.increment();
  };
  std::vector<std::thread> ranks;
  for (size_t r = 0; r < values.size(); ++r)
    ranks.emplace_back([&, r] {
      outcomes[r] = prepareRank(static_cast<int64_t>(r), &source, [&] { count(done); });
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
      changes.waitOnce(seen + 1, 0, -1);
  }
  for (std::thread &rank : ranks)
    rank.join();
  for (Status &status : outcomes)
    RETURN_IF_ERROR(status);
  return {};
}

Status Session::State::startProcesses(WeightSource *source,
                                      const std::function<void(size_t, size_t)> &progress) {
  const size_t total = entry->parameters.size() * values.size();
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
