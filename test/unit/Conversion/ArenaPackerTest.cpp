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

/// In use from time `begin` to `end` of one queue, both included.
ArenaItem item(int64_t size, int64_t begin, int64_t end) {
  return {size, Lifetime({begin}, {end + 1})};
}

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
      if (!items[i].life.endsBefore(items[j].life) && !items[j].life.endsBefore(items[i].life))
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
  std::vector<ArenaItem> items = {item(64, 0, 1), item(64, 1, 2)};
  EXPECT_EQ(packArena(items, 64), 128);
  expectSound(items, 128, 64);
}

TEST(ArenaPackerTest, DisjointLivesShare) {
  std::vector<ArenaItem> items = {item(100, 0, 1), item(80, 2, 3), item(1, 4, 5)};
  EXPECT_EQ(packArena(items, 64), 128);
  for (const ArenaItem &item : items)
    EXPECT_EQ(item.offset, 0);
}

TEST(ArenaPackerTest, SharesWhatQueuesOrder) {
  // The first one is free when queue 1 has ended two commands, which the second one awaits and the
  // third one does not.
  std::vector<ArenaItem> items = {{64, Lifetime({0, 0}, {1, 2})},
                                  {64, Lifetime({1, 2}, {3, 2})},
                                  {64, Lifetime({1, 1}, {3, 2})}};
  EXPECT_EQ(packArena(items, 64), 192 - 64);
  EXPECT_EQ(items[0].offset, items[1].offset);
  EXPECT_NE(items[0].offset, items[2].offset);
}

TEST(ArenaPackerTest, FillsAGapBetweenOthers) {
  // The large items leave the middle free after time 1.
  std::vector<ArenaItem> items = {item(256, 0, 9), item(192, 0, 1), item(128, 0, 9),
                                  item(64, 2, 9)};
  int64_t total = packArena(items, 64).value();
  EXPECT_EQ(total, 256 + 192 + 128);
  EXPECT_EQ(items[3].offset, 256);
  expectSound(items, total, 64);
}

TEST(ArenaPackerTest, EmptyItemsTakeNoRoom) {
  std::vector<ArenaItem> items = {item(0, 0, 9), item(64, 0, 9), item(0, 3, 4)};
  EXPECT_EQ(packArena(items, 64), 64);
  EXPECT_EQ(items[1].offset, 0);
}

TEST(ArenaPackerTest, NothingWhereSizesWouldWrap) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  std::vector<ArenaItem> one = {item(most, 0, 1)};
  EXPECT_EQ(packArena(one, 64), std::nullopt);
  std::vector<ArenaItem> both = {item(kMaxArenaBytes, 0, 1), item(64, 0, 1)};
  EXPECT_EQ(packArena(both, 64), std::nullopt);
  std::vector<ArenaItem> inTurn = {item(kMaxArenaBytes, 0, 1), item(64, 2, 3)};
  EXPECT_EQ(packArena(inTurn, 64), kMaxArenaBytes);
}

TEST(ArenaPackerTest, TriesOtherOrdersWhereTheOrderOfSizesWastesMemory) {
  // In the order of sizes the first item lies above the last and the second one below it, so that
  // the third one, which lives beside both, is above all: 768 bytes.
  std::vector<ArenaItem> items = {item(256, 1, 3), item(256, 4, 4), item(192, 2, 4),
                                  item(320, 0, 1)};
  EXPECT_EQ(packArena(items, 64), 576);
  expectSound(items, 576, 64);
}

TEST(ArenaPackerTest, RandomPlansAreSoundAndNearWhatIsLive) {
  std::mt19937 random(17);
  double sumOfRatios = 0;
  auto upTo = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<ArenaItem> items(static_cast<size_t>(1 + upTo(40)), item(0, 0, 0));
    int64_t sum = 0;
    for (ArenaItem &drawn : items) {
      const int64_t begin = upTo(50);
      drawn = item(upTo(1000), begin, begin + upTo(20));
      sum += (drawn.size + 63) / 64 * 64;
    }
    int64_t total = packArena(items, 64).value();
    expectSound(items, total, 64);
    EXPECT_LE(total, sum);
    // A lower bound: the maximum size of live items at any time.
    int64_t fullest = 0;
    for (int64_t time = 0; time < 70; ++time) {
      int64_t alive = 0;
      for (const ArenaItem &item : items)
        if (item.life.first[0] <= time && time < item.life.last[0])
          alive += (item.size + 63) / 64 * 64;
      fullest = std::max(fullest, alive);
    }
    EXPECT_GE(total, fullest);
    EXPECT_LE(static_cast<double>(total), 1.2 * static_cast<double>(fullest)) << "round " << round;
    sumOfRatios += static_cast<double>(total) / static_cast<double>(std::max<int64_t>(fullest, 1));
  }
  EXPECT_LE(sumOfRatios / kRounds, 1.02);
}

} // namespace
