//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chosen ways from form to form; test/unit/Differential/ReshardTest.cpp has them all on small
// meshes.
//
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Reshard.h"

#include <gtest/gtest.h>

using namespace braid;

namespace {
std::string text(const std::vector<ReshardStep> &steps) {
  static constexpr const char *kNames[] = {"slice", "gather", "exchange", "permute"};
  std::string text;
  for (const ReshardStep &step : steps) {
    text += (text.empty() ? "" : ", ") + std::string(kNames[step.kind]) + " " +
            std::to_string(step.dim);
    if (step.kind == ReshardStep::Exchange)
      text += " to " + std::to_string(step.to);
    text += " over";
    for (int axis : step.axes)
      text += " " + std::to_string(axis);
  }
  return text;
}

/// f32 [16, 16] on axes of size 2, 4 and 2.
const Resharder kResharder({2, 4, 2}, {}, {16, 16}, 4);
} // namespace

TEST(Reshard, WithoutSending) {
  std::optional<ReshardPath> path = kResharder.cheapest({{{0}, {}}}, {{0, 1}, {2}});
  ASSERT_TRUE(path);
  EXPECT_EQ(path->cost.bytes, 0);
  EXPECT_EQ(path->cost.collectives, 0);
  EXPECT_EQ(path->cost.slices, 2);
}

TEST(Reshard, CutBeforeItIsGathered) {
  // Half of [8, 16] over 4 ranks, to one other.
  std::optional<ReshardPath> path = kResharder.cheapest({{{0}, {}}}, {{}, {1}});
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "slice 1 over 1, gather 0 over 0");
  EXPECT_EQ(path->cost.bytes, 4 * 8 * 4);
}

TEST(Reshard, BeginsAtTheBestForm) {
  std::optional<ReshardPath> path =
      kResharder.cheapest({{{0}, {}}, {{}, {}}, {{1}, {}}}, {{1}, {0}});
  ASSERT_TRUE(path);
  EXPECT_EQ(path->from, 2u);
  EXPECT_EQ(text(path->steps), "slice 1 over 0");
}

TEST(Reshard, AxesThatChangePlaces) {
  // Parts that are as large stay in one piece: half the axes' ranks send their part to another.
  std::optional<ReshardPath> path = kResharder.cheapest({{{0}, {2}}}, {{2}, {0}});
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "permute 0 over 0 2");
  EXPECT_EQ(path->cost.bytes, 4 * 8 * 8);
  EXPECT_EQ(kResharder.permutation({{0}, {2}}, path->steps[0]),
            (std::vector<int64_t>{0, 0, 2, 1, 1, 2, 3, 3}));
  // The minor axis of three that stays in its place is no business of theirs.
  path = kResharder.cheapest({{{0, 2}, {1}}}, {{2, 0}, {1}});
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "permute 0 over 0 2");
  EXPECT_EQ(kResharder.permutation({{0, 2}, {1}}, path->steps[0]),
            (std::vector<int64_t>{0, 0, 2, 1, 1, 2, 3, 3}));
}

TEST(Reshard, ThreeExchangesSendLessThanAGather) {
  // Of 128 bytes, where a gather over two ranks would send as many and leave twice as many to send.
  Resharder resharder({2, 4}, {}, {16, 16}, 4);
  std::optional<ReshardPath> path = resharder.cheapest({{{0}, {1}}}, {{1}, {0}});
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps),
            "exchange 0 to 1 over 0, exchange 1 to 0 over 1 0, exchange 0 to 1 over 0");
  EXPECT_EQ(path->cost.bytes, 128 / 2 + 128 / 8 * 7 + 128 / 2);
}

TEST(Reshard, PartsOfAnAxisThatOverlap) {
  // Axes 0 and 1 are not in use together: gathered, then cut.
  Resharder resharder({2, 3}, {{0, 1}}, {6, 1}, 4);
  std::optional<ReshardPath> path = resharder.cheapest({{{0}, {}}}, {{1}, {}});
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "gather 0 over 0, slice 0 over 1");
}

TEST(Reshard, WhatDoesNotDivideIsNoWay) {
  Resharder resharder({2, 4}, {}, {6, 6}, 4);
  EXPECT_FALSE(resharder.cheapest({{{0}, {}}}, {{1}, {}}));
}
