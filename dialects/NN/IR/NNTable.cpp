//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// nn.fake_quantize: constraints, sharding rule, cost and kernel.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/NNTable.h"

#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::ShardingRule;

#define GET_OP_CLASSES
#include "dialects/NN/IR/NNTableOps.cpp.inc"

LogicalResult FakeQuantizeOp::verify() {
  if (typeOf(getInput()).getRank() == 0 || elements(getInput()) == 0)
    return emitOpError("expects at least one dimension and one element, got ")
           << typeOf(getInput()) << " [nn.fake_quantize_c1]";
  if (failed(verifyShape(*this, "a result", shapeOf(getInput()), shapeOf(getResult()),
                         "nn.fake_quantize_c1")))
    return failure();
  if (static_cast<int64_t>(getRanks()) < 1)
    return emitOpError("expects at least 1 rank, got ")
           << static_cast<int64_t>(getRanks()) << " [nn.fake_quantize_c2]";
  if (static_cast<int64_t>(getParts()) < 1)
    return emitOpError("expects at least 1 part, got ")
           << static_cast<int64_t>(getParts()) << " [nn.fake_quantize_c2]";
  return success();
}

LogicalResult FakeQuantizeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return getGroup() ? braid::comm::verifyGroup(*this, *getGroup(), symbols, "nn.fake_quantize_c3")
                    : success();
}

/// Rows are independent; what is done to a row depends on all of it.
ShardingRule FakeQuantizeOp::getShardingRule() {
  ShardingRule rule;
  comm::TensorFactors all, codes;
  const int64_t rank = typeOf(getInput()).getRank();
  for (auto [d, size] : llvm::enumerate(shapeOf(getInput())))
    all.push_back({rule.addFactor(("d" + Twine(d)).str(), size,
                                  static_cast<int64_t>(d) + 1 == rank ? FactorKind::Replicated
                                                                      : FactorKind::Parallel)});
  codes.push_back({rule.addFactor("codes", 2, FactorKind::Replicated)});
  rule.operands = {all, codes};
  rule.results = {all};
  return rule;
}

OpCost FakeQuantizeOp::getCost() {
  OpCost cost;
  cost.bytesRead = bytes(getInput());
  cost.bytesWritten = bytes(getResult());
  cost.vectorFlops = 8 * elements(getInput());
  return cost;
}

KernelCall FakeQuantizeOp::getKernelCall() {
  return {"fake_quantize",
          {getInput(), getEncodings()},
          {static_cast<int64_t>(getGather()), static_cast<int64_t>(getRanks()),
           static_cast<int64_t>(getParts())},
          {},
          getGroupAttr()};
}
