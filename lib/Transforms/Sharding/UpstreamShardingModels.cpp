//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/UpstreamShardingModels.h"

#include "dialects/Comm/IR/Comm.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid::comm;

namespace {

bool isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.value();
  return matchPattern(value, m_Zero()) || matchPattern(value, m_AnyZeroFloat());
}

/// The reduction that combines partial results of ranks: addition if the reduction starts from zero
/// (otherwise every rank would add the initial value), maximum or minimum from any value. Nothing
/// for other reductions, and where results differ in kind.
std::optional<ReduceKind> reductionKind(linalg::LinalgOp op) {
  std::optional<ReduceKind> common;
  for (auto [i, init] : llvm::enumerate(op.getDpsInits())) {
    SmallVector<Operation *> combiners;
    if (!matchReduction(op.getRegionOutputArgs(), i, combiners) || combiners.size() != 1)
      return std::nullopt;
    std::optional<ReduceKind> kind =
        llvm::TypeSwitch<Operation *, std::optional<ReduceKind>>(combiners[0])
            .Case<arith::AddFOp, arith::AddIOp>([](Operation *) { return ReduceKind::Sum; })
            .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp>(
                [](Operation *) { return ReduceKind::Max; })
            .Case<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp>(
                [](Operation *) { return ReduceKind::Min; })
            .Default([](Operation *) { return std::nullopt; });
    if (!kind || (*kind == ReduceKind::Sum && !isZero(init)) || (common && common != kind))
      return std::nullopt;
    common = kind;
  }
  return common;
}

/// Loops are factors; a loop must not be split where that would change the body's result.
ShardingRule loopRule(linalg::LinalgOp op) {
  ShardingRule rule;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  std::optional<ReduceKind> kind = reductionKind(op);
  for (auto [i, size, iterator] : llvm::enumerate(sizes, iterators)) {
    bool parallel = iterator == utils::IteratorType::parallel;
    bool replicated = ShapedType::isDynamic(size) || (!parallel && !kind);
    int64_t factor = rule.addFactor("d" + std::to_string(i), size,
                                    replicated ? FactorKind::Replicated
                                    : parallel ? FactorKind::Parallel
                                               : FactorKind::Reduction);
    rule.factors[factor].reduce = kind.value_or(ReduceKind::Sum);
    // The body of a program that is partitioned already may count on shards.
    rule.factors[factor].onShards = OnShards::Unknown;
  }
  // A split loop counts from zero on every rank, which linalg.index would see.
  op->walk(
      [&](linalg::IndexOp index) { rule.factors[index.getDim()].kind = FactorKind::Replicated; });

  SmallVector<TensorFactors> tensors;
  for (OpOperand &operand : op->getOpOperands()) {
    TensorFactors &tensor = tensors.emplace_back();
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type)
      continue;
    for (auto [d, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        tensor.push_back({static_cast<int64_t>(dim.getPosition())});
        continue;
      }
      // A window or a fixed index: neither the dimension nor its loops can be split.
      expr.walk([&](AffineExpr inner) {
        if (auto dim = dyn_cast<AffineDimExpr>(inner))
          rule.factors[dim.getPosition()].kind = FactorKind::Replicated;
      });
      tensor.push_back({rule.addFactor("window", type.getDimSize(d), FactorKind::Replicated)});
      rule.factors.back().onShards = OnShards::Unknown;
    }
  }
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    rule.operands.push_back(tensor);
    if (op.isDpsInit(&op->getOpOperand(i)) && isa<RankedTensorType>(op->getOperand(i).getType()))
      rule.results.push_back(tensor);
  }
  return rule;
}

template <typename OpT>
struct LinalgModel : ShardingRuleOpInterface::ExternalModel<LinalgModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const { return loopRule(cast<linalg::LinalgOp>(op)); }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange types, GroupAttr) const {
    Operation *local = builder.clone(*op);
    local->removeAttr(CommDialect::kShardingsAttrName);
    local->setOperands(operands);
    for (auto [result, type] : llvm::zip_equal(local->getResults(), types))
      result.setType(type);
    return SmallVector<Value>(local->getResults());
  }
};

/// Adds a factor for each dimension; those of dynamic size stay replicated.
TensorFactors addFactors(ShardingRule &rule, ArrayRef<int64_t> shape, bool replicated = false) {
  TensorFactors tensor;
  for (auto [d, size] : llvm::enumerate(shape))
    tensor.push_back(
        {rule.addFactor("d" + std::to_string(d), size,
                        replicated || ShapedType::isDynamic(size) ? FactorKind::Replicated
                                                                  : FactorKind::Parallel)});
  return tensor;
}

/// A reshape: the factors are the dimensions of its expanded side; a collapsed dimension has the
/// factors of its dimensions.
ShardingRule reshapeRule(Operation *op, RankedTensorType expanded,
                         ArrayRef<ReassociationIndices> groups) {
  ShardingRule rule;
  TensorFactors split = addFactors(rule, expanded.getShape()), collapsed;
  for (const ReassociationIndices &group : groups)
    collapsed.emplace_back(group.begin(), group.end());
  bool expands = isa<tensor::ExpandShapeOp>(op);
  rule.operands.resize(op->getNumOperands());
  rule.operands[0] = expands ? collapsed : split;
  rule.results = {expands ? split : collapsed};
  rule.linear = true;
  rule.partialOperands = {0};
  return rule;
}

struct ExpandModel : ShardingRuleOpInterface::ExternalModel<ExpandModel, tensor::ExpandShapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto expand = cast<tensor::ExpandShapeOp>(op);
    return reshapeRule(op, expand.getResultType(), expand.getReassociationIndices());
  }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange types, GroupAttr) const {
    // The operation states the shape of its result in an attribute too.
    return SmallVector<Value>{
        tensor::ExpandShapeOp::create(builder, op->getLoc(), types[0], operands[0],
                                      cast<tensor::ExpandShapeOp>(op).getReassociationIndices())};
  }
};

struct CollapseModel
    : ShardingRuleOpInterface::ExternalModel<CollapseModel, tensor::CollapseShapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto collapse = cast<tensor::CollapseShapeOp>(op);
    return reshapeRule(op, collapse.getSrcType(), collapse.getReassociationIndices());
  }
};

/// A factor per dimension of the result.
ShardingRule fillRule(Operation *op, bool replicated) {
  ShardingRule rule;
  rule.operands.resize(op->getNumOperands());
  rule.results = {
      addFactors(rule, cast<ShapedType>(op->getResult(0).getType()).getShape(), replicated)};
  return rule;
}

struct EmptyModel : ShardingRuleOpInterface::ExternalModel<EmptyModel, tensor::EmptyOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return fillRule(op, op->getNumOperands() != 0);
  }
};

struct ConstantModel : ShardingRuleOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto constant = cast<arith::ConstantOp>(op);
    if (!isa<RankedTensorType>(constant.getType())) {
      ShardingRule scalar;
      scalar.results.emplace_back();
      return scalar;
    }
    return fillRule(op, !isa<SplatElementsAttr>(constant.getValue()));
  }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange,
                                           TypeRange types, GroupAttr) const {
    TypedAttr value = cast<arith::ConstantOp>(op).getValue();
    if (auto splat = dyn_cast<SplatElementsAttr>(value))
      value = splat.resizeSplat(cast<ShapedType>(types[0]));
    return SmallVector<Value>{arith::ConstantOp::create(builder, op->getLoc(), value)};
  }
};

template <typename... OpT> void attachLinalgModels(MLIRContext &context) {
  (OpT::template attachInterface<LinalgModel<OpT>>(context), ...);
}

} // namespace

void braid::registerUpstreamShardingModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    attachLinalgModels<
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
        >(*context);
  });
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    tensor::EmptyOp::attachInterface<EmptyModel>(*context);
    tensor::ExpandShapeOp::attachInterface<ExpandModel>(*context);
    tensor::CollapseShapeOp::attachInterface<CollapseModel>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    arith::ConstantOp::attachInterface<ConstantModel>(*context);
  });
}
