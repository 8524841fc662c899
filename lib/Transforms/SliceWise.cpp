//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SliceWise.h"

#include "CollectiveUtils.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {

/// The one dimension that begins with factor `f`; fails when the factor occurs otherwise.
static LogicalResult findFactor(const TensorFactors &tensor, int64_t f,
                                std::optional<int64_t> &dim) {
  for (auto [d, factors] : llvm::enumerate(tensor)) {
    if (!llvm::is_contained(factors, f))
      continue;
    // As a minor factor it is not cut in one block.
    if (dim || factors[0] != f)
      return failure();
    dim = d;
  }
  return success();
}

static std::optional<SliceDims> sliceDims(Operation *op, const ShardingRule &rule,
                                          const DimFactors &factors, int64_t n, std::string &why) {
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  if (factors.empty()) {
    why = name + " has no factor for the dimension";
    return std::nullopt;
  }
  int64_t f = factors[0];
  const Factor &factor = rule.factors[f];
  if (factor.kind != FactorKind::Parallel) {
    why = name + " needs all of '" + factor.name + "'";
    return std::nullopt;
  }
  if (factor.size % n != 0) {
    why = name + " has " + std::to_string(factor.size) + " of '" + factor.name +
          "', which does not divide over " + std::to_string(n) + " ranks";
    return std::nullopt;
  }
  SliceDims dims;
  dims.operands.resize(op->getNumOperands());
  dims.results.resize(op->getNumResults());
  bool found = true;
  for (size_t i = 0; i < std::min(rule.operands.size(), dims.operands.size()); ++i)
    found &= succeeded(findFactor(rule.operands[i], f, dims.operands[i]));
  for (size_t i = 0; i < dims.results.size(); ++i)
    found &= i < rule.results.size() &&
             succeeded(findFactor(rule.results[i], f, dims.results[i])) && dims.results[i];
  if (!found) {
    why = name + " does not cut every result along '" + factor.name + "'";
    return std::nullopt;
  }
  return dims;
}

static std::optional<ShardingRule> ruleOf(Operation *op, std::string &why) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || !isMemoryEffectFree(op)) {
    why = ("'" + op->getName().getStringRef() + "' takes the whole value").str();
    return std::nullopt;
  }
  return interface.getShardingRule();
}

std::optional<SliceDims> sliceDims(Operation *op, OpOperand &tensor, int64_t dim, int64_t n,
                                   std::string &why) {
  std::optional<ShardingRule> rule = ruleOf(op, why);
  return rule ? sliceDims(op, *rule, rule->operands[tensor.getOperandNumber()][dim], n, why)
              : std::nullopt;
}

std::optional<SliceDims> sliceDims(Operation *op, OpResult tensor, int64_t dim, int64_t n,
                                   std::string &why) {
  std::optional<ShardingRule> rule = ruleOf(op, why);
  return rule ? sliceDims(op, *rule, rule->results[tensor.getResultNumber()][dim], n, why)
              : std::nullopt;
}

FailureOr<SmallVector<Value>> rebuild(Operation *op, OpBuilder &builder, ValueRange operands,
                                      TypeRange types) {
  FinishFn finish;
  FailureOr<SmallVector<Value>> values = cast<ShardingRuleOpInterface>(op).buildLocal(
      builder, operands, types, /*partial=*/GroupAttr(), finish);
  if (succeeded(values) && finish)
    values = finish(builder, *values);
  return values;
}

AllGatherOp gatherOf(Value value) {
  auto gather = value.getDefiningOp<AllGatherOp>();
  return gather && !isStarted(gather) && gather.getInputs().size() == 1 ? gather : AllGatherOp();
}

bool gathers(AllGatherOp gather, int64_t dim, GroupAttr group) {
  return gather && static_cast<int64_t>(gather.getDim()) == dim && gather.getGroup() == group;
}

/// Whether calls lead from `from` to `target`.
static bool reaches(Operation *from, Operation *target, DenseSet<Operation *> &seen) {
  WalkResult result = from->walk([&](func::CallOp call) {
    Operation *callee = SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr());
    if (!callee || !seen.insert(callee).second)
      return WalkResult::advance();
    return callee == target || reaches(callee, target, seen) ? WalkResult::interrupt()
                                                             : WalkResult::advance();
  });
  return result.wasInterrupted();
}

std::optional<SmallVector<func::CallOp>> changeableCalls(func::FuncOp func, std::string &why) {
  std::string name = ("'@" + func.getSymName() + "'").str();
  if (isEntry(func)) {
    why = name + " is the entry";
    return std::nullopt;
  }
  if (func.isExternal() || !func.getBody().hasOneBlock()) {
    why = name + " is not of one block";
    return std::nullopt;
  }
  DenseSet<Operation *> seen;
  if (reaches(func, func, seen)) {
    why = name + " is recursive";
    return std::nullopt;
  }
  SmallVector<func::CallOp> calls;
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(func, func->getParentOfType<ModuleOp>());
  bool onlyCalls = uses.has_value();
  if (uses)
    for (SymbolTable::SymbolUse use : *uses) {
      auto call = dyn_cast<func::CallOp>(use.getUser());
      onlyCalls &= static_cast<bool>(call);
      if (call)
        calls.push_back(call);
    }
  if (!onlyCalls || calls.empty()) {
    why = name + " is not only called";
    return std::nullopt;
  }
  return calls;
}

void updateType(func::FuncOp func) {
  Block &block = func.getBody().front();
  func.setType(FunctionType::get(func.getContext(), block.getArgumentTypes(),
                                 block.getTerminator()->getOperandTypes()));
}

} // namespace braid
