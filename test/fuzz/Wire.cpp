//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses bytes as other processes may send them while a job starts, and afterwards. What is
// accepted is the same after it was encoded again, and takes memory in proportion to its bytes.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/Wire.h"
#include "Fuzz.h"

#include <cstring>

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::fuzz;

static void parse(const std::byte *data, size_t size) {
  Result<Frame> frame = parseFrame(data, size);
  if (!frame.ok())
    return;
  const FrameBytes bytes = encode(*frame);
  require(bytes.size() == size && std::memcmp(bytes.data(), data, size) == 0,
          "a frame is the same after it was parsed and encoded");
  if (const auto *table = std::get_if<Table>(&*frame)) {
    size_t inMembers = 0;
    for (const Member &member : table->members)
      inMembers += encodedBytes(member);
    require(inMembers < size, "members are no larger than their table");
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto *bytes = reinterpret_cast<const std::byte *>(data);
  parse(bytes, size);
  if (Result<ArenaMessage> message = parseArenaMessage(bytes, size); message.ok())
    require(encode(*message) == FrameBytes(bytes, bytes + size),
            "a message is the same after it was parsed and encoded");
  if (Result<Sealed> sealed = parseSealed(bytes, size); sealed.ok())
    parse(bytes, sealed->bytes);
  if (Result<std::vector<Relayed>> message = parseRelayed(bytes, size); message.ok()) {
    FrameBytes back;
    for (const Relayed &relayed : *message)
      appendRelayed(back, relayed.reach,
                    FrameBytes(relayed.envelope, relayed.envelope + relayed.bytes));
    require(back == FrameBytes(bytes, bytes + size),
            "a message of envelopes is the same after it was parsed and made again");
  }
  Result<Envelope> envelope = parseEnvelope(bytes, size);
  if (!envelope.ok())
    return 0;
  require(envelope->frame >= bytes && envelope->frame + envelope->frameBytes + 32 == bytes + size,
          "an envelope's frame lies before its HMAC");
  const FrameBytes frame(envelope->frame, envelope->frame + envelope->frameBytes);
  FrameBytes back = encodeEnvelope(envelope->sender, envelope->number, frame);
  back.insert(back.end(), envelope->mac.begin(), envelope->mac.end());
  require(back.size() == size && std::memcmp(back.data(), data, size) == 0,
          "an envelope is the same after it was parsed and encoded");
  parse(envelope->frame, envelope->frameBytes);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  // Often a length of four bytes becomes another one.
  Random random(seed);
  if (size >= 9 && random.oneIn(3)) {
    const auto length = static_cast<uint32_t>(otherInteger(static_cast<int64_t>(size), random));
    std::memcpy(data + random.below(size - 4), &length, sizeof length);
    return size;
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}
