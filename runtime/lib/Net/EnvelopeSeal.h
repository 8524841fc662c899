//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The HMAC of envelopes (Wire.h), by a key that ranks share.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_ENVELOPESEAL_H
#define BRAID_NET_ENVELOPESEAL_H

#include "Secret.h"
#include "Wire.h"

#include <string>
#include <utility>

namespace braid::runtime::net {

/// The receiver of an envelope that is for all ranks.
constexpr int64_t kAllRanks = -1;

class EnvelopeSeal {
public:
  /// `purpose` tells apart what the key is used for.
  EnvelopeSeal(std::string key, std::string purpose)
      : key(std::move(key)), purpose(std::move(purpose)) {}

  /// The envelope, with its HMAC. Another receiver does not take it.
  FrameBytes seal(int64_t sender, int64_t receiver, uint64_t number,
                  const FrameBytes &frame) const {
    FrameBytes bytes = encodeEnvelope(sender, number, frame);
    const Block mac = macOf(receiver, bytes.data(), bytes.size());
    bytes.insert(bytes.end(), mac.begin(), mac.end());
    return bytes;
  }
  /// Whether somebody with the key has made this envelope, which is these bytes, for the receiver.
  bool isGenuine(const Envelope &envelope, int64_t receiver, const std::byte *data,
                 size_t bytes) const {
    return areEqual(macOf(receiver, data, bytes - envelope.mac.size()), envelope.mac);
  }

private:
  Block macOf(int64_t receiver, const std::byte *data, size_t bytes) const {
    return Mac(key, purpose).add(&receiver, sizeof receiver).add(data, bytes).value();
  }
  std::string key, purpose;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_ENVELOPESEAL_H
