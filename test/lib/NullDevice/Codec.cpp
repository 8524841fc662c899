//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels of codec.cuh by the definition of payloads (CodecReference.h), and their memory
// accesses. Every encoding is assumed to be part of the code.
//
//===----------------------------------------------------------------------===//
#include "../../unit/Runtime/CodecReference.h"
#include "NullDevice.h"
#include "braid/library_arguments.h"

#include <algorithm>
#include <cstring>

namespace braid::null {

namespace {

using runtime::DType;
using runtime::Encoding;
using runtime::PayloadLayout;
using runtime::testing::CodecReference;

library::Codec copyOf(const void *raw) {
  library::Codec arguments;
  std::memcpy(&arguments, raw, sizeof arguments);
  return arguments;
}

/// What the payload's header says, and what a kernel's name says of the result.
struct Kind {
  Encoding encoding;
  DType type = DType::f32, result = DType::f32;

  static Kind of(const library::Codec &a, const std::string &name) {
    Kind kind;
    if (auto encoding = Encoding::fromCode(a.header[1]); encoding.ok())
      kind.encoding = *encoding;
    kind.type = kind.result = static_cast<DType>(a.header[0] >> 24);
    for (DType type : {DType::f32, DType::f16, DType::bf16})
      if (const std::string end = std::string("_to_") + runtime::name(type);
          name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0)
        kind.result = type;
    return kind;
  }
};

unsigned char *partOf(const library::Codec &a, int64_t part) {
  return a.partsAt ? a.partsAt[part] : a.payload + part * a.partStride;
}

/// Returns what is wrong with a launch, or empty.
std::string accessesOf(const std::string &name, const library::Codec &a, bool decodes,
                       unsigned grid, unsigned block, std::vector<Access> &accesses) {
  const Kind kind = Kind::of(a, name);
  const int64_t rows = decodes ? a.rows : int64_t(a.rowsPerPart.divisor) * a.parts;
  const int64_t parts = int64_t(a.parts) * a.senders;
  const int64_t threads = std::max<int64_t>(int64_t(a.warps) * 32, decodes ? parts : 0);
  const int64_t needed = (threads + library::kThreads - 1) / library::kThreads;
  if (grid != needed || block != library::kThreads ||
      int64_t(a.warps) != rows * a.warpsPerRow.divisor)
    return "'" + name + "' of " + std::to_string(rows) + " rows expects " + std::to_string(needed) +
           " blocks of " + std::to_string(library::kThreads) + " threads, got " +
           std::to_string(grid) + " of " + std::to_string(block);
  const int64_t size = runtime::byteSize(kind.result);
  addRows(accesses, decodes, a.tensor, {a.rows, a.columns}, {a.rowBytes, size}, size);
  return payloadAccesses(name, a, decodes, accesses);
}

/// A row of a tensor in memory, whose rows are `rowBytes` from each other.
std::vector<float> rowAt(const library::Codec &a, const void *tensor, int64_t rowBytes, DType type,
                         int64_t row) {
  const auto *from = static_cast<const unsigned char *>(tensor) + row * rowBytes;
  std::vector<float> x(a.columns);
  for (size_t i = 0; i < x.size(); ++i)
    if (type == DType::f32) {
      std::memcpy(&x[i], from + 4 * i, 4);
    } else {
      uint16_t bits;
      std::memcpy(&bits, from + 2 * i, 2);
      using runtime::testing::FloatType;
      x[i] = (type == DType::f16 ? FloatType::f16() : FloatType::bf16()).value(bits);
    }
  return x;
}

void setRow(const library::Codec &a, DType type, int64_t row, const std::vector<float> &y) {
  auto *to = static_cast<unsigned char *>(a.tensor) + row * a.rowBytes;
  for (size_t i = 0; i < y.size(); ++i)
    if (type == DType::f32) {
      const uint32_t quiet = 0x7fc00000;
      std::memcpy(to + 4 * i, std::isnan(y[i]) ? static_cast<const void *>(&quiet) : &y[i], 4);
    } else {
      using runtime::testing::FloatType;
      const auto bits = static_cast<uint16_t>(
          (type == DType::f16 ? FloatType::f16() : FloatType::bf16()).cast(y[i]));
      std::memcpy(to + 2 * i, &bits, 2);
    }
}

void encode(const library::Codec &a, const Kind &kind) {
  const int64_t perPart = a.rowsPerPart.divisor;
  CodecReference reference(kind.encoding, kind.type, a.columns);
  for (int64_t part = 0; part < a.parts; ++part) {
    unsigned char *to = partOf(a, part);
    std::memset(to, 0, static_cast<size_t>(a.partBytes));
    if (a.ranks > 1 && part % a.ranks == a.ownParts)
      continue;
    uint32_t header[4];
    std::memcpy(header, a.header, sizeof header);
    header[2] = static_cast<uint32_t>(std::clamp<int64_t>(a.rows - part * perPart, 0, perPart));
    std::memcpy(to, header, sizeof header);
    for (int64_t row = 0; row < header[2]; ++row) {
      const std::vector<uint8_t> bytes =
          reference.encode(rowAt(a, a.tensor, a.rowBytes, kind.type, part * perPart + row));
      std::memcpy(to + sizeof header + row * a.payloadRowBytes, bytes.data(), bytes.size());
    }
  }
}

/// Whether the rank is the sender, whose rows are in memory as they were.
bool isOwn(const library::Codec &a, int64_t sender) {
  return a.own && sender == int64_t(a.ownSender);
}

/// The first part whose header is not what is expected; -1: none.
int64_t wrongPart(const library::Codec &a, uint32_t header[4], uint32_t &first) {
  const int64_t perPart = a.rowsPerPart.divisor;
  for (int64_t i = 0; i < int64_t(a.parts) * a.senders; ++i) {
    const int64_t part = i % a.parts;
    if (isOwn(a, i / a.parts))
      continue;
    std::memcpy(header, partOf(a, i), 16);
    std::memcpy(&first, partOf(a, part + (isOwn(a, 0) ? a.parts : 0)) + 8, 4);
    if (a.mayBeAbsent && std::all_of(header, header + 4, [](uint32_t word) { return word == 0; }))
      continue;
    const auto exist =
        static_cast<uint32_t>(std::clamp<int64_t>(a.rows - part * perPart, 0, perPart));
    if (header[0] != a.header[0] || header[1] != a.header[1] || header[3] != a.header[3] ||
        header[2] > a.header[2] || header[2] < (a.senders > 1 ? 0 : exist) || header[2] != first)
      return i;
  }
  return -1;
}

/// Tells of a spike whose place is not in its group; returns whether there is none.
bool checkSpikes(const library::Codec &a, const Kind &kind, const std::vector<uint8_t> &bytes,
                 int64_t row) {
  const int64_t width = kind.encoding.group > 256 ? 2 : 1;
  for (int64_t group = 0; kind.encoding.spikes && group < a.groups; ++group)
    for (int64_t spike = 2; spike > 0; --spike) {
      uint16_t place = 0;
      std::memcpy(&place, bytes.data() + (group + 1) * a.groupHeaderBytes - spike * width,
                  static_cast<size_t>(width));
      const int64_t count = std::min(kind.encoding.group, a.columns - group * kind.encoding.group);
      if (place < count)
        continue;
      if (a.fault->command == 0)
        *a.fault = {a.command, place, row, count, {}};
      return false;
    }
  return true;
}

void decode(const library::Codec &a, const Kind &kind) {
  uint32_t header[4], first;
  if (const int64_t wrong = wrongPart(a, header, first); wrong >= 0) {
    if (a.fault->command == 0) {
      *a.fault = {a.command, first, wrong, 0, {}};
      std::memcpy(a.fault->header, header, sizeof header);
    }
    return;
  }
  const int64_t perPart = a.rowsPerPart.divisor;
  const CodecReference reference(kind.encoding, kind.type, a.columns);
  for (int64_t row = 0; row < a.rows; ++row) {
    std::vector<float> sum;
    for (int64_t sender = 0; sender < a.senders; ++sender) {
      const unsigned char *from =
          partOf(a, sender * a.parts + row / perPart) + 16 + row % perPart * a.payloadRowBytes;
      const std::vector<uint8_t> bytes(from, from + a.payloadRowBytes);
      if (!isOwn(a, sender) && !checkSpikes(a, kind, bytes, row))
        return;
      std::vector<float> y = isOwn(a, sender) ? rowAt(a, a.own, a.ownRowBytes, kind.type, row)
                                              : reference.decode(bytes);
      for (size_t i = 0; i < sum.size(); ++i)
        y[i] = sum[i] + y[i];
      sum = std::move(y);
    }
    setRow(a, kind.result, row, sum);
  }
}

LibraryKernel make(const std::string &name, bool decodes) {
  return {sizeof(library::Codec),
          [=](const void *raw, unsigned grid, unsigned block, std::vector<Access> &accesses) {
            return accessesOf(name, copyOf(raw), decodes, grid, block, accesses);
          },
          [=](const void *raw) {
            const library::Codec a = copyOf(raw);
            (decodes ? decode : encode)(a, Kind::of(a, name));
          }};
}

} // namespace

std::string payloadAccesses(const std::string &name, const library::Codec &a, bool decodes,
                            std::vector<Access> &accesses) {
  const Kind kind = Kind::of(a, name);
  const runtime::Result<PayloadLayout> layout =
      PayloadLayout::of(kind.encoding, kind.type, a.rows, a.columns, a.parts);
  if (!layout.ok() || layout->rowBytes != a.payloadRowBytes || layout->partBytes != a.partBytes ||
      layout->groupHeaderBytes != a.groupHeaderBytes || layout->groups != a.groups)
    return "'" + name + "' has other sizes than its payload";
  const int64_t parts = int64_t(a.parts) * a.senders;
  for (int64_t part = 0; a.partsAt && part < parts; ++part)
    addRows(accesses, !decodes, a.partsAt[part], {1, a.partBytes}, {a.partBytes, 1}, 1);
  if (a.partsAt)
    addRows(accesses, false, static_cast<const void *>(a.partsAt), {1, parts}, {parts, 1},
            sizeof *a.partsAt);
  else
    addRows(accesses, !decodes, a.payload, {parts, a.partBytes}, {a.partStride, 1}, 1);
  if (decodes && a.own) {
    const int64_t size = runtime::byteSize(kind.type);
    addRows(accesses, false, a.own, {a.rows, a.columns}, {a.ownRowBytes, size}, size);
  }
  if (decodes)
    addRows(accesses, true, a.fault, {1}, {sizeof(library::Fault)}, sizeof(library::Fault));
  return {};
}

const LibraryKernel *findCodecKernel(const std::string &name) {
  static std::map<std::string, LibraryKernel> &kernels = *new std::map<std::string, LibraryKernel>;
  const bool decodes = name.rfind("braid_decode_", 0) == 0;
  if (!decodes && name.rfind("braid_encode_", 0) != 0)
    return nullptr;
  auto found = kernels.find(name);
  if (found == kernels.end())
    found = kernels.emplace(name, make(name, decodes)).first;
  return &found->second;
}

} // namespace braid::null
