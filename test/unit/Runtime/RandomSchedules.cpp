//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random schedules: with BRAID_SCHEDULE_SEED set, threads are delayed between the steps of
// counters, waits and transports, in orders that are rare on an idle machine. The seed alone
// determines which threads are delayed, where, and for how long.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Sync/SchedulePoint.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <string>
#include <thread>

namespace {

#ifdef BRAID_SCHEDULE_POINTS
using braid::runtime::SchedulePoint;

uint64_t seed = 0;

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = a + b * 0x9E3779B97F4A7C15U + 0x632BE59BD9B4E019U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// One of three threads is never delayed, one sometimes and one often: with equal delays, threads
/// would rarely get far ahead of each other.
void holdUp(const SchedulePoint &at) {
  const uint64_t thread = mixed(mixed(seed, static_cast<uint64_t>(at.rank)), //
                                static_cast<uint64_t>(at.lane));
  const uint64_t slowness = thread % 3;
  if (slowness == 0)
    return;
  const uint64_t number = mixed(thread, at.passed);
  const uint64_t choice = number % 64;
  if (choice < 2 * slowness * slowness)
    std::this_thread::sleep_for(std::chrono::microseconds(number / 64 % 200));
  else if (choice < 16)
    std::this_thread::yield();
}

std::string begin(const char *given) {
  char *end = nullptr;
  errno = 0;
  seed = std::strtoull(given, &end, 10);
  if (errno != 0 || end == given || *end)
    return std::string("BRAID_SCHEDULE_SEED expects a number, got '") + given + "'";
  std::printf("threads are held up at random, BRAID_SCHEDULE_SEED=%s\n", given);
  braid::runtime::scheduleHook.store(holdUp);
  return {};
}
#else
std::string begin(const char *) {
  return "BRAID_SCHEDULE_SEED expects a build with BRAID_SCHEDULE_POINTS, as the presets asan and "
         "tsan have it";
}
#endif

class RandomSchedules : public ::testing::Environment {
public:
  void SetUp() override {
    const char *given = std::getenv("BRAID_SCHEDULE_SEED");
    if (!given)
      return;
    if (const std::string error = begin(given); !error.empty())
      GTEST_FAIL() << error;
  }
};

::testing::Environment *addEnvironment() noexcept {
  return ::testing::AddGlobalTestEnvironment(new (std::nothrow) RandomSchedules);
}
[[maybe_unused]] const ::testing::Environment *const environment = addEnvironment();

} // namespace
