//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The worker threads of all ranks, and what they measure.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_EXECUTOR_H
#define BRAID_EXEC_EXECUTOR_H

#include "Operations.h"
#include "Overlap.h"

#include <thread>

namespace braid::runtime {

/// What one rank measured in one run.
struct RankTimes {
  CommunicationTimes total;
  std::vector<CommunicationTimes> roles;
};

struct Rank {
  explicit Rank(int64_t threads) : team(threads) {
    for (auto &ofQueue : scratch)
      ofQueue.resize(static_cast<size_t>(threads));
  }
  RankProgram program;
  std::unique_ptr<Counter[]> events;
  Team team;     ///< of the compute queue
  Team alone{1}; ///< of the communication queue, which does all parts itself
  std::vector<std::vector<std::byte>> scratch[2]; ///< by Queue and part
  SymmetricHeap heap;
  RankTimes times;
  /// What the times are made from. The first is the communication queue's, the others are the
  /// compute queue's: when it was at work, and when it waited meanwhile.
  std::vector<CollectiveSpan> collectives;
  Interval computing;
  std::vector<Interval> waits;
  std::vector<TraceSpan> trace[2]; ///< by Queue
};

/// Shared by the session and its worker threads, so that a worker that never comes back does not
/// lose its memory.
struct Workers {
  Workers(int64_t ranks, int64_t threads, double timeLimitSeconds, Transport *transport,
          Sharing sharing = Sharing::process);

  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<int64_t> served; ///< the ranks that have threads in this process
  RunControl control;
  Transport *transport;
  const VectorKernels &kernels;
  std::optional<StallInjection> stall;
  bool trace = false;
  Counter generation, finished;
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> threadsGone{0};

  /// One run; the session's thread waits here.
  Status run();
  /// The part of a run that the served ranks do.
  void runServed();
  int64_t runBeginNs = 0, runEndNs = 0;
  bool lost = false; ///< a worker did not come back

  void serveQueue(int64_t rank, Queue kind);
  void runQueue(Rank &rank, Queue kind, QueueState &self);
};

/// Starts the threads; `keepAlive` is held by each of them.
Status startThreads(Workers &workers, std::shared_ptr<void> keepAlive,
                    std::vector<std::thread> &threads);
/// Ends the threads, or leaves behind those that do not end within a second.
void stopThreads(Workers &workers, std::vector<std::thread> &threads);

} // namespace braid::runtime
#endif // BRAID_EXEC_EXECUTOR_H
