//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Interpreter/Core/Collectives.h"

using namespace braid::interp;
using namespace braid::interp::testing;

TEST(Collectives, CombineInRankOrder) {
  // In this order the small value is lost in the sum; in reverse order it is not.
  std::vector<Tensor> parts = {floats({1}, {1}), floats({1}, {1e-16}), floats({1}, {-1})};
  expectEqual(combine(ReduceKind::sum, parts), {1}, {0});
  std::vector<Tensor> three = {floats({2}, {1, 5}), floats({2}, {4, -2}), floats({2}, {3, 3})};
  expectEqual(combine(ReduceKind::sum, three), {2}, {8, 6});
  expectEqual(combine(ReduceKind::max, three), {2}, {4, 5});
  expectEqual(combine(ReduceKind::min, three), {2}, {1, -2});
}

TEST(Collectives, NaNWins) {
  for (ReduceKind kind : {ReduceKind::max, ReduceKind::min}) {
    Result<Tensor> result =
        combine(kind, {floats({2}, {std::nan(""), 1}), floats({2}, {1, std::nan("")})});
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(std::isnan(result->floats()[0]) && std::isnan(result->floats()[1]));
  }
}

TEST(Collectives, Integers) {
  Result<Tensor> result = combine(ReduceKind::max, {ints({2}, {1, 9}), ints({2}, {3, 4})});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(firstDifference(*result, ints({2}, {3, 9})), -1);
}

TEST(Collectives, GatherAndSliceAreInverse) {
  Tensor whole = sines(1, {3, 4, 2});
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 4; ++i)
    parts.push_back(*sliceShard(whole, 1, i, 4));
  EXPECT_EQ(parts[2].shape(), (Shape{3, 1, 2}));
  Result<Tensor> joined = concatenate(parts, 1);
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->shape(), whole.shape());
  EXPECT_EQ(firstDifference(*joined, whole), -1);
}

TEST(Collectives, ReduceScatterIsAllReduceThenSlice) {
  std::vector<Tensor> parts = {sines(1, {2, 4}), sines(20, {2, 4})};
  Collective scatter;
  scatter.kind = CollectiveKind::reduceScatter;
  scatter.dim = 1;
  for (int64_t position : {0, 1}) {
    Result<Tensor> got = apply(scatter, parts, position);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(firstDifference(*got, *sliceShard(*combine(ReduceKind::sum, parts), 1, position, 2)),
              -1);
  }
}

TEST(Collectives, AllToAllIsGatherThenSlice) {
  std::vector<Tensor> parts = {sines(1, {2, 6, 3}), sines(50, {2, 6, 3}), sines(90, {2, 6, 3})};
  Collective op;
  op.kind = CollectiveKind::allToAll;
  for (op.concatDim = 0; op.concatDim < 3; ++op.concatDim)
    for (op.dim = 1; op.dim < 3; ++op.dim)
      for (int64_t position : {0, 1, 2}) {
        Result<Tensor> got = apply(op, parts, position);
        ASSERT_TRUE(got.ok()) << got.status().message();
        std::vector<Tensor> slices;
        for (const Tensor &part : parts)
          slices.push_back(*sliceShard(part, op.dim, position, 3));
        EXPECT_EQ(firstDifference(*got, *concatenate(slices, op.concatDim)), -1);
        // If split and concatenation dimensions differ, the order of the two steps does not matter.
        if (op.dim != op.concatDim)
          EXPECT_EQ(firstDifference(
                        *got, *sliceShard(*concatenate(parts, op.concatDim), op.dim, position, 3)),
                    -1);
      }
  op.dim = 0;
  expectError(apply(op, parts, 0).status(),
              "expects dimension 0 of f32[2, 6, 3] to divide into 3 shards");
}

TEST(Collectives, RootsAndPairs) {
  std::vector<Tensor> parts = {floats({2}, {1, 2}), floats({2}, {10, 20}), floats({2}, {5, 50})};
  Collective op;
  op.kind = CollectiveKind::reduce;
  op.reduce = ReduceKind::max;
  op.root = 2;
  expectEqual(apply(op, parts, 2), {2}, {10, 50});
  expectEqual(apply(op, parts, 0), {2}, {0, 0});
  op.kind = CollectiveKind::broadcast;
  for (int64_t position : {0, 1, 2})
    expectEqual(apply(op, parts, position), {2}, {5, 50});
  op.root = 3;
  expectError(apply(op, parts, 0).status(), "expects a position in a group of 3 ranks, got 3");
  op.kind = CollectiveKind::permute;
  op.pairs = {{2, 0}, {0, 1}};
  expectEqual(apply(op, parts, 0), {2}, {5, 50});
  expectEqual(apply(op, parts, 1), {2}, {1, 2});
  expectEqual(apply(op, parts, 2), {2}, {0, 0});
}

TEST(Collectives, Errors) {
  expectError(sliceShard(sines(1, {2, 3}), 1, 0, 2).status(),
              "expects dimension 1 of f32[2, 3] to divide into 2 shards");
  expectError(sliceShard(sines(1, {2, 3}), 2, 0, 2).status(),
              "expects a dimension of f32[2, 3], got 2");
  expectError(concatenate({sines(1, {2, 3}), sines(1, {3, 2})}, 0).status(),
              "expects parts that differ from f32[2, 3] in dimension 0 only, got f32[3, 2]");
}

TEST(Collectives, Describe) {
  Collective op;
  op.axes = {{"dp"}, {"tp", 2, 2}};
  EXPECT_EQ(op.describe(), "all_reduce sum over {dp, tp:(2)2}");
  op.kind = CollectiveKind::allGather;
  op.dim = 1;
  EXPECT_EQ(op.describe(), "all_gather dim 1 over {dp, tp:(2)2}");
  op.axes = {{"tp"}};
  op.kind = CollectiveKind::allToAll;
  EXPECT_EQ(op.describe(), "all_to_all split 1 concat 0 over {tp}");
  op.kind = CollectiveKind::reduce;
  EXPECT_EQ(op.describe(), "reduce sum to 0 over {tp}");
  op.kind = CollectiveKind::broadcast;
  EXPECT_EQ(op.describe(), "broadcast from 0 over {tp}");
  op.kind = CollectiveKind::permute;
  op.pairs = {{0, 1}, {1, 0}};
  EXPECT_EQ(op.describe(), "permute pairs [0 -> 1, 1 -> 0] over {tp}");
}
