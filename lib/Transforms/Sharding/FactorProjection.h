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

#include "braid/Analysis/Layout.h"
#include "dialects/Comm/IR/Comm.h"

namespace braid {

/// The sub-axes that each factor of a rule is sharded over.
using FactorAxes = Layout;

/// An axis that shards a dimension but does not divide the factor that it meets there.
struct Misfit {
  int64_t factor;
  SubAxis axis;
};

/// Distributes the axes of one dimension, merged or not, over its factors, major first, into
/// `axes`. An axis larger than the rest of a factor is split: a sub-axis fits the factor, the
/// remainder goes to the next one. Axes at a factor that must stay replicated are dropped, and so
/// are axes that do not divide their factor, the first of which is returned.
std::optional<Misfit> projectDim(const comm::ShardingRule &rule, const comm::DimFactors &factors,
                                 const SubAxes &dim, FactorAxes &axes);
/// Projects every dimension of a tensor.
FactorAxes project(const comm::ShardingRule &rule, const comm::TensorFactors &tensor,
                   const Layout &dims);
/// The dimensions of a tensor whose factors are sharded over `axes`.
Layout dimsOf(const comm::TensorFactors &tensor, const FactorAxes &axes);
/// Replicates factors whose sharding some dimension cannot express: a minor factor is sharded in
/// blocks only when the factors major to it are sharded completely.
void dropInexpressible(const comm::ShardingRule &rule, FactorAxes &axes);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_SHARDING_FACTORPROJECTION_H
