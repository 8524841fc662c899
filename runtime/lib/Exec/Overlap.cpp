//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Overlap.h"

#include <algorithm>

namespace braid::runtime {

std::vector<Interval> without(Interval whole, const std::vector<Interval> &parts) {
  std::vector<Interval> rest;
  int64_t at = whole.beginNs;
  auto take = [&](int64_t end) {
    if (at < end)
      rest.push_back({at, end});
  };
  for (const Interval &part : parts) {
    take(std::min(part.beginNs, whole.endNs));
    at = std::max(at, part.endNs);
  }
  take(whole.endNs);
  return rest;
}

int64_t coveredNs(Interval span, const std::vector<Interval> &busy) {
  auto endsBefore = [](const Interval &interval, int64_t time) { return interval.endNs <= time; };
  int64_t covered = 0;
  for (auto it = std::lower_bound(busy.begin(), busy.end(), span.beginNs, endsBefore);
       it != busy.end() && it->beginNs < span.endNs; ++it)
    covered += std::min(it->endNs, span.endNs) - std::max(it->beginNs, span.beginNs);
  return covered;
}

void addCollectives(const std::vector<CollectiveSpan> &collectives, Interval computing,
                    const std::vector<Interval> &waits, CommunicationTimes &total,
                    std::vector<CommunicationTimes> &roles) {
  const std::vector<Interval> busy = without(computing, waits);
  for (const CollectiveSpan &collective : collectives) {
    const int64_t length = collective.time.endNs - collective.time.beginNs;
    const int64_t hidden = coveredNs(collective.time, busy);
    for (CommunicationTimes *times : {&total, &roles[collective.roleIndex]}) {
      times->communicationNs += length;
      times->hiddenNs += hidden;
    }
  }
}

} // namespace braid::runtime
