//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a session owns: memory, threads, transport, and the record of its runs.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_SESSIONSTATE_H
#define BRAID_EXEC_SESSIONSTATE_H

#include "DeviceExecutor.h"
#include "Executor.h"
#include "RankProcesses.h"
#include "braid/Runtime/KernelLibrary.h"

#include <cstdlib>

namespace braid::runtime {

/// Zeroed memory, aligned for the widest vectors.
class AlignedBuffer {
public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer &&other) noexcept { *this = std::move(other); }
  AlignedBuffer &operator=(AlignedBuffer &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(length, other.length);
    std::swap(mapped, other.mapped);
    return *this;
  }
  ~AlignedBuffer();
  static Result<AlignedBuffer> allocate(size_t bytes);
  /// Pages that take up memory where and when they are first written: `process`, each fork has its
  /// own; `forks`, all have the same.
  static Result<AlignedBuffer> map(size_t bytes, Sharing sharing);
  std::byte *data() const { return memory; }
  size_t bytes() const { return length; }

private:
  std::byte *memory = nullptr;
  size_t length = 0;
  bool mapped = false;
};

/// A rank's part of a parameter, an operand or a result.
struct LocalValue {
  Box box;
  AlignedBuffer owned;
  std::byte *bound = nullptr; ///< the caller's memory, used in place of `owned`
  size_t bytes = 0;
  std::byte *data() const { return bound ? bound : owned.data(); }
};

struct RunRecord {
  int64_t ns;
  std::vector<RankTimes> ranks;
};

struct Session::State {
  std::shared_ptr<const Bundle> bundle;
  SessionOptions options;
  const Entry *entry = nullptr;
  std::unique_ptr<program::ProgramT> program;
  std::unique_ptr<KernelLibraryHandle> library;
  std::vector<KernelFunction> kernels;
  std::string kernelIsa;
  std::unique_ptr<Transport> transport;
  ProductCache products;
  uint64_t localBytes = 0, symmetricBytes = 0;
  std::vector<AlignedBuffer> localArenas;
  /// values[rank][i]: parameters, operands, results, in the order of the entry's procedure.
  std::vector<std::vector<LocalValue>> values;
  bool addressesChanged = true, weightsLoaded = false, hasRun = false;
  std::vector<bool> inputSet; ///< by operand
  std::unique_ptr<Workers> workers;
  std::vector<std::thread> threads;
  std::unique_ptr<RankProcesses> processes; ///< of the transport shm, in place of the threads
  std::unique_ptr<DeviceExecutor> device;   ///< of a target other than cpu, in place of the threads
  std::vector<RunRecord> runs;

  bool usesProcesses() const { return options.transport == "shm"; }
  bool usesDevice() const { return options.target != "cpu"; }
  Transport &meeting() const { return device ? device->transport() : *transport; }
  int64_t numRanks() const { return bundle->manifest.mesh.numRanks(); }
  size_t operandIndex(size_t operand) const { return entry->parameters.size() + operand; }
  size_t resultIndex(size_t result) const {
    return entry->parameters.size() + entry->operands.size() + result;
  }

  Status load();
  Status loadKernels();
  Status allocateArenas();
  Status uploadWeights(WeightSource &source, const std::function<void(size_t, size_t)> &progress);
  Status allocateValues();
  Status resolveAll();
  Status checkReady() const;
  /// Starts the processes of the ranks; each loads its own weights.
  Status startProcesses(WeightSource *source, const std::function<void(size_t, size_t)> &progress);
  std::string report() const;
  std::string traceJson() const;
};

/// "f32 [8, 128]"
std::string typeString(DType dtype, const std::vector<int64_t> &shape);

} // namespace braid::runtime
#endif // BRAID_EXEC_SESSIONSTATE_H
