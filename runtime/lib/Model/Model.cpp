//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ModelState.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Base/Weights.h"
#include "runtime/lib/Kernels/CpuFeatures.h"

#include <algorithm>
#include <cstring>

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

//===----------------------------------------------------------------------===//
// World
//===----------------------------------------------------------------------===//

static Status checkOptions(const WorldOptions &options) {
  if (options.target != "cpu" && options.target != "cuda")
    return Status::error("expects target 'cpu' or 'cuda', got '" + options.target + "'");
  const bool onDevice = options.target == "cuda";
  if (const Communicator *communicator = options.communicator.get()) {
    if (options.transport != communicator->transportName())
      return Status::error("expects transport '", communicator->transportName(),
                           "' of its communicator, got '", options.transport, "'");
    if (onDevice)
      return Status::error("ranks of several processes expect target 'cpu', got '", options.target,
                           "'");
    if (options.machine)
      return Status::error("the machine file of a job is given to its communicator, which compares "
                           "it with those of the other processes");
  } else if (options.transport == "ucx") {
    return Status::error("transport 'ucx' expects that this process is one of several, which "
                         "--hosts or a launcher starts");
  } else if (options.transport != "threads" && options.transport != (onDevice ? "nccl" : "shm"))
    return Status::error("expects transport ",
                         onDevice ? "'threads' or 'nccl' on target 'cuda'"
                                  : "'threads', 'shm' or 'ucx'",
                         ", got '", options.transport, "'");
  if (onDevice && (options.stall || options.kernels || options.threadsPerRank != 1))
    return Status::error(std::string(options.stall     ? "a stalled rank"
                                     : options.kernels ? "a table of kernels"
                                                       : "more than one thread per rank") +
                         " expects target 'cpu'");
  if (options.machine && onDevice)
    return Status::error("a machine to predict on expects target 'cpu'");
  if (!onDevice && (options.cudaGraph || !options.cudaLibrary.empty()))
    return Status::error(std::string(options.cudaGraph ? "a run as one graph"
                                                       : "a library in place of the CUDA driver") +
                         " expects target 'cuda', got '" + options.target + "'");
  if (options.threadsPerRank < 1 || options.threadsPerRank > 1024)
    return Status::error("expects 1 to 1024 threads per rank, got " +
                         std::to_string(options.threadsPerRank));
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
  if (options.stall && options.timeLimitSeconds == 0)
    return Status::error("a stalled rank expects a time limit above 0 seconds");
  return {};
}

World::World(WorldOptions options) : given(std::move(options)) {
  if (given.kernels) { // the caller's table need not outlive the world
    kernels = *given.kernels;
    given.kernels = &kernels;
  }
}

Result<std::shared_ptr<const World>> World::create(const WorldOptions &options) {
  RETURN_IF_ERROR(checkOptions(options));
  RETURN_IF_ERROR(checkMaxISA());
  return std::shared_ptr<const World>(new World(options));
}

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

/// Whether the bundle suits the world.
static Status checkBundle(const Bundle &bundle, const WorldOptions &options) {
  const Manifest &manifest = bundle.manifest();
  const auto &allowed = manifest.transports;
  if (!allowed.empty() &&
      std::find(allowed.begin(), allowed.end(), options.transport) == allowed.end())
    return Status::error("the bundle does not run on transport '" + options.transport + "'");
  int64_t ranks = manifest.mesh.numRanks();
  if (options.ranks != 0 && options.ranks != ranks)
    return Status::error("bundle is for mesh " + meshString(manifest.mesh) + " (" +
                         ranksString(ranks) + "), got " + ranksString(options.ranks));
  const Communicator *communicator = options.communicator.get();
  if (communicator && communicator->numRanks() != ranks)
    return Status::error("bundle is for mesh " + meshString(manifest.mesh) + " (" +
                         ranksString(ranks) + "), its processes serve " +
                         ranksString(communicator->numRanks()));
  const int64_t local = communicator ? communicator->local().count : ranks;
  const bool forks = options.transport == "shm";
  // The team, whose first member is the compute queue's thread, and the other queues.
  const auto queues =
      static_cast<int64_t>(program::GetProgram(bundle.program().data())->queues()->size());
  const int64_t tasks = local * (options.threadsPerRank + queues - 1 + (forks ? 1 : 0));
  if (int64_t limit = taskLimit(); tasks > limit)
    return Status::error("mesh " + meshString(manifest.mesh) + " expects " + std::to_string(tasks) +
                         (forks ? " processes and threads" : " threads") + " for its " +
                         ranksString(local) + ", the system allows " + std::to_string(limit));
  if (options.stall && (options.stall->rank < 0 || options.stall->rank >= ranks))
    return Status::error("expects a rank of 0 to " + std::to_string(ranks - 1) + " to stall, got " +
                         std::to_string(options.stall->rank));
  return {};
}

Result<const Entry *> selectEntry(const Manifest &manifest, const std::string &asked) {
  std::string names;
  for (const Entry &entry : manifest.entries) {
    if (entry.name == asked || (asked.empty() && manifest.entries.size() == 1))
      return &entry;
    names += (names.empty() ? "'" : ", '") + entry.name + "'";
  }
  return Status::error(asked.empty() ? "the bundle has several entries, name one of " + names
                                     : "the bundle has no entry '" + asked + "', it has " + names);
}

Model::Model(std::shared_ptr<State> state) : own(std::move(state)) {}

Model::~Model() {
  if (own->workers)
    stopThreads(*own->workers, own->threads);
}

Result<std::unique_ptr<Model>> Model::load(std::shared_ptr<const World> world,
                                           std::shared_ptr<const Bundle> bundle) {
  RETURN_IF_ERROR(checkBundle(*bundle, world->options()));
  auto state = std::make_shared<State>();
  state->world = std::move(world);
  state->bundle = std::move(bundle);
  // From here on the destructor stops the threads.
  std::unique_ptr<Model> model(new Model(state));
  try {
    RETURN_IF_ERROR(state->load());
    for (const auto &entry : state->entries)
      state->executions.emplace_back(new Execution(*entry));
    RETURN_IF_ERROR(model->resetStates());
    // Processes start when the weights are known.
    if (!state->usesProcesses() && !state->usesDevice())
      RETURN_IF_ERROR(startThreads(*state->workers, state, state->threads));
  } catch (const std::exception &e) { // too little memory, or too few threads
    return Status::error("cannot prepare the program for " + ranksString(state->numRanks()) + ": " +
                         e.what());
  }
  return model;
}

const Manifest &Model::manifest() const { return own->bundle->manifest(); }

Status Model::loadWeights(WeightSource &source,
                          const std::function<void(size_t, size_t)> &progress) {
  Status status = own->usesProcesses() ? own->startProcesses(&source, progress)
                  : own->usesDevice()  ? own->uploadWeights(source, progress)
                                       : own->prepareRanks(source, progress);
  own->weightsLoaded = status.ok();
  return status;
}

Result<Execution *> Model::execution(const std::string &name) {
  ASSIGN_OR_RETURN(const Entry *entry, selectEntry(manifest(), name));
  return own->executions[static_cast<size_t>(entry - manifest().entries.data())].get();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Status Model::State::bind(const std::string &kind, const EntryValue &value, int64_t rank,
                          size_t index, void *data, size_t bytes) {
  if (usesDevice())
    return Status::error("memory of the caller expects target 'cpu', got '" + options().target +
                         "'");
  if (usesProcesses())
    return Status::error("memory of the caller expects transport 'threads', got '" +
                         options().transport + "', whose ranks do not see it");
  if (rank < 0 || rank >= numRanks())
    return Status::error("expects a rank of 0 to " + std::to_string(numRanks() - 1) + ", got " +
                         std::to_string(rank));
  if (const RankRange here = this->local(); !here.contains(rank))
    return Status::error("expects one of this process's ranks, ", here.first, " to ",
                         here.first + here.count - 1, ", got ", rank);
  ValueMemory &local = values[rank][index];
  const std::string what = kind + " '" + value.name + "' of rank " + std::to_string(rank);
  if (!local.isHere)
    return Status::error(what + " does not exist: it is on " + rankSetString(value.on));
  if (bytes != local.bytes)
    return Status::error(what + " expects " + std::to_string(local.bytes) + " bytes " +
                         shapeString(local.box.sizes) + ", got " + std::to_string(bytes));
  if (!data || reinterpret_cast<uintptr_t>(data) % 64 != 0)
    return Status::error(what + " expects memory aligned to 64 bytes");
  local.bound = static_cast<std::byte *>(data);
  for (const auto &entry : entries)
    for (size_t argument = 0; argument < entry->arguments.size(); ++argument)
      if (entry->arguments[argument] == index) {
        std::vector<size_t> &moved = entry->movedArguments[rank];
        if (!local.isCopied())
          moved.push_back(argument);
      }
  return {};
}

Status expectValue(const char *kind, const EntryValue &value, DType dtype,
                   const std::vector<int64_t> &shape) {
  if (dtype == value.dtype && shape == value.globalShape)
    return {};
  return Status::error(std::string(kind) + " '" + value.name + "' expects " +
                       typeString(value.dtype, value.globalShape) + ", got " +
                       typeString(dtype, shape));
}

static size_t globalBytes(const EntryValue &value) {
  auto bytes = static_cast<size_t>(byteSize(value.dtype));
  for (int64_t size : value.globalShape)
    bytes *= static_cast<size_t>(size);
  return bytes;
}

Status expectMemory(const char *kind, const EntryValue &value, const void *data, size_t bytes) {
  if (!data && globalBytes(value) > 0)
    return Status::error("expects memory, got NULL");
  if (bytes == globalBytes(value))
    return {};
  return Status::error(std::string(kind) + " '" + value.name + "' expects memory of " +
                       std::to_string(globalBytes(value)) + " bytes, got " + std::to_string(bytes));
}

Status expectScattered(const char *kind, const EntryValue &value, DType dtype,
                       const std::vector<int64_t> &shape, const void *data) {
  if (!data && globalBytes(value) > 0)
    return Status::error("rank 0 expects data of ", kind, " '", value.name, "', got NULL");
  return expectValue(kind, value, dtype, shape);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

std::vector<EntryValue> Model::states() const {
  std::vector<EntryValue> list;
  for (const EntryValue *value : own->states)
    list.push_back(*value);
  return list;
}

Result<size_t> Model::State::findState(const std::string &name) const {
  std::string known;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i]->name == name)
      return i;
    known += (known.empty() ? "" : ", ") +
             ("'" + states[i]->name + "' " + typeString(states[i]->dtype, states[i]->globalShape));
  }
  return Status::error("no state '" + name + "', the model has " +
                       (known.empty() ? "none" : known));
}

Status Model::setState(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                       const void *data) {
  ASSIGN_OR_RETURN(size_t index, own->findState(name));
  const EntryValue &value = *own->states[index];
  RETURN_IF_ERROR(expectValue("state", value, dtype, shape));
  return own->write(value, own->stateIndex(index), data);
}

Status Model::setState(const std::string &name, const HostTensor &value) {
  return setState(name, value.dtype, value.shape, value.data.data());
}

Status Model::scatterState(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                           const void *data) {
  ASSIGN_OR_RETURN(size_t index, own->findState(name));
  const EntryValue &value = *own->states[index];
  return own->scatter(value, own->stateIndex(index),
                      expectScattered("state", value, dtype, shape, data), data);
}

Result<HostTensor> Model::state(const std::string &name) const {
  ASSIGN_OR_RETURN(size_t index, own->findState(name));
  const EntryValue &value = *own->states[index];
  HostTensor tensor;
  if (own->hasGlobalValues())
    tensor = HostTensor::zeros(value.dtype, value.globalShape);
  RETURN_IF_ERROR(readState(name, tensor.data.data(), tensor.data.size()));
  return tensor;
}

Status Model::readState(const std::string &name, void *data, size_t bytes) const {
  ASSIGN_OR_RETURN(size_t index, own->findState(name));
  const EntryValue &value = *own->states[index];
  if (own->hasGlobalValues())
    RETURN_IF_ERROR(expectMemory("state", value, data, bytes));
  return own->read("state", value, own->stateIndex(index), data);
}

Status Model::resetStates() {
  for (int64_t r : own->local())
    for (size_t i = 0; i < own->states.size(); ++i) {
      const size_t index = own->stateIndex(i);
      ValueMemory &local = own->values[r][index];
      if (!local.isHere)
        continue;
      std::memset(local.data(), 0, local.bytes); // zero in every type, in padding too
      if (own->device)
        RETURN_IF_ERROR(own->device->upload(r, index, local.data(), local.bytes));
    }
  return {};
}

Status Model::bindState(int64_t rank, const std::string &name, void *data, size_t bytes) {
  ASSIGN_OR_RETURN(size_t index, own->findState(name));
  return own->bind("state", *own->states[index], rank, own->stateIndex(index), data, bytes);
}

} // namespace braid::runtime
