//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the thread of a group does.
//
//===----------------------------------------------------------------------===//
#include "Group.h"
#include "runtime/lib/Sync/Counter.h"
#include "runtime/lib/Sync/RunControl.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

using net::Transfer;

namespace {

constexpr int64_t kMs = 1000000;
constexpr int64_t kSliceNs = 50 * kMs; ///< of a wait
/// Where both links and memory are awaited, or only memory, the other is looked at so often.
constexpr int64_t kNapNs = kMs / 10, kLongNapNs = kMs;
constexpr int64_t kIdleNs = 1000 * kMs;    ///< of a wait for something to do
constexpr int64_t kPatienceNs = 100 * kMs; ///< before a rank tells the others where it waits
constexpr int64_t kPeriodNs = 250 * kMs;   ///< from one such word to the next
constexpr int64_t kSilenceNs = 1500 * kMs; ///< after which a rank is said to be silent
/// What a rank sent before it left has come by then.
constexpr int64_t kLeftNs = 1000 * kMs;
constexpr int64_t kWordNs = 200 * kMs; ///< for the last word of a group that ends
constexpr int64_t kCloseNs = 500 * kMs;
constexpr int64_t kGoodbyeNs = 2000 * kMs;
// Of a round: so many collectives, or so many bytes of them.
constexpr int64_t kRoundCollectives = 128;
constexpr int64_t kRoundBytes = int64_t(128) << 20;

// A tag: of a send its own in the low 32 bits; of a round its number; of a collective a hash of it
// and of those before it (14 bits), its number (16 bits) and 32 bits for its messages.
constexpr uint64_t kPointToPoint = uint64_t(1) << 63, kRound = uint64_t(1) << 62;

/// FNV-1a, which is the same in all processes.
uint64_t extended(uint64_t history, const std::string &text) {
  for (char c : text)
    history = (history ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return (history ^ 0xff) * 1099511628211u;
}

bool areDone(const std::vector<std::unique_ptr<Transfer>> &transfers) {
  return std::all_of(transfers.begin(), transfers.end(),
                     [](const auto &transfer) { return transfer->done(); });
}

} // namespace

void Group::loop() {
  while (!isOver) {
    takeAsked();
    const bool moved = pending.ok() && step();
    if (isOver)
      break;
    const int64_t now = nowNs();
    if (!pending.ok()) {
      fail(pending, isTold);
      break;
    }
    watchProcesses(now);
    checkLimits(now);
    if (isClosing.load() && !isOver) {
      takeAsked();
      if (isIdle())
        return sayGoodbye();
      if (now >= closeNs.load())
        fail(Status::error(where(), ": the group is closed before it has ended", Code::rankFailed),
             true);
    }
    if (isOver)
      break;
    tellPlace(now);
    const bool allSent = frames->sendWaiting();
    if (moved)
      continue;
    // What waits for a frame in front of it is tried again soon.
    const int64_t until = now + (!allSent ? kMs : isIdle() ? kIdleNs : kSliceNs);
    if (Status status = wait(until); !status.ok())
      fail(status.within(where()), false);
  }
  failAll();
}

Status Group::wait(int64_t until) {
  const Engine::Awaited awaited = hasBegun ? engine->awaited() : Engine::Awaited();
  if (!awaited.counter) {
    // Ranks of the host may go on meanwhile.
    const bool alsoCounts = hasBegun && engine->sharesMemory();
    return link->progress(alsoCounts ? std::min(until, nowNs() + kNapNs) : until,
                          hasBegun ? engine->latenessNs() : 0);
  }
  // What comes over the link is looked at now and then.
  const int64_t nap = engine->hasLinks() || !messages.empty() ? kNapNs : kLongNapNs;
  if (!spin.reaches(*awaited.counter, awaited.target))
    awaited.counter->waitOnce(awaited.target, std::clamp<int64_t>(until - nowNs(), 0, nap));
  return link->progress(0);
}

void Group::queueAsked() {
  for (Operation &operation : asked)
    queue.push_back(std::move(operation));
  for (auto &message : askedMessages)
    messages.push_back(std::move(message));
  asked.clear();
  askedMessages.clear();
}

void Group::takeAsked() {
  const std::lock_guard<std::mutex> lock(mutex);
  queueAsked();
  if (!endAsked.ok() && pending.ok()) {
    pending = endAsked;
    isTold = true;
  }
}

bool Group::step() {
  bool moved = moveMessages();
  if (!queue.empty() && !hasBegun && !isOver)
    moved |= begin();
  if (hasBegun && !isOver)
    moved |= advance();
  return moved;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Of what a rank keeps for itself, both sides are known here.
Status Group::checkOwn(const std::vector<GroupMessage> &all) const {
  std::vector<int64_t> own[2]; // received, sent
  for (const GroupMessage &message : all)
    if (message.peer == options.rank)
      own[message.isSend].push_back(message.bytes);
  for (size_t i = 0; i < std::min(own[0].size(), own[1].size()); ++i)
    if (own[0][i] != own[1][i])
      return Status::error(describe(options.rank), " keeps ", own[1][i],
                           " bytes for itself where it expects ", own[0][i]);
  return {};
}

bool Group::begin() {
  const Operation &operation = queue.front();
  if (turnNs == 0) {
    turnNs = nowNs();
    records[(ended + 1) % records.size()] = {ended + 1, history, operation.signature};
  }
  if (!hasRoundEnded())
    return false;
  const uint64_t hash = extended(history, operation.signature);
  const uint64_t tag = ((hash ^ hash >> 32) & 0x3fff) << 48 | ((ended + 1) & 0xffff) << 32;
  Status status;
  if (operation.collective) {
    status = engine->begin(*operation.collective, tag);
  } else {
    status = checkOwn(operation.messages);
    if (status.ok())
      status = engine->begin(operation.messages, tag);
  }
  if (!status.ok()) {
    fail(status.within(where()), true);
    return true;
  }
  hasBegun = true;
  return true;
}

bool Group::advance() {
  if (const Status status = engine->advance(); !status.ok()) {
    fail(status.within(where()), true);
    return true;
  }
  if (!engine->isDone())
    return false;
  const Operation operation = std::move(queue.front());
  queue.pop_front();
  hasBegun = false;
  turnNs = 0;
  ++ended;
  history = extended(history, operation.signature);
  bytesOfRound += operation.bytes;
  if (++collectivesOfRound >= kRoundCollectives || bytesOfRound >= kRoundBytes)
    beginRound();
  operation.done({});
  return true;
}

void Group::beginRound() {
  collectivesOfRound = bytesOfRound = 0;
  Round &next = rounds[++round % 2];
  next.mine = {ended, history};
  next.theirs.assign(static_cast<size_t>(options.size), {});
  next.transfers.clear();
  next.peers.clear();
  const uint64_t tag = kRound | round;
  for (const bool isSend : {false, true})
    for (int64_t peer = 0; peer < options.size; ++peer) {
      if (peer == options.rank)
        continue;
      next.transfers.push_back(std::make_unique<Transfer>());
      next.peers.push_back(peer);
      if (isSend)
        link->send(*next.transfers.back(), peer, tag, &next.mine, sizeof next.mine);
      else
        link->receive(*next.transfers.back(), peer, tag, &next.theirs[static_cast<size_t>(peer)],
                      sizeof next.mine);
    }
}

bool Group::hasRoundEnded() {
  Round &before = rounds[(round + 1) % 2];
  if (!areDone(before.transfers))
    return false;
  for (size_t i = 0; i < before.transfers.size(); ++i) {
    const auto peer = static_cast<size_t>(before.peers[i]);
    Status status = before.transfers[i]->status();
    const Round::Mark &mark = before.theirs[peer];
    if (status.ok() && i < peers.size() - 1 &&
        (mark.collectives != before.mine.collectives || mark.history != before.mine.history))
      status = Status::error(names[static_cast<size_t>(options.rank)], " and ", names[peer],
                             " ran different collectives among the first ", before.mine.collectives,
                             Code::rankFailed);
    if (!status.ok()) {
      fail(status.within(where()), true);
      return false;
    }
  }
  before.transfers.clear();
  before.peers.clear();
  return true;
}

int64_t Group::awaitedRank() const {
  if (hasBegun)
    return engine->awaited().rank;
  const Round &before = rounds[(round + 1) % 2];
  for (size_t i = 0; i < before.transfers.size(); ++i)
    if (!before.transfers[i]->done())
      return before.peers[i];
  return -1;
}

//===----------------------------------------------------------------------===//
// Sends and receives
//===----------------------------------------------------------------------===//

bool Group::moveMessages() {
  bool moved = false;
  for (size_t i = 0; i < messages.size();) {
    PointToPoint &message = *messages[i];
    const uint64_t tag = kPointToPoint | message.tag;
    if (message.beganNs == 0)
      message.beganNs = nowNs();
    if (!message.isPosted && message.peer < 0)
      message.peer = link->senderOf(tag);
    if (!message.isPosted && message.peer >= 0) {
      const auto bytes = static_cast<size_t>(message.bytes);
      if (message.isSend)
        link->send(message.transfer, message.peer, tag, message.data, bytes);
      else
        link->receive(message.transfer, message.peer, tag, message.data, bytes);
      message.isPosted = true;
    }
    if (!message.isPosted || !message.transfer.done()) {
      ++i;
      continue;
    }
    moved = true;
    if (!message.transfer.status().ok()) {
      fail(message.transfer.status().within(whatOf(message)), true);
      return true;
    }
    const std::unique_ptr<PointToPoint> ended = std::move(messages[i]);
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(i));
    ended->done({}, ended->peer);
  }
  return moved;
}

/// "recv (8 bytes, tag 3) from rank 1 (a) in the group 'g'"
std::string Group::whatOf(const PointToPoint &message) const {
  return std::string(message.isSend ? "send" : "recv") + " (" + std::to_string(message.bytes) +
         " bytes, tag " + std::to_string(message.tag) + (message.isSend ? ") to " : ") from ") +
         (message.peer < 0 ? "any rank" : describe(message.peer)) + " in the group " +
         inQuotes(options.name);
}

//===----------------------------------------------------------------------===//
// What ranks tell each other
//===----------------------------------------------------------------------===//

net::GroupPlace Group::place(int64_t now) const {
  net::GroupPlace place;
  place.ended = ended;
  place.isRunning = turnNs != 0;
  place.waitedNs = turnNs != 0 ? now - turnNs : 0;
  place.history = history;
  if (place.isRunning)
    place.signature = queue.front().signature;
  return place;
}

void Group::tellPlace(int64_t now) {
  const bool waits = (turnNs != 0 && now - turnNs > kPatienceNs) ||
                     std::any_of(messages.begin(), messages.end(), [&](const auto &message) {
                       return now - message->beganNs > kPatienceNs;
                     });
  if (!waits || now - toldNs < kPeriodNs)
    return;
  toldNs = now;
  net::GroupPlace mine = place(now);
  mine.asks = true;
  const net::FrameBytes frame = net::encode(mine);
  for (int64_t peer = 0; peer < options.size; ++peer)
    // One that still waits for earlier ones to leave has nothing from more of them.
    if (peer != options.rank && !frames->hasWaiting(peer))
      frames->send(peer, frame);
}

void Group::onFrame(int64_t sender, const net::Frame &frame) {
  Peer &peer = peers[static_cast<size_t>(sender)];
  peer.heardNs = nowNs();
  if (const auto *place = std::get_if<net::GroupPlace>(&frame)) {
    peer.place = *place;
    compare(sender, *place);
    if (place->asks)
      frames->tell(sender, this->place(peer.heardNs));
  } else if (const auto *told = std::get_if<net::Failure>(&frame)) {
    if (!pending.ok())
      return;
    pending = Status::error(describe(sender), " has ended the group ", inQuotes(options.name), ": ",
                            told->text, Code::rankFailed);
    isTold = false; // all know it from its sender
  } else if (std::holds_alternative<net::Goodbye>(frame)) {
    peer.hasLeft = true;
    peer.leftNs = peer.heardNs;
    frames->tell(sender, net::GoodbyeHeard());
  } else if (std::holds_alternative<net::GoodbyeHeard>(frame)) {
    peer.hasHeard = true;
  }
}

void Group::compare(int64_t sender, const net::GroupPlace &place) {
  const uint64_t number = place.ended + 1;
  const Record &mine = records[number % records.size()];
  if (!place.isRunning || mine.number != number || !pending.ok())
    return;
  const std::string self = describe(options.rank), other = describe(sender);
  const std::string at =
      "collective " + std::to_string(number) + " of the group " + inQuotes(options.name);
  if (mine.signature != place.signature)
    pending = Status::error(at, ": ", self, " runs ", mine.signature, ", ", other, " runs ",
                            place.signature, Code::rankFailed);
  else if (mine.history != place.history)
    pending = Status::error(at, ", ", mine.signature, ": ", self, " and ", other,
                            " have run different collectives before it", Code::rankFailed);
  isTold = isTold || !pending.ok();
}

/// "all_reduce (sum, 8 f32), collective 7 of the group 'g'"
std::string Group::where() const {
  const std::string group = "the group " + inQuotes(options.name);
  return queue.empty() ? group
                       : queue.front().signature + ", collective " + std::to_string(ended + 1) +
                             " of " + group;
}

std::string Group::whatIsKnown(int64_t rank, int64_t now) const {
  const Peer &peer = peers[static_cast<size_t>(rank)];
  if (peer.hasLeft)
    return ", which has left the group";
  if (peer.heardNs == 0 || now - peer.heardNs > kSilenceNs)
    return ", which does not answer";
  if (!peer.place.isRunning)
    return ", which has ended " + std::to_string(peer.place.ended) + " collectives and runs none";
  if (peer.place.ended == ended && turnNs != 0)
    return ", which runs it, too";
  return ", which runs " + peer.place.signature + ", its collective " +
         std::to_string(peer.place.ended + 1);
}

void Group::watchProcesses(int64_t now) {
  if (isIdle() || now - watchedNs < kSliceNs)
    return;
  watchedNs = now;
  for (const int64_t rank : watch.takeEnded())
    peers[static_cast<size_t>(rank)].endedNs = now;
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    const Peer &peer = peers[rank];
    const auto number = static_cast<int64_t>(rank);
    // It may have said why.
    if (peer.endedNs != 0 && now - peer.endedNs > kWordNs && !peer.hasLeft &&
        link->state(number).ok())
      link->lose(number, Status::error("the connection to ", link->describe(number),
                                       " is lost: its process has ended", Code::rankFailed));
  }
}

void Group::checkLimits(int64_t now) {
  const std::string &self = names[static_cast<size_t>(options.rank)];
  auto check = [&](int64_t beganNs, int64_t limitNs, int64_t awaited, const auto &what) {
    const int64_t waitedNs = now - beganNs;
    const bool isLate = limitNs > 0 && waitedNs >= limitNs;
    const Peer *peer = awaited < 0 ? nullptr : &peers[static_cast<size_t>(awaited)];
    const bool isGone = peer && peer->hasLeft && std::min(waitedNs, now - peer->leftNs) > kLeftNs;
    if (!isLate && !isGone)
      return true;
    fail(Status::error(what(), ": ", self, " has waited ", seconds(waitedNs), " for ",
                       awaited < 0 ? "the others" : describe(awaited) + whatIsKnown(awaited, now),
                       Code::rankFailed),
         true);
    return false;
  };
  if (turnNs != 0 && !check(turnNs, queue.front().limitNs, awaitedRank(), [&] { return where(); }))
    return;
  for (const auto &message : messages)
    if (message->beganNs != 0 &&
        !check(message->beganNs, message->limitNs, message->peer, [&] { return whatOf(*message); }))
      return;
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void Group::moveFrames(int64_t until) {
  while (!frames->sendWaiting() && nowNs() < until)
    if (!link->progress(std::min(until, nowNs() + kMs)).ok())
      return;
}

void Group::fail(const Status &why, bool tellOthers) {
  Status status = why;
  // A rank that has left closes its connections.
  for (size_t peer = 0; peer < peers.size(); ++peer)
    if (const Status &lost = link->state(static_cast<int64_t>(peer));
        peers[peer].hasLeft && !lost.ok() &&
        why.message().find(lost.message()) != std::string::npos)
      status = Status::error(queue.empty() ? "" : where() + ": ", names[peer],
                             " has left the group", Code::rankFailed);
  {
    // From here on nobody signals the link.
    const std::lock_guard<std::mutex> lock(mutex);
    failure = status;
  }
  isOver = true;
  if (tellOthers) {
    frames->tellAll(net::Failure{0, static_cast<uint32_t>(status.code()), status.message()});
    moveFrames(nowNs() + kWordNs);
  }
  // Nothing uses the memory of what was asked for any more.
  (void)link->close(nowNs() + kCloseNs);
  engine->abandon(nowNs());
}

void Group::failAll() {
  Status status;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    status = failure;
    queueAsked();
  }
  for (const Operation &operation : queue)
    operation.done(status);
  for (const auto &message : messages)
    message->done(status, -1);
  queue.clear();
  messages.clear();
}

void Group::sayGoodbye() {
  frames->tellAll(net::Goodbye());
  auto isGone = [&](int64_t rank) {
    return rank == options.rank || peers[static_cast<size_t>(rank)].hasHeard ||
           !link->state(rank).ok();
  };
  for (const int64_t until = nowNs() + kGoodbyeNs; nowNs() < until;) {
    bool all = frames->sendWaiting();
    for (int64_t rank = 0; rank < options.size; ++rank)
      all = all && isGone(rank);
    if (all || !link->progress(nowNs() + kMs).ok())
      break;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    failure = Status::error("the group ", inQuotes(options.name), " is closed");
  }
  (void)link->close(nowNs() + kCloseNs);
  failAll();
}

} // namespace braid::runtime
