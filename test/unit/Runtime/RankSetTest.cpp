//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/RankSet.h"
#include "ProgramBuilder.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

TEST(RankSet, HasTheRanksAtItsCoordinates) {
  const Mesh mesh = meshOf({{"pp", 3}, {"tp", 2}});
  const RankSet set{{{"tp", {1}}, {"pp", {0, 2}}}};
  EXPECT_OK(set.verify(mesh));
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < 6; ++rank)
    if (set.contains(mesh, rank))
      ranks.push_back(rank);
  EXPECT_EQ(ranks, (std::vector<int64_t>{1, 5}));
  EXPECT_TRUE(RankSet{}.contains(mesh, 3));
  EXPECT_EQ(rankSetString(set), "{tp = [1], pp = [0, 2]}");
  EXPECT_EQ(rankSetString({}), "all ranks");
  // Devices in another order than coordinates.
  EXPECT_TRUE((RankSet{{{"pp", {0}}}}.contains(meshOf({{"pp", 2}}, {1, 0}), 1)));
}

TEST(RankSet, RefusesWhatTheMeshDoesNotHave) {
  const Mesh mesh = meshOf({{"pp", 3}, {"tp", 2}});
  auto error = [&](std::vector<RankSet::Axis> axes) {
    return RankSet{std::move(axes)}.verify(mesh).message();
  };
  EXPECT_EQ(error({{"dp", {0}}}), "unknown axis 'dp' in mesh 'mesh'");
  EXPECT_EQ(error({{"pp", {0}}, {"pp", {1}}}), "axis 'pp' is named twice");
  EXPECT_EQ(error({{"pp", {}}}), "axis 'pp' of size 3: expects at least one coordinate");
  EXPECT_EQ(error({{"pp", {3}}}), "axis 'pp' of size 3 has no coordinate 3");
  EXPECT_EQ(error({{"pp", {-1}}}), "axis 'pp' of size 3 has no coordinate -1");
  EXPECT_EQ(error({{"pp", {1, 1}}}),
            "axis 'pp' of size 3: expects ascending coordinates, got 1 after 1");
  EXPECT_EQ(error({{"tp", {0, 1}}}),
            "axis 'tp' of size 2: expects some of the coordinates, got all (leave out the axis)");
}

TEST(RankSet, IntersectsAndCompares) {
  const RankSet all, first{{{"pp", {0}}}}, some{{{"pp", {0, 2}}}}, last{{{"pp", {2}}}},
      half{{{"tp", {1}}}};
  EXPECT_EQ(intersection(all, some), some);
  EXPECT_EQ(intersection(some, last), last);
  EXPECT_EQ(intersection(first, last), std::nullopt);
  EXPECT_EQ(intersection(first, half), (RankSet{{{"pp", {0}}, {"tp", {1}}}}));
  EXPECT_TRUE(isInside(first, some));
  EXPECT_TRUE(isInside(first, all));
  EXPECT_FALSE(isInside(some, first));
  EXPECT_FALSE(isInside(all, some));
  EXPECT_FALSE(isInside(half, first));
  EXPECT_TRUE(isInside(*intersection(first, half), half));
}

TEST(RankSet, KnowsWhetherGroupsAreComplete) {
  const Mesh mesh = meshOf({{"pp", 4}, {"tp", 2}});
  const RankSet pair{{{"pp", {0, 1}}}}, ends{{{"pp", {0, 2}}}};
  const std::vector<AxisRef> whole{{"pp"}}, inner{{"pp", 2, 2}}, outer{{"pp", 1, 2}}, other{{"tp"}};
  EXPECT_EQ(incompleteAxis(mesh, pair, other), nullptr);
  EXPECT_NE(incompleteAxis(mesh, pair, whole), nullptr);
  EXPECT_EQ(incompleteAxis(mesh, pair, inner), nullptr); // {0, 1}, {2, 3}
  EXPECT_NE(incompleteAxis(mesh, pair, outer), nullptr); // {0, 2}, {1, 3}
  EXPECT_EQ(incompleteAxis(mesh, ends, outer), nullptr);
  EXPECT_NE(incompleteAxis(mesh, ends, inner), nullptr);
}

TEST(RankSet, GivesRolesToRanks) {
  const Mesh mesh = meshOf({{"pp", 3}, {"tp", 2}}, {5, 4, 3, 2, 1, 0});
  auto one = RankRoles::of(mesh, {RankSet{}});
  ASSERT_OK(one);
  EXPECT_EQ(one->count(), 1u);
  EXPECT_EQ(one->roleOf(4), 0u);
  auto roles = RankRoles::of(mesh, {RankSet{{{"pp", {0}}}}, RankSet{{{"pp", {0, 1}}}}});
  ASSERT_OK(roles);
  ASSERT_EQ(roles->count(), 3u);
  EXPECT_EQ(roles->roleOf(5), roles->roleOf(4)); // pp = 0
  EXPECT_EQ(roles->roleOf(3), roles->roleOf(2)); // pp = 1
  EXPECT_EQ(roles->roleOf(1), roles->roleOf(0));
  EXPECT_EQ(roles->rank(roles->roleOf(5)), 4);
  EXPECT_NE(roles->roleOf(5), roles->roleOf(3));
  EXPECT_NE(roles->roleOf(3), roles->roleOf(1));
  EXPECT_EQ(RankRoles::of(meshOf({{"pp", 1 << 17}}), {RankSet{{{"pp", {0}}}}}).status().message(),
            "where ranks run different commands, expects at most 65536 ranks, got 131072");
}

} // namespace
