//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The frames by which the processes of a job find and watch each other, and their bytes. All bytes
// of frames that come from other processes are parsed here, by functions without state. Numbers are
// little-endian, and each frame has one form only: what is parsed and encoded again is the same.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_WIRE_H
#define BRAID_NET_WIRE_H

#include "braid/Base/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace braid::runtime::net {

/// Processes of different versions do not talk to each other. It changes with the frames, and with
/// the messages that collectives are cut into (chooseSchedule) or links are measured by
/// (Links.cpp).
constexpr uint32_t kProtocolVersion = 7;
/// The largest frame. A length that comes in a frame is compared with the bytes that are there
/// before anything is allocated.
constexpr size_t kMaxFrameBytes = size_t(1) << 16;
/// The longest text or address in a frame.
constexpr size_t kMaxTextBytes = size_t(1) << 14;

using FrameBytes = std::vector<std::byte>;
/// Random bytes, a key, or an HMAC.
using Block = std::array<std::byte, 32>;

// How a job starts (Bootstrap.h), in the order of the frames.

/// The first frame of a process to rank 0. A process of another version answers this frame, too.
struct Introduction {
  uint32_t version = kProtocolVersion;
  Block nonce{};
};
/// Rank 0's answer. With its HMAC it shows that rank 0 knows the secret.
struct Challenge {
  Block nonce{};
};
struct Hello {
  Block challenge{}; ///< the nonce that it answers
  std::string job;
  int64_t rank = 0, size = 0;
  std::string bundle; ///< its SHA-256
  std::string mesh;
  std::string machine;      ///< its SHA-256, if schedules are chosen by its times
  std::string hostId, host; ///< what tells hosts apart, and what messages say
  int64_t numaNode = 0;     ///< Host.h
  int64_t process = 0;
  std::vector<std::string> addresses; ///< of its links
};
/// The reason why a process, or the whole job, does not start. Rank 0 answers that of a process
/// which finds another secret with one, so that the process knows when it can end the connection.
struct Refusal {
  std::string text;
};
struct Member {
  std::string hostId, host;
  int64_t numaNode = 0;
  std::vector<std::string> addresses;
};
/// A part of the table of all ranks.
struct Table {
  Block session{}; ///< of which the keys of this job are made
  int64_t size = 0, first = 0;
  std::vector<Member> members; ///< from rank `first` on
};
/// This process has the whole table.
struct Ready {};
/// All processes have it.
struct Go {};

// What processes tell each other afterwards (Control.h).

struct QueueOfRank {
  int64_t rank = 0;
  uint32_t queue = 0;
};
/// Where a queue is.
struct QueuePlace {
  uint32_t queue = 0;
  uint64_t progress = 0; ///< finished commands and shares of commands
  uint8_t waiting = 0;   ///< a value of Waiting
  bool stalled = false;
  int64_t waitedNs = 0;
  bool isAtCommand = false; ///< what follows is of this command
  bool waitsForRoom = false;
  std::optional<uint32_t> awaitedQueue;
  std::vector<QueueOfRank> missing;
  std::string operation, name, path;
};
/// Sent several times a second.
struct Places {
  uint64_t run = 0; ///< the number of the run, or of the last one
  bool isRunning = false;
  std::vector<QueuePlace> queues;
};
/// A run failed at its sender.
struct Failure {
  uint64_t run = 0;
  uint32_t code = 0;
  std::string text;
};
/// A rank is lost, as a process has noticed that is connected to it.
struct Lost {
  int64_t rank = 0;
  std::string text;
};
/// The last frame of a process that ends as it should.
struct Goodbye {};

// What the processes of a group tell each other beside these (Group/Group.h).

/// Where a rank is among the collectives of its group.
struct GroupPlace {
  uint64_t ended = 0;     ///< collectives
  bool isRunning = false; ///< the next one, of which the rest tells
  bool asks = false;      ///< for the receiver's place
  int64_t waitedNs = 0;
  uint64_t history = 0; ///< a hash of the collectives before it
  std::string signature;
};
/// The answer to a goodbye: what was sent before it has come.
struct GoodbyeHeard {};

using Frame = std::variant<Introduction, Challenge, Hello, Refusal, Table, Ready, Go, Places,
                           Failure, Lost, Goodbye, GroupPlace, GoodbyeHeard>;

/// The frame's bytes. Texts beyond kMaxTextBytes are cut.
FrameBytes encode(const Frame &frame);
/// The frame, or what is wrong with the bytes. Nothing may follow it.
Result<Frame> parseFrame(const std::byte *data, size_t bytes);

/// How many bytes a member takes in a table.
size_t encodedBytes(const Member &member);

/// A frame with its sender, a number that rises with every frame of the sender, and an HMAC.
struct Envelope {
  int64_t sender = 0;
  uint64_t number = 0;
  const std::byte *frame = nullptr;
  size_t frameBytes = 0;
  Block mac{};
};
/// Sender, number and frame: what the HMAC is made of and stands behind.
FrameBytes encodeEnvelope(int64_t sender, uint64_t number, const FrameBytes &frame);
Result<Envelope> parseEnvelope(const std::byte *data, size_t bytes);

/// How far whoever receives an envelope passes it on (RelayedFrames.h).
enum class Reach : uint8_t {
  receiver, ///< not at all
  host,     ///< to all other ranks of its host
  all,      ///< to these, and to all other hosts
};
/// An envelope in a message, which may hold several.
struct Relayed {
  Reach reach = Reach::receiver;
  const std::byte *envelope = nullptr;
  size_t bytes = 0;
};
/// How many bytes an envelope of so many takes in a message.
constexpr size_t encodedRelayedBytes(size_t envelopeBytes) { return 5 + envelopeBytes; }
void appendRelayed(FrameBytes &message, Reach reach, const FrameBytes &envelope);
/// What a message holds; it points into the data.
Result<std::vector<Relayed>> parseRelayed(const std::byte *data, size_t bytes);

/// Bytes before an HMAC, and the HMAC.
struct Sealed {
  size_t bytes = 0;
  Block mac{};
};
Result<Sealed> parseSealed(const std::byte *data, size_t bytes);

/// A message of the exchange of memory on one host (ArenaExchange.h), with the HMAC behind it.
struct ArenaMessage {
  int64_t rank = 0;   ///< of its sender
  uint64_t bytes = 0; ///< of the memory that comes with it; 0 in a request
  Block mac{};
};
constexpr size_t kArenaMessageBytes = 48;
FrameBytes encode(const ArenaMessage &message);
Result<ArenaMessage> parseArenaMessage(const std::byte *data, size_t bytes);

} // namespace braid::runtime::net
#endif // BRAID_NET_WIRE_H
