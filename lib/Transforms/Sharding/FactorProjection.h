//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Converts shardings of dimensions to shardings of an operation's factors, and back.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_SHARDING_FACTORPROJECTION_H
#define BRAID_LIB_TRANSFORMS_SHARDING_FACTORPROJECTION_H

#include "braid/Transforms/ShardingUtils.h"

namespace braid {

/// Axes per factor of a rule.
using FactorAxes = llvm::SmallVector<AxisList, 6>;

/// Number of ranks that differ along these axes.
int64_t shards(comm::MeshOp mesh, llvm::ArrayRef<comm::AxisAttr> axes);
/// The axes of `list` after `prefix`; none when it does not begin with `prefix`. Sub-axes are
/// compared by coordinates: `{tp}` of 8 ranks is `{tp:(1)2}` followed by `{tp:(2)4}`.
std::optional<AxisList> axesBeyond(comm::MeshOp mesh, llvm::ArrayRef<comm::AxisAttr> prefix,
                                   llvm::ArrayRef<comm::AxisAttr> list);
/// The longest common prefix.
AxisList commonPrefix(comm::MeshOp mesh, llvm::ArrayRef<comm::AxisAttr> a,
                      llvm::ArrayRef<comm::AxisAttr> b);

/// An axis that shards a dimension but cannot shard the factor that it meets there.
struct Misfit {
  int64_t factor;
  comm::AxisAttr axis;
};

/// Distributes the axes of one dimension over its factors, major first, into `axes`. An axis larger
/// than the rest of a factor is split: a sub-axis fits the factor, the remainder goes to the next
/// one. Axes at a factor that must stay replicated are dropped, and so are axes that do not divide
/// their factor, the first of which is returned.
std::optional<Misfit> projectDim(comm::MeshOp mesh, const comm::ShardingRule &rule,
                                 const comm::DimFactors &factors,
                                 llvm::ArrayRef<comm::AxisAttr> dim, FactorAxes &axes);
/// Projects every dimension of a tensor.
FactorAxes project(comm::MeshOp mesh, const comm::ShardingRule &rule,
                   const comm::TensorFactors &tensor, const DimAxes &dims);
/// The dimensions of a tensor whose factors are sharded over `axes`.
DimAxes dimsOf(comm::MeshOp mesh, const comm::TensorFactors &tensor, const FactorAxes &axes);
/// Replicates factors whose sharding some dimension cannot express: a minor factor is sharded in
/// blocks only when the factors major to it are sharded completely.
void dropInexpressible(comm::MeshOp mesh, const comm::ShardingRule &rule, FactorAxes &axes);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SHARDING_FACTORPROJECTION_H
