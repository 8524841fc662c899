//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "FactorProjection.h"

#include <numeric>

using namespace mlir;
using namespace braid::comm;

namespace braid {

std::optional<Misfit> projectDim(const ShardingRule &rule, const DimFactors &factors,
                                 const SubAxes &dim, FactorAxes &axes) {
  size_t f = 0;
  int64_t rest = factors.empty() ? 1 : rule.factors[factors[0]].size;
  for (const SubAxis &axis : dim) {
    SubAxis left = axis;
    do {
      while (f < factors.size() && rest == 1 && left.size() != 1)
        if (++f < factors.size())
          rest = rule.factors[factors[f]].size;
      if (f == factors.size() || rule.factors[factors[f]].kind == FactorKind::Replicated)
        return std::nullopt;
      int64_t fits = std::gcd(rest, left.size());
      if (fits == 1 && left.size() != 1)
        return Misfit{factors[f], axis};
      axes[factors[f]].push_back({axis.axis, left.begin, left.begin * fits});
      left.begin *= fits;
      rest /= fits;
    } while (left.size() != 1);
  }
  return std::nullopt;
}

FactorAxes project(const ShardingRule &rule, const TensorFactors &tensor, const Layout &dims) {
  FactorAxes axes(rule.factors.size());
  for (auto [factors, dim] : llvm::zip_equal(tensor, dims))
    projectDim(rule, factors, dim, axes);
  return axes;
}

Layout dimsOf(const TensorFactors &tensor, const FactorAxes &axes) {
  Layout dims;
  for (const DimFactors &factors : tensor) {
    SubAxes &dim = dims.emplace_back();
    for (int64_t factor : factors)
      appendMerged(dim, axes[factor]);
  }
  return dims;
}

void dropInexpressible(const ShardingRule &rule, FactorAxes &axes) {
  // Dropping a factor may expose another; every round drops at least one.
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto *tensors : {&rule.operands, &rule.results})
      for (const TensorFactors &tensor : *tensors)
        for (const DimFactors &factors : tensor) {
          bool complete = true;
          for (int64_t factor : factors) {
            if (!complete && !axes[factor].empty()) {
              axes[factor].clear();
              changed = true;
            }
            complete &= shards(axes[factor]) == rule.factors[factor].size;
          }
        }
  }
}

} // namespace braid
