//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Calibrate/Statistics.h"

#include <gtest/gtest.h>

using namespace braid::runtime;

TEST(Statistics, Median) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({9, 1, 5, 2}), 3.5);
}

TEST(Statistics, MeanOfFasterHalf) {
  EXPECT_EQ(meanOfFasterHalf({3}), 3);
  EXPECT_EQ(meanOfFasterHalf({8, 1, 2}), 1.5);
  EXPECT_EQ(meanOfFasterHalf({8, 1, 9, 3}), 2);
}

TEST(Statistics, MeansOfRepetitions) {
  using Means = std::vector<double>;
  // Two together, then one that takes as long itself; the last one is too short to tell.
  EXPECT_EQ(meansOfRepetitions({0.5, 0.75, 4, 0.25}, 1), (Means{0.625, 4}));
  EXPECT_EQ(meansOfRepetitions({0.25, 0.5}, 1), Means{0.375});
  EXPECT_EQ(meansOfRepetitions({3}, 1), Means{3});
}

TEST(Statistics, EndOverBegin) {
  // A host that stays as it is, and one that takes half as long again; a slow load does not count.
  EXPECT_EQ(endOverBegin({2, 2, 2, 2}, 2), 1);
  EXPECT_EQ(endOverBegin({2, 7, 2, 3, 3, 9}, 3), 1.5);
  EXPECT_EQ(endOverBegin({4, 1}, 1), 0.25);
}

TEST(Statistics, MeanOfNeighbours) {
  // 2 x 3 x 2; a rate tells its place.
  const std::array<size_t, 3> lengths{2, 3, 2};
  auto rate = [](size_t i) { return std::exp2(static_cast<double>(i)); };
  auto mean = [&](size_t index) { return std::log2(meanOfNeighbours(lengths, index, rate)); };
  // At a corner (0, 0, 0): 1, 2 and 6; in the middle (0, 1, 1): 2, 1, 5 and 9; at the other corner
  // (1, 2, 1): 10, 9 and 5.
  EXPECT_NEAR(mean(0), (1 + 2 + 6) / 3.0, 1e-12);
  EXPECT_NEAR(mean(3), (2 + 1 + 5 + 9) / 4.0, 1e-12);
  EXPECT_NEAR(mean(11), (10 + 9 + 5) / 3.0, 1e-12);
}
