//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Partitioning with sharding rules that no operation of the project has, but an operation of a
// plugin may have.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {
/// A dimension of 8 blocks of 8 elements. Each block is reduced to one element.
struct BlockSums : comm::ShardingRuleOpInterface::ExternalModel<BlockSums, tensor::ExtractSliceOp> {
  comm::ShardingRule getShardingRule(Operation *) const {
    comm::ShardingRule rule;
    int64_t block = rule.addFactor("block", 8);
    int64_t within = rule.addFactor("within", 8, comm::FactorKind::Reduction);
    rule.operands = {{{block, within}}};
    rule.results = {{{block}}};
    return rule;
  }
};

struct Partition : DifferentialTest {};
} // namespace

// The elements of a block cannot be split unless blocks are split completely. The operand is
// therefore gathered, and every rank has the full sums; an all_reduce would count them twice.
TEST_F(Partition, WhatIsNotSplitIsNotReduced) {
  context.loadDialect<tensor::TensorDialect>();
  tensor::ExtractSliceOp::attachInterface<BlockSums>(context);
  OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(
      R"(comm.mesh @mesh <dp = 8, tp = 2>
func.func @main(%x: tensor<64xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>})
    -> (tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{}]>}) {
  %0 = tensor.extract_slice %x[0] [8] [1]
      {comm.shardings = [#comm.sharding<@mesh, [{}], partial = [tp = sum]>]}
      : tensor<64xf32> to tensor<8xf32>
  return %0 : tensor<8xf32>
})",
      &context);
  ASSERT_TRUE(model);
  OwningOpRef<ModuleOp> partitioned = transformed(*model, "braid-partition");
  ASSERT_TRUE(partitioned);
  Tally used;
  partitioned->walk([&](Operation *op) { ++used[op->getName().getStringRef().str()]; });
  EXPECT_EQ(used["comm.all_gather"], 1u);
  EXPECT_EQ(used["comm.all_reduce"], 0u);
}
