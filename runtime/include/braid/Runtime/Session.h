//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs a bundle on all ranks of its mesh. Several sessions may exist at once; one thread at a time
// uses a session. Nothing here throws, exits or keeps global state.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_SESSION_H
#define BRAID_RUNTIME_SESSION_H

#include "braid/Base/HostTensor.h"
#include "braid/Base/MessagesInFlight.h"
#include "braid/Base/Weights.h"
#include "braid/Runtime/KernelLibrary.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace braid::runtime {

/// Stops a rank on purpose, to test how a stalled rank is handled.
struct StallInjection {
  int64_t rank = 0;
  std::string command; ///< the rank stops before its first command of this name; empty: before its
                       ///< first command
};

struct SessionOptions {
  /// "threads": ranks are threads. "shm": ranks are processes, forked by loadWeights (or by run,
  /// when there are no weights) from the calling thread, which must live as long as the session;
  /// other threads must hold no lock at that time.
  std::string transport = "threads";
  /// "cpu", or "cuda": each rank has a GPU of its own (transport "nccl"), or all ranks share the
  /// first one (transport "threads").
  std::string target = "cpu";
  /// On target cuda: launches a run as one graph, captured in the second run.
  bool cudaGraph = false;
  /// For tests: a library that replaces the CUDA driver, cuBLASLt and NCCL. Empty: the system's.
  std::string cudaLibrary;
  int64_t ranks = 0;          ///< must equal the number of the bundle's mesh; 0: the mesh's number
  int64_t threadsPerRank = 1; ///< threads of a rank's compute queue
  /// A run ends when a rank waits and no rank has finished a command, or used processor time in
  /// one, for so long. 0: never.
  double timeLimitSeconds = 60;
  /// How many messages from one rank to another on one tag have memory before one is received, at
  /// least kMessagesInFlight. With more, a sender may be further ahead. Target cpu only.
  int64_t messagesInFlight = kMessagesInFlight;
  /// How long a waiting thread spins before it sleeps. By default 50, or 1 where the threads that
  /// may run at once outnumber the cores that this process may use.
  std::optional<double> spinMicroseconds;
  bool trace = false;
  /// Pins each thread that computes to a core of its own, out of those that the calling thread may
  /// use; a mesh with more such threads is refused.
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

  /// Reads every rank's shard of every parameter. `progress` gets the number of parameters done and
  /// the total, both over all ranks.
  Status loadWeights(WeightSource &source,
                     const std::function<void(size_t, size_t)> &progress = {});

  /// Takes the global value of an operand and copies each rank's shard. An operand without a value
  /// has its default, if it has one.
  Status setInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                  const void *data);
  Status setInput(const std::string &name, const HostTensor &value);

  /// On target cpu and transport threads: from now on the rank's shard of the operand or result
  /// lies in the caller's memory: `bytes` bytes, row-major, 64-byte aligned, which the caller keeps
  /// until the session ends or another buffer is bound. Where a collective uses the value in place,
  /// every run copies it, and the report says so: the caller's memory is not symmetric. Inputs may overlap each other; an output
  /// that overlaps an input or another output, of any rank, is an error of the next run.
  Status bindInput(int64_t rank, const std::string &name, void *data, size_t bytes);
  Status bindOutput(int64_t rank, const std::string &name, void *data, size_t bytes);

  /// One run on all ranks. Fails when weights or inputs are missing (all are listed), or with
  /// Code::rankFailed and one message when a rank fails or stalls; outputs are then undefined.
  /// After a stall from which a rank did not return, the session cannot run again.
  Status run();

  /// The global value of a result of the last run, gathered from the ranks. On target cpu, ranks
  /// with the same shard of it are compared bit by bit; Code::rankFailed where two differ.
  Result<HostTensor> output(const std::string &name) const;
  /// Writes it to the caller's memory of `bytes`.
  Status readOutput(const std::string &name, void *data, size_t bytes) const;

  /// Forgets the runs so far, so that the report excludes warm-up runs.
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

/// The entry of this name; for an empty name the only entry, or "main".
Result<const Entry *> selectEntry(const Manifest &manifest, const std::string &name);

/// "<dp = 2, tp = 2>"
std::string meshString(const Mesh &mesh);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_SESSION_H
