//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ColumnRowParallel.h"

#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace braid::comm;

namespace braid {

namespace {

std::optional<ParallelStyle> styleOfRole(StringRef role) {
  return llvm::StringSwitch<std::optional<ParallelStyle>>(role)
      .Cases({"attention.query", "attention.key", "attention.value", "mlp.up", "mlp.gate"},
             ParallelStyle::Column)
      .Cases({"attention.output", "mlp.down"}, ParallelStyle::Row)
      .Default(std::nullopt);
}

int64_t lastDim(Value value) { return cast<RankedTensorType>(value.getType()).getRank() - 1; }

void trace(Value value, int64_t dim, LinearSources &sources,
           llvm::DenseSet<std::pair<Value, int64_t>> &seen) {
  auto shardable = value.getDefiningOp<ShardingRuleOpInterface>();
  if (!shardable || !seen.insert({value, dim}).second)
    return;
  ShardingRule rule = shardable.getShardingRule();
  const DimFactors &factors = rule.results[cast<OpResult>(value).getResultNumber()][dim];
  // A dimension is split in blocks of its major factor.
  if (factors.empty() || rule.factors[factors[0]].kind != FactorKind::Parallel)
    return;
  if (auto linear = dyn_cast<nn::LinearOp>(*shardable)) {
    if (dim == lastDim(value))
      sources.matmuls.insert(linear);
    return;
  }
  if (isa<nn::AttentionOp>(*shardable))
    sources.attentions.insert(shardable);
  for (auto [operand, tensor] : llvm::zip_equal(shardable->getOperands(), rule.operands))
    for (auto [d, operandFactors] : llvm::enumerate(tensor))
      if (!operandFactors.empty() && operandFactors[0] == factors[0])
        trace(operand, static_cast<int64_t>(d), sources, seen);
}

} // namespace

LinearSources findSources(Value value, int64_t dim) {
  LinearSources sources;
  llvm::DenseSet<std::pair<Value, int64_t>> seen;
  trace(value, dim, sources, seen);
  return sources;
}

llvm::MapVector<nn::LinearOp, ParallelStyle> findColumnRowParallel(func::FuncOp func) {
  llvm::MapVector<nn::LinearOp, ParallelStyle> styles;
  func.walk([&](nn::LinearOp linear) {
    if (std::optional<ParallelStyle> style = styleOfRole(linear.getRole().value_or("")))
      styles[linear] = *style;
  });
  func.walk([&](nn::LinearOp linear) {
    auto own = styles.find(linear);
    if (own != styles.end() && own->second == ParallelStyle::Column)
      return;
    auto sources = findSources(linear.getInput(), lastDim(linear.getInput())).matmuls;
    bool columns = llvm::all_of(sources, [&](Operation *source) {
      auto it = styles.find(cast<nn::LinearOp>(source));
      return it == styles.end() || it->second == ParallelStyle::Column;
    });
    if (sources.empty() || !columns)
      return;
    styles[linear] = ParallelStyle::Row;
    for (Operation *source : sources)
      styles[cast<nn::LinearOp>(source)] = ParallelStyle::Column;
  });
  return styles;
}

} // namespace braid
