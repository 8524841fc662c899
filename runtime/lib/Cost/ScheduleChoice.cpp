//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/ScheduleChoice.h"

#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <tuple>

namespace braid::cost {

using runtime::ScheduleAlgorithm;
using runtime::ScheduleRequest;

static constexpr ScheduleAlgorithm kAlgorithms[] = {
    ScheduleAlgorithm::direct, ScheduleAlgorithm::oneShot,
    ScheduleAlgorithm::ring,   ScheduleAlgorithm::recursiveDoubling,
    ScheduleAlgorithm::tree,   ScheduleAlgorithm::hierarchical};

/// No fewer than the messages of an algorithm: each rank may send each chunk to each other one.
static double mostMessages(const ScheduleRequest &request) {
  double chunks = 0;
  for (const runtime::ScheduleValue &value : request.values)
    chunks += static_cast<double>(value.partBytes) / static_cast<double>(request.chunkBytes) + 1;
  const auto ranks = static_cast<double>(request.ranks);
  return chunks * ranks * ranks;
}

/// Of an algorithm, with the best of the chunks.
static Result<AlgorithmTime> timeOfAlgorithm(ScheduleRequest request, const Network &network,
                                             const ChoiceOptions &options) {
  AlgorithmTime best;
  best.algorithm = request.algorithm;
  int64_t longest = 1; // of an element
  for (const runtime::ScheduleValue &value : request.values)
    longest = std::max(longest, value.elementBytes);
  for (int64_t chunk : options.chunkBytes) {
    request.chunkBytes = std::max(chunk, longest);
    if (best.chunkBytes > 0 && mostMessages(request) > options.mostMessages)
      continue;
    ASSIGN_OR_RETURN(const CollectiveTime time, timeOf(request, network));
    if (best.chunkBytes > 0 && time.seconds >= best.seconds)
      continue;
    best.chunkBytes = request.chunkBytes;
    best.seconds = time.seconds;
  }
  return best;
}

Result<ScheduleChoice> leastTime(const ScheduleRequest &request, const Network &network,
                                 const ChoiceOptions &options) {
  if (options.chunkBytes.empty())
    return Status::error("a choice of schedules expects lengths of chunks, got none");
  ScheduleChoice choice;
  for (ScheduleAlgorithm algorithm : kAlgorithms) {
    if (!runtime::checkAlgorithm(algorithm, request.kind, request.ranks).ok() ||
        (!options.anyOrder && !runtime::keepsRankOrder(algorithm, request.kind, request.ranks)))
      continue;
    ScheduleRequest with = request;
    with.algorithm = algorithm;
    ASSIGN_OR_RETURN(AlgorithmTime time, timeOfAlgorithm(with, network, options));
    choice.considered.push_back(time);
  }
  // Direct applies to all kinds, and keeps the order.
  std::sort(choice.considered.begin(), choice.considered.end(),
            [](const AlgorithmTime &a, const AlgorithmTime &b) {
              return std::tie(a.seconds, a.algorithm) < std::tie(b.seconds, b.algorithm);
            });
  choice.algorithm = choice.considered.front().algorithm;
  choice.chunkBytes = choice.considered.front().chunkBytes;
  choice.seconds = choice.considered.front().seconds;
  return choice;
}

Result<ChosenSchedule> ScheduleChooser::compare(ScheduleRequest request, bool anyOrder) const {
  if (!machine)
    return Status::error("no machine file is given");
  if (transport == "ucx" && request.topology.places.empty())
    return Status::error("it is not known which ranks are on one host");
  // Ranks of "ucx" on one host reach each other as those of "shm".
  ASSIGN_OR_RETURN(
      const Network network,
      networkOf(*machine, transport == "ucx" ? "shm" : transport, request.ranks, request.topology));
  // Also those of the rule, which are as long as the numbers of messages need.
  runtime::chooseSchedule(request, transport);
  constexpr int64_t kMostMessages = int64_t(1) << 14;
  ChoiceOptions options;
  options.anyOrder = anyOrder;
  // So that a model is loaded without delay.
  options.mostMessages = 2e4;
  options.chunkBytes.push_back(request.chunkBytes);
  std::sort(options.chunkBytes.rbegin(), options.chunkBytes.rend());
  options.chunkBytes.erase(std::unique(options.chunkBytes.begin(), options.chunkBytes.end()),
                           options.chunkBytes.end());
  int64_t longest = 0;
  for (const runtime::ScheduleValue &value : request.values)
    longest = std::max(longest, value.partBytes);
  options.chunkBytes.erase(std::remove_if(options.chunkBytes.begin(), options.chunkBytes.end(),
                                          [&](int64_t chunk) {
                                            return chunk != request.chunkBytes &&
                                                   longest / chunk >= kMostMessages;
                                          }),
                           options.chunkBytes.end());
  ASSIGN_OR_RETURN(const CollectiveTime byRule, timeOf(request, network));
  ASSIGN_OR_RETURN(ScheduleChoice choice, leastTime(request, network, options));
  ChosenSchedule result{request.algorithm, request.chunkBytes, std::move(choice.considered),
                        byRule.seconds, ""};
  if (choice.seconds <= (1 - kWorthwhile) * byRule.seconds) {
    result.algorithm = choice.algorithm;
    result.chunkBytes = choice.chunkBytes;
  }
  return result;
}

std::shared_ptr<const ChosenSchedule> ScheduleChooser::choose(ScheduleRequest &request) {
  runtime::chooseSchedule(request, transport);
  std::lock_guard<std::mutex> lock(mutex);
  auto found = std::find_if(chosen.begin(), chosen.end(),
                            [&](const auto &one) { return one.first == request; });
  if (found == chosen.end()) {
    auto made = std::make_shared<ChosenSchedule>();
    made->algorithm = request.algorithm;
    made->chunkBytes = request.chunkBytes;
    if (Result<ChosenSchedule> byTime = compare(request); byTime.ok())
      *made = std::move(*byTime);
    else
      made->whyByRule = byTime.status().message();
    // A caller that never repeats itself fills no memory.
    constexpr size_t kMostRequests = 256;
    if (chosen.size() == kMostRequests)
      chosen.erase(chosen.begin());
    found = chosen.emplace(chosen.end(), request, std::move(made));
  }
  request.algorithm = found->second->algorithm;
  request.chunkBytes = found->second->chunkBytes;
  return found->second;
}

} // namespace braid::cost
