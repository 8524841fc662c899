//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Mesh.h"

#include "Testing.h"

#include <limits>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

using Numbers = std::vector<int64_t>;

TEST(Mesh, CoordinatesAreRowMajor) {
  Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
  EXPECT_EQ(mesh.numRanks(), 8);
  EXPECT_EQ(mesh.coordinates(0), (Numbers{0, 0}));
  EXPECT_EQ(mesh.coordinates(3), (Numbers{0, 3}));
  EXPECT_EQ(mesh.coordinates(6), (Numbers{1, 2}));
}

TEST(Mesh, ShiftedPositions) {
  EXPECT_EQ(shiftedPosition(2, 0, 3), 2);
  EXPECT_EQ(shiftedPosition(2, 1, 3), 0);
  EXPECT_EQ(shiftedPosition(0, -1, 3), 2);
  EXPECT_EQ(shiftedPosition(1, -7, 3), 0);
  EXPECT_EQ(shiftedPosition(7, 0, 5), 2); // fewer places than positions
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(shiftedPosition(most - 1, most - 1, most), most - 2);
  EXPECT_EQ(shiftedPosition(1, most, most), 1);
  EXPECT_EQ(shiftedPosition(1, std::numeric_limits<int64_t>::min(), 2), 1);
}

TEST(Mesh, Groups) {
  Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}});
  EXPECT_EQ(*mesh.group(6, {{"tp"}}), (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(*mesh.group(6, {{"dp"}}), (Numbers{2, 6}));
  EXPECT_EQ(*mesh.group(6, {{"tp"}, {"dp"}}), (Numbers{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(*mesh.groupPosition(6, {{"tp"}, {"dp"}}), 5);
  // tp as [2, 2]: the major sub-axis, then the minor one.
  EXPECT_EQ(*mesh.group(6, {{"tp", 1, 2}}), (Numbers{4, 6}));
  EXPECT_EQ(*mesh.group(6, {{"tp", 2, 2}}), (Numbers{6, 7}));
  EXPECT_EQ(*mesh.groupPosition(6, {{"tp", 2, 2}, {"tp", 1, 2}}), 1);
}

TEST(Mesh, OrderMapsCoordinatesToRanks) {
  Mesh mesh = meshOf({{"dp", 2}, {"tp", 2}}, {0, 2, 1, 3});
  ASSERT_OK(mesh.verify());
  EXPECT_EQ(mesh.coordinates(2), (Numbers{0, 1}));
  EXPECT_EQ(*mesh.group(0, {{"tp"}}), (Numbers{0, 2}));
  EXPECT_EQ(*mesh.group(3, {{"tp"}}), (Numbers{1, 3}));
}

/// Every rank is at the position in its group that the mesh computes, for all axes.
TEST(Mesh, GroupPositionAgreesWithGroup) {
  for (const Mesh &mesh : {meshOf({{"a", 2}, {"b", 12}}), meshOf({{"a", 4}, {"b", 3}}),
                           meshOf({{"a", 2}, {"b", 2}}, {3, 1, 0, 2})})
    for (const std::vector<AxisRef> &axes :
         {std::vector<AxisRef>{{"a"}}, {{"b"}}, {{"a"}, {"b"}}, {{"b"}, {"a"}}, {{"a", 1, 2}}, {}})
      for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
        Result<std::vector<int64_t>> group = mesh.group(rank, axes);
        ASSERT_OK(group);
        EXPECT_EQ((*group)[static_cast<size_t>(*mesh.groupPosition(rank, axes))], rank);
        for (int64_t member : *group)
          EXPECT_EQ(*mesh.group(member, axes), *group);
      }
}

TEST(Mesh, RefusesBadMeshes) {
  EXPECT_ERROR(meshOf({{"", 2}}).verify(), "mesh 'mesh' has an axis without a name");
  EXPECT_ERROR(meshOf({{"tp", 0}}).verify(), "mesh axis 'tp' expects a size of at least 1, got 0");
  EXPECT_ERROR(meshOf({{"tp", 2}, {"tp", 2}}).verify(), "mesh 'mesh' names axis 'tp' twice");
  EXPECT_ERROR(meshOf({{"a", 1 << 20}, {"b", 1 << 20}, {"c", int64_t(1) << 62}}).verify(),
               "mesh 'mesh' expects at most 16777216 ranks");
  for (const Numbers &order : {Numbers{0}, {0, 0}, {0, 2}, {-1, 0}})
    EXPECT_ERROR(meshOf({{"tp", 2}}, order).verify(),
                 "mesh 'mesh' expects 'order' to be a permutation of 0..1");
}

TEST(Mesh, RefusesBadAxes) {
  Mesh mesh = meshOf({{"dp", 2}, {"tp", 12}});
  auto verify = [&](std::vector<AxisRef> axes) { return mesh.verify(axes); };
  EXPECT_OK(verify({}));
  EXPECT_OK(verify({{"tp"}, {"dp"}}));
  EXPECT_OK(verify({{"tp", 1, 2}, {"tp", 2, 3}, {"tp", 6, 2}}));
  EXPECT_OK(verify({{"tp", 6, 2}, {"tp", 1, 3}}));
  EXPECT_ERROR(verify({{"pp"}}), "unknown axis 'pp' in mesh 'mesh'");
  EXPECT_ERROR(verify({{"tp", 1, 5}}), "sub-axis (1)5 does not divide axis 'tp' of size 12");
  EXPECT_ERROR(verify({{"tp", 5, 1}}), "sub-axis (5)1 does not divide axis 'tp' of size 12");
  EXPECT_ERROR(verify({{"tp", 0, 2}}), "sub-axis (0)2 does not divide axis 'tp' of size 12");
  EXPECT_ERROR(verify({{"tp", -1, -2}}), "sub-axis (-1)-2 does not divide axis 'tp' of size 12");
  EXPECT_ERROR(verify({{"tp", 2, 0}}), "sub-axis (2)0 does not divide axis 'tp' of size 12");
  EXPECT_ERROR(verify({{"tp"}, {"tp"}}), "axis 'tp' is used twice");
  EXPECT_ERROR(verify({{"tp"}, {"tp", 2, 2}}), "axis 'tp' is used twice");
  EXPECT_ERROR(verify({{"tp", 1, 4}, {"tp", 2, 3}}), "axis 'tp' is used twice");
  EXPECT_ERROR(verify({{"tp", 3, 2}, {"tp", 1, 2}}), "axis 'tp' is used twice");
}

TEST(Mesh, LocalBoxesTileTheTensor) {
  Mesh mesh = meshOf({{"dp", 2}, {"tp", 4}}, {7, 6, 5, 4, 3, 2, 1, 0});
  const Numbers shape = {4, 8};
  for (const Sharding &sharding :
       {Sharding{{{{"dp"}}, {{"tp"}}}}, Sharding{{{{"tp"}}, {{"dp"}}}},
        Sharding{{{}, {{"tp"}, {"dp"}}}}, Sharding{{{{"tp", 2, 2}}, {{"tp", 1, 2}, {"dp"}}}}}) {
    std::vector<int> held(32, 0);
    for (int64_t rank = 0; rank < 8; ++rank) {
      Result<Box> box = localBox(mesh, rank, shape, sharding);
      ASSERT_OK(box);
      for (int64_t i = 0; i < box->sizes[0]; ++i)
        for (int64_t j = 0; j < box->sizes[1]; ++j)
          ++held[static_cast<size_t>((box->offsets[0] + i) * 8 + box->offsets[1] + j)];
    }
    for (int count : held)
      EXPECT_EQ(count, 1);
  }
  Result<Box> whole = localBox(mesh, 3, shape, {});
  ASSERT_OK(whole);
  EXPECT_EQ(whole->sizes, shape);
  Result<Box> first = localBox(mesh, 7, shape, Sharding{{{{"dp"}}, {{"tp"}}}});
  ASSERT_OK(first);
  EXPECT_EQ(first->offsets, (Numbers{0, 0})) << "device 7 has the first coordinates";
}

TEST(Mesh, LocalBoxRefusesWhatDoesNotFit) {
  Mesh mesh = meshOf({{"tp", 4}});
  EXPECT_ERROR(localBox(mesh, 0, {6}, Sharding{{{{"tp"}}}}),
               "dimension 0 of size 6 does not divide into 4 shards");
  EXPECT_ERROR(localBox(mesh, 0, {4, 4}, Sharding{{{{"tp"}}}}),
               "sharding of 1 dimensions on a tensor of rank 2");
  EXPECT_ERROR(localBox(mesh, 0, {4, 4}, Sharding{{{{"tp"}}, {{"tp"}}}}),
               "axis 'tp' is used twice");
}

} // namespace
