//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RunControl.h"
#include "SchedulePoint.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <thread>
#include <variant>

namespace braid::runtime {

void StatusRecord::set(const Status &status) {
  code = status.code();
  length = std::min(status.message().size(), sizeof text);
  std::memcpy(text, status.message().data(), length);
}

Status StatusRecord::get() const {
  return code == Code::ok ? Status() : Status::error(std::string(text, length), code);
}

RunControl::RunControl(int64_t ranks, const std::vector<QueueInfo> &ofRank, double timeLimitSeconds,
                       SpinLimit ofAll, Sharing sharing)
    : pool(sharing), numQueues(ofRank.size()), numStates(static_cast<size_t>(ranks) * numQueues),
      queues(pool.create<QueueState>(numStates)), record(pool.create<Record>(1)),
      limitNs(static_cast<int64_t>(timeLimitSeconds * 1e9)) {
  setSpins({ofAll, ofAll, ofAll});
  for (const QueueInfo &queue : ofRank)
    names.push_back(queue.name);
  for (size_t i = 0; i < numStates; ++i) {
    queues[i].rank = static_cast<int64_t>(i / numQueues);
    queues[i].queue = i % numQueues;
    queues[i].name = names[i % numQueues].c_str();
  }
  sliceNs = 20000000;
  if (limitNs > 0)
    sliceNs = std::max<int64_t>(1000000, std::min(sliceNs, limitNs / 8));
}

void RunControl::begin() {
  record->state.store(kNone, std::memory_order_release);
  for (size_t i = 0; i < numStates; ++i) {
    QueueState &queue = queues[i];
    queue.at.store(nullptr, std::memory_order_relaxed);
    queue.waiting.store(Waiting::nothing, std::memory_order_relaxed);
    queue.stalled.store(false, std::memory_order_relaxed);
    queue.silentSince.store(0, std::memory_order_relaxed);
  }
}

void RunControl::fail(const Status &failure) {
  uint32_t none = kNone;
  if (record->state.compare_exchange_strong(none, kBeingWritten, std::memory_order_acq_rel))
    replaceFailure(failure);
}

void RunControl::replaceFailure(const Status &failure) {
  record->state.store(kBeingWritten, std::memory_order_release);
  atSchedulePoint("before a failure is written");
  record->failure.set(failure);
  record->state.store(kWritten, std::memory_order_release);
}

Status RunControl::failure() const {
  uint32_t state;
  for (int64_t begin = nowNs();
       (state = record->state.load(std::memory_order_acquire)) == kBeingWritten;
       std::this_thread::yield())
    if (nowNs() - begin > 1000000000)
      return Status::error("a rank ended while it reported a failure", Code::rankFailed);
  return state == kNone ? Status() : record->failure.get();
}

uint64_t RunControl::progress() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < numStates; ++i)
    sum += queues[i].progress.load(std::memory_order_relaxed);
  return sum;
}

bool RunControl::poll(Watch &watch, const std::function<std::string()> &idle) {
  if (failed())
    return false;
  uint64_t progressNow = progress();
  int64_t time = nowNs();
  if (watch.since < 0 || progressNow != watch.progress) {
    watch = {progressNow, time};
  } else if (limitNs > 0 && time - watch.since >= limitNs) {
    fail(Status::error(diagnose(idle), silence(), Code::rankFailed));
    return false;
  }
  return true;
}

void RunControl::setSpins(const SpinLimits &ofWaits) {
  limits = ofWaits;
  for (size_t i = 0; i < numStates; ++i) {
    queues[i].spin = Spin(limits.events);
    queues[i].idleSpin = Spin(limits.idle);
  }
}

bool RunControl::waitWithLimit(Counter &counter, uint32_t target, QueueState &self, Spin &spin) {
  if (spin.reaches(counter, target) || counter.waitOnce(target, sliceNs))
    return true;
  Watch watch;
  while (poll(watch))
    if (counter.waitOnce(target, sliceNs))
      return true;
  return false;
}

bool RunControl::wait(Counter &counter, uint32_t target, QueueState &self, Waiting what,
                      int64_t missingRank) {
  if (counter.reached(target))
    return !failed();
  const Waited waited(self, what, missingRank);
  Spin &spin = what == Waiting::peer && !self.clock ? self.idleSpin : self.spin;
  return waitWithLimit(counter, target, self, spin) && !failed();
}

RunControl::Waited::Waited(QueueState &queue, Waiting what, int64_t missingRank)
    : queue(queue), what(what), computedNs(what == Waiting::peer ? queue.computedNs() : 0),
      beginNs(nowNs()) {
  queue.missingRank.store(missingRank, std::memory_order_relaxed);
  queue.since.store(beginNs, std::memory_order_relaxed);
  queue.waiting.store(what, std::memory_order_release);
}

RunControl::Waited::~Waited() {
  atSchedulePoint("after a wait");
  queue.waiting.store(Waiting::nothing, std::memory_order_release);
  if (what == Waiting::peer) {
    queue.peerWaitNs += nowNs() - beginNs;
    queue.computedInWaitsNs += queue.computedNs() - computedNs;
  }
}

bool RunControl::waitForQueues(Counter &counter, uint32_t target,
                               const std::function<void()> &tick) {
  Watch watch;
  while (!counter.waitOnce(target, sliceNs)) {
    tick();
    if (!poll(watch))
      return false;
  }
  return true;
}

void RunControl::stall(QueueState &self) {
  self.stalled.store(true, std::memory_order_release);
  Counter never;
  while (!failed())
    never.waitOnce(1, sliceNs);
}

std::string describe(const NamedCommand &command) {
  std::string text = command.operation;
  if (!command.name.empty())
    text += " '" + command.name + "'";
  if (command.path)
    text += " in " + *command.path;
  return text;
}

std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) * 1e-9);
  return text;
}

static const NamedCommand *commandOf(const QueueState &queue) {
  return queue.at.load(std::memory_order_acquire);
}

static std::string position(const QueueState &queue) {
  const NamedCommand *command = commandOf(queue);
  return command ? "at " + describe(*command) + " on its " + queue.name + " queue"
                 : std::string("not at any command of its ") + queue.name + " queue";
}

/// The queues of other ranks that the queue waits for in a collective. Queues move while they are
/// read, so the command may not be the one that waits.
static std::vector<RankQueue> missingOf(const QueueState &queue) {
  const NamedCommand *command = commandOf(queue);
  if (!command || queue.waiting.load(std::memory_order_acquire) != Waiting::peer)
    return {};
  return command->missing();
}

// A queue that waits, or is about to wait, for another queue of its rank, or has no more commands,
// is not informative.
const QueueState &RunControl::nearest(int64_t rank) const {
  const QueueState &compute = queue(rank, kComputeQueue), *found = nullptr;
  if (compute.stalled.load(std::memory_order_acquire))
    return compute;
  for (Queue q = 1; q < numQueues; ++q) {
    const QueueState &state = queue(rank, q);
    const NamedCommand *command = commandOf(state);
    if (!command || command->awaitedQueue())
      continue;
    if (!missingOf(state).empty())
      return state;
    found = found ? found : &state;
  }
  return found ? *found : compute;
}

const QueueState *RunControl::waiterFor(int64_t rank) const {
  for (size_t i = 0; i < numStates; ++i)
    for (const RankQueue &missing : missingOf(queues[i]))
      if (missing.rank == rank)
        return &queues[i];
  return nullptr;
}

std::vector<const QueueState *> RunControl::deadlockCycle() const {
  // Read once, as queues may still move.
  std::vector<std::vector<size_t>> waitsFor(numStates);
  for (size_t i = 0; i < numStates; ++i) {
    for (const RankQueue &missing : missingOf(queues[i]))
      waitsFor[i].push_back(static_cast<size_t>(missing.rank) * numQueues + missing.queue);
    const NamedCommand *command = commandOf(queues[i]);
    if (command && queues[i].waiting.load(std::memory_order_acquire) == Waiting::event)
      if (std::optional<Queue> other = command->awaitedQueue())
        waitsFor[i].push_back(i / numQueues * numQueues + *other);
  }
  enum : char { fresh, onPath, done };
  std::vector<char> state(numStates, fresh);
  std::vector<size_t> path;
  std::function<bool(size_t)> visit = [&](size_t i) {
    if (state[i] != fresh) {
      if (state[i] == onPath)
        path.erase(path.begin(), std::find(path.begin(), path.end(), i));
      return state[i] == onPath;
    }
    state[i] = onPath;
    path.push_back(i);
    for (size_t next : waitsFor[i])
      if (visit(next))
        return true;
    path.pop_back();
    state[i] = done;
    return false;
  };
  std::vector<const QueueState *> cycle;
  // Compute queues last: a cycle is told from a queue that waits in a collective.
  for (Queue q = numQueues; q-- > 0;)
    for (size_t i = q; i < numStates; i += numQueues)
      if (cycle.empty() && visit(i))
        for (size_t at : path)
          cycle.push_back(&queues[at]);
  return cycle;
}

std::string RunControl::describePosition(int64_t rank) const { return position(nearest(rank)); }

std::string RunControl::waiter(int64_t rank) const {
  const QueueState *queue = waiterFor(rank);
  const NamedCommand *command = queue ? commandOf(*queue) : nullptr;
  return command ? "rank " + std::to_string(queue->rank) + " waits for it at " + describe(*command)
                 : std::string();
}

std::string RunControl::ranksString(const std::vector<RankQueue> &late) const {
  std::string text = late.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < late.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == late.size() ? " and " : ", ") + std::to_string(late[i].rank);
    if (!hosts.empty())
      text += " (" + hosts[static_cast<size_t>(late[i].rank)] + ")";
  }
  return text;
}

std::string RunControl::silence() const {
  std::vector<RankQueue> silent;
  int64_t since = INT64_MAX;
  for (int64_t rank = 0; rank < numRanks(); ++rank)
    if (const int64_t heard = queue(rank, kComputeQueue).silentSince.load()) {
      silent.push_back({rank, kComputeQueue});
      since = std::min(since, heard);
    }
  return silent.empty() ? ""
                        : "; " + ranksString(silent) + (silent.size() == 1 ? " has" : " have") +
                              " not been heard of for " + seconds(nowNs() - since);
}

// When nothing moves, most queues wait for each other; the message must name the one that all the
// others wait for. A queue that waits in a collective for a rank that does not wait itself is
// nearest to the cause.
std::string RunControl::diagnose(const std::function<std::string()> &idle) const {
  const std::vector<const QueueState *> cycle = deadlockCycle();
  const bool oneQueue = std::all_of(cycle.begin(), cycle.end(), [&](const QueueState *state) {
    return state->queue == cycle.front()->queue;
  });
  std::string around;
  for (const QueueState *state : cycle)
    if (const NamedCommand *command = commandOf(*state))
      around += (around.empty() ? "rank " : ", rank ") + std::to_string(state->rank) + " at " +
                describe(*command) +
                (oneQueue ? "" : std::string(" on its ") + state->name + " queue");
  // In one collective ranks do not wait in a circle, unless messages are lost between them, or each
  // also waits for a rank that does not wait itself: then that one is named below.
  std::set<std::string> places;
  std::vector<RankQueue> ranks;
  bool waitForAnother = false;
  for (const QueueState *state : cycle)
    if (const NamedCommand *command = commandOf(*state)) {
      places.insert(describe(*command));
      ranks.push_back({state->rank, state->queue});
      for (const RankQueue &missing : missingOf(*state))
        waitForAnother = waitForAnother || missingOf(queue(missing.rank, missing.queue)).empty();
    }
  const bool inOneCollective = oneQueue && ranks.size() > 1 && places.size() == 1;
  if (inOneCollective && !waitForAnother)
    return ranksString(ranks) + " wait for each other in " + *places.begin() +
           ": what they send does not arrive";
  if (!around.empty() && !(inOneCollective && waitForAnother))
    return (oneQueue ? "ranks wait for each other, as they reach collectives in different orders: "
                     : "queues wait for each other: ") +
           around;
  // Queues may still move while they are read, so each is read once.
  struct Candidate {
    const QueueState *queue = nullptr;
    const NamedCommand *command = nullptr;
    std::vector<RankQueue> missing;
    int score = 0;
  } best;
  for (size_t i = 0; i < numStates; ++i) {
    // 1: runs a command and does not come back.
    const bool waits = queues[i].waiting.load(std::memory_order_acquire) == Waiting::event;
    Candidate candidate{&queues[i], commandOf(queues[i]), missingOf(queues[i]), waits ? 2 : 1};
    // A queue whose peers have all arrived and that still waits is stuck too: it was stopped in its
    // wait.
    const auto &missing = candidate.missing;
    const auto waiting = std::count_if(missing.begin(), missing.end(), [&](RankQueue other) {
      return !missingOf(queue(other.rank, other.queue)).empty();
    });
    if (!missing.empty())
      candidate.score = waiting == static_cast<int64_t>(missing.size()) ? 3 : waiting > 0 ? 4 : 5;
    if (candidate.command && candidate.score > best.score)
      best = std::move(candidate);
  }
  if (!best.command)
    return (idle ? idle() + " has neither begun nor ended the run within "
                 : "no rank has begun its work within ") +
           seconds(limitNs);
  const QueueState &late = *best.queue;
  const std::string waited = seconds(nowNs() - late.since.load(std::memory_order_relaxed));
  const std::string prefix = "rank " + std::to_string(late.rank) + ": " + describe(*best.command) +
                             " on the " + late.name + " queue ";
  if (best.score >= 3) {
    // Some of the missing ranks may themselves wait for others, elsewhere; all are named.
    std::string positions;
    for (const RankQueue &missing : best.missing)
      positions += (positions.empty() ? "rank " : "; rank ") + std::to_string(missing.rank) +
                   " is " + position(nearest(missing.rank));
    return prefix + "waited " + waited + " for " + ranksString(best.missing) + ", which " +
           (best.missing.size() == 1 ? "has" : "have") +
           (best.command->waitsForRoom() ? " not received earlier messages (" : " not arrived (") +
           positions + ")";
  }
  const std::optional<Queue> awaited = best.command->awaitedQueue();
  if (best.score == 1 || !awaited)
    return prefix + "has made no progress in " + seconds(limitNs);
  const QueueState &other = queue(late.rank, *awaited);
  return prefix + "waited " + waited + " for the rank's " + other.name + " queue, which is " +
         (commandOf(other) ? position(other) : "at its end");
}

} // namespace braid::runtime
