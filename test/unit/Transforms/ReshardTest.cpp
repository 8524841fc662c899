//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cheapest reshard paths between selected layouts, a suite modeled on Shardy's resharding tests,
// and random layouts, checked rank by rank. test/unit/Differential/ReshardTest.cpp executes
// reshards.
//
//===----------------------------------------------------------------------===//
#include "Axes.h"

#include "lib/Transforms/Sharding/Reshard.h"

#include <chrono>
#include <iostream>
#include <numeric>
#include <random>

using namespace braid;
using llvm::StringRef;

namespace {

std::string text(const std::vector<ReshardStep> &steps) {
  static constexpr const char *kNames[] = {"slice", "gather", "all_to_all", "permute"};
  std::string text;
  for (const ReshardStep &step : steps) {
    text += (text.empty() ? "" : ", ") + std::string(kNames[step.kind]);
    if (step.kind != ReshardStep::Permute)
      text += " " + std::to_string(step.dim);
    if (step.kind == ReshardStep::AllToAll)
      text += ">" + std::to_string(step.to);
  }
  return text;
}

/// A mesh "x=4,y=2" and a shape "16x8" of f32; layouts are "{x:(2)2,y} {}".
struct Case : test::AxisNames {
  std::vector<int64_t> shape;

  Case(StringRef mesh, StringRef extents) : AxisNames(mesh) {
    for (StringRef extent : llvm::split(extents, 'x'))
      shape.push_back(number(extent));
  }
  Resharder resharder() const { return Resharder(sizes, shape, 4); }
  std::optional<ReshardPath> cheapest(const std::vector<StringRef> &from, StringRef to) const {
    std::vector<Layout> layouts;
    for (StringRef text : from)
      layouts.push_back(layout(text));
    return resharder().cheapest(layouts, layout(to));
  }
};

const Case kCase("a=2,b=4,c=2", "16x16");
} // namespace

TEST(Reshard, WithoutSending) {
  std::optional<ReshardPath> path = kCase.cheapest({"{a} {}"}, "{a,b} {c}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "slice 0, slice 1");
  EXPECT_EQ(path->cost.bytes, 0);
}

TEST(Reshard, SlicesBeforeItGathers) {
  // Half of [8, 16] over 4 ranks; each rank sends its shard to one other rank.
  std::optional<ReshardPath> path = kCase.cheapest({"{a} {}"}, "{} {b}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "slice 1, gather 0");
  EXPECT_EQ(path->cost.bytes, 4 * 8 * 4);
}

TEST(Reshard, BeginsAtTheBestLayout) {
  std::optional<ReshardPath> path = kCase.cheapest({"{a} {}", "{} {}", "{b} {}"}, "{b} {a}");
  ASSERT_TRUE(path);
  EXPECT_EQ(path->from, 2u);
  EXPECT_EQ(text(path->steps), "slice 1");
}

TEST(Reshard, AxesThatChangePlaces) {
  // Shards of equal size are sent undivided: half the ranks send theirs to another.
  std::optional<ReshardPath> path = kCase.cheapest({"{a} {c}"}, "{c} {a}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "permute");
  EXPECT_EQ(path->cost.bytes, 4 * 8 * 8);
  EXPECT_EQ(permutation(kCase.layout("{a} {c}"), path->steps[0].after),
            (std::vector<int64_t>{0, 0, 2, 1, 1, 2, 3, 3}));
  // An axis that stays in its position takes no part in the permute.
  path = kCase.cheapest({"{a,c} {b}"}, "{c,a} {b}");
  ASSERT_TRUE(path);
  EXPECT_EQ(path->steps[0].axes, (SubAxes{{0, 1, 2}, {2, 1, 2}}));
  EXPECT_EQ(permutation(kCase.layout("{a,c} {b}"), path->steps[0].after),
            (std::vector<int64_t>{0, 0, 2, 1, 1, 2, 3, 3}));
}

TEST(Reshard, WhoeverHasItsShardKeepsIt) {
  std::optional<ReshardPath> path = kCase.cheapest({"{a} {}"}, "{c} {}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "permute");
  EXPECT_EQ(permutation(kCase.layout("{a} {}"), path->steps[0].after),
            (std::vector<int64_t>{0, 0, 2, 1, 1, 2, 3, 3}));
}

TEST(Reshard, AnAxisIsSplitToFit) {
  // If all ranks are in use, the half of b that a dimension lacks comes from the other dimension.
  std::optional<ReshardPath> path = Case("a=2,b=4", "16x16").cheapest({"{a} {b}"}, "{b} {a}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "permute, all_to_all 1>0");
  EXPECT_EQ(path->cost.bytes, 128 + 128 / 2);
  // If ranks are unused, shards are split first.
  path = kCase.cheapest({"{a} {b}"}, "{b} {a}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "slice 0, permute, gather 1");
  EXPECT_EQ(path->cost.bytes, 128);
}

TEST(Reshard, SubAxesThatCross) {
  // The sub-axes of size 2 and 3 of an axis of 6 overlap: only together do they form the axis.
  Case crossing("x=6", "6x6");
  EXPECT_FALSE(SubAxis({0, 1, 2}).isDisjoint({0, 3, 6}));
  EXPECT_TRUE(SubAxis({0, 1, 2}).isDisjoint({0, 2, 6}));
  std::optional<ReshardPath> path = crossing.cheapest({"{x:(1)2} {}"}, "{x:(1)3} {}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "slice 0, gather 0");
  EXPECT_EQ(path->steps[1].axes, (SubAxes{{0, 3, 6}}));
  path = crossing.cheapest({"{x:(1)2} {}"}, "{x:(3)2} {}");
  ASSERT_TRUE(path);
  EXPECT_EQ(text(path->steps), "permute");
  EXPECT_EQ(path->steps[0].axes, (SubAxes{{0, 1, 6}}));
}

TEST(Reshard, WhatDoesNotDivideIsNoPath) {
  EXPECT_FALSE(Case("a=2,b=4", "6x6").cheapest({"{a} {}"}, "{b} {}"));
}

//===----------------------------------------------------------------------===//
// Cases modeled on Shardy's resharding tests, with the bytes that the collective sequences in those
// tests send by the same formula. Shapes differ where shards would not be equal. Shardy's cases
// with a second mesh of other device ids have no counterpart, since a module has one mesh.
//===----------------------------------------------------------------------===//

namespace {
struct SuiteCase {
  const char *name, *mesh, *shape, *from, *to, *steps;
  int64_t bytes, shardyBytes;
};
constexpr SuiteCase kSuite[] = {
    {"gather_one_axis", "x=2,y=2", "16x8", "{y} {x}", "{y} {}", "gather 1", 128, 128},
    {"gather_minor_axes", "x=2,y=2,z=2", "16x8", "{x,y,z} {}", "{x} {}", "gather 0", 192, 192},
    {"gather_of_one_dim", "x=2,y=2,z=2", "16x8", "{y,z} {x}", "{y} {x}", "gather 0", 64, 64},
    {"gather_sub_axis", "x=2,y=8", "16x8", "{y} {x}", "{y:(1)4} {x}", "gather 0", 32, 32},
    {"slice_both_dims", "x=2,y=2,z=2", "16x8", "{} {}", "{x} {y,z}", "slice 0, slice 1", 0, 0},
    {"slice_minor_axis", "x=2,y=2,z=2", "16x8", "{x} {y}", "{x} {y,z}", "slice 1", 0, 0},
    {"slice_sub_axes", "x=4,y=2,z=4", "16x8", "{x:(1)2} {y}", "{x} {y,z:(1)2}", "slice 0, slice 1",
     0, 0},
    {"move_one_axis", "x=2,y=2,z=2", "16x8x8", "{x} {y} {}", "{} {y} {x}", "all_to_all 0>2", 512,
     512},
    {"move_two_axes", "x=2,y=2,z=2", "16x8x8", "{x} {} {y,z}", "{x} {y,z} {}", "all_to_all 2>1",
     384, 384},
    {"move_to_two_dims", "x=4,y=2,z=4", "16x8x8", "{} {y,x} {}", "{x} {} {y}",
     "slice 0, slice 2, permute, all_to_all 1>0, gather 1", 576, 640},
    {"move_on_top", "x=4,y=2,z=4", "16x8x8", "{x} {y,z} {}", "{x,z} {} {y}",
     "all_to_all 1>0, all_to_all 1>2", 160, 160},
    {"move_to_one_dim", "x=2,y=2,z=2", "16x8x8", "{y} {x} {}", "{} {} {x,y}",
     "all_to_all 1>2, all_to_all 0>2", 1024, 1024},
    {"move_to_one_dim_apart", "x=2,y=2,z=2", "16x8x8", "{y} {x,z} {}", "{} {} {x,y,z}",
     "all_to_all 1>0, all_to_all 1>2, all_to_all 0>2", 896, 1152},
    {"slice_then_move", "x=4,y=2,z=4", "16x8x8", "{} {y,z} {}", "{x,z} {} {y}",
     "slice 0, all_to_all 1>0, all_to_all 1>2", 160, 160},
    {"move_sub_axis_then_gather", "x=4,y=2,z=4", "16x8x8", "{x} {z,y} {}", "{x,z:(2)2} {} {y}",
     "all_to_all 1>2, all_to_all 1>0, gather 1", 256, 256},
    {"move_sub_axis_and_axis", "x=2,y=2,z=4,w=2", "16x16x8", "{x} {z,w,y} {}",
     "{x,z:(2)2,w} {} {y}", "all_to_all 1>2, all_to_all 1>0, gather 1", 576, 576},
    {"slice_source_then_move", "x=2,y=2,z=2,w=4", "16x8", "{} {w:(1)2}", "{w} {}",
     "slice 1, all_to_all 1>0", 96, 96},
    {"slice_source_twice", "x=2,y=2,z=2", "16x8x8", "{} {x} {}", "{} {} {x,y,z}",
     "slice 1, slice 1, all_to_all 1>2", 448, 448},
    {"slice_source_two_moves", "x=2,y=2,z=2", "16x8x8", "{z} {x} {}", "{} {} {x,y,z}",
     "slice 1, all_to_all 1>2, all_to_all 0>2", 640, 640},
    {"slice_second_source", "x=2,y=2,z=2", "16x8x8", "{y} {x} {}", "{} {} {x,y,z}",
     "slice 0, all_to_all 1>2, all_to_all 0>2", 640, 640},
    {"slice_source_two_targets", "x=2,y=2,z=2", "16x8x8", "{} {x,y} {}", "{x} {} {y,z}",
     "slice 1, all_to_all 1>2, all_to_all 1>0", 640, 640},
    {"slice_source_move_gather", "x=2,y=2,z=2,w=4", "16x8", "{y,z,w:(1)2} {}", "{y} {x,w}",
     "slice 1, slice 0, all_to_all 0>1, gather 0", 28, 28},
    {"slice_two_sources", "x=2,y=2,z=2,w=2", "16x8x16", "{z} {x} {}", "{} {} {x,y,z,w}",
     "slice 0, slice 1, all_to_all 1>2, all_to_all 0>2", 768, 768},
    {"slice_one_of_two_sources", "x=2,y=2,z=2,w=2", "2x8x16", "{z} {x} {}", "{} {} {x,y,z,w}",
     "slice 2, permute, all_to_all 0>2, all_to_all 1>2", 128, 144},
    {"slice_and_replace", "x=2,y=2,z=2,w=2", "16x8x8", "{z} {x} {}", "{w} {} {x,y}",
     "slice 2, permute, gather 1", 512, 896},
    {"source_stays_split", "x=2,y=2,z=2", "16x8", "{} {x}", "{x,y} {z}", "slice 0, permute", 64,
     64},
    {"target_is_split", "x=2,y=2,z=2", "16x8x8", "{} {x} {z}", "{} {} {x,y,z}",
     "slice 1, all_to_all 2>1, all_to_all 1>2", 704, 768},
    {"source_out_of_order", "x=2,y=2,z=2", "8x12", "{} {x,z}", "{x,y,z} {}",
     "slice 0, permute, all_to_all 1>0", 84, 84},
    {"source_not_contiguous", "x=2,y=2,z=2,w=2", "8x8", "{} {z,w,y}", "{x,y,z} {}",
     "slice 0, all_to_all 1>0, gather 1, all_to_all 1>0", 40, 44},
    {"source_too_small", "x=2,y=2,z=2", "16x4", "{} {x}", "{x,y,z} {}",
     "slice 1, all_to_all 1>0, slice 0", 48, 48},
    {"source_too_small_two_targets", "x=2,y=2,z=2", "16x4x8", "{} {x,y} {}", "{x} {} {y,z}",
     "all_to_all 1>2, slice 2, all_to_all 1>0", 384, 512},
    {"source_does_not_divide", "x=2,y=2", "4x10", "{} {x}", "{x,y} {}", "all_to_all 1>0, slice 0",
     40, 60},
    {"replace_axis", "x=2,y=2,z=2", "16x8", "{z} {y}", "{z} {x}", "permute", 128, 128},
    {"replace_by_larger", "x=4,y=2,z=4", "16x8", "{z} {y}", "{z} {x}", "slice 1, permute", 32, 32},
    {"replace_by_smaller", "x=4,y=2,z=4", "16x8", "{z} {x}", "{z} {y}", "permute, gather 1", 64,
     64},
    {"replace_major_axis", "x=2,y=2,z=2,w=2", "16x8", "{x,y,z} {}", "{w,y,z} {}", "permute", 64,
     64},
    {"replace_in_other_dim", "x=2,y=2", "16x8", "{x} {}", "{} {y}", "slice 1, gather 0", 128, 128},
    {"replace_by_smaller_in_other_dim", "x=4,y=2", "16x8", "{x} {}", "{} {y}", "slice 1, gather 0",
     192, 192},
    {"replace_many_axes", "x=2,y=2,z=2,w=2,u=2,v=2", "8x8x8x8", "{x} {y,z} {} {}",
     "{} {} {w,u} {v}", "slice 2, slice 3, gather 0, gather 1", 1792, 1792},
    {"replace_by_larger_in_other_dim", "x=4,y=2", "16x8", "{y} {}", "{} {x}", "slice 1, gather 0",
     64, 64},
    {"slice_target_move_gather", "x=2,y=2,z=2,w=4", "16x8", "{y,z,w} {}", "{y} {x,w}",
     "slice 1, all_to_all 0>1, gather 0", 28, 28},
    {"swap_axes", "x=2,y=2", "16x8", "{x} {y}", "{y} {x}", "permute", 128, 128},
    {"swap_axes_of_other_sizes", "x=4,y=2", "16x8", "{x} {y}", "{y} {x}", "permute, all_to_all 0>1",
     96, 96},
    {"slice_and_swap", "x=2,y=2,z=2", "16x8", "{x} {y}", "{x,y} {z}", "slice 0, permute", 64, 64},
    {"swap_then_move", "x=2,y=2", "8x8x8", "{x} {y} {}", "{} {x} {y}",
     "all_to_all 1>2, all_to_all 0>1", 512, 768},
    {"slice_sub_axes_and_swap", "x=4,y=2,z=4", "16x8", "{z} {y}", "{y,z} {x}",
     "slice 0, slice 1, permute", 16, 16},
    {"swap_sub_axes_move_gather", "x=4,y=2,z=4", "16x8", "{z,y} {x}", "{x,z} {}",
     "permute, all_to_all 1>0, gather 1", 40, 40},
    {"reorder_axes", "x=4,y=2,z=4", "16x8", "{x,y} {z}", "{y,x} {z}", "permute", 16, 16},
    {"reorder_across_dims", "x=4,y=2,z=4", "16x8", "{x,y} {z}", "{y,z} {x}", "permute", 16, 16},
    {"slice_then_reorder", "x=2,y=2", "16x8x8", "{y} {} {}", "{x,y} {} {}", "slice 0, permute",
     1024, 1024},
    {"reorder_to_gather", "x=2,y=2,z=2", "16x8", "{y,x,z} {}", "{z} {}", "permute, gather 0", 256,
     256},
    {"reorder_to_move_and_gather", "x=2,y=2,z=2", "16x8", "{y,x,z} {}", "{z} {y}",
     "all_to_all 0>1, all_to_all 1>0, gather 1", 152, 160},
    {"reorder_to_move_and_gather_rest", "x=2,y=2,z=2", "16x8", "{z,y,x} {}", "{} {y}",
     "all_to_all 0>1, gather 0, gather 1", 240, 288},
    {"move_out_of_order", "x=2,y=2", "16x8x8", "{} {y,x} {}", "{x,y} {} {}",
     "all_to_all 1>0, all_to_all 1>0", 1024, 1792},
    {"move_both_out_of_order", "x=4,y=2,z=4", "32x8x8", "{z} {y,x} {}", "{x,y,z} {} {}",
     "permute, all_to_all 1>0", 480, 480},
    {"move_to_two_dims_out_of_order", "x=4,y=2,z=4", "16x32x8", "{} {x,z,y} {}", "{x,y} {} {z}",
     "all_to_all 1>2, all_to_all 1>0, all_to_all 2>0", 1088, 1344},
    {"move_to_two_dims_out_of_order_2", "x=4,y=2,z=4", "16x32x8", "{} {y,z,x} {}", "{x,y} {} {z}",
     "all_to_all 1>0, all_to_all 1>2, all_to_all 1>0", 1024, 1344},
    {"move_and_gather_out_of_order", "x=2,y=2,z=4,w=2", "16x16x8", "{x} {y,z,w} {}",
     "{x,z:(2)2,w} {} {y}", "all_to_all 1>0, all_to_all 1>2, gather 2", 640, 832},
    {"reorder_sub_axes", "x=2,y=2,z=2,w=4", "16x8", "{y,w:(1)2,z,w:(2)2} {}", "{y} {x,w}",
     "slice 1, permute, all_to_all 0>1, gather 0", 44, 44},
    {"replace_sub_axes", "x=2,y=2,z=2,w=4", "16x8", "{y,z,w:(2)2} {}", "{y} {x,w}",
     "slice 1, all_to_all 0>1, gather 0", 24, 24},
    {"replace_by_sub_axis", "x=2,y=2,z=2,w=16", "16x16", "{y,w:(4)2,z,w:(1)2} {}", "{y} {x,w:(2)8}",
     "slice 1, slice 1, permute, all_to_all 0>1, gather 0", 36, 36},
    {"replace_by_full_axis", "x=2,y=2,z=2,w=16", "16x32", "{y,w:(4)2,z,w:(1)2} {}", "{y} {x,w}",
     "slice 1, slice 1, permute, all_to_all 0>1, gather 0", 44, 44},
    {"crossing_sub_axes", "x=6", "6x2", "{x:(1)2} {}", "{x:(1)3} {}", "slice 0, gather 0", 8, 24},
    {"crossing_sub_axes_of_one_size", "x=6", "6x2", "{x:(2)3} {}", "{x:(1)3} {}", "permute", 16,
     32},
    {"crossing_sub_axes_of_two_dims", "x=6", "6x6", "{x:(2)3} {}", "{} {x:(1)3}",
     "permute, all_to_all 0>1", 80, 96},
};
} // namespace

TEST(Reshard, Suite) {
  int64_t fewer = 0;
  for (const SuiteCase &row : kSuite) {
    SCOPED_TRACE(row.name);
    std::optional<ReshardPath> path = Case(row.mesh, row.shape).cheapest({row.from}, row.to);
    ASSERT_TRUE(path);
    EXPECT_EQ(text(path->steps), row.steps);
    EXPECT_EQ(path->cost.bytes, row.bytes);
    EXPECT_LE(row.bytes, row.shardyBytes);
    fewer += row.bytes < row.shardyBytes;
  }
  std::cout << std::size(kSuite) << " cases, fewer bytes in " << fewer << "\n";
}

//===----------------------------------------------------------------------===//
// Random layouts
//===----------------------------------------------------------------------===//

namespace {

class RandomCase {
public:
  RandomCase(std::vector<int64_t> sizes, std::vector<int64_t> shape, std::mt19937 &random)
      : sizes(std::move(sizes)), shape(std::move(shape)), random(random) {}

  Layout layout() {
    Layout layout(shape.size());
    Resharder resharder(sizes, shape, 4);
    for (size_t tries = draw(4 * sizes.size() + 4); tries > 0; --tries) {
      size_t axis = draw(sizes.size()), dim = draw(shape.size());
      int64_t n = sizes[axis];
      int64_t begin = 1 + static_cast<int64_t>(draw(static_cast<size_t>(n)));
      int64_t end = 1 + static_cast<int64_t>(draw(static_cast<size_t>(n)));
      if (draw(2))
        begin = 1, end = n;
      SubAxis subAxis{static_cast<int>(axis), begin, end};
      if (n % end == 0 && end % begin == 0 && end > begin && isFree(layout, subAxis) &&
          resharder.divides(layout, dim, subAxis.size()))
        layout[dim].push_back(subAxis);
    }
    return layout;
  }

  /// Checks that every rank ends with its shard, by tracking its elements after each step.
  void check(const Layout &from, const Layout &to) {
    std::optional<ReshardPath> path = Resharder(sizes, shape, 4).cheapest({from}, to);
    ASSERT_TRUE(path);
    int64_t ranks =
        std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<int64_t>());
    Layout before = from;
    for (const ReshardStep &step : path->steps) {
      std::vector<int64_t> pairs;
      if (step.kind == ReshardStep::Permute)
        pairs = permutation(before, step.after);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        std::vector<int64_t> members = group(rank, step.axes);
        Box wanted = boxOf(rank, step.after);
        if (step.kind == ReshardStep::Permute) {
          int64_t own = std::find(members.begin(), members.end(), rank) - members.begin();
          ASSERT_EQ(pairs[2 * own + 1], own);
          ASSERT_EQ(boxOf(members[pairs[2 * own]], before), wanted);
          continue;
        }
        if (step.kind == ReshardStep::Slice)
          members = {rank};
        int64_t covered = 0;
        for (int64_t member : members)
          covered += commonElements(boxOf(member, before), wanted);
        ASSERT_EQ(covered, commonElements(wanted, wanted));
      }
      before = step.after;
    }
    for (int64_t rank = 0; rank < ranks; ++rank)
      ASSERT_EQ(boxOf(rank, before), boxOf(rank, to));
  }

private:
  using Box = std::vector<std::pair<int64_t, int64_t>>;

  size_t draw(size_t n) { return random() % n; }
  int64_t coordinate(int64_t rank, int axis) const {
    for (size_t i = sizes.size(); i-- > static_cast<size_t>(axis) + 1;)
      rank /= sizes[i];
    return rank % sizes[static_cast<size_t>(axis)];
  }
  int64_t digit(int64_t rank, const SubAxis &axis) const {
    return coordinate(rank, axis.axis) / (sizes[static_cast<size_t>(axis.axis)] / axis.end) %
           axis.size();
  }
  Box boxOf(int64_t rank, const Layout &layout) const {
    Box box;
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t index = 0, extent = shape[d] / shards(layout[d]);
      for (const SubAxis &axis : layout[d])
        index = index * axis.size() + digit(rank, axis);
      box.emplace_back(index * extent, (index + 1) * extent);
    }
    return box;
  }
  static int64_t commonElements(const Box &a, const Box &b) {
    int64_t n = 1;
    for (size_t d = 0; d < a.size(); ++d)
      n *= std::max<int64_t>(0,
                             std::min(a[d].second, b[d].second) - std::max(a[d].first, b[d].first));
    return n;
  }
  /// The ranks that differ only in these digits, by position.
  std::vector<int64_t> group(int64_t rank, const SubAxes &axes) const {
    std::vector<int64_t> members{rank};
    for (const SubAxis &axis : axes) {
      std::vector<int64_t> next;
      int64_t minor = sizes[static_cast<size_t>(axis.axis)] / axis.end;
      for (size_t i = static_cast<size_t>(axis.axis) + 1; i < sizes.size(); ++i)
        minor *= sizes[i];
      for (int64_t member : members)
        for (int64_t value = 0; value < axis.size(); ++value)
          next.push_back(member + (value - digit(member, axis)) * minor);
      members = std::move(next);
    }
    return members;
  }

  std::vector<int64_t> sizes, shape;
  std::mt19937 &random;
};

} // namespace

TEST(Reshard, EveryRankEndsWithItsShard) {
  constexpr unsigned kSeed = 20;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937 random(kSeed);
  const std::vector<std::vector<int64_t>> meshes = {
      {6}, {12}, {30}, {2, 6}, {6, 4}, {2, 3, 2}, {4, 2, 4}, {6, 6}, {2, 2, 2, 2, 2}, {3, 2, 5}};
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
    const std::vector<int64_t> &sizes = meshes[static_cast<size_t>(i) % meshes.size()];
    RandomCase layouts(sizes, std::vector<int64_t>(1 + random() % 3, 720), random);
    Layout from = layouts.layout(), to = layouts.layout();
    layouts.check(from, to);
  }
}

TEST(Reshard, SearchIsBounded) {
  constexpr unsigned kSeed = 21;
  std::mt19937 random(kSeed);
  const std::vector<std::vector<int64_t>> meshes = {{2, 2, 2, 2, 2, 2, 2, 2},
                                                    {4, 4, 4, 4, 4, 4, 4, 4},
                                                    {2, 3, 2, 3, 2, 5, 2, 2},
                                                    {8, 8, 8},
                                                    {6, 6, 6},
                                                    {16, 8, 4, 2},
                                                    {12, 12},
                                                    {360}};
  int64_t reached = 0;
  double seconds = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<int64_t> &sizes = meshes[static_cast<size_t>(i) % meshes.size()];
    std::vector<int64_t> shape(2 + random() % 4, 72000);
    RandomCase layouts(sizes, shape, random);
    Layout from = layouts.layout(), to = layouts.layout();
    auto begin = std::chrono::steady_clock::now();
    std::optional<ReshardPath> path = Resharder(sizes, shape, 4).cheapest({from}, to);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(path);
    reached = std::max(reached, path->reached);
    seconds = std::max(seconds, took.count());
  }
  // All layouts next to the last one are visited.
  EXPECT_LE(reached, Resharder::kMaxReached + 400);
  std::cout << "seed " << kSeed << ", " << reached << " layouts at most, "
            << static_cast<int64_t>(seconds * 1e6) << " us\n";
}
