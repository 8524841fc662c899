//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Exec/Overlap.h"

#include <gtest/gtest.h>

namespace braid::runtime {
namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs pairs(const std::vector<Interval> &intervals) {
  Pairs result;
  for (const Interval &interval : intervals)
    result.emplace_back(interval.beginNs, interval.endNs);
  return result;
}

TEST(Overlap, WhatWaitsLeave) {
  EXPECT_EQ(pairs(without({10, 20}, {})), (Pairs{{10, 20}}));
  EXPECT_EQ(pairs(without({10, 20}, {{12, 14}, {17, 18}})), (Pairs{{10, 12}, {14, 17}, {18, 20}}));
  EXPECT_EQ(pairs(without({10, 20}, {{10, 12}, {12, 13}, {18, 20}})), (Pairs{{13, 18}}));
  EXPECT_EQ(pairs(without({10, 20}, {{10, 20}})), Pairs());
  EXPECT_EQ(pairs(without({10, 20}, {{5, 12}, {18, 30}})), (Pairs{{12, 18}}));
  EXPECT_EQ(pairs(without({10, 20}, {{1, 2}, {25, 30}})), (Pairs{{10, 20}}));
  EXPECT_EQ(pairs(without({10, 10}, {})), Pairs());
}

TEST(Overlap, WhatIsCovered) {
  const std::vector<Interval> busy{{10, 20}, {30, 40}, {50, 60}};
  EXPECT_EQ(coveredNs({0, 5}, busy), 0);
  EXPECT_EQ(coveredNs({0, 10}, busy), 0);
  EXPECT_EQ(coveredNs({20, 30}, busy), 0);
  EXPECT_EQ(coveredNs({60, 70}, busy), 0);
  EXPECT_EQ(coveredNs({12, 15}, busy), 3);
  EXPECT_EQ(coveredNs({5, 12}, busy), 2);
  EXPECT_EQ(coveredNs({18, 32}, busy), 4);
  EXPECT_EQ(coveredNs({15, 55}, busy), 20);
  EXPECT_EQ(coveredNs({0, 100}, busy), 30);
  EXPECT_EQ(coveredNs({15, 15}, busy), 0);
  EXPECT_EQ(coveredNs({0, 100}, {}), 0);
}

/// Three collectives: one behind a computation, one of which half is waited for, one after all
/// computation.
TEST(Overlap, CollectivesByRole) {
  const std::vector<CollectiveSpan> collectives{{{100, 140}, 0}, {{200, 260}, 1}, {{400, 410}, 0}};
  CommunicationTimes total;
  total.waitingNs = 40;
  std::vector<CommunicationTimes> roles(2);
  roles[1].waitingNs = 40;
  // The wait begins 30 into the second collective, and ends a little after it.
  addCollectives(collectives, {50, 400}, {{230, 265}}, total, roles);
  EXPECT_EQ(total.communicationNs, 110);
  EXPECT_EQ(total.hiddenNs, 70);
  EXPECT_EQ(total.exposedNs(), 40);
  EXPECT_EQ(total.waitingNs, 40);
  EXPECT_EQ(roles[0].communicationNs, 50);
  EXPECT_EQ(roles[0].hiddenNs, 40);
  EXPECT_EQ(roles[0].exposedNs(), 10);
  EXPECT_EQ(roles[1].communicationNs, 60);
  EXPECT_EQ(roles[1].hiddenNs, 30);
  EXPECT_EQ(roles[1].exposedNs(), 30);
}

} // namespace
} // namespace braid::runtime
