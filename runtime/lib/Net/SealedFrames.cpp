//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SealedFrames.h"

namespace braid::runtime::net {

SealedFrames::SealedFrames(Link &link, std::string key, std::string purpose, Handler handler)
    : link(link), seal(std::move(key), std::move(purpose)), handler(std::move(handler)),
      peers(static_cast<size_t>(link.ranks())) {
  link.setHandler([this](const std::byte *data, size_t bytes) { onFrame(data, bytes); });
}

bool SealedFrames::send(int64_t receiver, const FrameBytes &frame) {
  if (!link.sendControl(receiver, seal.seal(link.rank(), receiver, at(receiver).sent + 1, frame)))
    return false;
  ++at(receiver).sent;
  return true;
}

void SealedFrames::tell(int64_t receiver, const Frame &frame) {
  at(receiver).waiting.push_back(encode(frame));
}

void SealedFrames::tellAll(const Frame &frame) {
  for (int64_t peer = 0; peer < link.ranks(); ++peer)
    if (peer != link.rank())
      tell(peer, frame);
}

bool SealedFrames::sendWaiting() {
  bool all = true;
  for (int64_t receiver = 0; receiver < link.ranks(); ++receiver) {
    std::deque<FrameBytes> &waiting = at(receiver).waiting;
    if (!link.state(receiver).ok())
      waiting.clear();
    while (!waiting.empty() && send(receiver, waiting.front()))
      waiting.pop_front();
    all &= waiting.empty();
  }
  return all;
}

void SealedFrames::onFrame(const std::byte *data, size_t bytes) {
  Result<Envelope> envelope = parseEnvelope(data, bytes);
  if (!envelope.ok() || envelope->sender < 0 || envelope->sender >= link.ranks() ||
      envelope->sender == link.rank())
    return;
  Peer &peer = at(envelope->sender);
  // A number that came before is of a frame that somebody repeats.
  if (envelope->number <= peer.received || !seal.isGenuine(*envelope, link.rank(), data, bytes))
    return;
  peer.received = envelope->number;
  Result<Frame> frame = parseFrame(envelope->frame, envelope->frameBytes);
  if (frame.ok())
    handler(envelope->sender, *frame);
}

} // namespace braid::runtime::net
