//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Padding.h"

#include <algorithm>
#include <tuple>

namespace braid {

namespace {
int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Adds a segment, or extends the last one when it continues there.
void append(std::vector<Segment> &segments, Segment next) {
  if (!segments.empty()) {
    Segment &last = segments.back();
    if (last.source + last.size == next.source && last.dest + last.size == next.dest) {
      last.size += next.size;
      return;
    }
  }
  segments.push_back(next);
}
} // namespace

DimPadding padAtEnd(int64_t size, int64_t ranks) {
  return {divideUp(size, ranks) * ranks, {{0, 0, size}}};
}

HeadPadding padHeads(int64_t groups, int64_t groupSize, int64_t ranks) {
  auto with = [&](int64_t copies) {
    return HeadPadding{groups, groupSize, divideUp(groups * copies, ranks) * ranks,
                       divideUp(groupSize, copies), copies};
  };
  HeadPadding best = with(1);
  for (int64_t copies = 2; copies <= groupSize; ++copies) {
    HeadPadding next = with(copies);
    auto cost = [](const HeadPadding &p) {
      int64_t queries = p.groups * p.groupSize;
      return std::tuple(queries + p.groups, queries);
    };
    if (cost(next) < cost(best))
      best = next;
  }
  return best;
}

DimPadding HeadPadding::queries(int64_t headDim) const {
  DimPadding padding{groups * groupSize * headDim, {}};
  for (int64_t group = 0; group < modelGroups; ++group)
    for (int64_t copy = 0; copy < copies; ++copy) {
      int64_t first = copy * groupSize, count = std::min(groupSize, modelGroupSize - first);
      if (count > 0)
        append(padding.segments, {(group * modelGroupSize + first) * headDim,
                                  (group * copies + copy) * groupSize * headDim, count * headDim});
    }
  return padding;
}

DimPadding HeadPadding::keys(int64_t headDim) const {
  DimPadding padding{groups * headDim, {}};
  for (int64_t group = 0; group < modelGroups; ++group)
    for (int64_t copy = 0; copy < copies; ++copy)
      append(padding.segments, {group * headDim, (group * copies + copy) * headDim, headDim});
  return padding;
}

} // namespace braid
