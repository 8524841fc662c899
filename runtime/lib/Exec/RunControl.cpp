//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RunControl.h"
#include "Commands.h"

#include <algorithm>
#include <cstdio>

namespace braid::runtime {

const char *name(QueueKind kind) {
  return kind == QueueKind::compute ? "compute" : "communication";
}

RunControl::RunControl(int64_t ranks, double timeLimitSeconds, int spins)
    : queues(static_cast<size_t>(ranks * 2)), limitNs(static_cast<int64_t>(timeLimitSeconds * 1e9)),
      spinCount(spins) {
  for (size_t i = 0; i < queues.size(); ++i) {
    queues[i].rank = static_cast<int64_t>(i / 2);
    queues[i].kind = static_cast<QueueKind>(i % 2);
  }
  sliceNs = 20000000;
  if (limitNs > 0)
    sliceNs = std::max<int64_t>(1000000, std::min(sliceNs, limitNs / 8));
}

void RunControl::begin() {
  std::lock_guard<std::mutex> lock(mutex);
  firstFailure = Status();
  failedFlag.store(false, std::memory_order_release);
  for (QueueState &queue : queues) {
    queue.at.store(nullptr, std::memory_order_relaxed);
    queue.waiting.store(Waiting::nothing, std::memory_order_relaxed);
    queue.stalled.store(false, std::memory_order_relaxed);
  }
}

void RunControl::fail(Status failure) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failedFlag.load(std::memory_order_relaxed))
    return;
  firstFailure = std::move(failure);
  failedFlag.store(true, std::memory_order_release);
}

Status RunControl::failure() const {
  std::lock_guard<std::mutex> lock(mutex);
  return firstFailure;
}

uint64_t RunControl::progress() const {
  uint64_t sum = 0;
  for (const QueueState &queue : queues)
    sum += queue.progress.load(std::memory_order_relaxed);
  return sum;
}

bool RunControl::waitWithLimit(Counter &counter, uint32_t target, int spins) {
  if (counter.waitOnce(target, spins, sliceNs))
    return true;
  uint64_t lastProgress = progress();
  int64_t lastChange = nowNs();
  while (!failed()) {
    if (counter.waitOnce(target, 0, sliceNs))
      return true;
    uint64_t progressNow = progress();
    int64_t time = nowNs();
    if (progressNow != lastProgress) {
      lastProgress = progressNow;
      lastChange = time;
    } else if (limitNs > 0 && time - lastChange >= limitNs) {
      fail(Status::error(diagnose(), Code::rankFailed));
      return false;
    }
  }
  return false;
}

bool RunControl::wait(Counter &counter, uint32_t target, QueueState &self, Waiting what,
                      int64_t missingRank) {
  if (counter.reached(target))
    return !failed();
  self.missingRank.store(missingRank, std::memory_order_relaxed);
  self.since.store(nowNs(), std::memory_order_relaxed);
  self.waiting.store(what, std::memory_order_release);
  bool reached = waitWithLimit(counter, target, spinCount);
  self.waiting.store(Waiting::nothing, std::memory_order_release);
  return reached && !failed();
}

bool RunControl::waitForQueues(Counter &counter, uint32_t target) {
  return waitWithLimit(counter, target, 0);
}

void RunControl::stall(QueueState &self) {
  self.stalled.store(true, std::memory_order_release);
  Counter never;
  while (!failed())
    never.waitOnce(1, 0, sliceNs);
}

static std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) * 1e-9);
  return text;
}

static std::string position(const QueueState &queue) {
  const Command *command = queue.at.load(std::memory_order_acquire);
  return command ? "at " + describe(*command) + " on its " + name(queue.kind) + " queue"
                 : std::string("not at any command of its ") + name(queue.kind) + " queue";
}

// When nothing moves, most queues wait for each other; the message must name the one that all the
// others wait for. A queue that waits in a collective for a rank that is not itself waiting for
// someone is nearest to the cause.
std::string RunControl::diagnose() const {
  int64_t now = nowNs();
  // Queues may still move while they are looked at, so each is read once.
  const QueueState *best = nullptr;
  const Command *bestCommand = nullptr;
  int64_t bestPeer = -1;
  int bestScore = 0;
  for (const QueueState &queue : queues) {
    Waiting what = queue.waiting.load(std::memory_order_acquire);
    const Command *command = queue.at.load(std::memory_order_acquire);
    if (!command)
      continue;
    int score = what == Waiting::event ? 2 : 1; // 1: runs a command and does not come back
    int64_t peer = queue.missingRank.load(std::memory_order_relaxed);
    if (what == Waiting::peer && peer >= 0) {
      const QueueState &communication = queues[static_cast<size_t>(peer) * 2 + 1];
      score = communication.waiting.load(std::memory_order_acquire) == Waiting::peer ? 3 : 4;
    }
    if (score > bestScore) {
      best = &queue;
      bestCommand = command;
      bestPeer = peer;
      bestScore = score;
    }
  }
  if (!best)
    return "no rank has begun its work within " + seconds(limitNs);
  const Command &command = *bestCommand;
  std::string prefix = "rank " + std::to_string(best->rank) + ": ";
  std::string waited = seconds(now - best->since.load(std::memory_order_relaxed));
  if (bestScore >= 3) {
    const int64_t peer = bestPeer;
    const QueueState &compute = queues[static_cast<size_t>(peer * 2)];
    const QueueState &communication = queues[static_cast<size_t>(peer * 2 + 1)];
    // A communication queue that waits for an event of its compute queue, or has no more commands,
    // says nothing.
    const QueueState &where =
        communication.waiting.load(std::memory_order_acquire) == Waiting::event ||
                !communication.at.load(std::memory_order_acquire) ||
                compute.stalled.load(std::memory_order_acquire)
            ? compute
            : communication;
    std::string peerName = "rank " + std::to_string(peer);
    return prefix + describe(command) + " on the communication queue waited " + waited + " for " +
           peerName + ", which has not arrived (" + peerName + " is " + position(where) + ")";
  }
  if (bestScore == 2) {
    const QueueState &other =
        queues[static_cast<size_t>(best->rank * 2 + (best->kind == QueueKind::compute ? 1 : 0))];
    return prefix + describe(command) + " on the " + name(best->kind) + " queue waited " + waited +
           " for the rank's " + name(other.kind) + " queue, which is " +
           (other.at.load(std::memory_order_acquire) ? position(other) : "at its end");
  }
  return prefix + describe(command) + " on the " + name(best->kind) +
         " queue has made no progress in " + seconds(limitNs);
}

} // namespace braid::runtime
