//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Executor.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <exception>
#include <system_error>

namespace braid::runtime {

Workers::Workers(int64_t numRanks, RankRange local, std::vector<QueueInfo> itsQueues,
                 int64_t threads, double timeLimitSeconds, Transport *transport, Sharing sharing)
    : queues(std::move(itsQueues)), ranks(local), served(local),
      control(numRanks, queues, timeLimitSeconds, {}, sharing), transport(transport),
      kernels(vectorKernels()) {
  for (auto &rank : ranks)
    rank = std::make_unique<Rank>(queues.size(), threads);
}

namespace {

/// One thread's share of a rank's queues in one run. The compute queue's thread also runs commands
/// of other queues; messages and traces still name the queue that they stand on.
class QueueRun {
public:
  QueueRun(Workers &workers, Rank &rank, int64_t number)
      : workers(workers), rank(rank), number(number), control(workers.control),
        now(workers.generation.value()), stallHere(workers.stall && workers.stall->rank == number) {
  }

  void run(Queue queue) {
    const std::vector<Command> &commands = rank.program->queues[queue];
    if (!run(queue, 0, commands.size(), /*byWaiter=*/false))
      return;
    if (queue == kComputeQueue && !awaitReads(rank.program->awaitsReads, state(queue)))
      return;
    // The other thread may continue the queue.
    const auto last = std::find_if(commands.rbegin(), commands.rend(),
                                   [](const Command &command) { return !command.byWaiter; });
    if (last == commands.rend() || last->thenSets == Command::kNoEvent)
      state(queue).at.store(nullptr, std::memory_order_release);
  }

private:
  QueueState &state(Queue queue) { return control.queue(number, queue); }

  /// The commands [begin, end) of a queue that this thread runs. False when the run has failed.
  bool run(Queue queue, size_t begin, size_t end, bool byWaiter) {
    const std::vector<Command> &commands = rank.program->queues[queue];
    UnderWay underWay(state(queue), rank, workers, now);
    for (size_t next = begin; next < end;) {
      const Command &command = commands[next];
      if (command.byWaiter != byWaiter) {
        ++next;
        continue;
      }
      if (!underWay.isEmpty() && !mayBeginBeside(command, underWay.size())) {
        if (!underWay.advance())
          return false;
        continue;
      }
      if (!run(queue, command, underWay))
        return false;
      ++next;
    }
    while (!underWay.isEmpty())
      if (!underWay.advance())
        return false;
    return !control.failed();
  }

  /// Whether a command may begin while so many collectives before it are under way.
  bool mayBeginBeside(const Command &command, size_t collectives) {
    if (stallHere || command.thenSets != Command::kNoEvent)
      return false;
    if (auto *op = std::get_if<AwaitCommand>(&command.op))
      return rank.events[op->event].reached(now);
    if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op))
      return rank.events[op->event].reached(now);
    return collectives <= command.besides;
  }

  /// Collectives of a queue that have begun, oldest first. They end in their order. The time of one
  /// begins when it has become the oldest.
  class UnderWay {
  public:
    UnderWay(QueueState &self, Rank &rank, Workers &workers, uint32_t now)
        : self(self), rank(rank), workers(workers), now(now) {}
    UnderWay(const UnderWay &) = delete;
    UnderWay &operator=(const UnderWay &) = delete;
    /// After a failure some are left.
    ~UnderWay() {
      for (size_t i = 0; i < count; ++i)
        collectives[i].run->abandon();
    }
    bool isEmpty() const { return count == 0; }
    size_t size() const { return count; }

    bool begin(const Command &command, const CollectiveCommand &op) {
      const bool isOldest = count == 0;
      if (isOldest)
        becomeOldest(command, op);
      CollectiveRun *run =
          workers.transport->begin(op.collective, rank.heap, workers.control, self);
      if (!run)
        return false;
      if (workers.trace)
        run->traceSteps();
      collectives[count++] = {&command, &op, run, workers.trace ? nowNs() : 0, run->advance()};
      return isOldest && collectives[0].isDone ? end() : !workers.control.failed();
    }
    /// Does what can be done, or waits for the oldest one. False when the run has failed.
    bool advance() {
      if (workers.control.failed())
        return false;
      bool moved = false;
      for (size_t i = 0; i < count; ++i)
        if (!collectives[i].isDone)
          moved |= collectives[i].isDone = collectives[i].run->advance();
      if (collectives[0].isDone)
        return end();
      return moved || collectives[0].run->wait();
    }

  private:
    struct Begun {
      const Command *command;
      const CollectiveCommand *op;
      CollectiveRun *run;
      int64_t begunNs; ///< for the trace
      bool isDone;
    };
    void becomeOldest(const Command &command, const CollectiveCommand &op) {
      self.at.store(&command, std::memory_order_release);
      self.clock = rank.program->collectives[op.index].exposedByForm ? nullptr : &rank.clock;
      self.peerWaitNs = self.computedInWaitsNs = 0;
      beginNs = nowNs();
      computedNs = self.computedNs();
    }
    /// Of the oldest, and of those behind it that are done.
    bool end() {
      while (count > 0 && collectives[0].isDone) {
        if (workers.control.failed())
          return false;
        const Begun ended = collectives[0];
        // Before the event wakes a thread that could take this thread's core.
        const int64_t hidden = self.computedNs() - computedNs - self.computedInWaitsNs;
        const int64_t endNs = nowNs();
        rank.times.add(ended.op->index, endNs - beginNs, hidden, self.peerWaitNs);
        if (workers.trace)
          trace(ended, endNs);
        self.progress.fetch_add(1, std::memory_order_relaxed);
        for (size_t i = 1; i < count; ++i)
          collectives[i - 1] = collectives[i];
        if (--count > 0)
          becomeOldest(*collectives[0].command, *collectives[0].op);
        rank.events[ended.op->event].set(now);
      }
      return true;
    }

    void trace(const Begun &ended, int64_t endNs) {
      std::vector<TraceSpan> &spans = rank.trace[self.queue];
      spans.push_back(
          {ended.command, beginNs, endNs, std::max<int64_t>(beginNs - ended.begunNs, 0)});
      if (const std::vector<StepSpan> *steps = ended.run->steps())
        for (const StepSpan &step : *steps)
          spans.push_back({ended.command, step.beginNs, step.endNs, 0, step.step});
    }

    QueueState &self;
    Rank &rank;
    Workers &workers;
    const uint32_t now;
    Begun collectives[kCollectivesInFlight] = {};
    size_t count = 0;
    int64_t beginNs = 0, computedNs = 0;
  };

  /// False when the run has failed.
  bool run(Queue queue, const Command &command, UnderWay &underWay) {
    if (control.failed())
      return false;
    // The state of the queue belongs to the other thread until that has handed the queue over.
    if (command.firstAwaits != Command::kNoEvent &&
        !control.wait(rank.events[command.firstAwaits], now, handOver, Waiting::event))
      return false;
    QueueState &self = state(queue);
    if (underWay.isEmpty())
      self.at.store(&command, std::memory_order_release);
    atSchedulePoint("command");
    if (stallHere && (workers.stall->command.empty() || workers.stall->command == command.name)) {
      control.stall(self);
      return false;
    }
    if (!awaitReads(command.awaitsReads, self))
      return false;
    auto *collective = std::get_if<CollectiveCommand>(&command.op);
    if (collective && !isPointToPoint(collective->collective.kind)) {
      if (!underWay.begin(command, *collective))
        return false;
      while (command.thenSets != Command::kNoEvent && !underWay.isEmpty())
        if (!underWay.advance())
          return false;
    } else if (!runAlone(queue, command, self)) {
      return false;
    }
    if (command.thenSets != Command::kNoEvent && !control.failed()) {
      self.at.store(nullptr, std::memory_order_release);
      rank.events[command.thenSets].set(now);
    }
    return true;
  }

  bool runAlone(Queue queue, const Command &command, QueueState &self) {
    const int64_t begin = workers.trace ? nowNs() : 0;
    {
      const ComputeClock::Span computing(command.mayOverlap ? &rank.clock : nullptr);
      ExecutionContext context{control, self, rank.teamOf(queue), workers.kernels,
                               rank.scratch[queue]};
      perform(command, self, context);
    }
    if (command.endsRead != Command::kNoRead) {
      const PeerReads &reads = *rank.program->reads[command.endsRead].of;
      rank.readNumbers[command.endsRead] = ++*reads.number;
      reads.own->set(*reads.number);
    }
    self.progress.fetch_add(1, std::memory_order_relaxed);
    if (workers.trace)
      rank.trace[queue].push_back({&command, begin, nowNs()});
    return true;
  }

  /// Until no peer reads this rank's messages of some collectives any more. False when the run has
  /// failed.
  bool awaitReads(const std::vector<uint32_t> &numbers, QueueState &self) {
    for (uint32_t number : numbers) {
      const RankProgram::InPlaceRead &read = rank.program->reads[number];
      for (size_t i = 0; i < read.of->peers.size(); ++i) {
        Counter &peer = *read.of->peers[i];
        const uint32_t target = rank.readNumbers[number];
        if (peer.reached(target))
          continue;
        const int64_t start = nowNs();
        if (!control.wait(peer, target, self, Waiting::peer, read.of->ranks[i]))
          return false;
        rank.times.addExposed(read.collective, nowNs() - start);
      }
    }
    return true;
  }

  void perform(const Command &command, QueueState &self, ExecutionContext &context) {
    if (auto *op = std::get_if<LaunchCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<LibraryCommand>(&command.op)) {
      (*op)->run(command, context);
    } else if (auto *op = std::get_if<CopyCommand>(&command.op)) {
      execute(*op, command, context);
    } else if (auto *op = std::get_if<CollectiveCommand>(&command.op)) {
      pointToPoint(*op, self);
    } else if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op)) {
      if (!rank.events[op->event].reached(now)) {
        const int64_t start = nowNs();
        wait(command, op->event, self);
        if (self.queue == kComputeQueue)
          rank.times.addExposed(op->index, nowNs() - start);
      }
    } else if (auto *op = std::get_if<RecordCommand>(&command.op)) {
      rank.events[op->event].set(now);
    } else if (auto *op = std::get_if<AwaitCommand>(&command.op)) {
      wait(command, op->event, self);
    }
  }

  void pointToPoint(const CollectiveCommand &op, QueueState &self) {
    self.clock = rank.program->collectives[op.index].exposedByForm ? nullptr : &rank.clock;
    self.peerWaitNs = self.computedInWaitsNs = 0;
    const int64_t start = nowNs(), computed = self.computedNs();
    const bool complete = workers.transport->run(op.collective, rank.heap, control, self);
    // Before the event wakes a thread that could take this thread's core.
    const int64_t hidden = self.computedNs() - computed - self.computedInWaitsNs;
    rank.times.add(op.index, nowNs() - start, hidden, self.peerWaitNs);
    if (complete)
      rank.events[op.event].set(now);
  }

  void wait(const Command &command, uint32_t event, QueueState &self) {
    if (command.runsFirst.end != 0) {
      const Queue other = command.runsFirst.queue;
      const std::vector<Command> &commands = rank.program->queues[other];
      self.since.store(nowNs(), std::memory_order_relaxed);
      self.waiting.store(Waiting::event, std::memory_order_release);
      (void)run(other, command.runsFirst.begin, command.runsFirst.end, /*byWaiter=*/true);
      if (!control.failed() && commands[command.runsFirst.end - 1].thenSets == Command::kNoEvent)
        state(other).at.store(nullptr, std::memory_order_release);
      self.waiting.store(Waiting::nothing, std::memory_order_release);
    }
    control.wait(rank.events[event], now, self, Waiting::event);
  }

  Workers &workers;
  Rank &rank;
  const int64_t number;
  RunControl &control;
  const uint32_t now;
  const bool stallHere;
  QueueState handOver; ///< of this thread while it waits for a queue
};

} // namespace

void Workers::runQueue(int64_t r, Queue queue) { QueueRun(*this, *ranks[r], r).run(queue); }

void Workers::serveQueue(int64_t r, Queue queue) {
  useOneThread();
  QueueState &self = control.queue(r, queue);
  for (uint32_t next = 1;; ++next) {
    while (!generation.waitOnce(next, -1)) {
    }
    if (stopping.load(std::memory_order_acquire))
      return;
    try {
      if (ranks[r]->program->ownThread[queue])
        runQueue(r, queue);
    } catch (const std::exception &e) {
      const NamedCommand *command = self.at.load(std::memory_order_relaxed);
      control.fail(Status::error("rank ", r, ": ",
                                 command ? describe(*command) + ": " : std::string(), e.what(),
                                 Code::rankFailed));
    }
    finished.increment();
  }
}

Status Workers::run() {
  if (lost)
    return Status::error("the model cannot run again: a rank did not return from an earlier run",
                         Code::rankFailed);
  control.begin();
  transport->beginRun(control);
  runServed();
  transport->endRun();
  Status failure = control.failure();
  if (!failure.ok() && !lost)
    transport->reset();
  return failure;
}

void Workers::runServed() {
  for (int64_t r : served) {
    Rank *rank = ranks[r].get();
    rank->times.clear(rank->program->collectives.size());
    rank->readNumbers.assign(rank->program->reads.size(), 0);
    rank->team.trace = trace;
    for (auto &spans : rank->team.spans)
      spans.clear();
    for (Queue q = 0; q < queues.size(); ++q) {
      rank->trace[q].clear();
      if (trace)
        rank->trace[q].reserve(rank->program->queues[q].size());
    }
  }
  uint32_t target = finished.value();
  for (int64_t r : served) {
    const std::vector<bool> &threads = ranks[r]->hasThread;
    target += static_cast<uint32_t>(std::count(threads.begin(), threads.end(), true));
  }
  runBeginNs = nowNs();
  generation.increment();
  bool complete = control.waitForQueues(finished, target, [this] { countComputing(); });
  runEndNs = nowNs();
  // After a failure the other ranks stop within a time slice, except one stuck in a kernel.
  for (int i = 0; !complete && i < 100; ++i)
    complete = finished.waitOnce(target, 20000000);
  lost = !complete;
  for (int64_t r : served)
    if (complete)
      ranks[r]->times.sum();
}

// Only commands that compute count: waiting uses processor time, too, for polling.
void Workers::countComputing() {
  constexpr int64_t kAtWorkNs = 100000;
  for (Computing &thread : computing) {
    QueueState &queue = control.queue(thread.rank, kComputeQueue);
    const bool atWork = queue.at.load(std::memory_order_acquire) &&
                        !queue.stalled.load(std::memory_order_acquire) &&
                        queue.waiting.load(std::memory_order_acquire) ==
                            (thread.member == 0 ? Waiting::nothing : Waiting::team);
    const int64_t used = processorNs(thread.clock);
    if (!atWork) {
      thread.usedNs = used;
    } else if (used - thread.usedNs >= kAtWorkNs) {
      thread.usedNs = used;
      queue.progress.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

Status startThreads(Workers &workers, std::shared_ptr<void> keepAlive,
                    std::vector<std::thread> &threads) {
  auto start = [&](auto work) {
    threads.emplace_back([&workers, keepAlive, work] {
      work();
      workers.threadsGone.fetch_add(1, std::memory_order_release);
    });
    return processorClock(threads.back());
  };
  workers.computing.clear();
  int64_t starting = 0;
  try {
    for (int64_t r : workers.served) {
      starting = r;
      const clockid_t clock = start([&workers, r] {
        beginSchedule(r, kComputeLane);
        workers.pinning.pinMember(r, 0);
        workers.serveQueue(r, kComputeQueue);
      });
      workers.ranks[r]->clock.attach(clock);
      workers.computing.push_back({r, 0, clock});
      for (Queue q = 1; q < workers.queues.size(); ++q)
        if (workers.ranks[r]->hasThread[q])
          start([&workers, r, q] {
            beginSchedule(r, kComputeLane + static_cast<int64_t>(q));
            workers.pinning.pinRank(r);
            workers.serveQueue(r, q);
          });
      for (int64_t member = 1; member < workers.ranks[r]->team.members(); ++member) {
        const clockid_t helper = start([&workers, r, member] {
          beginSchedule(r, kComputeLane + static_cast<int64_t>(workers.queues.size()) - 1 + member);
          workers.pinning.pinMember(r, member);
          useOneThread();
          workers.ranks[r]->team.serve(member, workers.control.spins().idle);
        });
        workers.computing.push_back({r, member, helper});
      }
    }
  } catch (const std::system_error &e) {
    return Status::error("cannot start the threads of rank ", starting, " of ",
                         workers.ranks.size(), ": ", e.what());
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
