//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The algorithm and the chunks with which a collective takes the least time on a machine.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_SCHEDULECHOICE_H
#define BRAID_COST_SCHEDULECHOICE_H

#include "braid/Cost/ScheduleTime.h"

#include <memory>
#include <mutex>

namespace braid::cost {

struct ChoiceOptions {
  /// Also algorithms whose sums are not those of rank order, and may differ in their last bits from
  /// those of other transports.
  bool anyOrder = false;
  /// The longest messages to consider, in descending order: among equal times the first counts.
  std::vector<int64_t> chunkBytes = {int64_t(4) << 20, int64_t(1) << 20, int64_t(256) << 10,
                                     int64_t(64) << 10};
  /// A schedule with more messages is considered with the first of the chunks alone.
  double mostMessages = 1e6;
};

struct AlgorithmTime {
  runtime::ScheduleAlgorithm algorithm = runtime::ScheduleAlgorithm::direct;
  int64_t chunkBytes = 0;
  double seconds = 0; ///< until the last rank is done
};

struct ScheduleChoice {
  runtime::ScheduleAlgorithm algorithm = runtime::ScheduleAlgorithm::direct;
  int64_t chunkBytes = 0;
  double seconds = 0;
  /// Each algorithm that came into question, with its best chunks, the fastest one first.
  std::vector<AlgorithmTime> considered;
};

/// Of the request's kind, values, ranks and topology; its algorithm and chunks do not count.
Result<ScheduleChoice> leastTime(const runtime::ScheduleRequest &request, const Network &network,
                                 const ChoiceOptions &options = {});

/// By how much less time another schedule than that of the rule (chooseSchedule) must take to be
/// chosen, as a part of the rule's: only that one was measured as a whole, and predictions of the
/// others are off by up to as much.
constexpr double kWorthwhile = 0.15;

/// What a transport runs a collective with, and why.
struct ChosenSchedule {
  runtime::ScheduleAlgorithm algorithm = runtime::ScheduleAlgorithm::direct;
  int64_t chunkBytes = 0;
  /// As in ScheduleChoice; empty where no time decides.
  std::vector<AlgorithmTime> considered;
  double ruleSeconds = 0; ///< with the schedule of the rule
  std::string whyByRule;  ///< where no time decides: what is not known
};

/// Chooses the schedules of all collectives of a transport: those of chooseSchedule, or, where a
/// machine is known that has the figures, those of least time that are worthwhile. Sums have the
/// bits of rank order with all of them. The same requests on the same machine get the same
/// schedules in every process. For all threads.
class ScheduleChooser {
public:
  explicit ScheduleChooser(std::string transport, std::shared_ptr<const Machine> machine = nullptr)
      : transport(std::move(transport)), machine(std::move(machine)) {}

  /// Sets the algorithm and the chunks of the request.
  std::shared_ptr<const ChosenSchedule> choose(runtime::ScheduleRequest &request);
  /// The same by times alone, or why there are none.
  Result<ChosenSchedule> compare(runtime::ScheduleRequest request, bool anyOrder = false) const;

private:
  const std::string transport;
  const std::shared_ptr<const Machine> machine;
  std::mutex mutex;
  /// By request, as chooseSchedule leaves it.
  std::vector<std::pair<runtime::ScheduleRequest, std::shared_ptr<const ChosenSchedule>>> chosen;
};

} // namespace braid::cost
#endif // BRAID_COST_SCHEDULECHOICE_H
