//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Crew.h"

#include "Statistics.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Kernels/Matmul.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace braid::runtime {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The most seconds that a crew waits for its cores to be as near as usual.
static constexpr double kMostForCores = 3;

Result<std::unique_ptr<Crew>> Crew::create(int64_t members, size_t memoryBytes,
                                           std::optional<double> coreToCore) {
  auto crew = std::make_unique<Crew>();
  ASSIGN_OR_RETURN(crew->pinning, Pinning::create(members, 1));
  crew->memory.resize(static_cast<size_t>(members));
  for (HostMemory &own : crew->memory)
    RETURN_IF_ERROR(own.map(memoryBytes));
  if (members > 1)
    crew->watch.emplace(crew->pinning, coreToCore, kMostForCores);
  return crew;
}

void Crew::awaitCores() {
  constexpr double kOften = 0.02;
  if (!watch || (watchedAt != Clock::time_point() && secondsSince(watchedAt) < kOften))
    return;
  watch->await();
  watchedAt = Clock::now();
}

Result<Timing> Crew::measure(const Make &make, const Repetitions &repetitions) {
  awaitCores();
  const size_t count = memory.size();
  std::vector<std::vector<double>> times(count);
  std::vector<Status> outcomes(count);
  std::atomic<size_t> ready{0}, done{0};
  auto meet = [count](std::atomic<size_t> &arrived) {
    ++arrived;
    while (arrived.load() < count)
      std::this_thread::yield();
  };
  auto serve = [&](size_t member) {
    pinning.pinMember(static_cast<int64_t>(member), 0);
    useOneThread();
    std::unique_ptr<Work> work;
    Result<std::unique_ptr<Work>> made = make(memory[member].data());
    // What takes long is measured once, and beside the others' work, not beside its preparation.
    meet(ready);
    if (made.ok()) {
      work = std::move(*made);
      work->prepare();
      const Clock::time_point start = Clock::now();
      work->run();
      // What takes long does so the first time, too.
      if (const double seconds = secondsSince(start);
          repetitions.seconds > 0 && seconds >= repetitions.seconds)
        times[member].push_back(seconds);
    } else {
      outcomes[member] = made.status();
    }
    const Clock::time_point begin = Clock::now();
    // Of one that takes so long, others would have as much of what else the machine does in them.
    constexpr double kLong = 0.1;
    const bool isLong = !times[member].empty() && times[member].front() >= kLong;
    while (work && !isLong &&
           (times[member].size() < static_cast<size_t>(repetitions.least) ||
            (secondsSince(begin) < repetitions.seconds &&
             times[member].size() < static_cast<size_t>(repetitions.most)))) {
      work->prepare();
      const Clock::time_point start = Clock::now();
      work->run();
      times[member].push_back(secondsSince(start));
    }
    for (++done; work && done.load() < count;) {
      work->prepare();
      work->run();
    }
  };
  std::vector<std::thread> threads;
  for (size_t member = 0; member < count; ++member)
    threads.emplace_back(serve, member);
  for (std::thread &thread : threads)
    thread.join();
  constexpr double kTogether = 1e-3;
  Timing timing;
  for (size_t member = 0; member < count; ++member) {
    RETURN_IF_ERROR(outcomes[member]);
    const std::vector<double> means = meansOfRepetitions(times[member], kTogether);
    timing.seconds += meanOfFasterHalf(means) / static_cast<double>(count);
    addToSpread(means);
  }
  return timing;
}

void Crew::addToSpread(const std::vector<double> &times) {
  if (times.size() >= 3)
    spreads.push_back(
        median(times) / std::max(*std::min_element(times.begin(), times.end()), 1e-9) - 1);
}

double Crew::spread() const { return spreads.empty() ? 0 : median(spreads); }

} // namespace braid::runtime
