//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a session makes before it runs: memory, kernels, the commands of all ranks, weights.
//
//===----------------------------------------------------------------------===//
#include "Parts.h"
#include "SchedulePoint.h"
#include "SessionState.h"
#include "braid/Runtime/Program.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace braid::runtime {

static Status noMemory(size_t bytes) {
  return Status::error("cannot allocate " + std::to_string(bytes) + " bytes");
}
/// Whole cache lines; 0 for sizes that no memory has, whose lines a number may not hold.
static size_t inLines(size_t bytes) {
  return bytes > SIZE_MAX / 2 ? 0 : (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
}

Result<AlignedBuffer> AlignedBuffer::allocate(size_t bytes) {
  AlignedBuffer buffer;
  buffer.length = inLines(bytes);
  if (buffer.length != 0)
    buffer.memory = static_cast<std::byte *>(std::aligned_alloc(64, buffer.length));
  if (!buffer.memory)
    return noMemory(bytes);
  std::memset(buffer.memory, 0, buffer.length);
  return buffer;
}

Result<AlignedBuffer> AlignedBuffer::map(size_t bytes, Sharing sharing) {
  AlignedBuffer buffer;
  buffer.length = inLines(bytes); // of 0 bytes there is no mapping
  void *memory =
      mmap(nullptr, buffer.length, PROT_READ | PROT_WRITE,
           MAP_ANONYMOUS | (sharing == Sharing::forks ? MAP_SHARED : MAP_PRIVATE), -1, 0);
  if (memory == MAP_FAILED)
    return noMemory(bytes);
  buffer.memory = static_cast<std::byte *>(memory);
  buffer.mapped = true;
  return buffer;
}

AlignedBuffer::~AlignedBuffer() {
  if (mapped)
    munmap(memory, length);
  else
    std::free(memory);
}

Status Session::State::load() {
  const Manifest &manifest = bundle->manifest;
  Result<const Entry *> selected = selectEntry(manifest, options.entry);
  if (!selected.ok())
    return selected.status();
  entry = *selected;
  const Bytes *bytes = bundle->find(manifest.programMember);
  if (!bytes)
    return Status::error("the bundle lacks its member '" + manifest.programMember + "'");
  if (Status status = verifyProgram(*bytes, manifest); !status.ok())
    return status;
  program.reset(program::GetProgram(bytes->data())->UnPack());

  auto programEntry = std::find_if(program->entries.begin(), program->entries.end(),
                                   [&](const auto &e) { return e->name == entry->name; });
  if (programEntry == program->entries.end())
    return Status::error("the program has no entry '" + entry->name + "'");
  const program::ProcedureT &root = *program->procedures[(*programEntry)->procedure];
  localBytes = root.local_bytes;
  symmetricBytes = root.symmetric_bytes;
  if (Status status = usesDevice() ? Status() : loadKernels(); !status.ok())
    return status;
  if (Status status = allocateArenas(); !status.ok())
    return status;
  inputSet.assign(entry->operands.size(), false);
  weightsLoaded = entry->parameters.empty();

  workers =
      std::make_unique<Workers>(numRanks(), options.threadsPerRank, options.timeLimitSeconds,
                                &meeting(), usesProcesses() ? Sharing::forks : Sharing::process);
  workers->trace = options.trace;
  workers->stall = options.stall;
  if (Status status = resolveAll(); !status.ok())
    return status;
  if (usesProcesses())
    processes = std::make_unique<RankProcesses>(*workers);
  return {};
}

Status Session::State::loadKernels() {
  if (options.kernels)
    kernelIsa = "supplied by the caller";
  else if (!program->kernels.empty()) {
    Result<std::unique_ptr<KernelLibraryHandle>> loaded = KernelLibraryHandle::load(*bundle);
    if (!loaded.ok())
      return loaded.status();
    library = std::move(*loaded);
    kernelIsa = library->isa();
  }
  for (const auto &kernel : program->kernels) {
    if (options.kernels) {
      auto found = options.kernels->find(kernel->symbol);
      if (found == options.kernels->end())
        return Status::error("the table of kernels lacks '" + kernel->symbol + "'");
      kernels.push_back(found->second);
      continue;
    }
    Result<KernelFunction> function = library->find(kernel->symbol);
    if (!function.ok())
      return function.status();
    kernels.push_back(*function);
  }
  options.kernels = nullptr; // the caller's table need not outlive this call
  return {};
}

Status Session::State::allocateArenas() {
  if (usesDevice()) {
    if (Status status = allocateValues(); !status.ok())
      return status;
    DeviceSetup setup;
    setup.bundle = bundle;
    setup.program = program.get();
    setup.options = &options;
    setup.localBytes = localBytes;
    setup.symmetricBytes = symmetricBytes;
    for (const auto &rank : values) {
      setup.valueBytes.emplace_back();
      for (const LocalValue &value : rank)
        setup.valueBytes.back().push_back(value.bytes);
    }
    Result<std::unique_ptr<DeviceExecutor>> created = createCudaExecutor(setup);
    if (!created.ok())
      return created.status();
    device = std::move(*created);
    kernelIsa = device->architecture();
    return {};
  }
  transport = usesProcesses() ? createShmTransport(numRanks()) : createThreadsTransport(numRanks());
  if (Status status = transport->allocate(symmetricBytes); !status.ok())
    return status;
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    Result<AlignedBuffer> arena = usesProcesses() ? AlignedBuffer::map(localBytes, Sharing::process)
                                                  : AlignedBuffer::allocate(localBytes);
    if (!arena.ok())
      return Status::error("local memory of rank " + std::to_string(rank) + ": " +
                           arena.status().message());
    localArenas.push_back(std::move(*arena));
  }
  return allocateValues();
}

Status Session::State::allocateValues() {
  const Mesh &mesh = bundle->manifest.mesh;
  values.resize(static_cast<size_t>(numRanks()));
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    auto add = [&](const std::string &what, DType dtype, const std::vector<int64_t> &shape,
                   const Sharding &sharding, bool exchanged) -> Status {
      Result<Box> box = localBox(mesh, rank, shape, sharding);
      if (!box.ok())
        return Status::error(what + ": " + box.status().message());
      LocalValue value;
      value.bytes = static_cast<size_t>(byteSize(dtype));
      for (int64_t size : box->sizes)
        value.bytes *= static_cast<size_t>(size);
      value.box = std::move(*box);
      if (usesDevice() && !exchanged) { // weights go to the device without staying here
        values[static_cast<size_t>(rank)].push_back(std::move(value));
        return {};
      }
      // What the session gives and takes is seen by both sides, a weight by its rank only.
      Sharing sharing = exchanged ? Sharing::forks : Sharing::process;
      Result<AlignedBuffer> memory = usesProcesses() ? AlignedBuffer::map(value.bytes, sharing)
                                                     : AlignedBuffer::allocate(value.bytes);
      if (!memory.ok())
        return Status::error(what + " on rank " + std::to_string(rank) + ": " +
                             memory.status().message());
      value.owned = std::move(*memory);
      values[static_cast<size_t>(rank)].push_back(std::move(value));
      return {};
    };
    for (const Parameter &p : entry->parameters)
      if (Status s = add("parameter '" + p.name + "'", p.dtype, p.globalShape, p.sharding, false);
          !s.ok())
        return s;
    for (const EntryValue &v : entry->operands)
      if (Status s = add("input '" + v.name + "'", v.dtype, v.globalShape, v.sharding, true);
          !s.ok())
        return s;
    for (const EntryValue &v : entry->results)
      if (Status s = add("output '" + v.name + "'", v.dtype, v.cutShape(), v.sharding, true);
          !s.ok())
        return s;
  }
  return {};
}

Status Session::State::resolveAll() {
  Status status;
  auto resolveRank = [&](int64_t r) -> Status {
    size_t i = static_cast<size_t>(r);
    ResolveInput input;
    input.program = program.get();
    input.mesh = &bundle->manifest.mesh;
    if (!device) {
      input.kernels = &kernels;
      input.products = &products;
    }
    input.entry = entry->name;
    input.rank = r;
    input.threads = options.threadsPerRank;
    for (size_t v = 0; v < values[i].size(); ++v)
      input.arguments.push_back(device ? device->value(r, v) : values[i][v].data());
    input.local = device ? device->local(r) : localArenas[i].data();
    input.symmetric = meeting().heap(r);
    input.localBytes = localBytes;
    input.symmetricBytes = symmetricBytes;
    input.transport = &meeting();
    input.queryBlock = workers->kernels.queryBlock;
    Result<RankProgram> resolved = resolve(input);
    if (!resolved.ok())
      return resolved.status();
    Rank &rank = *workers->ranks[i];
    rank.heap = input.symmetric;
    if (!rank.events)
      rank.events = std::make_unique<Counter[]>(resolved->numEvents);
    rank.program = std::move(*resolved);
    return {};
  };
  // A thread of its own, as the number of threads that oneDNN plans with is a property of the
  // thread.
  std::thread([&] {
    try {
      useOneThread();
      for (int64_t r = 0; r < numRanks() && status.ok(); ++r)
        status = resolveRank(r);
    } catch (const std::exception &e) {
      status = Status::error(e.what());
    }
  }).join();
  if (status.ok())
    status = meeting().prepare();
  if (status.ok() && device)
    status = device->prepare(*workers);
  if (!status.ok())
    return status;
  if (options.stall && !options.stall->command.empty()) {
    const RankProgram &stalled = workers->ranks[static_cast<size_t>(options.stall->rank)]->program;
    auto named = [&](const Command &c) { return c.name == options.stall->command; };
    if (std::none_of(stalled.queues[0].begin(), stalled.queues[0].end(), named) &&
        std::none_of(stalled.queues[1].begin(), stalled.queues[1].end(), named))
      return Status::error("the program has no command named '" + options.stall->command +
                           "' to stall at");
  }
  addressesChanged = false;
  return {};
}

Status Session::State::uploadWeights(WeightSource &source,
                                     const std::function<void(size_t, size_t)> &progress) {
  constexpr int64_t kPartBytes = int64_t(32) << 20; // of the host's memory that is pinned, twice
  const size_t count = entry->parameters.size(), total = count * values.size();
  for (size_t rank = 0; rank < values.size(); ++rank)
    for (size_t i = 0; i < count; ++i) {
      const Parameter &parameter = entry->parameters[i];
      const int64_t size = byteSize(parameter.dtype);
      auto upload = [&](const Box &part, int64_t begin) -> Status {
        const auto bytes = static_cast<size_t>(elementsOf(part) * size);
        Result<std::byte *> staged = device->stage(bytes);
        Status status = staged.status();
        if (status.ok())
          status = source.read(parameter, part, *staged);
        return !status.ok() ? status
                            : device->uploadStaged(static_cast<int64_t>(rank), i,
                                                   static_cast<size_t>(begin * size), bytes);
      };
      if (Status status = forEachPart(values[rank][i].box, kPartBytes / size, upload); !status.ok())
        return status;
      if (progress)
        progress(rank * count + i + 1, total);
    }
  return device->finishUploads();
}

Status Session::State::startProcesses(WeightSource *source,
                                      const std::function<void(size_t, size_t)> &progress) {
  const size_t total = entry->parameters.size() * values.size();
  auto prepare = [&](int64_t rank, std::atomic<uint64_t> &done) -> Status {
    size_t i = static_cast<size_t>(rank);
    std::memset(localArenas[i].data(), 0,
                localArenas[i].bytes()); // now rather than in the first run
    auto place = [&](size_t p) -> void * { return values[i][p].data(); };
    auto report = [&](size_t parameters, size_t) {
      done.store(parameters);
      atSchedulePoint("has a parameter");
    };
    return source ? loadParameters(*source, bundle->manifest.mesh, rank, entry->parameters, place,
                                   report)
                  : Status();
  };
  auto watch = [&](uint64_t done) {
    if (progress && source)
      progress(static_cast<size_t>(done), total);
  };
  return processes->start(prepare, watch);
}

} // namespace braid::runtime
