//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CoreDistance.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace braid::runtime {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double coreToCoreSeconds(const Pinning &ranks) {
  constexpr int kRounds = 50, kSpans = 10;
  constexpr double kMost = 0.02;
  const size_t count = ranks.cores().size();
  // Counts the passes; a core has its turn when the number of its place is what is left of them.
  struct alignas(128) Line {
    std::atomic<uint64_t> passes{0};
  } line;
  constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
  auto awaitTurn = [&](size_t place) {
    for (;;) {
      const uint64_t passes = line.passes.load(std::memory_order_acquire);
      if (passes == kEnd)
        return false;
      if (passes % count == place)
        return true;
    }
  };
  auto pass = [&] { line.passes.fetch_add(1, std::memory_order_release); };
  std::vector<std::thread> others;
  for (size_t place = 1; place < count; ++place)
    others.emplace_back([&, place] {
      ranks.pinMember(static_cast<int64_t>(place), 0);
      while (awaitTurn(place))
        pass();
    });
  double least = std::numeric_limits<double>::max();
  std::thread first([&] {
    ranks.pinMember(0, 0);
    const Clock::time_point begin = Clock::now();
    for (int span = 0; span < kSpans && (span == 0 || secondsSince(begin) < kMost); ++span) {
      pass(); // so that all have begun
      awaitTurn(0);
      const Clock::time_point start = Clock::now();
      for (int round = 0; round < kRounds; ++round) {
        pass();
        awaitTurn(0);
      }
      least = std::min(least, secondsSince(start));
    }
    line.passes.store(kEnd, std::memory_order_release);
  });
  first.join();
  for (std::thread &other : others)
    other.join();
  return least / (kRounds * static_cast<double>(count));
}

CoreWatch::CoreWatch(Pinning ranks, std::optional<double> usual, double seconds)
    : ranks(std::move(ranks)), usual(usual), isKnown(usual.has_value()), secondsLeft(seconds) {}

bool CoreWatch::areAlike(double one, double other) {
  return std::max(one, other) <= 2 * std::min(one, other);
}

bool CoreWatch::isUsual() {
  lastSeconds = coreToCoreSeconds(ranks);
  if (!isKnown)
    usual = std::min(usual.value_or(lastSeconds), lastSeconds);
  return areAlike(lastSeconds, *usual);
}

void CoreWatch::await() {
  constexpr auto kPause = std::chrono::milliseconds(20);
  while (!isUsual() && secondsLeft > 0) {
    const Clock::time_point begin = Clock::now();
    std::this_thread::sleep_for(kPause);
    secondsLeft -= secondsSince(begin);
  }
}

bool CoreWatch::counts(double seconds) {
  const double before = lastSeconds;
  if (isUsual() && areAlike(before, lastSeconds))
    return true;
  if (secondsLeft <= 0)
    return true;
  secondsLeft -= seconds;
  return false;
}

} // namespace braid::runtime
