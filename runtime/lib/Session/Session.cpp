//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SessionState.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Base/Weights.h"
#include "braid/Runtime/Files.h"
#include "runtime/lib/Kernels/CpuFeatures.h"

#include <algorithm>
#include <cstring>
#include <tuple>

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

static std::string ranksString(int64_t ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

static Status checkOptions(const Bundle &bundle, const SessionOptions &options) {
  const Manifest &manifest = bundle.manifest();
  if (options.target != "cpu" && options.target != "cuda")
    return Status::error("expects target 'cpu' or 'cuda', got '" + options.target + "'");
  const bool onDevice = options.target == "cuda";
  if (options.transport != "threads" && options.transport != (onDevice ? "nccl" : "shm"))
    return Status::error(std::string("expects transport 'threads' or ") +
                         (onDevice ? "'nccl' on target 'cuda'" : "'shm'") + ", got '" +
                         options.transport + "'");
  if (onDevice && (options.stall || options.kernels || options.threadsPerRank != 1))
    return Status::error(std::string(options.stall     ? "a stalled rank"
                                     : options.kernels ? "a table of kernels"
                                                       : "more than one thread per rank") +
                         " expects target 'cpu'");
  if (!onDevice && (options.cudaGraph || !options.cudaLibrary.empty()))
    return Status::error(std::string(options.cudaGraph ? "a run as one graph"
                                                       : "a library in place of the CUDA driver") +
                         " expects target 'cuda', got '" + options.target + "'");
  const auto &allowed = manifest.transports;
  if (!allowed.empty() &&
      std::find(allowed.begin(), allowed.end(), options.transport) == allowed.end())
    return Status::error("the bundle does not run on transport '" + options.transport + "'");
  int64_t ranks = manifest.mesh.numRanks();
  if (options.ranks != 0 && options.ranks != ranks)
    return Status::error("bundle is for mesh " + meshString(manifest.mesh) + " (" +
                         ranksString(ranks) + "), got " + ranksString(options.ranks));
  if (options.threadsPerRank < 1 || options.threadsPerRank > 1024)
    return Status::error("expects 1 to 1024 threads per rank, got " +
                         std::to_string(options.threadsPerRank));
  const bool forks = options.transport == "shm";
  // The team, whose first member is the compute queue's thread, and the other queues.
  const auto queues =
      static_cast<int64_t>(program::GetProgram(bundle.program().data())->queues()->size());
  const int64_t tasks = ranks * (options.threadsPerRank + queues - 1 + (forks ? 1 : 0));
  if (int64_t limit = taskLimit(); tasks > limit)
    return Status::error("mesh " + meshString(manifest.mesh) + " expects " + std::to_string(tasks) +
                         (forks ? " processes and threads" : " threads") + " for its " +
                         ranksString(ranks) + ", the system allows " + std::to_string(limit));
  if (!(options.timeLimitSeconds >= 0) || options.timeLimitSeconds > 1e9)
    return Status::error("expects a time limit of 0 to 1e9 seconds, got " +
                         std::to_string(options.timeLimitSeconds));
  if (options.messagesInFlight < kMessagesInFlight || options.messagesInFlight > 1 << 20)
    return Status::error("expects " + std::to_string(kMessagesInFlight) + " to " +
                         std::to_string(1 << 20) + " messages in flight, got " +
                         std::to_string(options.messagesInFlight));
  if (options.messagesInFlight != kMessagesInFlight && onDevice)
    return Status::error("a number of messages in flight expects target 'cpu'");
  if (options.pin && onDevice)
    return Status::error("threads pinned to cores expect target 'cpu'");
  if (options.spinMicroseconds &&
      !(*options.spinMicroseconds >= 0 && *options.spinMicroseconds <= 1e6))
    return Status::error("expects to spin for 0 to 1e6 microseconds, got " +
                         std::to_string(*options.spinMicroseconds));
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
  RETURN_IF_ERROR(checkOptions(*bundle, options));
  RETURN_IF_ERROR(checkMaxISA());
  auto state = std::make_shared<State>();
  state->bundle = std::move(bundle);
  state->options = options;
  // From here on the destructor stops the threads.
  std::unique_ptr<Session> session(new Session(state));
  try {
    RETURN_IF_ERROR(state->load());
    // Processes start when the weights are known.
    if (!state->usesProcesses() && !state->usesDevice())
      RETURN_IF_ERROR(startThreads(*state->workers, state, state->threads));
  } catch (const std::exception &e) { // too little memory, or too few threads
    return Status::error("cannot prepare the program for " + ranksString(state->numRanks()) + ": " +
                         e.what());
  }
  return session;
}

const Manifest &Session::manifest() const { return state->bundle->manifest(); }
const Entry &Session::entry() const { return *state->entry; }

Status Session::loadWeights(WeightSource &source,
                            const std::function<void(size_t, size_t)> &progress) {
  Status status = state->usesProcesses() ? state->startProcesses(&source, progress)
                  : state->usesDevice()  ? state->uploadWeights(source, progress)
                                         : state->prepareRanks(source, progress);
  state->weightsLoaded = status.ok();
  return status;
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

/// Copies a rank's shard between a row-major global value and the rank's own memory; padding is
/// left as it is.
static void copyShard(const EntryValue &value, const Box &box, std::byte *global, std::byte *local,
                      bool toLocal) {
  const auto globalStrides = rowMajorStrides(value.globalShape);
  const auto localStrides = rowMajorStrides(box.sizes);
  const int64_t size = byteSize(value.dtype);
  std::vector<int64_t> sizes = box.sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    sizes[d] = std::min(sizes[d], value.globalShape[d] - box.offsets[d]);
    if (sizes[d] <= 0)
      return; // all of it is padding
    global += box.offsets[d] * globalStrides[d] * size;
  }
  if (toLocal)
    stridedCopy(local, localStrides, global, globalStrides, sizes, size);
  else
    stridedCopy(global, globalStrides, local, localStrides, sizes, size);
}

Status Session::setInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                         const void *data) {
  ASSIGN_OR_RETURN(size_t index, findValue("input", state->entry->operands, name));
  const EntryValue &value = state->entry->operands[index];
  if (dtype != value.dtype || shape != value.globalShape)
    return Status::error("input '" + name + "' expects " +
                         typeString(value.dtype, value.globalShape) + ", got " +
                         typeString(dtype, shape));
  auto *global = const_cast<std::byte *>(static_cast<const std::byte *>(data)); // only read
  const size_t at = state->operandIndex(index);
  for (size_t r = 0; r < state->values.size(); ++r) {
    ValueMemory &local = state->values[r][at];
    copyShard(value, local.box, global, local.data(), true);
    if (state->device)
      RETURN_IF_ERROR(
          state->device->upload(static_cast<int64_t>(r), at, local.data(), local.bytes));
  }
  state->inputSet[index] = true;
  return {};
}

Status Session::setInput(const std::string &name, const HostTensor &value) {
  return setInput(name, value.dtype, value.shape, value.data.data());
}

/// Binds an input or output of a rank and returns its index.
static Result<size_t> bind(Session::State &state, int64_t rank, bool input, const std::string &name,
                           void *data, size_t bytes) {
  const int64_t ranks = state.numRanks();
  if (state.usesDevice())
    return Status::error("memory of the caller expects target 'cpu', got '" + state.options.target +
                         "'");
  if (state.usesProcesses())
    return Status::error("memory of the caller expects transport 'threads', got '" +
                         state.options.transport + "', whose ranks do not see it");
  if (rank < 0 || rank >= ranks)
    return Status::error("expects a rank of 0 to " + std::to_string(ranks - 1) + ", got " +
                         std::to_string(rank));
  const char *kind = input ? "input" : "output";
  ASSIGN_OR_RETURN(size_t index,
                   findValue(kind, input ? state.entry->operands : state.entry->results, name));
  const size_t at = input ? state.operandIndex(index) : state.resultIndex(index);
  ValueMemory &local = state.values[static_cast<size_t>(rank)][at];
  const std::string what = std::string(kind) + " '" + name + "' of rank " + std::to_string(rank);
  if (bytes != local.bytes)
    return Status::error(what + " expects " + std::to_string(local.bytes) + " bytes " +
                         shapeString(local.box.sizes) + ", got " + std::to_string(bytes));
  if (!data || reinterpret_cast<uintptr_t>(data) % 64 != 0)
    return Status::error(what + " expects memory aligned to 64 bytes");
  local.bound = static_cast<std::byte *>(data);
  std::vector<size_t> &moved = state.movedArguments[rank];
  if (!local.isCopied())
    moved.push_back(at);
  return index;
}

Status Session::bindInput(int64_t rank, const std::string &name, void *data, size_t bytes) {
  ASSIGN_OR_RETURN(size_t index, bind(*state, rank, true, name, data, bytes));
  if (std::all_of(state->values.begin(), state->values.end(), [&](const auto &values) {
        return values[state->operandIndex(index)].bound != nullptr;
      }))
    state->inputSet[index] = true;
  return {};
}

Status Session::bindOutput(int64_t rank, const std::string &name, void *data, size_t bytes) {
  return bind(*state, rank, false, name, data, bytes).status();
}

Status Session::State::checkBindings() const {
  struct Bound {
    const std::byte *begin, *end;
    bool written;
    size_t rank, value;
  };
  std::vector<Bound> bound;
  for (size_t r = 0; r < values.size(); ++r)
    for (size_t v = 0; v < values[r].size(); ++v)
      if (const ValueMemory &value = values[r][v]; value.bound && value.bytes != 0)
        bound.push_back({value.bound, value.bound + value.bytes, v >= resultIndex(0), r, v});
  std::sort(bound.begin(), bound.end(), [](const Bound &a, const Bound &b) {
    return std::tie(a.begin, a.rank, a.value) < std::tie(b.begin, b.rank, b.value);
  });
  auto describe = [&](const Bound &b) {
    return describeValue(b.value) + " of rank " + std::to_string(b.rank);
  };
  // Of the memory that begins before: what reaches furthest, of all and of the outputs.
  const Bound *furthest = nullptr, *furthestWritten = nullptr;
  for (const Bound &b : bound) {
    const Bound *other = b.written ? furthest : furthestWritten;
    if (other && other->end > b.begin)
      return Status::error(describe(b.written ? b : *other) +
                           " expects memory that does not overlap that of " +
                           describe(b.written ? *other : b));
    for (const Bound **far : {&furthest, b.written ? &furthestWritten : &furthest})
      if (!*far || (*far)->end < b.end)
        *far = &b;
  }
  return {};
}

void Session::State::copyBound(bool inputs) {
  for (std::vector<ValueMemory> &rank : values)
    for (size_t v = 0; v < rank.size(); ++v)
      if (ValueMemory &value = rank[v]; value.isCopied() && (v < resultIndex(0)) == inputs)
        std::memcpy(inputs ? value.owned : value.bound, inputs ? value.bound : value.owned,
                    value.bytes);
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

/// Gives inputs without a value their defaults. Memory of the caller stays as it is.
Status Session::setDefaults() {
  for (size_t i = 0; i < state->inputSet.size(); ++i) {
    const EntryValue &operand = state->entry->operands[i];
    const size_t at = state->operandIndex(i);
    if (state->inputSet[i] || !operand.defaultValue ||
        std::any_of(state->values.begin(), state->values.end(),
                    [&](const auto &values) { return values[at].bound != nullptr; }))
      continue;
    RETURN_IF_ERROR(setInput(operand.name, defaultInput(operand)));
  }
  return {};
}

Status Session::run() {
  RETURN_IF_ERROR(setDefaults());
  RETURN_IF_ERROR(state->checkReady());
  if (!state->movedArguments.empty()) {
    RETURN_IF_ERROR(state->checkBindings());
    RETURN_IF_ERROR(state->moveArguments());
  }
  Workers &workers = *state->workers;
  state->hasRun = false;
  if (state->usesProcesses() && !state->processes->started())
    RETURN_IF_ERROR(state->startProcesses(nullptr, {}));
  state->copyBound(/*inputs=*/true);
  RETURN_IF_ERROR(state->usesProcesses() ? state->processes->run()
                  : state->device        ? state->device->run(workers)
                                         : workers.run());
  state->copyBound(/*inputs=*/false);
  state->hasRun = true;
  state->runs.add(workers.runEndNs - workers.runBeginNs, workers.ranks);
  return {};
}

Result<HostTensor> Session::output(const std::string &name) const {
  ASSIGN_OR_RETURN(size_t index, findValue("output", state->entry->results, name));
  const EntryValue &value = state->entry->results[index];
  HostTensor tensor = HostTensor::zeros(value.dtype, value.globalShape);
  RETURN_IF_ERROR(readOutput(name, tensor.data.data(), tensor.data.size()));
  return tensor;
}

/// Ranks with the same shard of a result must agree in every bit.
static Status checkReplica(const EntryValue &value, const ValueMemory &first,
                           const ValueMemory &other, int64_t rank) {
  if (other.bytes == 0 || std::memcmp(first.data(), other.data(), other.bytes) == 0)
    return {};
  const auto size = static_cast<size_t>(byteSize(value.dtype));
  size_t element = 0;
  while (std::memcmp(first.data() + element * size, other.data() + element * size, size) == 0)
    ++element;
  std::string where;
  auto rest = static_cast<int64_t>(element);
  for (int64_t stride : rowMajorStrides(other.box.sizes)) {
    where += (where.empty() ? "" : ", ") + std::to_string(rest / stride);
    rest %= stride;
  }
  return Status::error("output '" + value.name + "' expects equal values on ranks " +
                           std::to_string(other.replicaOf) + " and " + std::to_string(rank) +
                           ", which differ at [" + where + "]",
                       Code::rankFailed);
}

Status Session::readOutput(const std::string &name, void *data, size_t bytes) const {
  ASSIGN_OR_RETURN(size_t index, findValue("output", state->entry->results, name));
  if (!state->hasRun)
    return Status::error("output '" + name + "' expects a run that has succeeded");
  const EntryValue &value = state->entry->results[index];
  size_t expected = static_cast<size_t>(byteSize(value.dtype));
  for (int64_t size : value.globalShape)
    expected *= static_cast<size_t>(size);
  if (bytes != expected)
    return Status::error("output '" + name + "' expects memory of " + std::to_string(expected) +
                         " bytes, got " + std::to_string(bytes));
  const size_t at = state->resultIndex(index);
  for (size_t r = 0; r < state->values.size(); ++r) {
    const ValueMemory &local = state->values[r][at];
    if (local.replicaOf >= 0) {
      if (!state->device)
        RETURN_IF_ERROR(checkReplica(value, state->values[static_cast<size_t>(local.replicaOf)][at],
                                     local, static_cast<int64_t>(r)));
      continue;
    }
    if (state->device)
      RETURN_IF_ERROR(
          state->device->download(static_cast<int64_t>(r), at, local.data(), local.bytes));
    copyShard(value, local.box, static_cast<std::byte *>(data), local.data(), false);
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
