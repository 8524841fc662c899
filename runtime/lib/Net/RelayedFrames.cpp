//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RelayedFrames.h"

#include <algorithm>

namespace braid::runtime::net {

/// The first frames of processes that start at about the same time are sent together.
constexpr int64_t kGatherFirstNs = 5000000;
// The largest frame that a receiver takes fits in a message.
static_assert(encodedRelayedBytes(kMaxFrameBytes) <= kMaxControlBytes);
/// What waits for a message in front of it is tried again after so long.
constexpr int64_t kRetryNs = 1000000;

RelayedFrames::RelayedFrames(Link &link, std::string key, std::string purpose,
                             std::vector<int64_t> hosts, int64_t gatherNs, Handler handler)
    : link(link), seal(std::move(key), std::move(purpose)), hosts(std::move(hosts)),
      gatherNs(gatherNs), handler(std::move(handler)), peers(this->hosts.size()),
      relays(static_cast<size_t>(*std::max_element(this->hosts.begin(), this->hosts.end()) + 1)) {
  findNeighbours();
  link.setHandler([this](const std::byte *data, size_t bytes) { onMessage(data, bytes); });
}

void RelayedFrames::setGone(int64_t rank) {
  Peer &peer = at(rank);
  peer.isGone = true;
  peer.placesOf.clear();
  // What it was to pass on goes to the next relay, which may see it twice.
  const std::deque<Waiting> told = std::exchange(peer.told, {});
  findNeighbours();
  for (const Waiting &waiting : told)
    if (waiting.reach == Reach::all)
      pass(link.rank(), waiting.envelope, false, Reach::all, 0);
}

void RelayedFrames::setSilent(int64_t rank, bool isSilent) {
  if (std::exchange(at(rank).isSilent, isSilent) != isSilent)
    findNeighbours();
}

void RelayedFrames::findNeighbours() {
  const int64_t self = link.rank(), ranks = link.ranks();
  std::vector<int64_t> silent(relays.size(), -1);
  std::fill(relays.begin(), relays.end(), -1);
  for (int64_t rank = ranks - 1; rank >= 0; --rank)
    if (!at(rank).isGone)
      (at(rank).isSilent ? silent : relays)[static_cast<size_t>(host(rank))] = rank;
  for (size_t h = 0; h < relays.size(); ++h)
    if (relays[h] < 0)
      relays[h] = silent[h];
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Peer &peer = at(rank);
    const bool was = peer.isNeighbour;
    peer.isNeighbour = rank != self && !peer.isGone &&
                       (isRelay() ? isOnThisHost(rank) || relayOf(host(rank)) == rank
                                  : relayOf(host(self)) == rank);
    if (peer.isNeighbour && !was && peer.received != 0)
      tellKnown(rank);
  }
}

void RelayedFrames::tell(const Frame &frame) {
  auto envelope =
      std::make_shared<const FrameBytes>(seal.seal(link.rank(), kAllRanks, ++sent, encode(frame)));
  const bool isPlaces = std::holds_alternative<Places>(frame);
  if (isPlaces)
    at(link.rank()).places = envelope;
  pass(link.rank(), envelope, isPlaces, Reach::all, 0);
}

void RelayedFrames::pass(int64_t sender, const std::shared_ptr<const FrameBytes> &envelope,
                         bool isPlaces, Reach reach, int64_t dueNs) {
  if (reach == Reach::receiver)
    return;
  if (reach == Reach::all && sender == link.rank() && !isRelay()) {
    if (const int64_t relay = relayOf(host(sender)); relay >= 0)
      add(relay, sender, {envelope, Reach::all}, isPlaces, dueNs);
    return;
  }
  for (int64_t rank = 0; rank < link.ranks(); ++rank)
    if (rank != link.rank() && rank != sender && isOnThisHost(rank))
      add(rank, sender, {envelope, Reach::receiver}, isPlaces, dueNs);
  for (size_t h = 0; reach == Reach::all && h < relays.size(); ++h)
    if (relays[h] >= 0 && !isOnThisHost(relays[h]))
      add(relays[h], sender, {envelope, Reach::host}, isPlaces, dueNs);
}

void RelayedFrames::tellKnown(int64_t neighbour) {
  const int64_t self = link.rank();
  const bool isOfThisHost = isOnThisHost(neighbour);
  for (int64_t rank = 0; rank < link.ranks(); ++rank) {
    const Reach reach = !isOfThisHost ? Reach::host : isRelay() ? Reach::receiver : Reach::all;
    // Relays hear of ranks of other hosts from these hosts' relays.
    if (at(rank).places && rank != neighbour &&
        (rank == self || (isRelay() && (isOfThisHost || isOnThisHost(rank)))))
      add(neighbour, rank, {at(rank).places, reach}, true, nowNs() + kGatherFirstNs);
  }
}

void RelayedFrames::add(int64_t receiver, int64_t sender, Waiting waiting, bool isPlaces,
                        int64_t dueNs) {
  Peer &peer = at(receiver);
  if (peer.isGone)
    return;
  peer.dueNs = std::min(peer.dueNs, dueNs);
  if (isPlaces)
    peer.placesOf[sender] = std::move(waiting);
  else
    peer.told.push_back(std::move(waiting));
}

int64_t RelayedFrames::send(int64_t now) {
  int64_t next = INT64_MAX;
  for (int64_t rank = 0; rank < link.ranks(); ++rank) {
    Peer &peer = at(rank);
    if (!link.state(rank).ok()) {
      peer.told.clear();
      peer.placesOf.clear();
    }
    if (peer.dueNs > now || sendTo(rank))
      next = std::min(next, peer.dueNs);
    else
      next = std::min(next, now + kRetryNs);
  }
  return next;
}

/// False when not all could be sent.
bool RelayedFrames::sendTo(int64_t receiver) {
  Peer &peer = at(receiver);
  while (!peer.told.empty() || !peer.placesOf.empty()) {
    FrameBytes message;
    auto fits = [&message](const Waiting &waiting) {
      return message.size() + encodedRelayedBytes(waiting.envelope->size()) <= kMaxControlBytes;
    };
    auto told = peer.told.begin();
    for (; told != peer.told.end() && fits(*told); ++told)
      appendRelayed(message, told->reach, *told->envelope);
    auto places = peer.placesOf.begin();
    if (told == peer.told.end())
      for (; places != peer.placesOf.end() && fits(places->second); ++places)
        appendRelayed(message, places->second.reach, *places->second.envelope);
    if (!link.sendControl(receiver, message))
      return false;
    peer.told.erase(peer.told.begin(), told);
    peer.placesOf.erase(peer.placesOf.begin(), places);
  }
  peer.dueNs = INT64_MAX;
  return true;
}

void RelayedFrames::onMessage(const std::byte *data, size_t bytes) {
  Result<std::vector<Relayed>> message = parseRelayed(data, bytes);
  if (message.ok())
    for (const Relayed &relayed : *message)
      onEnvelope(relayed);
}

void RelayedFrames::onEnvelope(const Relayed &relayed) {
  Result<Envelope> envelope = parseEnvelope(relayed.envelope, relayed.bytes);
  if (!envelope.ok() || envelope->sender < 0 || envelope->sender >= link.ranks() ||
      envelope->sender == link.rank())
    return;
  const int64_t sender = envelope->sender;
  Peer &peer = at(sender);
  // A number that came before is of a frame that came another way, or that somebody repeats.
  if (envelope->number <= peer.received ||
      !seal.isGenuine(*envelope, kAllRanks, relayed.envelope, relayed.bytes))
    return;
  const bool isFirst = peer.received == 0;
  peer.received = envelope->number;
  Result<Frame> frame = parseFrame(envelope->frame, envelope->frameBytes);
  if (!frame.ok())
    return;
  const bool isPlaces = std::holds_alternative<Places>(*frame);
  const auto kept =
      std::make_shared<const FrameBytes>(relayed.envelope, relayed.envelope + relayed.bytes);
  if (isPlaces)
    peer.places = kept;
  pass(sender, kept, isPlaces, relayed.reach,
       !isPlaces ? 0 : nowNs() + (isFirst ? std::min(kGatherFirstNs, gatherNs) : gatherNs));
  // It listens from now on.
  if (isFirst && peer.isNeighbour)
    tellKnown(sender);
  handler(sender, *frame);
}

} // namespace braid::runtime::net
