//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace braid::runtime {

int64_t elementsOf(const Box &box) {
  return std::accumulate(box.sizes.begin(), box.sizes.end(), int64_t(1), std::multiplies<>());
}

// Splits the first dimension that has more than one index; where one index of it is too large, the
// call for that index splits the next dimension.
Status forEachChunk(const Box &box, int64_t limit,
                    const std::function<Status(const Box &, int64_t)> &take, int64_t begin) {
  const int64_t elements = elementsOf(box);
  if (elements <= limit)
    return elements == 0 ? Status() : take(box, begin);
  const auto d = static_cast<size_t>(
      std::find_if(box.sizes.begin(), box.sizes.end(), [](int64_t size) { return size > 1; }) -
      box.sizes.begin());
  const int64_t inner = elements / box.sizes[d], step = std::max<int64_t>(limit / inner, 1);
  Box chunk = box;
  for (int64_t at = 0; at < box.sizes[d]; at += step) {
    chunk.offsets[d] = box.offsets[d] + at;
    chunk.sizes[d] = std::min(step, box.sizes[d] - at);
    RETURN_IF_ERROR(forEachChunk(chunk, limit, take, begin + at * inner));
  }
  return {};
}

} // namespace braid::runtime
