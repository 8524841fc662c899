//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Padding/Padding.h"

#include <gtest/gtest.h>
#include <set>

using namespace braid;

namespace {
/// The model's element for each element of the padded dimension; -1 for zeros.
std::vector<int64_t> elements(const DimPadding &padding) {
  std::vector<int64_t> result(static_cast<size_t>(padding.size), -1);
  for (const Segment &segment : padding.segments)
    for (int64_t i = 0; i < segment.size; ++i) {
      int64_t &element = result.at(static_cast<size_t>(segment.dest + i));
      EXPECT_EQ(element, -1) << "two segments land at " << segment.dest + i;
      element = segment.source + i;
    }
  return result;
}
} // namespace

TEST(Padding, AtEnd) {
  EXPECT_EQ(padAtEnd(15, 4).size, 16);
  EXPECT_EQ(padAtEnd(16, 4).size, 16);
  EXPECT_EQ(padAtEnd(1, 8).size, 8);
  EXPECT_EQ(padAtEnd(15, 4).segments, (std::vector<Segment>{{0, 0, 15}}));
}

TEST(Padding, GroupsOfZeros) {
  // 9 heads in 3 groups on two ranks: 4 groups of 3.
  HeadPadding heads = padHeads(3, 3, 2);
  EXPECT_EQ(heads.groups, 4);
  EXPECT_EQ(heads.groupSize, 3);
  EXPECT_EQ(heads.copies, 1);
  EXPECT_EQ(heads.queries(64).segments, (std::vector<Segment>{{0, 0, 9 * 64}}));
  EXPECT_EQ(heads.keys(64).segments, (std::vector<Segment>{{0, 0, 3 * 64}}));
}

TEST(Padding, CopiesOfGroups) {
  // On eight ranks each group has two copies: 8 groups of 2 instead of 8 of 3.
  HeadPadding heads = padHeads(3, 3, 8);
  EXPECT_EQ(heads.groups, 8);
  EXPECT_EQ(heads.groupSize, 2);
  EXPECT_EQ(heads.copies, 2);
  EXPECT_EQ(elements(heads.queries(1)),
            (std::vector<int64_t>{0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, -1, -1, -1, -1}));
  EXPECT_EQ(elements(heads.keys(1)), (std::vector<int64_t>{0, 0, 1, 1, 2, 2, -1, -1}));
  // All query heads share one key and value head: every rank has it.
  HeadPadding shared = padHeads(1, 8, 4);
  EXPECT_EQ(shared.groups * shared.groupSize, 8);
  EXPECT_EQ(elements(shared.keys(1)), (std::vector<int64_t>{0, 0, 0, 0}));
}

TEST(Padding, EveryQueryHeadOnceBesideItsKey) {
  for (int64_t groups : {1, 2, 3, 4, 5, 8})
    for (int64_t groupSize : {1, 2, 3, 4, 7, 8})
      for (int64_t ranks : {1, 2, 3, 4, 5, 6, 8, 16}) {
        SCOPED_TRACE(std::to_string(groups) + " groups of " + std::to_string(groupSize) + " on " +
                     std::to_string(ranks));
        HeadPadding heads = padHeads(groups, groupSize, ranks);
        EXPECT_EQ(heads.groups % ranks, 0);
        // Never more than with added groups of zeros.
        EXPECT_LE(heads.groups * (heads.groupSize + 1),
                  (groups + ranks - 1) / ranks * ranks * (groupSize + 1));
        std::vector<int64_t> queries = elements(heads.queries(1)), keys = elements(heads.keys(1));
        ASSERT_EQ(static_cast<int64_t>(queries.size()), heads.groups * heads.groupSize);
        ASSERT_EQ(static_cast<int64_t>(keys.size()), heads.groups);
        std::set<int64_t> seen;
        for (size_t i = 0; i < queries.size(); ++i)
          if (queries[i] >= 0) {
            EXPECT_TRUE(seen.insert(queries[i]).second);
            EXPECT_EQ(keys[i / static_cast<size_t>(heads.groupSize)], queries[i] / groupSize);
          }
        EXPECT_EQ(static_cast<int64_t>(seen.size()), groups * groupSize);
      }
}
