//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Channel.h"

namespace braid::runtime::net {

Block Channel::mac(const void *data, size_t bytes, bool fromRankZero, uint64_t number,
                   const Block &challenge) const {
  return Mac(secret.text(), fromRankZero ? "braid start, from rank 0" : "braid start, to rank 0")
      .add(clientNonce)
      .add(challenge)
      .add(&number, sizeof number)
      .add(data, bytes)
      .value();
}

FrameBytes Channel::seal(const Frame &frame) {
  FrameBytes bytes = encode(frame);
  const Block block = mac(bytes.data(), bytes.size(), isRankZero, sent++, serverNonce);
  bytes.insert(bytes.end(), block.begin(), block.end());
  return bytes;
}

bool Channel::isGenuine(const std::byte *data, const Sealed &sealed, const Block &challenge) const {
  return areEqual(mac(data, sealed.bytes, !isRankZero, received, challenge), sealed.mac);
}

} // namespace braid::runtime::net
