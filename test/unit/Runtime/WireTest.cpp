//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/Wire.h"
#include "Testing.h"
#include "WireFrames.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::testing;

namespace {

Result<Frame> parse(const FrameBytes &bytes) { return parseFrame(bytes.data(), bytes.size()); }

TEST(Wire, EveryFrameComesBack) {
  const std::vector<Frame> frames = sampleFrames();
  ASSERT_EQ(frames.size(), std::variant_size_v<Frame>);
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].index(), i);
    const FrameBytes bytes = encode(frames[i]);
    Result<Frame> back = parse(bytes);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->index(), i);
    EXPECT_EQ(encode(*back), bytes);
  }
  const Hello hello = std::get<Hello>(*parse(encode(frames[2])));
  EXPECT_EQ(hello.job, "job7");
  EXPECT_EQ(hello.rank, 3);
  EXPECT_EQ(hello.addresses, (std::vector<std::string>{"one", "two"}));
  const Places places = std::get<Places>(*parse(encode(frames[7])));
  ASSERT_EQ(places.queues.size(), 2U);
  EXPECT_EQ(places.queues[1].missing[0].rank, 5);
  EXPECT_EQ(places.queues[1].path, "@main");
  EXPECT_EQ(places.queues[1].awaitedQueue, 1U);
}

TEST(Wire, EveryCutFrameIsRefused) {
  for (const Frame &frame : sampleFrames()) {
    const FrameBytes bytes = encode(frame);
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(parseFrame(bytes.data(), size).ok()) << frame.index() << " cut to " << size;
    FrameBytes longer = bytes;
    longer.push_back(std::byte(0));
    EXPECT_FALSE(parse(longer).ok());
  }
}

TEST(Wire, LengthsAreNotBelieved) {
  // The count of a table's members, and the length of a text, say 4 GiB.
  FrameBytes table = encode(Table());
  std::fill(table.end() - 4, table.end(), std::byte(0xff));
  EXPECT_ERROR(parse(table), "a frame of kind 4 and 57 bytes has other fields than expected");
  FrameBytes refusal = encode(Refusal());
  std::fill(refusal.end() - 4, refusal.end(), std::byte(0xff));
  EXPECT_ERROR(parse(refusal), "a frame of kind 3 and 9 bytes has other fields than expected");
}

TEST(Wire, OtherBytesAreRefused) {
  EXPECT_ERROR(parse({}), "bytes that are no frame of Braid");
  EXPECT_ERROR(parse(FrameBytes(100, std::byte('G'))), "bytes that are no frame of Braid");
  EXPECT_ERROR(parse(FrameBytes(kMaxFrameBytes + 1)),
               "a frame of 65537 bytes, at most 65536 are expected");
  FrameBytes bytes = encode(Go());
  bytes.back() = std::byte(77);
  EXPECT_ERROR(parse(bytes), "a frame of the unknown kind 77");
  // A flag is 0 or 1, so that a frame has one form.
  bytes = encode(Places());
  bytes[13] = std::byte(2);
  EXPECT_FALSE(parse(bytes).ok());
}

TEST(Wire, LongTextsAreCut) {
  const Frame frame = *parse(encode(Refusal{std::string(kMaxTextBytes + 5, 'x')}));
  EXPECT_EQ(std::get<Refusal>(frame).text, std::string(kMaxTextBytes, 'x'));
}

TEST(Wire, Envelopes) {
  const FrameBytes frame = encode(Goodbye());
  FrameBytes bytes = encodeEnvelope(6, 70000000000, frame);
  bytes.resize(bytes.size() + 32, std::byte(9));
  Result<Envelope> envelope = parseEnvelope(bytes.data(), bytes.size());
  ASSERT_OK(envelope);
  EXPECT_EQ(envelope->sender, 6);
  EXPECT_EQ(envelope->number, 70000000000U);
  EXPECT_EQ(FrameBytes(envelope->frame, envelope->frame + envelope->frameBytes), frame);
  EXPECT_EQ(envelope->mac[31], std::byte(9));
  for (size_t size = 0; size < 48; ++size)
    EXPECT_FALSE(parseEnvelope(bytes.data(), size).ok()) << size;
  EXPECT_TRUE(parseEnvelope(bytes.data(), 48).ok());
  EXPECT_ERROR(parseEnvelope(bytes.data(), 40), "an envelope of 40 bytes is too short");
  EXPECT_ERROR(parseSealed(bytes.data(), 31), "a frame of 31 bytes has no room for its HMAC");
  EXPECT_ERROR(parseSealed(bytes.data(), kMaxFrameBytes + 1),
               "a frame of 65537 bytes, at most 65536 are expected");
}

TEST(Wire, MessagesOfEnvelopes) {
  const FrameBytes first = encodeEnvelope(6, 1, encode(Goodbye())), second(3, std::byte(1));
  FrameBytes message;
  appendRelayed(message, Reach::all, first);
  appendRelayed(message, Reach::receiver, second);
  EXPECT_EQ(message.size(), encodedRelayedBytes(first.size()) + encodedRelayedBytes(second.size()));
  Result<std::vector<Relayed>> relayed = parseRelayed(message.data(), message.size());
  ASSERT_OK(relayed);
  ASSERT_EQ(relayed->size(), 2U);
  EXPECT_EQ(relayed->at(0).reach, Reach::all);
  EXPECT_EQ(FrameBytes(relayed->at(0).envelope, relayed->at(0).envelope + relayed->at(0).bytes),
            first);
  EXPECT_EQ(relayed->at(1).reach, Reach::receiver);
  EXPECT_EQ(relayed->at(1).bytes, second.size());
  for (size_t size = 1; size < message.size(); ++size)
    EXPECT_EQ(parseRelayed(message.data(), size).ok(), size == encodedRelayedBytes(first.size()))
        << size;
  const size_t at = encodedRelayedBytes(first.size());
  message[at] = std::byte(3);
  EXPECT_ERROR(parseRelayed(message.data(), message.size()),
               "a message of " + std::to_string(message.size()) +
                   " bytes has no envelope at byte " + std::to_string(at));
}

} // namespace
