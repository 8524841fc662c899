//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Inputs of the fuzzer Payload: an encoding and a layout, and the bytes of a payload.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_FUZZ_PAYLOADINPUT_H
#define BRAID_TEST_FUZZ_PAYLOADINPUT_H

#include "Fuzz.h"
#include "braid/Base/Encoding.h"

#include <cstring>
#include <optional>
#include <string>

namespace braid::fuzz {

struct PayloadInput {
  static constexpr size_t kBytes = 12; ///< before those of the payload
  /// Few columns are quick to decode; a few inputs have enough for the largest groups.
  static constexpr int64_t kFewColumns = 600, kMostColumns = 9000;

  uint32_t code = 0;                                         ///< of an encoding, if it is one
  runtime::DType type = runtime::DType::f32, outType = type; ///< that is encoded, and decoded to
  int64_t rows = 1, columns = 1, parts = 1, senders = 1;
  bool headers = false; ///< of parts are replaced by right ones
  bool absent = false;  ///< parts of zeros are allowed
  const uint8_t *bytes = nullptr;
  size_t size = 0;

  static std::optional<PayloadInput> parse(const uint8_t *data, size_t size) {
    if (size < kBytes)
      return std::nullopt;
    PayloadInput input;
    uint16_t columns;
    std::memcpy(&input.code, data, 4);
    std::memcpy(&columns, data + 4, 2);
    const runtime::DType types[] = {runtime::DType::f32, runtime::DType::f16, runtime::DType::bf16};
    input.columns = 1 + columns % (columns < 0xff00 ? kFewColumns : kMostColumns);
    input.type = types[data[6] % 3];
    input.outType = types[data[7] % 3];
    input.rows = 1 + data[8] % 8;
    input.parts = 1 + data[9] % 4;
    input.senders = 1 + data[10] % 4;
    input.headers = (data[11] & 1) != 0;
    input.absent = (data[11] & 2) != 0;
    input.bytes = data + kBytes;
    input.size = size - kBytes;
    return input;
  }
  static std::string of(uint32_t code, uint16_t columns, uint8_t type, uint8_t rows, uint8_t parts,
                        uint8_t senders, uint8_t flags, const std::string &payload) {
    std::string text(kBytes, '\0');
    std::memcpy(text.data(), &code, 4);
    std::memcpy(text.data() + 4, &columns, 2);
    const uint8_t rest[] = {type, 0, rows, parts, senders, flags};
    std::memcpy(text.data() + 6, rest, sizeof rest);
    return text + payload;
  }

  /// The payload's bytes from `at` on, and again from their beginning where they end.
  void fill(uint8_t *to, int64_t count, int64_t at) const {
    for (int64_t i = 0; i < count; ++i)
      to[i] = size == 0 ? 0 : bytes[static_cast<size_t>(at + i) % size];
  }
  int64_t anySize(size_t index) const {
    int64_t value = 0;
    fill(reinterpret_cast<uint8_t *>(&value), 8, static_cast<int64_t>(8 * index));
    return value;
  }

  /// The code of an encoding, each part of which is drawn by itself.
  static uint32_t anyCode(Random &random) {
    using runtime::Encoding;
    for (;;) {
      Encoding e;
      e.element = static_cast<Encoding::Element>(
          random.oneIn(2) ? static_cast<size_t>(Encoding::Element::integer) : random.below(8));
      e.bits = 2 + static_cast<int64_t>(random.below(7));
      if (e.isCast())
        e.bits = 16;
      e.form = static_cast<Encoding::Form>(random.below(3));
      e.scale = static_cast<Encoding::Scale>(random.below(4));
      static const int64_t groups[] = {0, 16, 32, 40, 64, 128, 256, 512, 8192};
      e.group = random.of(groups);
      e.rotation = random.oneIn(2) ? 0 : int64_t(16) << random.below(5);
      e.spikes = random.oneIn(2);
      if (Encoding::fromCode(e.code()).ok())
        return e.code();
    }
  }
};

} // namespace braid::fuzz
#endif // BRAID_TEST_FUZZ_PAYLOADINPUT_H
