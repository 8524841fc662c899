//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs a bundle on all ranks of its mesh. Many sessions may live side by side; a session
// is used by one thread at a time. Nothing here throws, exits or keeps global state.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_SESSION_H
#define BRAID_RUNTIME_SESSION_H

#include "braid/Base/HostTensor.h"
#include "braid/Base/Weights.h"
#include "braid/Runtime/KernelLibrary.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace braid::runtime {

/// Stops a rank on purpose, to try out how a stalled rank is handled.
struct StallInjection {
  int64_t rank = 0;
  std::string command; ///< stops before the first command of this name; empty: before the rank's
                       ///< first command
};

struct SessionOptions {
  /// "threads": ranks are threads. "shm": ranks are processes, forked by loadWeights (or by run,
  /// when there are no weights) from the calling thread, which must live as long as the session;
  /// other threads must hold no lock at that time.
  std::string transport = "threads";
  /// "cpu", or "cuda": ranks are on GPUs, each on one of its own (transport "nccl"), or all of them
  /// on the first one (transport "threads").
  std::string target = "cpu";
  /// On target cuda: gives a run to the devices as one graph, captured in the second run.
  bool cudaGraph = false;
  /// For tests: a library that stands in for the CUDA driver, cuBLASLt and NCCL. Empty: the
  /// system's.
  std::string cudaLibrary;
  int64_t ranks = 0; ///< 0: as many as the bundle's mesh has; any other number must equal that
  int64_t threadsPerRank = 1; ///< threads of a rank's compute queue
  /// A run ends when a rank waits and for so long no rank has finished a command, or used processor
  /// time in one. 0: never.
  double timeLimitSeconds = 60;
  /// How long a thread that waits looks before it sleeps. By default 50, or 1 where the threads
  /// that may run at once outnumber the cores that this process may use.
  std::optional<double> spinMicroseconds;
  bool trace = false;
  /// Each thread that computes stays on a core of its own, of those that the calling thread may
  /// use; a mesh with more of them is refused.
  bool pin = false;
  std::string entry; ///< empty: the bundle's only entry, or "main"
  std::optional<StallInjection> stall;
  /// Kernels by symbol, used in place of the bundle's libraries when not null. Copied.
  const std::map<std::string, KernelFunction> *kernels = nullptr;
};

class Session {
public:
  /// Loads the program for all ranks. The bundle stays alive as long as the session.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Bundle> bundle,
                                                 const SessionOptions &options);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const Manifest &manifest() const;
  const Entry &entry() const;

  /// Reads every rank's part of every parameter. `progress` is told (parameters done, parameters in
  /// all, all ranks).
  Status loadWeights(WeightSource &source,
                     const std::function<void(size_t, size_t)> &progress = {});

  /// Takes the unpartitioned value of an operand, copies each rank's part. An operand with a
  /// default that is given no value has that.
  Status setInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                  const void *data);
  Status setInput(const std::string &name, const HostTensor &value);

  /// On target cpu and transport threads: from now on the operand or result of this rank lives in
  /// the caller's memory: `bytes` for the rank's part (row-major), 64-byte aligned, kept by the
  /// caller until the session ends or another buffer is bound. Inputs may overlap each other; an
  /// output that overlaps an input or another output, of any rank, is an error of the next run.
  Status bindInput(int64_t rank, const std::string &name, void *data, size_t bytes);
  Status bindOutput(int64_t rank, const std::string &name, void *data, size_t bytes);

  /// One run on all ranks. Fails when weights or inputs are missing (all are listed), or with
  /// Code::rankFailed and one message when a rank fails or stalls; outputs are then undefined.
  /// After a stall from which a rank did not come back, the session cannot run again.
  Status run();

  /// The unpartitioned value of a result of the last run, gathered from the ranks.
  Result<HostTensor> output(const std::string &name) const;
  /// The same into the caller's memory, `bytes` long.
  Status readOutput(const std::string &name, void *data, size_t bytes) const;

  /// Forgets the runs so far, so that the report leaves warm-up runs out.
  void resetStatistics();
  /// JSON: ranks, threads, machine, times, bytes sent, exposed and hidden communication, memory
  /// (runtime/README.md).
  std::string report() const;
  /// Chrome trace event JSON of the last run; needs SessionOptions::trace.
  Status writeTrace(const std::string &path) const;

  struct State;

private:
  explicit Session(std::shared_ptr<State> state);
  Status setDefaults();
  std::shared_ptr<State> state;
};

/// The entry of this name; of an empty name the only one, or "main".
Result<const Entry *> selectEntry(const Manifest &manifest, const std::string &name);

/// "<dp = 2, tp = 2>"
std::string meshString(const Mesh &mesh);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_SESSION_H
