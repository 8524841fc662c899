//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RunHistory.h"

#include <algorithm>

namespace braid::runtime {

// The first run allocates all memory, so that later runs allocate none.
void RunHistory::add(int64_t ns, const PerRank<std::unique_ptr<Rank>> &ranks) {
  if (ring.empty()) {
    size_t bytes = sizeof(RunRecord);
    RunRecord record;
    record.ranks = PerRank<RankTimes>(ranks.ranks());
    for (int64_t r : ranks.ranks()) {
      record.ranks[r] = ranks[r]->times;
      bytes += sizeof(RankTimes) + ranks[r]->times.collectives.size() * sizeof(CommunicationTimes);
    }
    ring.resize(kTimes);
    details.resize(std::clamp<size_t>(kDetailBytes / bytes, 1, kTimes), record);
  }
  least = runs == 0 ? ns : std::min(least, ns);
  ring[runs % ring.size()] = ns;
  RunRecord &record = details[runs % details.size()];
  record.number = runs;
  record.ns = ns;
  for (int64_t r : ranks.ranks())
    record.ranks[r] = ranks[r]->times;
  ++runs;
}

std::vector<int64_t> RunHistory::times() const {
  std::vector<int64_t> result;
  for (uint64_t i = runs - std::min<uint64_t>(runs, ring.size()); i < runs; ++i)
    result.push_back(ring[i % ring.size()]);
  return result;
}

const RunRecord *RunHistory::typical() const {
  std::vector<const RunRecord *> order;
  for (size_t i = 0; i < std::min<uint64_t>(runs, details.size()); ++i)
    order.push_back(&details[i]);
  if (order.empty())
    return nullptr;
  auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(),
                   [](const RunRecord *a, const RunRecord *b) { return a->ns < b->ns; });
  return *middle;
}

const RunRecord *RunHistory::closest(uint64_t number) const {
  if (runs == 0)
    return nullptr;
  const uint64_t oldest = runs - std::min<uint64_t>(runs, details.size());
  return &details[std::clamp<uint64_t>(number, oldest, runs - 1) % details.size()];
}

double quantile(std::vector<int64_t> numbers, double q) {
  if (numbers.empty())
    return 0;
  std::sort(numbers.begin(), numbers.end());
  const double at = q * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, numbers.size() - 1);
  const auto low = static_cast<double>(numbers[below]), high = static_cast<double>(numbers[above]);
  return low + (at - static_cast<double>(below)) * (high - low);
}

} // namespace braid::runtime
