//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/StridedRuns.h"

#include <cstring>

namespace braid::runtime {

StridedRuns runsOf(const std::vector<int64_t> &shape, int64_t elementBytes,
                   const std::vector<int64_t> &sourceStrides,
                   const std::vector<int64_t> &destStrides) {
  StridedRuns runs;
  runs.runBytes = elementBytes;
  for (size_t d = shape.size(); d-- > 0;) {
    const int64_t count = shape[d];
    const int64_t from = sourceStrides[d] * elementBytes, to = destStrides[d] * elementBytes;
    if (count == 0)
      return {};
    if (count == 1)
      continue;
    if (runs.counts.empty() && from == runs.runBytes && to == runs.runBytes) {
      runs.runBytes *= count;
    } else if (!runs.counts.empty() && from == runs.sourceStrides.front() * runs.counts.front() &&
               to == runs.destStrides.front() * runs.counts.front()) {
      runs.counts.front() *= count;
    } else {
      runs.counts.insert(runs.counts.begin(), count);
      runs.sourceStrides.insert(runs.sourceStrides.begin(), from);
      runs.destStrides.insert(runs.destStrides.begin(), to);
    }
  }
  return runs;
}

void copyRuns(const StridedRuns &runs, const std::byte *source, std::byte *dest, int64_t begin,
              int64_t end) {
  if (source == dest)
    return;
  forEachRun(runs, begin, end, [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(dest + to, source + from, static_cast<size_t>(bytes));
  });
}

void clearRuns(const StridedRuns &runs, std::byte *dest, int64_t begin, int64_t end) {
  forEachRun(runs, begin, end, [&](int64_t, int64_t to, int64_t bytes) {
    std::memset(dest + to, 0, static_cast<size_t>(bytes));
  });
}

} // namespace braid::runtime
