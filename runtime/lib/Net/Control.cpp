//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Control.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>

namespace braid::runtime::net {

/// What a peer said before its connections broke off is here by then.
constexpr int64_t kCauseNs = 1000000000;
/// A peer that is silent for longer than this, and than some periods, may be anywhere.
constexpr int64_t kSilentNs = 1000000000;
constexpr int64_t kSilentPeriods = 4;
/// A process that ends waits this long for the goodbyes of others, and for its own to leave.
constexpr int64_t kEndNs = 1000000000;
/// Then its connections close when peers have got what was sent. After a failure, one of them may
/// be a host that hears nothing, and all ranks are to end within a second of the time limit.
constexpr int64_t kCloseNs = 1000000000, kCloseFailedNs = 400000000;

/// How often in a period a relay sends what others say, at most. The longer it waits, the more go
/// in one message, and the older they are when they arrive.
constexpr int64_t kGathersInPeriod = 4;

Control::Control(std::unique_ptr<Link> ownLink, const Job &job, const ControlOptions &options)
    : link(std::move(ownLink)),
      frames(*link, job.key, "braid control", hostNumbers(job.members),
             static_cast<int64_t>(options.periodSeconds * 1e9) / kGathersInPeriod,
             [this](int64_t sender, const Frame &frame) { onFrame(sender, frame); }),
      self(job.rank), limitNs(static_cast<int64_t>(options.timeLimitSeconds * 1e9)),
      periodNs(static_cast<int64_t>(options.periodSeconds * 1e9)), peers(job.members.size()),
      mirrors(job.members.size()) {
  const int64_t now = nowNs();
  for (Peer &peer : peers)
    peer.heardNs = now;
  for (const Member &member : job.members)
    hosts.push_back(member.host);
}

Result<std::unique_ptr<Control>> Control::start(std::unique_ptr<Link> link, const Job &job,
                                                const ControlOptions &options) {
  std::unique_ptr<Control> self(new Control(std::move(link), job, options));
  self->thread = std::thread([control = self.get()] {
    beginSchedule(control->self, kControlLane);
    control->run();
  });
  // Its thread names who is lost before this ends.
  while (self->numKnown.load() + 1 < self->numPeers()) {
    RETURN_IF_ERROR(self->state());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return self;
}

Control::~Control() {
  isEnding.store(true);
  link->signal();
  thread.join();
  const bool hasFailed = lastFailed > 0 || !loss.ok();
  (void)link->close(nowNs() + (hasFailed ? kCloseFailedNs : kCloseNs));
}

void Control::begin(RunControl &ofRun, uint64_t run, bool isFirstOfModel) {
  atSchedulePoint("begins a run");
  const std::lock_guard<std::mutex> lock(mutex);
  control = &ofRun;
  ofRun.nameHosts(hosts);
  runNumber = run;
  isShared = false;
  progressNs = nowNs();
  if (isFirstOfModel)
    firstOfModel = run;
  if (!loss.ok())
    ofRun.fail(loss);
  if (other && concernsThisRun(other->first))
    ofRun.fail(other->second);
  if (other && other->first <= run)
    other.reset();
}

void Control::end() {
  atSchedulePoint("ends a run");
  const std::lock_guard<std::mutex> lock(mutex);
  if (!control)
    return;
  if (control->failed()) {
    shareFailure(control->failure());
    lastFailed = runNumber;
  }
  control = nullptr;
  link->signal();
}

Status Control::state() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return loss;
}

std::string Control::silence() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return silentPeers;
}

Status Control::describeLoss(int64_t peer, const Status &error) const {
  for (const int64_t until = nowNs() + kCauseNs;;
       std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (control && control->failed())
      return control->failure();
    // This process may have ended its part of the run in which the peer has failed.
    if (!control && other)
      return other->second;
    if (peers[static_cast<size_t>(peer)].isLost || nowNs() >= until)
      return Status::error(error.message(), circumstances(peer), error.code());
  }
}

/// " while it was at ..., rank 0 waits for it at ...". Where nobody waits for it at this moment,
/// the second part says what this rank is at.
std::string Control::circumstances(int64_t peer) const {
  if (!control)
    return "";
  std::string waiter = control->waiter(peer);
  if (const std::string own = control->describePosition(self);
      waiter.empty() && own.rfind("at ", 0) == 0)
    waiter = "rank " + std::to_string(self) + " is " + own;
  return " while it was " + control->describePosition(peer) + (waiter.empty() ? "" : ", " + waiter);
}

void Control::run() {
  int64_t next = 0, endNs = 0;
  bool hasSaidGoodbye = false;
  for (;;) {
    const int64_t now = nowNs();
    if (now >= next)
      atSchedulePoint("before a heartbeat");
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (control && control->failed())
        shareFailure(control->failure());
      if (now >= next) {
        next = now + periodNs;
        if (!hasSaidGoodbye)
          tellPlaces();
        checkPeers();
      }
      if (isEnding.load() && endNs == 0)
        endNs = now + kEndNs;
      if (endNs != 0 && !hasSaidGoodbye &&
          (now >= endNs || !frames.isRelay() || othersOfHostHaveLeft())) {
        hasSaidGoodbye = true;
        endNs = now + kEndNs;
        untold.emplace_back(Goodbye());
      }
      for (const Frame &frame : std::exchange(untold, {}))
        frames.tell(frame);
    }
    const int64_t due = frames.send(now);
    if (hasSaidGoodbye && (due == INT64_MAX || now >= endNs)) {
      atSchedulePoint("has said goodbye");
      return;
    }
    if (Status status = link->progress(std::min(next, due)); !status.ok()) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (loss.ok())
        loss = status;
      if (control)
        control->fail(status);
      return;
    }
  }
}

void Control::tellPlaces() {
  frames.tell(control ? placesOf(*control, self, runNumber, true) : Places{runNumber, false, {}});
}

void Control::onFrame(int64_t sender, const Frame &frame) {
  Peer &peer = peers[static_cast<size_t>(sender)];
  peer.heardNs = nowNs();
  if (!std::exchange(peer.isKnown, true))
    ++numKnown;
  if (std::exchange(peer.isSilent, false))
    frames.setSilent(sender, false);
  const std::lock_guard<std::mutex> lock(mutex);
  handle(sender, frame);
}

void Control::handle(int64_t sender, const Frame &frame) {
  Peer &peer = peers[static_cast<size_t>(sender)];
  if (const auto *places = std::get_if<Places>(&frame)) {
    if (control)
      mirrors[static_cast<size_t>(sender)].write(*control, sender, *places, runNumber);
  } else if (const auto *failure = std::get_if<Failure>(&frame)) {
    const Code code = failure->code == static_cast<uint32_t>(Code::invalid) ? Code::invalid
                      : failure->code == static_cast<uint32_t>(Code::checkFailed)
                          ? Code::checkFailed
                          : Code::rankFailed;
    handleFailure(failure->run, Status::error(failure->text, code));
  } else if (const auto *lost = std::get_if<Lost>(&frame)) {
    if (lost->rank >= 0 && lost->rank < numPeers())
      lose(lost->rank, lost->text, true);
  } else if (std::holds_alternative<Goodbye>(frame)) {
    peer.hasLeft = true;
    peer.leftNs = nowNs();
    frames.setGone(sender);
  }
}

/// A process may be in a later run than one that fails. If the run has not failed here as well, and
/// is one of this model, the sender takes part in no later one.
bool Control::concernsThisRun(uint64_t run) const {
  return run == runNumber || (run < runNumber && run > lastFailed && run >= firstOfModel);
}

void Control::handleFailure(uint64_t run, const Status &failure) {
  if (control && concernsThisRun(run)) {
    isShared = true; // all know it from its sender
    control->fail(failure);
  } else if (run > runNumber || (!control && run > lastFailed)) {
    other = {run, failure};
  }
}

void Control::shareFailure(const Status &failure) {
  if (std::exchange(isShared, true))
    return;
  untold.emplace_back(Failure{runNumber, static_cast<uint32_t>(failure.code()), failure.message()});
}

void Control::checkPeers() {
  const int64_t now = nowNs();
  if (control) {
    uint64_t progress = 0;
    for (size_t q = 0; q < control->numQueuesOfRank(); ++q)
      progress += control->queue(self, q).progress.load(std::memory_order_relaxed);
    if (progress != std::exchange(progressSeen, progress))
      progressNs = now;
  }
  const int64_t silentNs = std::max(kSilentNs, kSilentPeriods * periodNs);
  silentPeers.clear();
  for (int64_t rank = 0; rank < numPeers(); ++rank) {
    Peer &peer = peers[static_cast<size_t>(rank)];
    if (rank == self || peer.isLost)
      continue;
    const bool saysNothing = !peer.hasLeft && now - peer.heardNs > silentNs;
    if (saysNothing)
      silentPeers +=
          "; " + link->describe(rank) + " has not been heard of for " + seconds(now - peer.heardNs);
    if (control)
      control->queue(rank, kComputeQueue).silentSince.store(saysNothing ? peer.heardNs : 0);
    if (peer.hasLeft) {
      // What it sent before may still arrive, so a wait for it is an error after a second only.
      if (control && std::min(now - progressNs, now - peer.leftNs) > 1000000000 &&
          !control->waiter(rank).empty())
        lose(rank, link->describe(rank) + " has ended its part of the job", false);
      continue;
    }
    if (const Status &status = link->state(rank); !status.ok()) {
      // A connection may break off in front of what the peer said last, which is read until the
      // next time.
      if (std::exchange(peer.isBroken, true))
        lose(rank, status.message(), false);
      continue;
    }
    // Of others it tells who is connected to them; a relay that ends takes their voices with it.
    const bool isWatched = (peer.isWatched && frames.isNeighbour(rank)) || peer.isSilent;
    if (isWatched && limitNs > 0 && now - peer.heardNs > limitNs) {
      lose(rank, link->describe(rank) + " has not been heard of for " + seconds(now - peer.heardNs),
           false);
      continue;
    }
    if (now - peer.heardNs <= silentNs)
      continue;
    // Nothing says that it still waits there; others that wait for it then name it.
    for (size_t q = 0; control && q < control->numQueuesOfRank(); ++q)
      control->queue(rank, q).waiting.store(Waiting::nothing, std::memory_order_release);
    if (isWatched && peer.isKnown && now - peer.watchedNs > silentNs) {
      peer.isSilent = true;
      frames.setSilent(rank, true);
    }
  }
  for (int64_t rank = 0; rank < numPeers(); ++rank) {
    Peer &peer = peers[static_cast<size_t>(rank)];
    if (std::exchange(peer.isWatched, frames.isNeighbour(rank)) != frames.isNeighbour(rank))
      peer.watchedNs = now;
  }
}

bool Control::othersOfHostHaveLeft() const {
  for (int64_t rank = 0; rank < numPeers(); ++rank) {
    const Peer &peer = peers[static_cast<size_t>(rank)];
    if (rank != self && frames.isOnThisHost(rank) && !peer.hasLeft && !peer.isLost)
      return false;
  }
  return true;
}

void Control::lose(int64_t rank, const std::string &what, bool isTold) {
  Peer &peer = peers[static_cast<size_t>(rank)];
  if (rank != self && std::exchange(peer.isLost, true))
    return;
  const Status status = !control && other
                            ? other->second
                            : Status::error(what, circumstances(rank), Code::rankFailed);
  if (rank != self) {
    frames.setGone(rank);
    link->lose(rank, status); // whoever ends does not wait until the peer has heard of it
  }
  if (!isTold)
    untold.emplace_back(Lost{rank, what});
  if (loss.ok())
    loss = status;
  if (!control)
    return;
  isShared = isShared || (isTold && !control->failed());
  control->fail(status);
  shareFailure(control->failure());
}

} // namespace braid::runtime::net
