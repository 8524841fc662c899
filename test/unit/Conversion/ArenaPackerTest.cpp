//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ArenaPacker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

using namespace braid;

namespace {

bool overlap(int64_t aBegin, int64_t aEnd, int64_t bBegin, int64_t bEnd) {
  return aBegin < bEnd && bBegin < aEnd;
}

/// Items with overlapping lifetimes must not share bytes; all items must lie in the arena and be
/// aligned.
void expectSound(const std::vector<ArenaItem> &items, int64_t total, int64_t alignment) {
  EXPECT_EQ(total % alignment, 0);
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].offset % alignment, 0) << "item " << i;
    EXPECT_LE(items[i].offset + items[i].size, total) << "item " << i;
    for (size_t j = 0; j < i; ++j)
      if (overlap(items[i].begin, items[i].end + 1, items[j].begin, items[j].end + 1))
        EXPECT_FALSE(overlap(items[i].offset, items[i].offset + items[i].size, items[j].offset,
                             items[j].offset + items[j].size))
            << "items " << j << " and " << i;
  }
}

TEST(ArenaPackerTest, NothingNeedsNothing) {
  std::vector<ArenaItem> items;
  EXPECT_EQ(packArena(items, 64), 0);
}

TEST(ArenaPackerTest, TouchingLivesDoNotShare) {
  // Both are in use at time 1: a command reads one and writes the other.
  std::vector<ArenaItem> items = {{64, 0, 1, 0}, {64, 1, 2, 0}};
  EXPECT_EQ(packArena(items, 64), 128);
  expectSound(items, 128, 64);
}

TEST(ArenaPackerTest, DisjointLivesShare) {
  std::vector<ArenaItem> items = {{100, 0, 1, 0}, {80, 2, 3, 0}, {1, 4, 5, 0}};
  EXPECT_EQ(packArena(items, 64), 128);
  for (const ArenaItem &item : items)
    EXPECT_EQ(item.offset, 0);
}

TEST(ArenaPackerTest, FillsAGapBetweenOthers) {
  // The large items leave the middle free after time 1.
  std::vector<ArenaItem> items = {{256, 0, 9, 0}, {192, 0, 1, 0}, {128, 0, 9, 0}, {64, 2, 9, 0}};
  int64_t total = packArena(items, 64).value();
  EXPECT_EQ(total, 256 + 192 + 128);
  EXPECT_EQ(items[3].offset, 256);
  expectSound(items, total, 64);
}

TEST(ArenaPackerTest, EmptyItemsTakeNoRoom) {
  std::vector<ArenaItem> items = {{0, 0, 9, 0}, {64, 0, 9, 0}, {0, 3, 4, 0}};
  EXPECT_EQ(packArena(items, 64), 64);
  EXPECT_EQ(items[1].offset, 0);
}

TEST(ArenaPackerTest, NothingWhereSizesWouldWrap) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  std::vector<ArenaItem> one = {{most, 0, 1, 0}};
  EXPECT_EQ(packArena(one, 64), std::nullopt);
  std::vector<ArenaItem> both = {{kMaxArenaBytes, 0, 1, 0}, {64, 0, 1, 0}};
  EXPECT_EQ(packArena(both, 64), std::nullopt);
  std::vector<ArenaItem> inTurn = {{kMaxArenaBytes, 0, 1, 0}, {64, 2, 3, 0}};
  EXPECT_EQ(packArena(inTurn, 64), kMaxArenaBytes);
}

TEST(ArenaPackerTest, RandomPlansAreSoundAndNotAboveTheSum) {
  std::mt19937 random(17);
  auto upTo = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaItem> items(static_cast<size_t>(1 + upTo(40)));
    int64_t sum = 0;
    for (ArenaItem &item : items) {
      item.size = upTo(1000);
      item.begin = upTo(50);
      item.end = item.begin + upTo(20);
      sum += (item.size + 63) / 64 * 64;
    }
    int64_t total = packArena(items, 64).value();
    expectSound(items, total, 64);
    EXPECT_LE(total, sum);
    // A lower bound: the maximum size of live items at any time.
    int64_t fullest = 0;
    for (int64_t time = 0; time < 70; ++time) {
      int64_t alive = 0;
      for (const ArenaItem &item : items)
        if (item.begin <= time && time <= item.end)
          alive += item.size;
      fullest = std::max(fullest, alive);
    }
    EXPECT_GE(total, fullest);
  }
}

} // namespace
