//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rows of payloads (braid/Base/Encoding.h), encoded and decoded by functions that are compiled for
// each instruction set. All of them give the same bytes and the same floats.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_CODEC_H
#define BRAID_KERNELS_CODEC_H

#include <cstdint>

namespace braid::runtime {

struct PayloadLayout;

/// A PayloadLayout's row, as plain numbers: code of several instruction sets must not share inline
/// functions.
struct CodecRow {
  int element, form, scale; ///< of Encoding
  int type;                 ///< DType of the tensor that is encoded
  int bits;
  bool spikes;
  int64_t group, rotation, columns, groups;
  int64_t groupHeaderBytes, codesOffset, rowBytes;

  static CodecRow of(const PayloadLayout &layout);
};

/// A spike whose position is not in its group; none where `position` is negative.
struct SpikeFault {
  int64_t position = -1, elements = 0;
};

struct CodecKernels {
  /// Encodes `columns` elements of `type` at `x` into exactly `rowBytes` at `row`.
  void (*encodeRow)(const CodecRow &codec, const void *x, void *row);
  /// out = cast(sum of the decoded `rows`, of which there is at least one, in order, in f32), of
  /// `columns` elements of the DType `type`. The row at `own`, if that is not negative, is not
  /// encoded: it has elements of the codec's type. Nothing beyond `rowBytes` of a row is read,
  /// whatever the bytes are. At a fault, `out` is partly written. With `stream`, an output that is
  /// aligned as its type goes past the caches where that is possible.
  SpikeFault (*decodeRows)(const CodecRow &codec, const void *const *rows, int64_t numRows,
                           int64_t own, int type, void *out, bool stream);
};

// One per instruction set; without those that are not compiled for this architecture.
extern const CodecKernels codecGeneric, codecAvx2, codecAvx512;

} // namespace braid::runtime
#endif // BRAID_KERNELS_CODEC_H
