//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SessionState.h"
#include "braid/Runtime/Files.h"
#include "braid/Runtime/Program.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace braid::runtime {

std::string meshString(const Mesh &mesh) {
  std::string text = "<";
  for (size_t i = 0; i < mesh.axes.size(); ++i)
    text += (i ? ", " : "") + mesh.axes[i].name + " = " + std::to_string(mesh.axes[i].size);
  return text + ">";
}

std::string typeString(DType dtype, const std::vector<int64_t> &shape) {
  return std::string(name(dtype)) + " " + shapeString(shape);
}

Result<AlignedBuffer> AlignedBuffer::allocate(size_t bytes) {
  AlignedBuffer buffer;
  size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
  buffer.memory = static_cast<std::byte *>(std::aligned_alloc(64, rounded));
  if (!buffer.memory)
    return Status::error("cannot allocate " + std::to_string(rounded) + " bytes");
  std::memset(buffer.memory, 0, rounded);
  buffer.length = rounded;
  return buffer;
}

Result<AlignedBuffer> AlignedBuffer::map(size_t bytes, Sharing sharing) {
  AlignedBuffer buffer;
  size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
  void *memory =
      mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
           MAP_ANONYMOUS | (sharing == Sharing::forks ? MAP_SHARED : MAP_PRIVATE), -1, 0);
  if (memory == MAP_FAILED)
    return Status::error("cannot allocate " + std::to_string(rounded) + " bytes");
  buffer.memory = static_cast<std::byte *>(memory);
  buffer.length = rounded;
  buffer.mapped = true;
  return buffer;
}

AlignedBuffer::~AlignedBuffer() {
  if (mapped)
    munmap(memory, length);
  else
    std::free(memory);
}

static std::string ranksString(int64_t ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

static Status checkOptions(const Manifest &manifest, const SessionOptions &options) {
  if (options.transport != "threads" && options.transport != "shm")
    return Status::error("expects transport 'threads' or 'shm', got '" + options.transport + "'");
  const auto &allowed = manifest.transports;
  if (!allowed.empty() &&
      std::find(allowed.begin(), allowed.end(), options.transport) == allowed.end())
    return Status::error("the bundle does not run on transport '" + options.transport + "'");
  int64_t ranks = manifest.mesh.numRanks();
  if (options.ranks != 0 && options.ranks != ranks)
    return Status::error("bundle is for mesh " + meshString(manifest.mesh) + " (" +
                         ranksString(ranks) + "), got --ranks " + std::to_string(options.ranks));
  if (options.threadsPerRank < 1 || options.threadsPerRank > 1024)
    return Status::error("expects 1 to 1024 threads per rank, got " +
                         std::to_string(options.threadsPerRank));
  const bool forks = options.transport == "shm";
  const int64_t tasks = ranks * (options.threadsPerRank + (forks ? 2 : 1)); // two queues, the team
  if (int64_t limit = taskLimit(); tasks > limit)
    return Status::error("mesh " + meshString(manifest.mesh) + " expects " + std::to_string(tasks) +
                         (forks ? " processes and threads" : " threads") + " for its " +
                         ranksString(ranks) + ", the system allows " + std::to_string(limit));
  if (!(options.timeLimitSeconds >= 0) || options.timeLimitSeconds > 1e9)
    return Status::error("expects a time limit of 0 to 1e9 seconds, got " +
                         std::to_string(options.timeLimitSeconds));
  if (options.stall && (options.stall->rank < 0 || options.stall->rank >= ranks))
    return Status::error("expects a rank of 0 to " + std::to_string(ranks - 1) + " to stall, got " +
                         std::to_string(options.stall->rank));
  if (options.stall && options.timeLimitSeconds == 0)
    return Status::error("a stalled rank expects a time limit above 0 seconds");
  return {};
}

Result<const Entry *> selectEntry(const Manifest &manifest, const std::string &asked) {
  std::string names;
  for (const Entry &entry : manifest.entries) {
    if (entry.name == asked ||
        (asked.empty() && (manifest.entries.size() == 1 || entry.name == "main")))
      return &entry;
    names += (names.empty() ? "'" : ", '") + entry.name + "'";
  }
  return Status::error(asked.empty() ? "the bundle has several entries, name one of " + names
                                     : "the bundle has no entry '" + asked + "', it has " + names);
}

Session::Session(std::shared_ptr<State> state) : state(std::move(state)) {}

Session::~Session() {
  if (state->workers)
    stopThreads(*state->workers, state->threads);
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Bundle> bundle,
                                                 const SessionOptions &options) {
  if (Status status = checkOptions(bundle->manifest, options); !status.ok())
    return status;
  auto state = std::make_shared<State>();
  state->bundle = std::move(bundle);
  state->options = options;
  // From here on the destructor ends what has been started.
  std::unique_ptr<Session> session(new Session(state));
  try {
    if (Status status = state->load(); !status.ok())
      return status;
    // Processes start when the weights are known.
    if (!state->usesProcesses())
      if (Status status = startThreads(*state->workers, state, state->threads); !status.ok())
        return status;
  } catch (const std::exception &e) { // no memory or no thread
    return Status::error("cannot prepare the program for " + ranksString(state->numRanks()) + ": " +
                         e.what());
  }
  return session;
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

  auto programEntry = std::find_if(program->entries.begin(), program->entries.end(),
                                   [&](const auto &e) { return e->name == entry->name; });
  if (programEntry == program->entries.end())
    return Status::error("the program has no entry '" + entry->name + "'");
  const program::ProcedureT &root = *program->procedures[(*programEntry)->procedure];
  localBytes = root.local_bytes;
  symmetricBytes = root.symmetric_bytes;
  transport = usesProcesses() ? createShmTransport(numRanks()) : createThreadsTransport(numRanks());
  if (Status status = transport->allocate(symmetricBytes); !status.ok())
    return status;
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    Result<AlignedBuffer> arena = usesProcesses() ? AlignedBuffer::map(localBytes, Sharing::process)
                                                  : AlignedBuffer::allocate(localBytes);
    if (!arena.ok())
      return arena.status();
    localArenas.push_back(std::move(*arena));
  }
  if (Status status = allocateValues(); !status.ok())
    return status;
  inputSet.assign(entry->operands.size(), false);
  weightsLoaded = entry->parameters.empty();

  workers = std::make_unique<Workers>(numRanks(), options.threadsPerRank, options.timeLimitSeconds,
                                      transport.get(),
                                      usesProcesses() ? Sharing::forks : Sharing::process);
  workers->trace = options.trace;
  workers->stall = options.stall;
  if (Status status = resolveAll(); !status.ok())
    return status;
  if (usesProcesses())
    processes = std::make_unique<RankProcesses>(*workers);
  return {};
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
    input.kernels = &kernels;
    input.entry = entry->name;
    input.rank = r;
    input.threads = options.threadsPerRank;
    for (const LocalValue &value : values[i])
      input.arguments.push_back(value.data());
    input.local = localArenas[i].data();
    input.symmetric = transport->heap(r);
    input.localBytes = localBytes;
    input.symmetricBytes = symmetricBytes;
    input.transport = transport.get();
    input.products = &products;
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
    status = transport->prepare();
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

const Manifest &Session::manifest() const { return state->bundle->manifest; }
const Entry &Session::entry() const { return *state->entry; }

Status Session::loadWeights(WeightSource &source,
                            const std::function<void(size_t, size_t)> &progress) {
  if (state->usesProcesses()) {
    Status status = state->startProcesses(&source, progress);
    state->weightsLoaded = status.ok();
    return status;
  }
  size_t count = state->entry->parameters.size();
  size_t total = count * state->values.size();
  for (size_t rank = 0; rank < state->values.size(); ++rank) {
    auto place = [&](size_t i) -> void * { return state->values[rank][i].data(); };
    auto report = [&](size_t done, size_t) {
      if (progress)
        progress(rank * count + done, total);
    };
    Status status = loadParameters(source, manifest().mesh, static_cast<int64_t>(rank),
                                   state->entry->parameters, place, report);
    if (!status.ok()) {
      state->weightsLoaded = false;
      return status;
    }
  }
  state->weightsLoaded = true;
  return {};
}

Status Session::State::startProcesses(WeightSource *source,
                                      const std::function<void(size_t, size_t)> &progress) {
  const size_t total = entry->parameters.size() * values.size();
  auto prepare = [&](int64_t rank, std::atomic<uint64_t> &done) -> Status {
    size_t i = static_cast<size_t>(rank);
    std::memset(localArenas[i].data(), 0,
                localArenas[i].bytes()); // now rather than in the first run
    auto place = [&](size_t p) -> void * { return values[i][p].data(); };
    auto report = [&](size_t parameters, size_t) { done.store(parameters); };
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

static std::string listOf(const std::vector<EntryValue> &values) {
  std::string text;
  for (const EntryValue &value : values)
    text += (text.empty() ? "" : ", ") +
            ("'" + value.name + "' " + typeString(value.dtype, value.globalShape));
  return text.empty() ? "none" : text;
}

static Result<size_t> findValue(const char *what, const std::vector<EntryValue> &values,
                                const std::string &name) {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].name == name)
      return i;
  return Status::error(std::string("no ") + what + " '" + name + "', the entry has " +
                       listOf(values));
}

/// Copies a rank's part between a row-major global value and the rank's own memory; padding stays
/// where it is.
static void copyPart(const EntryValue &value, const Box &box, std::byte *global, std::byte *local,
                     bool toLocal) {
  size_t n = value.globalShape.size();
  std::vector<int64_t> sizes = box.sizes;
  for (size_t d = 0; d < n; ++d) {
    sizes[d] = std::min(sizes[d], value.globalShape[d] - box.offsets[d]);
    if (sizes[d] <= 0)
      return; // all of it is padding
  }
  Tensor part{global, value.dtype, sizes, std::vector<int64_t>(n)};
  Tensor own{local, value.dtype, sizes, std::vector<int64_t>(n)};
  int64_t globalStride = 1, localStride = 1;
  for (size_t d = n; d-- > 0;) {
    part.strides[d] = globalStride;
    own.strides[d] = localStride;
    part.data += box.offsets[d] * globalStride * byteSize(value.dtype);
    globalStride *= value.globalShape[d];
    localStride *= box.sizes[d];
  }
  Result<CopyCommand> copy = toLocal ? resolveCopy(part, own) : resolveCopy(own, part);
  runCopy(*copy);
}

Status Session::setInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                         const void *data) {
  Result<size_t> index = findValue("input", state->entry->operands, name);
  if (!index.ok())
    return index.status();
  const EntryValue &value = state->entry->operands[*index];
  if (dtype != value.dtype || shape != value.globalShape)
    return Status::error("input '" + name + "' expects " +
                         typeString(value.dtype, value.globalShape) + ", got " +
                         typeString(dtype, shape));
  // Only read: the copy goes to the ranks.
  auto *global = const_cast<std::byte *>(static_cast<const std::byte *>(data));
  for (auto &rank : state->values) {
    LocalValue &local = rank[state->operandIndex(*index)];
    copyPart(value, local.box, global, local.data(), true);
  }
  state->inputSet[*index] = true;
  return {};
}

Status Session::setInput(const std::string &name, const HostTensor &value) {
  return setInput(name, value.dtype, value.shape, value.data.data());
}

static Status bindMemory(LocalValue &local, const std::string &what, void *data, size_t bytes) {
  if (bytes != local.bytes)
    return Status::error(what + " expects " + std::to_string(local.bytes) + " bytes " +
                         shapeString(local.box.sizes) + ", got " + std::to_string(bytes));
  if (!data || reinterpret_cast<uintptr_t>(data) % 64 != 0)
    return Status::error(what + " expects memory aligned to 64 bytes");
  local.bound = static_cast<std::byte *>(data);
  return {};
}

static Status checkBinding(const Session::State &state, int64_t rank) {
  const int64_t ranks = state.numRanks();
  if (state.usesProcesses())
    return Status::error("memory of the caller expects transport 'threads', got '" +
                         state.options.transport + "', whose ranks do not see it");
  if (rank < 0 || rank >= ranks)
    return Status::error("expects a rank of 0 to " + std::to_string(ranks - 1) + ", got " +
                         std::to_string(rank));
  return {};
}

Status Session::bindInput(int64_t rank, const std::string &name, void *data, size_t bytes) {
  if (Status status = checkBinding(*state, rank); !status.ok())
    return status;
  Result<size_t> index = findValue("input", state->entry->operands, name);
  if (!index.ok())
    return index.status();
  size_t at = state->operandIndex(*index);
  if (Status s = bindMemory(state->values[static_cast<size_t>(rank)][at],
                            "input '" + name + "' of rank " + std::to_string(rank), data, bytes);
      !s.ok())
    return s;
  state->addressesChanged = true;
  state->inputSet[*index] =
      state->inputSet[*index] ||
      std::all_of(state->values.begin(), state->values.end(),
                  [&](const auto &values) { return values[at].bound != nullptr; });
  return {};
}

Status Session::bindOutput(int64_t rank, const std::string &name, void *data, size_t bytes) {
  if (Status status = checkBinding(*state, rank); !status.ok())
    return status;
  Result<size_t> index = findValue("output", state->entry->results, name);
  if (!index.ok())
    return index.status();
  state->addressesChanged = true;
  return bindMemory(state->values[static_cast<size_t>(rank)][state->resultIndex(*index)],
                    "output '" + name + "' of rank " + std::to_string(rank), data, bytes);
}

Status Session::State::checkReady() const {
  std::string text;
  if (!weightsLoaded) {
    constexpr size_t kShown = 6;
    const auto &parameters = entry->parameters;
    text = "weights are missing: " + std::to_string(parameters.size()) + " parameters (";
    for (size_t i = 0; i < std::min(kShown, parameters.size()); ++i)
      text += (i ? ", '" : "'") + parameters[i].name + "' " +
              typeString(parameters[i].dtype, parameters[i].globalShape);
    text += parameters.size() > kShown ? ", ...)" : ")";
  }
  std::vector<EntryValue> missing;
  for (size_t i = 0; i < inputSet.size(); ++i)
    if (!inputSet[i])
      missing.push_back(entry->operands[i]);
  if (!missing.empty())
    text += (text.empty() ? "" : "; ") + ("inputs are missing: " + listOf(missing));
  return text.empty() ? Status() : Status::error(text);
}

Status Session::run() {
  if (Status status = state->checkReady(); !status.ok())
    return status;
  if (state->addressesChanged)
    if (Status status = state->resolveAll(); !status.ok())
      return status;
  Workers &workers = *state->workers;
  state->hasRun = false;
  if (state->usesProcesses() && !state->processes->started())
    if (Status status = state->startProcesses(nullptr, {}); !status.ok())
      return status;
  if (Status status = state->usesProcesses() ? state->processes->run() : workers.run();
      !status.ok())
    return status;
  state->hasRun = true;
  RunRecord record{workers.runEndNs - workers.runBeginNs, {}};
  for (const auto &rank : workers.ranks)
    record.ranks.push_back(rank->times);
  state->runs.push_back(std::move(record));
  return {};
}

Result<HostTensor> Session::output(const std::string &name) const {
  Result<size_t> index = findValue("output", state->entry->results, name);
  if (!index.ok())
    return index.status();
  const EntryValue &value = state->entry->results[*index];
  HostTensor tensor = HostTensor::zeros(value.dtype, value.globalShape);
  if (Status status = readOutput(name, tensor.data.data(), tensor.data.size()); !status.ok())
    return status;
  return tensor;
}

Status Session::readOutput(const std::string &name, void *data, size_t bytes) const {
  Result<size_t> index = findValue("output", state->entry->results, name);
  if (!index.ok())
    return index.status();
  if (!state->hasRun)
    return Status::error("output '" + name + "' expects a run that has succeeded");
  const EntryValue &value = state->entry->results[*index];
  size_t expected = static_cast<size_t>(byteSize(value.dtype));
  for (int64_t size : value.globalShape)
    expected *= static_cast<size_t>(size);
  if (bytes != expected)
    return Status::error("output '" + name + "' expects memory of " + std::to_string(expected) +
                         " bytes, got " + std::to_string(bytes));
  // Ranks with equal parts hold equal values; of them the last one is kept.
  for (const auto &rank : state->values) {
    const LocalValue &local = rank[state->resultIndex(*index)];
    copyPart(value, local.box, static_cast<std::byte *>(data), local.data(), false);
  }
  return {};
}

void Session::resetStatistics() { state->runs.clear(); }
std::string Session::report() const { return state->report(); }

Status Session::writeTrace(const std::string &path) const {
  if (!state->options.trace)
    return Status::error("a trace expects a session that was created with tracing on");
  if (!state->hasRun)
    return Status::error("a trace expects a run that has succeeded");
  std::string text = state->traceJson();
  return writeFile(path, {{text.data(), text.size()}});
}

} // namespace braid::runtime
