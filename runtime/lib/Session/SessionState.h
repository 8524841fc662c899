//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a session owns: memory, threads, transport, and the history of its runs.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SESSION_SESSIONSTATE_H
#define BRAID_SESSION_SESSIONSTATE_H

#include "RankProcesses.h"
#include "RunHistory.h"
#include "braid/Runtime/KernelLibrary.h"
#include "runtime/lib/Executor/DeviceExecutor.h"
#include "runtime/lib/Executor/Executor.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <map>

namespace braid::runtime {

/// A rank's shard of a parameter, an operand or a result.
struct ValueMemory {
  Box box;
  HostMemory pages; ///< of a large shard; small ones share pages
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

struct Session::State {
  std::shared_ptr<const Bundle> bundle;
  SessionOptions options;
  const Entry *entry = nullptr;
  std::unique_ptr<program::ProgramT> program;
  uint32_t rootProcedure = 0; ///< the entry's
  std::shared_ptr<const KernelLibraryHandle> library;
  std::vector<KernelFunction> kernels;
  std::string kernelIsa;
  std::unique_ptr<Transport> transport;
  MatmulCache matmuls;
  uint64_t localBytes = 0;
  uint64_t symmetricBytes = 0; ///< of the frame and, behind it, of values
  std::vector<HostMemory> localArenas;
  std::byte *localArena(int64_t rank) const;
  /// Of small shards: those that only their rank uses, by rank, and those that the session uses
  /// too.
  std::vector<MemoryPool> rankPools;
  MemoryPool exchangePool{Sharing::forks};
  /// values[rank][i]: parameters, operands, results, in the order of the entry's procedure.
  std::vector<std::vector<ValueMemory>> values;
  bool weightsLoaded = false, hasRun = false;
  /// By rank: the arguments that were bound to other memory since the commands were made or moved.
  std::map<int64_t, std::vector<size_t>> movedArguments;
  std::vector<bool> inputSet; ///< by operand
  std::unique_ptr<Workers> workers;
  std::vector<std::thread> threads;
  std::unique_ptr<RankProcesses> processes; ///< of the transport shm, in place of the threads
  std::unique_ptr<DeviceExecutor> device;   ///< of a target other than cpu, in place of the threads
  RunHistory runs;

  bool usesProcesses() const { return options.transport == "shm"; }
  bool usesDevice() const { return options.target != "cpu"; }
  Transport &sessionTransport() const { return device ? device->transport() : *transport; }
  int64_t numRanks() const { return bundle->manifest().mesh.numRanks(); }
  size_t operandIndex(size_t operand) const { return entry->parameters.size() + operand; }
  size_t resultIndex(size_t result) const {
    return entry->parameters.size() + entry->operands.size() + result;
  }
  /// "parameter 'w'", "input 'x'", "output 'y'"
  std::string describeValue(size_t value) const;

  Status load();
  Status loadKernels();
  Status allocateArenas();
  Status uploadWeights(WeightSource &source, const std::function<void(size_t, size_t)> &progress);
  /// The shard of each value on each rank, and the place of those in the symmetric arena.
  Status placeValues();
  Status allocateValues();
  /// Touches the rank's arenas from the calling thread, pinned to the rank's cores, so that their
  /// pages are near these. Then reads the rank's shards of the parameters, by several threads where
  /// cores are left; `parameterDone` is called after each one, by any of these threads. Without a
  /// source there are no parameters.
  Status prepareRank(int64_t rank, WeightSource *source,
                     const std::function<void()> &parameterDone);
  /// The same for all ranks, each in a thread of its own.
  Status prepareRanks(WeightSource &source, const std::function<void(size_t, size_t)> &progress);
  ResolveInput resolveInput(int64_t rank);
  Status resolveAll();
  /// Gives the commands the addresses of memory that was bound; on an error none of them.
  Status moveArguments();
  Status checkReady() const;
  /// A program reads and writes its arguments in any order, so a result of a rank must not overlap
  /// other memory of the caller.
  Status checkBindings() const;
  /// Copies inputs (or outputs) between memory that callers have bound and symmetric memory.
  void copyBound(bool inputs);
  /// Starts the processes of the ranks; each loads its own weights.
  Status startProcesses(WeightSource *source, const std::function<void(size_t, size_t)> &progress);
  std::string report() const;
  std::string traceJson() const;
};

/// "f32 [8, 128]"
std::string typeString(DType dtype, const std::vector<int64_t> &shape);

} // namespace braid::runtime
#endif // BRAID_SESSION_SESSIONSTATE_H
