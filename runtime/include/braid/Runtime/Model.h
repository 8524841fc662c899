//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs bundles on the ranks of their meshes: a World says where ranks run, a Model is a bundle that
// is loaded there, with its weights and its state, and an Execution runs one entry of it. Several
// worlds and models may exist at once; one thread at a time uses a model and its executions.
// Nothing here throws, exits or keeps global state.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_MODEL_H
#define BRAID_RUNTIME_MODEL_H

#include "braid/Base/HostTensor.h"
#include "braid/Base/MessagesInFlight.h"
#include "braid/Base/Weights.h"
#include "braid/Runtime/Communicator.h"
#include "braid/Runtime/KernelLibrary.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace braid::cost {
struct Machine; // braid/Cost/Machine.h
} // namespace braid::cost

namespace braid::runtime {

/// Stops a rank on purpose, to test how a stalled rank is handled.
struct StallInjection {
  int64_t rank = 0;
  std::string command; ///< the rank stops before its first command of this name; empty: before its
                       ///< first command
};

struct WorldOptions {
  /// "threads": ranks are threads. "shm": ranks are processes, forked by loadWeights (or by the
  /// first run, when there are no weights) from the calling thread, which must live as long as the
  /// model;
  /// other threads must hold no lock at that time. With a communicator: its transport's name.
  std::string transport = "threads";
  /// The processes that serve the ranks together. Null: this process serves all ranks.
  std::shared_ptr<Communicator> communicator;
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
  /// How long a waiting thread spins before it sleeps. By default 1000 for a rank whose threads
  /// have a core each and nothing to compute meanwhile, else 50, or 1 where the threads that may
  /// run at once need more than a quota of processor time allows. Where they outnumber the cores, a
  /// thread yields its core between polls.
  std::optional<double> spinMicroseconds;
  bool trace = false;
  /// Pins each thread that computes to a core out of those that the calling thread may use: to its
  /// own, or in turn where there are more such threads than cores.
  bool pin = false;
  /// With transports "threads" (also of ranks on one GPU) and "shm" a payload of an encoded
  /// collective is decoded where it lies in the memory of its sender, if the program allows it.
  /// True: every rank copies what it gets first. Results are the same.
  bool copyPayloads = false;
  std::optional<StallInjection> stall;
  /// On target cpu: predicts the times of runs on this machine; reports have them beside the
  /// measured ones. Needs `trace`. With a communicator, which has its own, null.
  std::shared_ptr<const cost::Machine> machine;
  /// Kernels by symbol, used in place of the bundle's libraries when not null. Copied.
  const std::map<std::string, KernelFunction> *kernels = nullptr;
};

/// Where ranks run: how many there are, their threads, how they reach each other. With a
/// communicator, this process has memory, threads and commands of its own ranks only.
class World {
public:
  /// Checks what does not depend on a bundle.
  static Result<std::shared_ptr<const World>> create(const WorldOptions &options);
  const WorldOptions &options() const { return given; }

private:
  explicit World(WorldOptions options);
  WorldOptions given;
  std::map<std::string, KernelFunction> kernels; ///< a copy of the caller's table
};

class Execution;

/// A bundle on the ranks of a world. Its entries share weights and states by name.
class Model {
public:
  /// Prepares all entries for the ranks.
  static Result<std::unique_ptr<Model>> load(std::shared_ptr<const World> world,
                                             std::shared_ptr<const Bundle> bundle);
  ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  const Manifest &manifest() const;

  /// Reads every rank's shard of every parameter. `progress` gets the number of parameters done and
  /// the total, both over all ranks.
  Status loadWeights(WeightSource &source,
                     const std::function<void(size_t, size_t)> &progress = {});

  /// The execution of the entry of this name; empty: of the only entry. It belongs to
  /// the model.
  Result<Execution *> execution(const std::string &entry = {});

  /// What the model keeps between runs, by name. States are zeros at first. After a run that has
  /// failed they are undefined.
  std::vector<EntryValue> states() const;
  Status setState(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                  const void *data);
  Status setState(const std::string &name, const HostTensor &value);
  /// As Execution::scatterInput.
  Status scatterState(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                      const void *data);
  /// The global value, gathered from the ranks as Execution::output does it.
  Result<HostTensor> state(const std::string &name) const;
  Status readState(const std::string &name, void *data, size_t bytes) const;
  /// Zeros for all states.
  Status resetStates();
  /// As Execution::bindInput, for the rank's shard of a state, whose value is what the memory
  /// holds.
  Status bindState(int64_t rank, const std::string &name, void *data, size_t bytes);

  struct State;

private:
  explicit Model(std::shared_ptr<State> state);
  std::shared_ptr<State> own;
};

/// One entry of a model, with its inputs and outputs. It may run any number of times.
class Execution {
public:
  const Entry &entry() const;

  /// Takes the global value of an operand and copies each local rank's shard. An operand without a
  /// value has its default, if it has one.
  Status setInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                  const void *data);
  Status setInput(const std::string &name, const HostTensor &value);

  /// The same from the process of rank 0 to all, when each of them calls it: only that process
  /// needs the value, and the others get their ranks' shards; what they give is not looked at.
  Status scatterInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                      const void *data);

  /// On target cpu and transport threads: from now on the rank's shard of the operand or result
  /// lies in the caller's memory: `bytes` bytes, row-major, 64-byte aligned, which the caller keeps
  /// until the model ends or another buffer is bound. Where a collective uses the value in place,
  /// every run copies it, and the report says so: the caller's memory is not symmetric. Inputs may
  /// overlap each other; an output or a state that overlaps other bound memory of the entry, of any
  /// rank, is an error of the next run.
  Status bindInput(int64_t rank, const std::string &name, void *data, size_t bytes);
  Status bindOutput(int64_t rank, const std::string &name, void *data, size_t bytes);

  /// One run on all ranks. Fails when weights or inputs are missing (all are listed), or with
  /// Code::rankFailed and one message when a rank fails or stalls; outputs are then undefined.
  /// After a stall from which a rank did not return, no entry of the model can run again.
  Status run();

  /// The global value of a result of the last run, gathered from the ranks. On target cpu, ranks
  /// with the same shard of it are compared bit by bit; Code::rankFailed where two differ. With a
  /// communicator, all processes call it; those without rank 0 get an empty tensor.
  Result<HostTensor> output(const std::string &name) const;
  /// Writes it to the caller's memory of `bytes`; on processes without rank 0, where memory may be
  /// null, nothing.
  Status readOutput(const std::string &name, void *data, size_t bytes) const;

  /// Forgets the runs so far, so that the report excludes warm-up runs.
  void resetStatistics();
  /// JSON: ranks, threads, machine, times, bytes sent, exposed and hidden communication, memory
  /// (runtime/README.md), of this process's ranks.
  std::string report() const;
  /// The same of all ranks. With a communicator, all processes call it; those without rank 0 get an
  /// empty text.
  Result<std::string> gatherReport() const;
  /// Chrome trace event JSON of the model's last run, which was one of this entry, of this
  /// process's ranks; needs WorldOptions::trace.
  Result<std::string> trace() const;
  /// The commands in it, without those of other threads of a rank's team and the steps of
  /// collectives: a rank's queues one after the other, each in its order.
  struct Span {
    int64_t rank = 0;
    std::string operation;                   ///< "matmul", "all_reduce"
    std::string collective;                  ///< that it is, by its identity; else empty
    double beginSeconds = 0, endSeconds = 0; ///< since the begin of the run
  };
  Result<std::vector<Span>> spans() const;
  /// Writes that of all ranks, with the times of rank 0's clock. With a communicator, all processes
  /// call it, and that of rank 0 writes.
  Status writeTrace(const std::string &path) const;

  struct State;

private:
  friend class Model;
  explicit Execution(State &state) : state(state) {}
  Status setDefaults();
  State &state;
};

/// The entry of this name; for an empty name the only entry.
Result<const Entry *> selectEntry(const Manifest &manifest, const std::string &name);

/// "<dp = 2, tp = 2>"
std::string meshString(const Mesh &mesh);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_MODEL_H
