//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "FactorProjection.h"

#include "AxisPieces.h"

#include <numeric>

using namespace mlir;
using namespace braid::comm;

namespace braid {

int64_t shards(MeshOp mesh, ArrayRef<AxisAttr> axes) {
  int64_t n = 1;
  for (AxisAttr axis : axes)
    n *= axisSize(mesh, axis);
  return n;
}

/// The sub-axis of `axis` with `size` coordinates after its first `skip`.
static AxisAttr subAxis(MeshOp mesh, AxisAttr axis, int64_t skip, int64_t size) {
  auto whole = AxisAttr::get(mesh.getContext(), axis.getName());
  int64_t pre = axis.getPre() * skip;
  return pre == 1 && size == axisSize(mesh, whole)
             ? whole
             : AxisAttr::get(mesh.getContext(), axis.getName(), pre, size);
}

/// Returns the common prefix of both lists and leaves their remainders in `a` and `b`.
static AxisList stripCommon(MeshOp mesh, AxisList &a, AxisList &b) {
  AxisList common;
  size_t i = 0;
  for (; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) {
      common.push_back(a[i]);
      continue;
    }
    if (a[i].getName() != b[i].getName() || a[i].getPre() != b[i].getPre())
      break;
    // One axis is the head of the other; the rest of the other remains.
    AxisList &longer = axisSize(mesh, a[i]) > axisSize(mesh, b[i]) ? a : b;
    AxisAttr head = (&longer == &a ? b : a)[i];
    int64_t has = axisSize(mesh, longer[i]), takes = axisSize(mesh, head);
    if (has % takes != 0)
      break;
    common.push_back(head);
    AxisAttr tail = subAxis(mesh, longer[i], takes, has / takes);
    longer[i] = head;
    longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(i) + 1, tail);
  }
  a.erase(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(i));
  b.erase(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(i));
  return joinPieces(mesh, common);
}

std::optional<AxisList> axesBeyond(MeshOp mesh, ArrayRef<AxisAttr> prefix,
                                   ArrayRef<AxisAttr> list) {
  AxisList left(prefix), rest(list);
  stripCommon(mesh, left, rest);
  if (!left.empty())
    return std::nullopt;
  return joinPieces(mesh, rest);
}

AxisList commonPrefix(MeshOp mesh, ArrayRef<AxisAttr> a, ArrayRef<AxisAttr> b) {
  AxisList left(a), right(b);
  return stripCommon(mesh, left, right);
}

std::optional<Misfit> projectDim(MeshOp mesh, const ShardingRule &rule, const DimFactors &factors,
                                 ArrayRef<AxisAttr> dim, FactorAxes &axes) {
  size_t f = 0;
  int64_t rest = factors.empty() ? 1 : rule.factors[factors[0]].size;
  for (AxisAttr axis : dim) {
    int64_t size = axisSize(mesh, axis), done = 1;
    do {
      while (f < factors.size() && rest == 1 && size != 1)
        if (++f < factors.size())
          rest = rule.factors[factors[f]].size;
      if (f == factors.size() || rule.factors[factors[f]].kind == FactorKind::Whole)
        return std::nullopt;
      int64_t fits = std::gcd(rest, size / done);
      if (fits == 1 && size != 1)
        return Misfit{factors[f], axis};
      axes[factors[f]].push_back(size == 1 ? axis : subAxis(mesh, axis, done, fits));
      done *= fits;
      rest /= fits;
    } while (done < size);
  }
  return std::nullopt;
}

FactorAxes project(MeshOp mesh, const ShardingRule &rule, const TensorFactors &tensor,
                   const DimAxes &dims) {
  FactorAxes axes(rule.factors.size());
  for (auto [factors, dim] : llvm::zip_equal(tensor, dims))
    projectDim(mesh, rule, factors, dim, axes);
  return axes;
}

DimAxes dimsOf(MeshOp mesh, const TensorFactors &tensor, const FactorAxes &axes) {
  DimAxes dims;
  for (const DimFactors &factors : tensor) {
    dims.emplace_back();
    for (int64_t factor : factors)
      llvm::append_range(dims.back(), axes[factor]);
  }
  return joinPieces(mesh, dims);
}

void dropInexpressible(MeshOp mesh, const ShardingRule &rule, FactorAxes &axes) {
  // Dropping a factor may expose another; every round drops at least one.
  for (bool changed = true; changed;) {
    changed = false;
    auto check = [&](const TensorFactors &tensor) {
      for (const DimFactors &factors : tensor) {
        bool complete = true;
        for (int64_t factor : factors) {
          if (!complete && !axes[factor].empty()) {
            axes[factor].clear();
            changed = true;
          }
          complete &= shards(mesh, axes[factor]) == rule.factors[factor].size;
        }
      }
    };
    llvm::for_each(rule.operands, check);
    llvm::for_each(rule.results, check);
  }
}

} // namespace braid
