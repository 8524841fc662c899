//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/EncodedChunks.h"

#include <algorithm>

namespace braid::cost {

int64_t EncodedChunks::count(int64_t payloadBytes, int64_t messages, int64_t units) const {
  if (leastMessageBytes <= 0)
    return 1;
  return std::max<int64_t>(1, std::min({payloadBytes / messages / leastMessageBytes, most, units}));
}

ChunkRows rowsOfChunk(int64_t rows, int64_t unit, int64_t chunk, int64_t chunks) {
  const int64_t units = (rows + unit - 1) / unit;
  auto begin = [&](int64_t at) { return std::min(rows, units * at / chunks * unit); };
  return {begin(chunk), begin(chunk + 1) - begin(chunk)};
}

int64_t longestDim(const std::vector<int64_t> &sizes) {
  return sizes.empty() ? -1 : std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
}

} // namespace braid::cost
