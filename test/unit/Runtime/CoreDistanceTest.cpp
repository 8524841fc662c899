//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How far cores are from each other, and which measurements count.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Sync/CoreDistance.h"
#include "test/unit/Runtime/Testing.h"

#include <chrono>

using namespace braid::runtime;

namespace {

Pinning twoRanks() {
  braid::runtime::Result<Pinning> pinning = Pinning::create(2, 1);
  EXPECT_OK(pinning.status());
  return *pinning;
}

bool hasTwoCores() { return allowedCores().size() >= 2; }

} // namespace

TEST(CoreDistance, IsThatOfACacheLine) {
  if (!hasTwoCores())
    GTEST_SKIP() << "needs two cores";
  // A core's clock ticks faster than a cache line travels, and no two cores are a millisecond
  // apart.
  const double seconds = coreToCoreSeconds(twoRanks());
  EXPECT_GT(seconds, 1e-10);
  EXPECT_LT(seconds, 1e-3);
}

TEST(CoreDistance, TellsTwoPlacesApart) {
  EXPECT_TRUE(CoreWatch::areAlike(24e-9, 42e-9));
  EXPECT_TRUE(CoreWatch::areAlike(42e-9, 24e-9));
  EXPECT_FALSE(CoreWatch::areAlike(160e-9, 42e-9));
  EXPECT_FALSE(CoreWatch::areAlike(42e-9, 160e-9));
}

TEST(CoreDistance, WaitsAndRepeatsNoLongerThanItMay) {
  if (!hasTwoCores())
    GTEST_SKIP() << "needs two cores";
  constexpr double kNearerThanCanBe = 1e-12, kMost = 0.1;
  CoreWatch watch(twoRanks(), kNearerThanCanBe, kMost);
  EXPECT_FALSE(watch.counts(0.01)); // there is time for another one
  const auto begin = std::chrono::steady_clock::now();
  watch.await();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(waited.count(), kMost / 2);
  EXPECT_TRUE(watch.counts(0.01)); // there is none left
  EXPECT_GT(watch.last(), kNearerThanCanBe);
}

TEST(CoreDistance, RepeatsWhatTookAllTheTimeOnce) {
  if (!hasTwoCores())
    GTEST_SKIP() << "needs two cores";
  CoreWatch watch(twoRanks(), 1e-12, 0.1);
  EXPECT_FALSE(watch.counts(5));
  watch.await();
  EXPECT_TRUE(watch.counts(5));
}
