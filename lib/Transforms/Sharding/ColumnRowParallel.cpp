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

std::optional<LinearSplit> cutOfRole(StringRef role) {
  return llvm::StringSwitch<std::optional<LinearSplit>>(role)
      .Cases({"attention.query", "attention.key", "attention.value", "mlp.up", "mlp.gate"},
             LinearSplit::Column)
      .Cases({"attention.output", "mlp.down"}, LinearSplit::Row)
      .Default(std::nullopt);
}

int64_t lastDim(Value value) { return cast<RankedTensorType>(value.getType()).getRank() - 1; }

class SourceFinder {
public:
  void trace(Value value, int64_t dim) {
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
          trace(operand, static_cast<int64_t>(d));
  }
  LinearSources sources;

private:
  llvm::DenseSet<std::pair<Value, int64_t>> seen;
};

} // namespace

LinearSources findSources(Value value, int64_t dim) {
  SourceFinder finder;
  finder.trace(value, dim);
  return std::move(finder.sources);
}

llvm::MapVector<nn::LinearOp, LinearSplit> findColumnRowParallel(func::FuncOp func) {
  llvm::MapVector<nn::LinearOp, LinearSplit> cuts;
  func.walk([&](nn::LinearOp linear) {
    if (std::optional<LinearSplit> cut = cutOfRole(linear.getRole().value_or("")))
      cuts[linear] = *cut;
  });
  func.walk([&](nn::LinearOp linear) {
    auto own = cuts.find(linear);
    if (own != cuts.end() && own->second == LinearSplit::Column)
      return;
    auto sources = findSources(linear.getInput(), lastDim(linear.getInput())).matmuls;
    bool columns = llvm::all_of(sources, [&](Operation *source) {
      auto it = cuts.find(cast<nn::LinearOp>(source));
      return it == cuts.end() || it->second == LinearSplit::Column;
    });
    if (sources.empty() || !columns)
      return;
    cuts[linear] = LinearSplit::Row;
    for (Operation *source : sources)
      cuts[cast<nn::LinearOp>(source)] = LinearSplit::Column;
  });
  return cuts;
}

} // namespace braid
