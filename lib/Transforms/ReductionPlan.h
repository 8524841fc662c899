//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a partial value is reduced, given the forms that it will be wanted in.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
#define BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H

#include "Reshard.h"

#include "braid/Transforms/ShardingUtils.h"

#include <optional>

namespace braid {

/// Forms of one value over numbered axes. Parts of axes that forms have in common are one number.
struct NumberedForms {
  NumberedForms(comm::MeshOp mesh, mlir::RankedTensorType whole, llvm::ArrayRef<DimAxes> forms);

  AxisList axes(llvm::ArrayRef<int> numbers) const;
  DimAxes dims(const Cuts &of) const;

  AxisList numbers;       ///< the axis of each
  std::vector<Cuts> cuts; ///< of each form
  Resharder resharder;

private:
  Resharder makeResharder(comm::MeshOp mesh, mlir::RankedTensorType whole,
                          llvm::ArrayRef<DimAxes> forms);
};

/// A reduction over axes of one kind, to all or scattered over a dimension. Without a kind, a local
/// slice of addends, so that there is less to reduce.
struct Reduction {
  std::optional<comm::ReduceKind> kind;
  AxisList axes;
  std::optional<int64_t> dim;
};

/// The steps of reduction, in order, with which a rank sends least until the value is there in all
/// forms that are `wanted`. `mayScatter` says of each dimension whether it may be left cut.
llvm::SmallVector<Reduction> planReductions(comm::MeshOp mesh, mlir::RankedTensorType whole,
                                            comm::ShardingAttr sharding,
                                            llvm::ArrayRef<comm::ShardingAttr> wanted,
                                            llvm::ArrayRef<bool> mayScatter);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_REDUCTIONPLAN_H
