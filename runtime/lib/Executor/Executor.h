//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The worker threads of all ranks, and their measurements.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_EXECUTOR_H
#define BRAID_EXECUTOR_EXECUTOR_H

#include "Commands.h"
#include "Overlap.h"
#include "braid/Base/PerRank.h"
#include "braid/Runtime/Model.h"
#include "runtime/lib/Kernels/Operations.h"
#include "runtime/lib/Sync/Cores.h"

#include <deque>
#include <thread>

namespace braid::runtime {

/// The measurements of one rank in one run.
struct RankTimes {
  CommunicationTimes total;
  std::vector<CommunicationTimes> collectives; ///< as in RankProgram
  void clear(size_t count) {
    total = {};
    collectives.assign(count, {});
  }
  /// Called by the thread that runs the collective and by the compute queue's, which waits for it;
  /// each writes its own fields.
  void add(size_t collective, int64_t communicationNs, int64_t hiddenNs, int64_t peerWaitNs) {
    CommunicationTimes &times = collectives[collective];
    times.communicationNs += communicationNs;
    times.hiddenNs += hiddenNs;
    times.peerWaitNs += peerWaitNs;
  }
  void addExposed(size_t collective, int64_t ns) { collectives[collective].exposedNs += ns; }
  /// Called when all threads have ended the run.
  void sum() {
    for (const CommunicationTimes &times : collectives) {
      total.communicationNs += times.communicationNs;
      total.hiddenNs += times.hiddenNs;
      total.exposedNs += times.exposedNs;
      total.peerWaitNs += times.peerWaitNs;
    }
  }
};

struct Rank {
  Rank(size_t numQueues, int64_t threads)
      : hasThread(numQueues, false), team(threads), scratch(numQueues), trace(numQueues) {
    for (auto &ofQueue : scratch)
      ofQueue.resize(static_cast<size_t>(threads));
    for (Queue q = 1; q < numQueues; ++q)
      alone.emplace_back(1);
  }
  /// Of the entry that runs, or ran last.
  const RankProgram *program = nullptr;
  Counter *events = nullptr;
  /// By queue: whether it has a thread, which some entry needs.
  std::vector<bool> hasThread;
  Team team;              ///< of the compute queue
  std::deque<Team> alone; ///< of the other queues, whose threads do every share themselves
  Team &teamOf(Queue queue) { return queue == kComputeQueue ? team : alone[queue - 1]; }
  std::vector<std::vector<std::vector<std::byte>>> scratch; ///< by queue and part
  SymmetricHeap heap;
  RankTimes times;
  ComputeClock clock;
  std::vector<uint32_t> readNumbers;         ///< of this run, as in RankProgram::reads
  std::vector<std::vector<TraceSpan>> trace; ///< by queue
};

/// Shared by the model and its worker threads, so that a stuck worker does not lose its memory.
struct Workers {
  /// Of the ranks `local` of a mesh of `numRanks`.
  Workers(int64_t numRanks, RankRange local, std::vector<QueueInfo> queues, int64_t threads,
          double timeLimitSeconds, Transport *transport, Sharing sharing = Sharing::process);

  std::vector<QueueInfo> queues; ///< of each rank
  PerRank<std::unique_ptr<Rank>> ranks;
  RankRange served; ///< the ranks that have threads in this process
  RunControl control;
  Transport *transport;
  const VectorKernels &kernels;
  std::optional<StallInjection> stall;
  bool trace = false;
  Pinning pinning;
  Counter generation, finished;
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> threadsGone{0};

  /// One run of the programs that the ranks have; the caller's thread waits here.
  Status run();
  /// The part of a run that the served ranks do.
  void runServed();
  int64_t runBeginNs = 0, runEndNs = 0;
  bool lost = false; ///< a worker did not return

  void serveQueue(int64_t rank, Queue queue);
  void runQueue(int64_t rank, Queue queue);

  /// A computing thread of a rank's compute queue, and its processor time at the last poll.
  struct Computing {
    int64_t rank, member; ///< of the team; 0: the queue's own thread
    clockid_t clock;
    int64_t usedNs = 0;
  };
  std::vector<Computing> computing;
  /// Counts computation as progress, however long a command takes.
  void countComputing();
};

/// Starts the threads; `keepAlive` is held by each of them.
Status startThreads(Workers &workers, std::shared_ptr<void> keepAlive,
                    std::vector<std::thread> &threads);
/// Ends the threads, or abandons those that do not end within a second.
void stopThreads(Workers &workers, std::vector<std::thread> &threads);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_EXECUTOR_H
