//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What makes the frames of a start genuine.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_CHANNEL_H
#define BRAID_NET_CHANNEL_H

#include "Secret.h"
#include "Wire.h"

namespace braid::runtime::net {

/// Seals and opens the frames of one connection once both nonces are known.
class Channel {
public:
  Channel(const JobSecret &secret, bool isRankZero) : secret(secret), isRankZero(isRankZero) {}
  Block clientNonce{}, serverNonce{};

  /// The frame and its HMAC.
  FrameBytes seal(const Frame &frame);
  /// Whether the HMAC of the next frame that comes is right, for another nonce of rank 0 as well.
  bool isGenuine(const std::byte *data, const Sealed &sealed) const {
    return isGenuine(data, sealed, serverNonce);
  }
  bool isGenuine(const std::byte *data, const Sealed &sealed, const Block &challenge) const;
  /// Counts a frame that came.
  void accept() { ++received; }

private:
  Block mac(const void *data, size_t bytes, bool fromRankZero, uint64_t number,
            const Block &challenge) const;
  const JobSecret &secret;
  bool isRankZero;
  uint64_t sent = 0, received = 0;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_CHANNEL_H
