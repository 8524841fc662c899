//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a model and its executions own: memory, threads, transport, and the history of runs.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_MODELSTATE_H
#define BRAID_MODEL_MODELSTATE_H

#include "Prediction.h"
#include "RankProcesses.h"
#include "RunHistory.h"
#include "braid/Runtime/KernelLibrary.h"
#include "runtime/lib/Executor/DeviceExecutor.h"
#include "runtime/lib/Executor/Executor.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace braid::runtime {

struct ProcessInfo; // ReportJson.h

/// A rank's shard of a parameter, a state, an operand or a result.
struct ValueMemory {
  bool isHere = true; ///< whether the rank has the value; if not, there is no memory
  Box box;
  HostMemory pages; ///< of a large shard of anything but a parameter; small ones share pages
  std::byte *owned = nullptr;
  std::byte *bound = nullptr; ///< the caller's memory
  size_t bytes = 0;
  int64_t replicaOf = -1; ///< the first rank with the same shard; -1: this one
  /// The offset in the symmetric arena where collectives use the value in place.
  std::optional<uint64_t> symmetricOffset = {};

  /// Where the value is set and read.
  std::byte *data() const { return bound ? bound : owned; }
  /// Where the program has it. Memory of a caller is not symmetric.
  std::byte *used() const { return isCopied() ? owned : data(); }
  /// Whether runs copy between the caller's memory and the program's.
  bool isCopied() const { return bound && symmetricOffset; }
};

/// One entry, and what its runs need.
struct Execution::State {
  const Entry *entry = nullptr;
  uint32_t rootProcedure = 0;
  size_t number = 0; ///< of the entry
  /// By argument of the entry's procedure (parameters, states, operands, results): the number of
  /// the value in Model::State::values.
  std::vector<size_t> arguments;
  std::vector<bool> inputSet; ///< by operand
  bool hasRun = false;
  /// By rank: the arguments that were bound to other memory since the commands were made or moved.
  std::map<int64_t, std::vector<size_t>> movedArguments;
  /// By rank.
  PerRank<RankProgram> programs;
  PerRank<std::unique_ptr<Counter[]>> events;
  RunHistory runs;
  std::unique_ptr<Prediction> prediction; ///< with WorldOptions::machine
  Model::State *model = nullptr;

  size_t stateIndex(size_t state) const { return entry->parameters.size() + state; }
  size_t operandIndex(size_t operand) const { return stateIndex(entry->states.size()) + operand; }
  size_t resultIndex(size_t result) const { return operandIndex(entry->operands.size()) + result; }
  /// Whether runs write an argument.
  bool isWritten(size_t argument) const {
    return argument >= resultIndex(0) || (argument >= stateIndex(0) && argument < operandIndex(0));
  }
  std::string describeArgument(size_t argument) const; ///< "state 'keys'"

  ValueMemory &value(int64_t rank, size_t argument) const;

  /// Makes the commands of the ranks.
  Status resolve();
  ResolveInput resolveInput(int64_t rank, const CommandTimes *times = nullptr) const;
  /// Gives the commands the addresses of memory that was bound; on an error none of them.
  Status moveArguments();
  Status checkReady() const;
  /// A program reads and writes its arguments in any order, so what it writes on a rank must not
  /// overlap other memory of the caller.
  Status checkBindings() const;
  /// Copies what runs read (or write) between memory that callers have bound and symmetric memory.
  void copyBound(bool read) const;
  /// Makes the ranks' next run one of this entry.
  void enter();
  /// With the times of collectives of the run of this number; of the typical one without.
  nlohmann::ordered_json report(std::optional<uint64_t> number = {}) const;
  /// Of the kernels of this process's ranks that have them.
  std::vector<EncodingErrors *> encodingErrors() const;
  /// Whether there is a trace of a run.
  Status checkTrace() const;
};

struct Model::State {
  std::shared_ptr<const World> world;
  std::shared_ptr<const Bundle> bundle;
  std::unique_ptr<program::ProgramT> program;
  std::shared_ptr<const KernelLibraryHandle> library;
  std::vector<KernelFunction> kernels;
  std::string kernelIsa;
  std::unique_ptr<Transport> transport;
  MatmulCache matmuls;
  uint64_t localBytes = 0;     ///< enough for each entry
  uint64_t symmetricBytes = 0; ///< of the largest frame and, behind it, of values
  PerRank<HostMemory> localArenas;
  std::byte *localArena(int64_t rank) const;
  /// Of all parameters of a rank: together they are in huge pages, which most of them would not
  /// fill alone.
  PerRank<HostMemory> weights;
  /// Of other small shards: those that only their rank uses, by rank, and those that the model's
  /// process uses too.
  PerRank<std::unique_ptr<MemoryPool>> rankPools;
  MemoryPool exchangePool{Sharing::forks};
  /// The different parameters and states of all entries.
  std::vector<const Parameter *> parameters;
  std::vector<const EntryValue *> states;
  /// values[rank][i]: first the parameters, then the states, then each entry's operands and
  /// results.
  PerRank<std::vector<ValueMemory>> values;
  size_t stateIndex(size_t state) const { return parameters.size() + state; }
  bool weightsLoaded = false;
  std::vector<std::unique_ptr<Execution::State>> entries;
  std::vector<std::unique_ptr<Execution>> executions;
  const Execution::State *lastRun = nullptr;
  std::unique_ptr<Workers> workers;
  std::vector<std::thread> threads;
  std::unique_ptr<RankProcesses> processes; ///< of the transport shm, in place of the threads
  std::unique_ptr<DeviceExecutor> device;   ///< of a target other than cpu, in place of the threads

  const WorldOptions &options() const { return world->options(); }
  bool usesProcesses() const { return options().transport == "shm"; }
  bool usesDevice() const { return options().target != "cpu"; }
  Transport &ranksTransport() const { return device ? device->transport() : *transport; }
  int64_t numRanks() const { return bundle->manifest().mesh.numRanks(); }
  /// The ranks that this process serves.
  RankRange local() const {
    return communicator() ? communicator()->local() : RankRange{0, numRanks()};
  }
  Communicator *communicator() const { return options().communicator.get(); }
  /// How the others name this process.
  ProcessInfo processInfo(const ClockMap &clock) const;
  /// "parameter 'w'", "state 'keys'", "input 'x'", "output 'y'"
  std::string describeValue(size_t value) const;

  Status load();
  /// Finds the values of all entries.
  Status addEntries();
  Status loadKernels();
  Status allocateArenas();
  Status uploadWeights(WeightSource &source, const std::function<void(size_t, size_t)> &progress);
  /// The shard of each value on each rank, and the place of those in the symmetric arena.
  Status placeValues();
  Status allocateWeights(int64_t rank);
  Status allocateValues();
  /// Touches the rank's arenas from the calling thread, pinned to the rank's cores, so that their
  /// pages are near these. Then reads the rank's shards of the parameters, by several threads where
  /// cores are left; `parameterDone` is called after each one, by any of these threads. Without a
  /// source there are no parameters.
  Status prepareRank(int64_t rank, WeightSource *source,
                     const std::function<void()> &parameterDone);
  /// The same for all ranks, each in a thread of its own.
  Status prepareRanks(WeightSource &source, const std::function<void(size_t, size_t)> &progress);
  Status resolveAll();
  /// Starts the processes of the ranks; each loads its own weights.
  Status startProcesses(WeightSource *source, const std::function<void(size_t, size_t)> &progress);
  /// The number of a state by its name.
  Result<size_t> findState(const std::string &name) const;

  /// Copies a global value to each rank's shard of value `index`, or gathers it from them.
  Status write(const EntryValue &value, size_t index, const void *global);
  Status read(const char *kind, const EntryValue &value, size_t index, void *global) const;
  /// The same from the ranks of all processes, in that of rank 0.
  Status gather(const char *kind, const EntryValue &value, size_t index, void *global) const;
  /// Copies a global value of rank 0's process, or the error that it has instead, to all ranks.
  Status scatter(const EntryValue &value, size_t index, const Status &given, const void *global);
  /// Whether this process is the one that global values are put together in.
  bool hasGlobalValues() const { return !communicator() || communicator()->hasRankZero(); }
  /// From now on the rank's shard of value `index` lies in the caller's memory.
  Status bind(const std::string &kind, const EntryValue &value, int64_t rank, size_t index,
              void *data, size_t bytes);
};

/// Whether a given value is of the type of an entry's.
Status expectValue(const char *kind, const EntryValue &value, DType dtype,
                   const std::vector<int64_t> &shape);
/// The same of what the process of rank 0 gives to all.
Status expectScattered(const char *kind, const EntryValue &value, DType dtype,
                       const std::vector<int64_t> &shape, const void *data);
/// Whether memory has the bytes of a global value.
Status expectMemory(const char *kind, const EntryValue &value, const void *data, size_t bytes);
/// "f32 [8, 128]"
std::string typeString(DType dtype, const std::vector<int64_t> &shape);

} // namespace braid::runtime
#endif // BRAID_MODEL_MODELSTATE_H
