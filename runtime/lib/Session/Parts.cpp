//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Parts.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime {

int64_t elementsOf(const Box &box) {
  int64_t elements = 1;
  for (int64_t size : box.sizes)
    elements *= size;
  return elements;
}

Status forEachChunk(const Box &box, int64_t limit,
                    const std::function<Status(const Box &, int64_t)> &take) {
  // One index of the dimensions before `cut` at a time, as many of `cut` as fit, all of the rest.
  size_t cut = 0;
  int64_t inner = 1;
  const int64_t elements = elementsOf(box);
  if (elements == 0)
    return {};
  for (size_t d = box.sizes.size(); d-- > 0;) {
    if (inner * box.sizes[d] > limit) {
      cut = d;
      break;
    }
    inner *= box.sizes[d];
  }
  if (elements == inner)
    return take(box, 0);
  const int64_t step = std::max<int64_t>(limit / inner, 1);
  Box part = box;
  std::fill_n(part.sizes.begin(), cut, 1);
  for (int64_t begin = 0;;) {
    for (int64_t at = 0; at < box.sizes[cut]; at += step) {
      part.offsets[cut] = box.offsets[cut] + at;
      part.sizes[cut] = std::min(step, box.sizes[cut] - at);
      RETURN_IF_ERROR(take(part, begin + at * inner));
    }
    begin += box.sizes[cut] * inner;
    size_t d = cut;
    for (; d > 0; --d) {
      if (++part.offsets[d - 1] < box.offsets[d - 1] + box.sizes[d - 1])
        break;
      part.offsets[d - 1] = box.offsets[d - 1];
    }
    if (d == 0)
      return {};
  }
}

} // namespace braid::runtime
