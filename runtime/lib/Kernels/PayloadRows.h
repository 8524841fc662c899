//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rows of a payload in memory, encoded and decoded one after the other.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_PAYLOADROWS_H
#define BRAID_KERNELS_PAYLOADROWS_H

#include "Codec.h"
#include "Operations.h"

namespace braid::runtime {

/// The payload of a call of encode, decode or decode_sum; of the tensor only type and sizes count.
class PayloadRows {
public:
  static Result<PayloadRows> of(const LibraryArguments &call);

  DType type() const { return tensorType; } ///< of the tensor in memory
  int64_t rows() const { return layout.rows; }
  int64_t columns() const { return layout.columns; }
  /// The rows of all parts, of which the last ones may not exist.
  int64_t allRows() const { return layout.parts * layout.rowsPerPart; }
  /// Those of them that are encoded, in order: of parts for other ranks.
  int64_t sentRows() const { return ownParts.others(layout.parts) * layout.rowsPerPart; }
  int64_t sentRow(int64_t index) const {
    return ownParts.other(index / layout.rowsPerPart) * layout.rowsPerPart +
           index % layout.rowsPerPart;
  }
  int64_t rowBytes() const { return layout.columns * byteSize(tensorType); }

  /// Writes the headers, and zeros behind the rows of each part, and in all of the rank's own
  /// parts.
  void writeBorders() const;
  /// Encodes a row from `from`, or writes zeros if it does not exist; nothing in an own part.
  void encode(const CodecKernels &kernels, int64_t row, const std::byte *from) const;

  /// Whether every part that is read has a header of this payload. A part has the rows of its
  /// tensor, or, after a sum of parts, those that were padding too.
  Status checkHeaders() const;
  /// Decodes rows, and adds those of all senders, to `to` and on with a stride. With `stream`,
  /// past the caches.
  Status decode(const CodecKernels &kernels, Range range, std::byte *to, int64_t strideBytes,
                bool stream) const;

private:
  std::byte *part(int64_t i) const {
    return parts.empty() ? payload + i * partStrideBytes : parts[static_cast<size_t>(i)];
  }
  /// A row in its part.
  std::byte *payloadRow(int64_t part, int64_t i) const {
    return this->part(part) + PayloadLayout::kHeaderBytes + i * layout.rowBytes;
  }

  PayloadLayout layout; ///< of each sender
  OwnParts ownParts;    ///< of encode
  CodecRow codec{};
  std::byte *payload = nullptr;
  std::vector<std::byte *> parts; ///< where they do not follow each other
  int64_t partStrideBytes = 0, senders = 1;
  /// The sender that this rank is: its rows are in memory as they are. Negative: none is.
  int64_t ownSender = -1;
  const std::byte *own = nullptr;
  int64_t ownStrideBytes = 0;
  bool mayBeAbsent = false;
  DType tensorType = DType::f32;
};

} // namespace braid::runtime
#endif // BRAID_KERNELS_PAYLOADROWS_H
