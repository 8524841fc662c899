//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "PayloadRows.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

Result<PayloadRows> PayloadRows::of(const LibraryArguments &call) {
  PayloadRows rows;
  ASSIGN_OR_RETURN(rows.tensorType, storedType(call, Storage::halves));
  const Tensor payload = call.tensor("payload");
  ASSIGN_OR_RETURN(rows.partStrideBytes, payload.rowStride());
  ASSIGN_OR_RETURN(rows.layout, payloadLayout(call));
  rows.codec = CodecRow::of(rows.layout);
  rows.payload = payload.data;
  rows.parts = call.payloadParts;
  const std::string name = call.kernel->name;
  if (name == "encode")
    rows.ownParts = OwnParts::of(call, call.part);
  else if (name == "decode_sum") {
    rows.senders = call.integers.back();
    if (call.has("own")) {
      const Tensor own = call.tensor("own");
      ASSIGN_OR_RETURN(const int64_t stride, own.rowStride());
      rows.ownSender = call.part;
      rows.own = own.data;
      rows.ownStrideBytes = stride * byteSize(own.dtype);
    }
  } else if (name == "decode")
    rows.mayBeAbsent = call.integers.back() != 0;
  return rows;
}

void PayloadRows::writeBorders() const {
  const int64_t end = PayloadLayout::kHeaderBytes + layout.rowsPerPart * layout.rowBytes;
  for (int64_t i = 0; i < layout.parts; ++i) {
    if (ownParts.has(i)) {
      std::memset(part(i), 0, static_cast<size_t>(layout.partBytes));
      continue;
    }
    layout.writeHeader(part(i), i);
    std::memset(part(i) + end, 0, static_cast<size_t>(layout.partBytes - end));
  }
}

void PayloadRows::encode(const CodecKernels &kernels, int64_t row, const std::byte *from) const {
  if (ownParts.has(row / layout.rowsPerPart))
    return;
  std::byte *to = payloadRow(row / layout.rowsPerPart, row % layout.rowsPerPart);
  if (row < layout.rows)
    kernels.encodeRow(codec, from, to);
  else
    std::memset(to, 0, static_cast<size_t>(layout.rowBytes));
}

static int64_t rowsIn(const std::byte *header) {
  uint32_t rows;
  std::memcpy(&rows, header + 8, sizeof rows);
  return rows;
}

Status PayloadRows::checkHeaders() const {
  // The first sender whose parts are read tells how many rows the others have.
  const int64_t firstSender = ownSender == 0 ? 1 : 0;
  for (int64_t i = 0; i < senders * layout.parts; ++i) {
    if (i / layout.parts == ownSender)
      continue;
    const std::byte *header = part(i);
    // Nothing was sent; bytes of 0 decode to 0.
    if (mayBeAbsent && std::all_of(header, header + PayloadLayout::kHeaderBytes,
                                   [](std::byte byte) { return byte == std::byte(0); }))
      continue;
    const int64_t inTensor = i % layout.parts, first = firstSender * layout.parts + inTensor;
    RETURN_IF_ERROR(layout.checkHeader(header, senders > 1 ? 0 : layout.rowsOf(inTensor))
                        .within("part " + std::to_string(i)));
    if (const int64_t expected = rowsIn(part(first)), rows = rowsIn(header); rows != expected)
      return Status::error("part ", i, ": expects a payload of ", expected, " rows, as part ",
                           first, " has, got ", rows);
  }
  return {};
}

Status PayloadRows::decode(const CodecKernels &kernels, Range range, std::byte *to,
                           int64_t strideBytes, bool stream) const {
  constexpr size_t kFew = 16;
  const void *few[kFew];
  std::vector<const void *> many(static_cast<size_t>(senders) > kFew ? static_cast<size_t>(senders)
                                                                     : 0);
  const void **from = many.empty() ? few : many.data();
  for (int64_t row = range.begin; row < range.end; ++row, to += strideBytes) {
    for (int64_t sender = 0; sender < senders; ++sender)
      from[sender] = sender == ownSender
                         ? own + row * ownStrideBytes
                         : payloadRow(sender * layout.parts + row / layout.rowsPerPart,
                                      row % layout.rowsPerPart);
    const SpikeFault fault = kernels.decodeRows(codec, from, senders, ownSender,
                                                static_cast<int>(tensorType), to, stream);
    if (fault.position >= 0)
      return Status::error("row ", row, ": expects a spike position below ", fault.elements,
                           ", got ", fault.position);
  }
  return {};
}

} // namespace braid::runtime
