//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The communication cost that passes use for collectives, and the costs that operations report. The
// bytes are those of test/unit/Runtime/AlgorithmTest.cpp.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/CommunicationCost.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace braid;
using namespace mlir;
using runtime::CollectiveKind;

TEST(CommunicationCost, OfACollective) {
  CommunicationCost cost = collectiveCost(CollectiveKind::allReduce, 1200, 4);
  EXPECT_EQ(cost.key(), std::tuple(SaturatingCount(1800), 1, 0));
  // A group of one rank sends nothing.
  cost = collectiveCost(CollectiveKind::allGather, 1200, 1);
  EXPECT_EQ(cost.key(), std::tuple(SaturatingCount(0), 0, 0));
  cost = collectiveCost(CollectiveKind::allGather, 100, 4) + sliceCost() + sliceCost();
  EXPECT_EQ(cost.key(), std::tuple(SaturatingCount(300), 1, 2));
}

TEST(CommunicationCost, BytesThenCollectivesThenSlices) {
  const CommunicationCost costs[] = {{8, 0, 9}, {8, 1, 0}, {8, 1, 1}, {9, 0, 0}};
  for (size_t i = 0; i < std::size(costs); ++i)
    for (size_t j = 0; j < std::size(costs); ++j)
      EXPECT_EQ(costs[i] < costs[j], i < j) << i << ", " << j;
}

TEST(CommunicationCost, OfEveryOperation) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<comm::CommDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
comm.mesh @mesh <tp = 4>
func.func @main(%x: tensor<8x6xf32>, %y: tensor<5xi64>, %counts: tensor<8xi32>) {
  %0:2 = comm.all_reduce sum(%x, %y) over <@mesh, {tp}> : tensor<8x6xf32>, tensor<5xi64>
  %1 = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<8x6xf32> -> tensor<2x6xf32>
  %2 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<8x6xf32> -> tensor<32x6xf32>
  %3 = comm.all_to_all(%x) split 0 concat 1 over <@mesh, {tp}> : tensor<8x6xf32> -> tensor<2x24xf32>
  %4:2 = comm.all_to_all_v(%x) counts %counts : tensor<8xi32> over <@mesh, {tp}> : tensor<8x6xf32>
  %5 = comm.reduce sum(%x) to 0 over <@mesh, {tp}> : tensor<8x6xf32>
  %6 = comm.broadcast(%x) from 0 over <@mesh, {tp}> : tensor<8x6xf32>
  %7 = comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}> : tensor<8x6xf32>
  %8 = comm.permute(%x) pairs [0 -> 0] over <@mesh, {tp}> : tensor<8x6xf32>
  comm.send(%x) pairs [0 -> 1] over <@mesh, {tp}> tag 0 : tensor<8x6xf32>
  %9 = comm.recv pairs [0 -> 1] over <@mesh, {tp}> tag 0 : tensor<8x6xf32>
  return
})",
                                                             &context);
  ASSERT_TRUE(module);
  // %x has 192 bytes, %y 40, %counts 32.
  const std::pair<CollectiveKind, int64_t> expected[] = {
      {CollectiveKind::allReduce, 2 * 3 * (192 + 40) / 4},
      {CollectiveKind::reduceScatter, 3 * 48},
      {CollectiveKind::allGather, 3 * 192},
      {CollectiveKind::allToAll, 3 * 48},
      {CollectiveKind::allToAllV, 3 * (48 + 8)},
      {CollectiveKind::reduce, 192},
      {CollectiveKind::broadcast, 3 * 192},
      {CollectiveKind::permute, 192},
      {CollectiveKind::permute, 0},
      {CollectiveKind::send, 192},
      {CollectiveKind::recv, 0}};
  size_t i = 0;
  module->walk([&](comm::CollectiveOpInterface op) {
    ASSERT_LT(i, std::size(expected));
    EXPECT_EQ(op.getCollectiveKind(), expected[i].first) << i;
    EXPECT_EQ(op.getBytesSent(4), expected[i].second) << i;
    EXPECT_EQ(op.getBytesSent(1), 0) << i;
    ++i;
  });
  EXPECT_EQ(i, std::size(expected));
}
