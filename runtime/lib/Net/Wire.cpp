//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Wire.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace braid::runtime::net {

namespace {

class Writer {
public:
  explicit Writer(FrameBytes &bytes) : bytes(bytes) {}
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  void operator()(const T &number) {
    const auto value = static_cast<uint64_t>(number);
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
  }
  void operator()(const std::string &text) {
    const size_t length = std::min(text.size(), kMaxTextBytes);
    (*this)(static_cast<uint32_t>(length));
    const auto *begin = reinterpret_cast<const std::byte *>(text.data());
    bytes.insert(bytes.end(), begin, begin + length);
  }
  void operator()(const Block &block) { bytes.insert(bytes.end(), block.begin(), block.end()); }
  template <typename T> void operator()(const std::optional<T> &value) {
    (*this)(value.has_value());
    if (value)
      (*this)(*value);
  }
  template <typename T> void operator()(const std::vector<T> &values) {
    (*this)(static_cast<uint32_t>(values.size()));
    for (const T &value : values)
      element(value);
  }

private:
  void element(const std::string &text) { (*this)(text); }
  template <typename T> void element(const T &value);
  FrameBytes &bytes;
};

class Reader {
public:
  Reader(const std::byte *data, size_t bytes) : at(data), end(data + bytes) {}
  bool good() const { return isGood; }
  size_t left() const { return static_cast<size_t>(end - at); }
  const std::byte *position() const { return at; }

  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  void operator()(T &number) {
    if (!has(sizeof(T)))
      return;
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= std::to_integer<uint64_t>(at[i]) << (8 * i);
    at += sizeof(T);
    if (std::is_same_v<T, bool> && value > 1)
      isGood = false;
    number = static_cast<T>(value);
  }
  void operator()(std::string &text) {
    uint32_t length = 0;
    (*this)(length);
    if (length > kMaxTextBytes)
      isGood = false;
    if (!has(length))
      return;
    text.assign(reinterpret_cast<const char *>(at), length);
    at += length;
  }
  void operator()(Block &block) {
    if (!has(block.size()))
      return;
    std::memcpy(block.data(), at, block.size());
    at += block.size();
  }
  template <typename T> void operator()(std::optional<T> &value) {
    bool isThere = false;
    (*this)(isThere);
    value.reset();
    if (isThere)
      (*this)(value.emplace());
  }
  template <typename T> void operator()(std::vector<T> &values) {
    uint32_t count = 0;
    (*this)(count);
    // Grows by what is really there: the count is not believed.
    for (uint32_t i = 0; i < count && isGood; ++i)
      element(values.emplace_back());
  }

private:
  bool has(size_t bytes) {
    isGood = isGood && left() >= bytes;
    return isGood;
  }
  void element(std::string &text) { (*this)(text); }
  template <typename T> void element(T &value);
  const std::byte *at, *end;
  bool isGood = true;
};

// The fields of each frame, in their order on the wire. A frame is constant in a writer.

template <typename V, typename T>
using As = std::conditional_t<std::is_same_v<V, Writer>, const T, T>;
template <typename V> void fields(V &v, As<V, Introduction> &f) { v(f.version), v(f.nonce); }
template <typename V> void fields(V &v, As<V, Challenge> &f) { v(f.nonce); }
template <typename V> void fields(V &v, As<V, Hello> &f) {
  v(f.challenge), v(f.job), v(f.rank), v(f.size), v(f.bundle), v(f.mesh), v(f.machine), v(f.hostId),
      v(f.host);
  v(f.numaNode), v(f.process), v(f.addresses);
}
template <typename V> void fields(V &v, As<V, Refusal> &f) { v(f.text); }
template <typename V> void fields(V &v, As<V, Member> &f) {
  v(f.hostId), v(f.host), v(f.numaNode), v(f.addresses);
}
template <typename V> void fields(V &v, As<V, Table> &f) {
  v(f.session), v(f.size), v(f.first), v(f.members);
}
template <typename V> void fields(V &, As<V, Ready> &) {}
template <typename V> void fields(V &, As<V, Go> &) {}
template <typename V> void fields(V &v, As<V, QueueOfRank> &f) { v(f.rank), v(f.queue); }
template <typename V> void fields(V &v, As<V, QueuePlace> &f) {
  v(f.queue), v(f.progress), v(f.waiting), v(f.stalled), v(f.waitedNs), v(f.isAtCommand);
  v(f.waitsForRoom), v(f.awaitedQueue), v(f.missing), v(f.operation), v(f.name), v(f.path);
}
template <typename V> void fields(V &v, As<V, Places> &f) { v(f.run), v(f.isRunning), v(f.queues); }
template <typename V> void fields(V &v, As<V, Failure> &f) { v(f.run), v(f.code), v(f.text); }
template <typename V> void fields(V &v, As<V, Lost> &f) { v(f.rank), v(f.text); }
template <typename V> void fields(V &, As<V, Goodbye> &) {}
template <typename V> void fields(V &v, As<V, GroupPlace> &f) {
  v(f.ended), v(f.isRunning), v(f.asks), v(f.waitedNs), v(f.history), v(f.signature);
}
template <typename V> void fields(V &, As<V, GoodbyeHeard> &) {}

template <typename T> void Writer::element(const T &value) { fields<Writer>(*this, value); }
template <typename T> void Reader::element(T &value) { fields<Reader>(*this, value); }

constexpr uint32_t kMagic = 0x44495242; // "BRID"

template <size_t... I> Frame frameOfKind(size_t kind, std::index_sequence<I...>) {
  Frame frame;
  (void)((kind == I && (frame.emplace<I>(), true)) || ...);
  return frame;
}

} // namespace

FrameBytes encode(const Frame &frame) {
  FrameBytes bytes;
  Writer writer(bytes);
  writer(kMagic);
  writer(static_cast<uint8_t>(frame.index()));
  std::visit([&](const auto &f) { fields<Writer>(writer, f); }, frame);
  return bytes;
}

size_t encodedBytes(const Member &member) {
  FrameBytes bytes;
  Writer writer(bytes);
  fields<Writer>(writer, member);
  return bytes.size();
}

Result<Frame> parseFrame(const std::byte *data, size_t bytes) {
  if (bytes > kMaxFrameBytes)
    return Status::error("a frame of ", bytes, " bytes, at most ", kMaxFrameBytes, " are expected");
  Reader reader(data, bytes);
  uint32_t magic = 0;
  uint8_t kind = 0;
  reader(magic), reader(kind);
  if (!reader.good() || magic != kMagic)
    return Status::error("bytes that are no frame of Braid");
  if (kind >= std::variant_size_v<Frame>)
    return Status::error("a frame of the unknown kind ", kind);
  Frame frame = frameOfKind(kind, std::make_index_sequence<std::variant_size_v<Frame>>());
  std::visit([&](auto &f) { fields<Reader>(reader, f); }, frame);
  if (!reader.good() || reader.left() != 0)
    return Status::error("a frame of kind ", kind, " and ", bytes,
                         " bytes has other fields than expected");
  return frame;
}

FrameBytes encodeEnvelope(int64_t sender, uint64_t number, const FrameBytes &frame) {
  FrameBytes bytes;
  Writer writer(bytes);
  writer(sender), writer(number);
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  return bytes;
}

Result<Envelope> parseEnvelope(const std::byte *data, size_t bytes) {
  ASSIGN_OR_RETURN(const Sealed sealed, parseSealed(data, bytes));
  Reader reader(data, sealed.bytes);
  Envelope envelope;
  reader(envelope.sender), reader(envelope.number);
  if (!reader.good())
    return Status::error("an envelope of ", bytes, " bytes is too short");
  envelope.frame = reader.position();
  envelope.frameBytes = reader.left();
  envelope.mac = sealed.mac;
  return envelope;
}

void appendRelayed(FrameBytes &message, Reach reach, const FrameBytes &envelope) {
  Writer writer(message);
  writer(static_cast<uint8_t>(reach)), writer(static_cast<uint32_t>(envelope.size()));
  message.insert(message.end(), envelope.begin(), envelope.end());
}

Result<std::vector<Relayed>> parseRelayed(const std::byte *data, size_t bytes) {
  std::vector<Relayed> message;
  for (size_t at = 0; at < bytes;) {
    Reader reader(data + at, bytes - at);
    uint8_t reach = 0;
    uint32_t size = 0;
    reader(reach), reader(size);
    if (!reader.good() || reader.left() < size || reach > static_cast<uint8_t>(Reach::all))
      return Status::error("a message of ", bytes, " bytes has no envelope at byte ", at);
    message.push_back({static_cast<Reach>(reach), reader.position(), size});
    at += encodedRelayedBytes(size);
  }
  return message;
}

Result<Sealed> parseSealed(const std::byte *data, size_t bytes) {
  Sealed sealed;
  if (bytes > kMaxFrameBytes)
    return Status::error("a frame of ", bytes, " bytes, at most ", kMaxFrameBytes, " are expected");
  if (bytes < sealed.mac.size())
    return Status::error("a frame of ", bytes, " bytes has no room for its HMAC");
  sealed.bytes = bytes - sealed.mac.size();
  std::memcpy(sealed.mac.data(), data + sealed.bytes, sealed.mac.size());
  return sealed;
}

FrameBytes encode(const ArenaMessage &message) {
  FrameBytes bytes;
  Writer writer(bytes);
  writer(message.rank), writer(message.bytes), writer(message.mac);
  return bytes;
}

Result<ArenaMessage> parseArenaMessage(const std::byte *data, size_t bytes) {
  ArenaMessage message;
  Reader reader(data, bytes);
  reader(message.rank), reader(message.bytes), reader(message.mac);
  if (!reader.good() || reader.left() != 0)
    return Status::error("a message of ", bytes, " bytes, ", kArenaMessageBytes, " are expected");
  return message;
}

} // namespace braid::runtime::net
