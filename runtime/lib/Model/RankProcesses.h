//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The ranks of a model as processes. The process of the model loads and resolves all entries once
// and then forks the ranks, so that a command has one address in all of them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_RANKPROCESSES_H
#define BRAID_MODEL_RANKPROCESSES_H

#include "Processes.h"
#include "runtime/lib/Executor/Executor.h"

namespace braid::runtime {

/// High-water mark of this process, in bytes; 0 where the system does not report it.
int64_t processPeakMemory();

class RankProcesses {
public:
  /// The programs of all ranks are resolved: one list for each entry. `enter` gives the ranks those
  /// of an entry.
  RankProcesses(Workers &workers, const std::vector<const PerRank<RankProgram> *> &programs,
                std::function<void(size_t entry)> enter);
  ~RankProcesses() { stop(); }

  /// Starts the processes. Each prepares itself by prepare(rank, done), which counts its progress
  /// in `done`; `watch` gets the sum. Fails when a rank ends, or when one that is not ready does
  /// nothing for the time limit.
  using Prepare = std::function<Status(int64_t rank, std::atomic<uint64_t> &done)>;
  /// While they prepare, they keep the descriptors `kept`.
  Status start(const Prepare &prepare, const std::function<void(uint64_t)> &watch,
               const std::vector<int> &kept);
  /// Whether they were started, even if some were lost since.
  bool started() const { return jobs > 0; }
  bool running() const { return processes.numRunning() > 0; }
  /// One run of an entry on all ranks; afterwards `workers` holds their times.
  Status run(size_t entry);
  /// Ends the processes.
  void stop();
  /// Of all ranks, added up.
  int64_t peakMemory() const;
  int64_t hugePageBytes() const;

private:
  struct ControlBlock;
  struct Board;
  int serve(int64_t rank, const Prepare &prepare);
  void send(int64_t rank);
  void collect();
  bool allDone() const;
  /// Whether a rank that has not ended is at the job.
  bool anyAtWork() const;
  /// The message for ranks that ended during a run.
  Status lostRanks(std::vector<Processes::End> ended);

  Workers &workers;
  std::function<void(size_t)> enter;
  MemoryPool pool{Sharing::forks};
  Board *board;
  ControlBlock *blocks;
  uint32_t jobs = 0;
  bool lost = false;
  Processes processes;
};

} // namespace braid::runtime
#endif // BRAID_MODEL_RANKPROCESSES_H
