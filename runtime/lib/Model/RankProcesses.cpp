//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RankProcesses.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/Plan.h"
#include "runtime/lib/Sync/HostMemory.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace braid::runtime {

/// From the model to the ranks. Preparation is job 1, each run is one more.
struct RankProcesses::Board {
  Counter job{Sharing::forks};
  std::atomic<size_t> entry{0}; ///< that the job runs
  std::atomic<bool> stopping{false};
};

/// From a rank to the model. The rank writes it before it sets `done` to the number of the job.
struct RankProcesses::ControlBlock {
  Counter done{Sharing::forks};
  std::atomic<uint64_t> prepared{0};
  StatusRecord outcome; ///< of preparing
  bool lost = false;    ///< a thread of the rank did not return
  int64_t peakMemory = 0;
  CommunicationTimes total;
  CommunicationTimes *collectives = nullptr;
  /// Of the queues, and the members of the team after the first.
  struct Lane {
    TraceSpan *spans;
    size_t count;
  } *lanes = nullptr;
};

int64_t processPeakMemory() {
  // Called after each run, so it must not allocate; the file has some 1500 bytes.
  char text[8192];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[std::max<ssize_t>(length, 0)] = 0;
  const char *peak = std::strstr(text, "\nVmHWM:");
  return peak ? std::strtoll(peak + 7, nullptr, 10) * 1024 : 0;
}

/// The trace of a rank, by lane.
static std::vector<std::vector<TraceSpan> *> lanesOf(Rank &rank) {
  std::vector<std::vector<TraceSpan> *> lanes;
  for (auto &ofQueue : rank.trace)
    lanes.push_back(&ofQueue);
  for (size_t member = 1; member < rank.team.spans.size(); ++member)
    lanes.push_back(&rank.team.spans[member]);
  return lanes;
}

/// The most that a queue writes into the trace: a span for each command, on each thread, and for
/// the steps of collectives.
static size_t spansOf(const std::vector<Command> &commands) {
  size_t spans = commands.size();
  for (const Command &command : commands)
    if (auto *op = std::get_if<CollectiveCommand>(&command.op); op && op->collective.plan)
      spans += op->collective.plan->schedule.steps.size();
  return spans;
}

RankProcesses::RankProcesses(Workers &workers,
                             const std::vector<const PerRank<RankProgram> *> &programs,
                             std::function<void(size_t)> enter)
    : workers(workers), enter(std::move(enter)), board(pool.create<Board>(1)),
      blocks(pool.create<ControlBlock>(workers.ranks.size())) {
  for (int64_t r : workers.ranks.ranks()) {
    Rank &rank = *workers.ranks[r];
    ControlBlock &block = blocks[r];
    // Enough for each entry.
    size_t collectives = 0;
    std::vector<size_t> commands(workers.queues.size(), 0);
    for (const auto *ofEntry : programs) {
      const RankProgram &program = (*ofEntry)[r];
      collectives = std::max(collectives, program.collectives.size());
      for (size_t q = 0; q < commands.size(); ++q)
        commands[q] = std::max(commands[q], spansOf(program.queues[q]));
    }
    block.collectives = pool.create<CommunicationTimes>(collectives);
    if (!workers.trace)
      continue;
    size_t lanes = lanesOf(rank).size();
    block.lanes = pool.create<ControlBlock::Lane>(lanes);
    for (size_t i = 0; i < lanes; ++i) {
      block.lanes[i] = {pool.create<TraceSpan>(commands[i < commands.size() ? i : kComputeQueue]),
                        0};
    }
  }
}

int RankProcesses::serve(int64_t r, const Prepare &prepare) {
  ControlBlock &block = blocks[r];
  workers.served = {r, 1};
  std::vector<std::thread> threads;
  Status status;
  try {
    status = prepare(r, block.prepared);
    processes.closeOthers({});
    if (status.ok())
      status = startThreads(workers, nullptr, threads);
  } catch (const std::exception &e) {
    status = Status::error(e.what());
  }
  block.outcome.set(status);
  Spin spin(workers.control.spins().links);
  for (uint32_t job = 1;; ++job) {
    if (job > 1) {
      while (!spin.reaches(board->job, job) && !board->job.waitOnce(job, -1)) {
      }
      atSchedulePoint("got a job");
      if (board->stopping.load(std::memory_order_acquire))
        break;
      enter(board->entry.load(std::memory_order_acquire));
      workers.runServed();
      send(r);
    }
    block.peakMemory = processPeakMemory();
    block.done.set(job);
    processes.notify();
    atSchedulePoint("did its job");
  }
  atSchedulePoint("leaves");
  for (std::thread &thread : threads)
    thread.detach(); // they end with the process
  return 0;
}

void RankProcesses::send(int64_t r) {
  ControlBlock &block = blocks[r];
  Rank &rank = *workers.ranks[r];
  block.lost = workers.lost;
  block.total = rank.times.total;
  std::copy(rank.times.collectives.begin(), rank.times.collectives.end(), block.collectives);
  if (!workers.trace || workers.lost)
    return;
  auto lanes = lanesOf(rank);
  for (size_t i = 0; i < lanes.size(); ++i) {
    std::copy(lanes[i]->begin(), lanes[i]->end(), block.lanes[i].spans);
    block.lanes[i].count = lanes[i]->size();
  }
}

void RankProcesses::collect() {
  for (int64_t r : workers.ranks.ranks()) {
    Rank &rank = *workers.ranks[r];
    const ControlBlock &block = blocks[r];
    rank.times.total = block.total;
    rank.times.collectives.assign(block.collectives,
                                  block.collectives + rank.program->collectives.size());
    if (!workers.trace)
      continue;
    auto lanes = lanesOf(rank);
    for (size_t i = 0; i < lanes.size(); ++i)
      lanes[i]->assign(block.lanes[i].spans, block.lanes[i].spans + block.lanes[i].count);
  }
}

bool RankProcesses::allDone() const {
  return std::all_of(blocks, blocks + workers.ranks.size(),
                     [&](const ControlBlock &block) { return block.done.reached(jobs); });
}

bool RankProcesses::anyAtWork() const {
  for (size_t r = 0; r < workers.ranks.size(); ++r)
    if (processes.running(static_cast<int64_t>(r)) && !blocks[r].done.reached(jobs))
      return true;
  return false;
}

Status RankProcesses::start(const Prepare &prepare, const std::function<void(uint64_t)> &watch,
                            const std::vector<int> &kept) {
  stop();
  size_t count = workers.ranks.size();
  jobs = 1;
  lost = false;
  board->job.set(jobs);
  board->stopping.store(false);
  for (size_t r = 0; r < count; ++r) {
    blocks[r].done.set(0);
    blocks[r].prepared.store(0);
    blocks[r].lost = false;
  }
  workers.control.begin();
  workers.transport->reset();
  RETURN_IF_ERROR(processes.start(
      static_cast<int64_t>(count), [&](int64_t rank) { return serve(rank, prepare); }, kept));
  Status status;
  constexpr int64_t kSlice = 20000000;
  std::vector<uint64_t> activity(count);
  std::vector<int64_t> activeAt(count, nowNs());
  for (bool done = false; status.ok() && !done;) {
    done = allDone(); // read before the sum, so that the last sum reported is complete
    std::string text;
    for (const Processes::End &end : processes.wait(done ? 0 : kSlice))
      text += (text.empty() ? "rank " : "; rank ") + std::to_string(end.rank) + " " + end.how +
              " before its first run";
    if (!text.empty())
      status = Status::error(text, Code::rankFailed);
    uint64_t sum = 0;
    for (size_t r = 0; r < count; ++r)
      sum += blocks[r].prepared.load(std::memory_order_relaxed);
    // One large parameter may take longer than the limit, so work of any kind is progress.
    for (size_t r = 0; r < count && status.ok(); ++r) {
      const uint64_t now = processes.activity(static_cast<int64_t>(r));
      if (blocks[r].done.reached(jobs) || now != activity[r])
        activeAt[r] = nowNs();
      activity[r] = now;
      if (workers.control.limit() > 0 && nowNs() - activeAt[r] >= workers.control.limit())
        status = Status::error("rank " + std::to_string(r) + " has done nothing for " +
                                   seconds(nowNs() - activeAt[r]) +
                                   " while it prepared its first run, after " +
                                   std::to_string(blocks[r].prepared.load()) + " parameters",
                               Code::rankFailed);
    }
    if (watch && status.ok())
      watch(sum);
  }
  for (size_t r = 0; r < count && status.ok(); ++r)
    status = blocks[r].outcome.get();
  if (!status.ok())
    processes.kill();
  return status;
}

Status RankProcesses::lostRanks(std::vector<Processes::End> ended) {
  // The message names ranks that wait for the lost ones, so this waits until they do, but not long.
  constexpr int64_t kMoment = 1000000000;
  auto everyoneIsWaitedFor = [&] {
    return std::all_of(ended.begin(), ended.end(), [&](const Processes::End &end) {
      return !workers.control.waiter(end.rank).empty();
    });
  };
  for (int64_t begin = nowNs(); !everyoneIsWaitedFor() && anyAtWork() && nowNs() - begin < kMoment;)
    for (Processes::End &end : processes.wait(1000000))
      ended.push_back(std::move(end));
  std::string text;
  for (const Processes::End &end : ended) {
    std::string waiter = workers.control.waiter(end.rank);
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(end.rank) + " " + end.how +
            " while it was " + workers.control.describePosition(end.rank) +
            (waiter.empty() ? "" : ", " + waiter);
  }
  return Status::error(text, Code::rankFailed);
}

Status RankProcesses::run(size_t entry) {
  if (lost || !running())
    return Status::error("the model cannot run again: a rank did not return from an earlier run",
                         Code::rankFailed);
  RunControl &control = workers.control;
  control.begin();
  ++jobs;
  board->entry.store(entry, std::memory_order_release);
  workers.runBeginNs = nowNs();
  board->job.set(jobs);
  // A process that hangs can be ended, unlike a thread, so the wait for it is short.
  constexpr int64_t kGrace = 1000000000;
  int64_t failedAt = 0;
  RunControl::Watch watch;
  auto late = [&] {
    std::string text;
    for (size_t r = 0; r < workers.ranks.size(); ++r)
      if (!blocks[r].done.reached(jobs))
        text += (text.empty() ? "rank " : ", rank ") + std::to_string(r);
    return text;
  };
  while (!allDone()) {
    std::vector<Processes::End> ended = processes.wait(control.slice());
    if (!ended.empty()) {
      control.replaceFailure(lostRanks(std::move(ended)));
      lost = true;
    }
    if (control.poll(watch, late))
      continue;
    if (failedAt == 0)
      failedAt = nowNs();
    if (!anyAtWork() || nowNs() - failedAt > kGrace) {
      lost = lost || !allDone();
      break;
    }
  }
  workers.runEndNs = nowNs();
  Status failure = control.failure();
  for (size_t r = 0; r < workers.ranks.size(); ++r)
    lost = lost || blocks[r].lost;
  if (lost)
    processes.kill();
  else if (!failure.ok())
    workers.transport->reset();
  else
    collect();
  return failure;
}

void RankProcesses::stop() {
  if (running() && !lost) {
    atSchedulePoint("before ranks are stopped");
    board->stopping.store(true, std::memory_order_release);
    board->job.set(++jobs);
    for (int64_t begin = nowNs(); running() && nowNs() - begin < 1000000000;)
      processes.wait(20000000);
  }
  processes.kill();
}

int64_t RankProcesses::hugePageBytes() const {
  int64_t sum = 0;
  for (size_t r = 0; r < workers.ranks.size(); ++r)
    sum += runtime::hugePageBytes(std::to_string(processes.pid(static_cast<int64_t>(r))));
  return sum;
}

int64_t RankProcesses::peakMemory() const {
  int64_t sum = 0;
  for (size_t r = 0; r < workers.ranks.size(); ++r)
    sum += blocks[r].peakMemory;
  return sum;
}

} // namespace braid::runtime
