//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Executor.h"
#include "SchedulePoint.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <system_error>

namespace braid::runtime {

/// Threads that outnumber the cores must give them up at once; others may look around for some
/// microseconds first.
static int spinsFor(int64_t threads) {
  return threads <= static_cast<int64_t>(std::thread::hardware_concurrency()) ? 2000 : 20;
}

Workers::Workers(int64_t numRanks, int64_t threads, double timeLimitSeconds, Transport *transport,
                 Sharing sharing)
    : control(numRanks, timeLimitSeconds, spinsFor(numRanks * (threads + 1)), sharing),
      transport(transport), kernels(vectorKernels()) {
  for (int64_t r = 0; r < numRanks; ++r)
    ranks.push_back(std::make_unique<Rank>(threads));
  served.resize(ranks.size());
  std::iota(served.begin(), served.end(), 0);
}

void Workers::runQueue(Rank &rank, Queue kind, QueueState &self) {
  const std::vector<Command> &commands = rank.program.queues[static_cast<size_t>(kind)];
  std::vector<TraceSpan> &events = rank.trace[static_cast<size_t>(kind)];
  ExecutionContext context{control, self, kind == Queue::compute ? rank.team : rank.alone, kernels,
                           rank.scratch[static_cast<size_t>(kind)]};
  const uint32_t now = generation.value();
  const bool stallHere = stall && stall->rank == self.rank;
  const bool timed = trace;
  if (kind == Queue::compute)
    rank.computing.beginNs = nowNs();

  for (const Command &command : commands) {
    if (control.failed())
      break;
    self.at.store(&command, std::memory_order_release);
    atSchedulePoint("command");
    if (stallHere && (stall->command.empty() || stall->command == command.name)) {
      control.stall(self);
      break;
    }
    int64_t begin = timed ? nowNs() : 0;
    if (auto *op = std::get_if<LaunchCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<ProductCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<AttentionCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<RotaryTableCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<RotaryCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<GatherCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<PositionIdsCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<CopyCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<CollectiveCommand>(&command.op)) {
      int64_t start = nowNs();
      if (transport->run(op->collective, rank.heap, control, self))
        rank.events[op->event].set(now);
      rank.collectives.push_back({{start, nowNs()}, op->roleIndex});
    } else if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op)) {
      if (!rank.events[op->event].reached(now)) {
        int64_t start = nowNs();
        control.wait(rank.events[op->event], now, self, Waiting::event);
        const int64_t end = nowNs();
        rank.waits.push_back({start, end});
        rank.times.total.waitingNs += end - start;
        rank.times.roles[op->roleIndex].waitingNs += end - start;
      }
    } else if (auto *op = std::get_if<RecordCommand>(&command.op)) {
      rank.events[op->event].set(now);
    } else if (auto *op = std::get_if<AwaitCommand>(&command.op)) {
      if (!rank.events[op->event].reached(now)) {
        int64_t start = nowNs();
        control.wait(rank.events[op->event], now, self, Waiting::event);
        if (kind == Queue::compute)
          rank.waits.push_back({start, nowNs()});
      }
    }
    self.progress.fetch_add(1, std::memory_order_relaxed);
    if (timed)
      events.push_back({&command, begin, nowNs()});
  }
  if (kind == Queue::compute)
    rank.computing.endNs = nowNs();
  if (!control.failed())
    self.at.store(nullptr, std::memory_order_release);
}

void Workers::serveQueue(int64_t r, Queue kind) {
  useOneThread();
  Rank &rank = *ranks[static_cast<size_t>(r)];
  QueueState &self = control.queue(r, kind);
  for (uint32_t next = 1;; ++next) {
    while (!generation.waitOnce(next, 0, -1)) {
    }
    if (stopping.load(std::memory_order_acquire))
      return;
    try {
      runQueue(rank, kind, self);
    } catch (const std::exception &e) {
      const Command *command = self.at.load(std::memory_order_relaxed);
      control.fail(Status::error("rank " + std::to_string(r) + ": " +
                                     (command ? describe(*command) + ": " : std::string()) +
                                     e.what(),
                                 Code::rankFailed));
    }
    finished.increment();
  }
}

Status Workers::run() {
  if (lost)
    return Status::error(
        "the session cannot run again: a rank did not come back from an earlier run",
        Code::rankFailed);
  control.begin();
  runServed();
  Status failure = control.failure();
  if (!failure.ok() && !lost)
    transport->reset();
  return failure;
}

void Workers::runServed() {
  for (int64_t r : served) {
    Rank *rank = ranks[static_cast<size_t>(r)].get();
    size_t roles = rank->program.roles.size();
    rank->times.total = {};
    rank->times.roles.assign(roles, {});
    rank->collectives.clear();
    rank->waits.clear();
    rank->team.trace = trace;
    for (auto &spans : rank->team.spans)
      spans.clear();
    for (int q = 0; q < 2; ++q) {
      rank->trace[q].clear();
      if (trace)
        rank->trace[q].reserve(rank->program.queues[q].size());
    }
  }
  uint32_t target = finished.value() + static_cast<uint32_t>(2 * served.size());
  runBeginNs = nowNs();
  generation.increment();
  bool complete = control.waitForQueues(finished, target);
  runEndNs = nowNs();
  // After a failure the others notice within a slice; a rank stuck in a kernel never does.
  for (int i = 0; !complete && i < 100; ++i)
    complete = finished.waitOnce(target, 0, 20000000);
  lost = !complete;
  if (lost || control.failed())
    return;
  for (int64_t r : served) {
    Rank &rank = *ranks[static_cast<size_t>(r)];
    addCollectives(rank.collectives, rank.computing, rank.waits, rank.times.total,
                   rank.times.roles);
  }
}

Status startThreads(Workers &workers, std::shared_ptr<void> keepAlive,
                    std::vector<std::thread> &threads) {
  auto start = [&](auto work) {
    threads.emplace_back([&workers, keepAlive, work] {
      work();
      workers.threadsGone.fetch_add(1, std::memory_order_release);
    });
  };
  int64_t starting = 0;
  try {
    for (int64_t r : workers.served) {
      starting = r;
      size_t i = static_cast<size_t>(r);
      start([&workers, r] {
        beginSchedule(r, kComputeLane);
        workers.serveQueue(r, Queue::compute);
      });
      start([&workers, r] {
        beginSchedule(r, kCommunicationLane);
        workers.serveQueue(r, Queue::communication);
      });
      for (int64_t member = 1; member < workers.ranks[i]->team.members(); ++member)
        start([&workers, r, i, member] {
          beginSchedule(r, kCommunicationLane + member);
          useOneThread();
          workers.ranks[i]->team.serve(member, workers.control.spins());
        });
    }
  } catch (const std::system_error &e) {
    return Status::error("cannot start the threads of rank " + std::to_string(starting) + " of " +
                         std::to_string(workers.ranks.size()) + ": " + e.what());
  }
  return {};
}

void stopThreads(Workers &workers, std::vector<std::thread> &threads) {
  workers.stopping.store(true, std::memory_order_release);
  workers.generation.increment();
  for (auto &rank : workers.ranks)
    rank->team.stop();
  int64_t deadline = nowNs() + 1000000000;
  while (workers.lost && nowNs() < deadline &&
         workers.threadsGone.load(std::memory_order_acquire) < static_cast<int64_t>(threads.size()))
    std::this_thread::yield();
  bool allGone =
      workers.threadsGone.load(std::memory_order_acquire) == static_cast<int64_t>(threads.size());
  for (std::thread &thread : threads) {
    if (!workers.lost || allGone)
      thread.join();
    else
      thread.detach();
  }
  threads.clear();
}

} // namespace braid::runtime
