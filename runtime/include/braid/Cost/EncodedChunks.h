//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How the rows of an encoded collective are cut into chunks, so that links carry some while others
// are encoded or decoded. braid-expand-encoded and the prediction of what it makes share it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_ENCODEDCHUNKS_H
#define BRAID_COST_ENCODEDCHUNKS_H

#include <cstdint>
#include <vector>

namespace braid::cost {

/// Limits of chunks.
struct EncodedChunks {
  /// Of payload to each rank, in each of several chunks; 0: one chunk.
  int64_t leastMessageBytes = int64_t(1) << 18;
  int64_t most = 32;

  /// The number of chunks of payloads with so many bytes in all, of which a rank gets one of
  /// `messages`, where the value with the most rows has so many units of them.
  int64_t count(int64_t payloadBytes, int64_t messages, int64_t units) const;
};

/// The rows of one chunk.
struct ChunkRows {
  int64_t from, size;
};

/// Chunks have equally many units, but for one more or less. Only the last unit may have fewer rows
/// than the others, so that the whole is padded as one chunk is, and the bits are those of one.
ChunkRows rowsOfChunk(int64_t rows, int64_t unit, int64_t chunk, int64_t chunks);

/// The first of the longest dimensions, which an all_to_all cuts: of those of a part but the
/// columns. -1: there is none.
int64_t longestDim(const std::vector<int64_t> &sizes);

} // namespace braid::cost
#endif // BRAID_COST_ENCODEDCHUNKS_H
