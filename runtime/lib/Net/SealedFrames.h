//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Frames between the ranks of a link, as its messages of control. Each carries its sender, a number
// that rises and an HMAC of a key that the ranks share, so that nobody else can make or repeat one.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_SEALEDFRAMES_H
#define BRAID_NET_SEALEDFRAMES_H

#include "EnvelopeSeal.h"
#include "Link.h"

#include <deque>

namespace braid::runtime::net {

class SealedFrames {
public:
  /// Called while the link makes progress.
  using Handler = std::function<void(int64_t sender, const Frame &frame)>;
  /// `purpose` tells apart what the key is used for. The link must outlive this, or make no
  /// progress any more.
  SealedFrames(Link &link, std::string key, std::string purpose, Handler handler);
  SealedFrames(const SealedFrames &) = delete;
  SealedFrames &operator=(const SealedFrames &) = delete;

  /// Sends now; false, and nothing is sent, while the last one to this peer has not left.
  bool send(int64_t peer, const FrameBytes &frame);
  /// Frames that must not be left out: they wait until those in front have left.
  void tell(int64_t peer, const Frame &frame);
  void tellAll(const Frame &frame);
  /// Sends what can be sent of them, and drops those for lost peers; true when none is left.
  bool sendWaiting();
  bool hasWaiting(int64_t peer) const { return !at(peer).waiting.empty(); }

private:
  struct Peer {
    uint64_t sent = 0, received = 0; ///< numbers of frames
    std::deque<FrameBytes> waiting;
  };
  void onFrame(const std::byte *data, size_t bytes);
  Peer &at(int64_t peer) { return peers[static_cast<size_t>(peer)]; }
  const Peer &at(int64_t peer) const { return peers[static_cast<size_t>(peer)]; }

  Link &link;
  const EnvelopeSeal seal;
  const Handler handler;
  std::vector<Peer> peers; ///< with an unused one for this process
};

} // namespace braid::runtime::net
#endif // BRAID_NET_SEALEDFRAMES_H
