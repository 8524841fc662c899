//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A value during partitioning: a rank's shard of it, and the resharded forms that its users want.
// It caches them as XLA's PartitionedHlo does.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_RESHARDCACHE_H
#define BRAID_LIB_TRANSFORMS_RESHARDCACHE_H

#include "ReductionPlan.h"

#include "braid/Analysis/MeshLayouts.h"
#include "braid/Transforms/ShardingUtils.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace braid {

/// The insertion point of resharding operations: right after a definition, in the order of
/// requests.
class InsertionTail {
public:
  explicit InsertionTail(mlir::Block *block) : block(block) {}
  explicit InsertionTail(mlir::Operation *after) : last(after), block(after->getBlock()) {}
  void setInsertionPoint(mlir::OpBuilder &builder) const {
    if (last)
      builder.setInsertionPointAfter(last);
    else
      builder.setInsertionPointToStart(block);
  }
  /// Call after each insertion.
  void advance(mlir::OpBuilder &builder) {
    last = builder.getInsertionPoint() == block->begin() ? nullptr
                                                         : &*std::prev(builder.getInsertionPoint());
  }

private:
  mlir::Operation *last = nullptr;
  mlir::Block *block;
};

/// One value of the program before partitioning.
class ReshardCache {
public:
  /// A value that is no tensor and the same on every rank.
  explicit ReshardCache(mlir::Value value) : value(value), layouts({}) {}
  /// `value` is the shard of a value of type `globalType`.
  ReshardCache(mlir::Value value, mlir::RankedTensorType globalType, comm::ShardingAttr sharding,
               MeshLayouts layouts, mlir::StringAttr role, std::shared_ptr<InsertionTail> tail)
      : value(value), globalType(globalType), sharding(sharding), layouts(layouts), role(role),
        tail(std::move(tail)) {
    forms[sharding] = value;
  }

  comm::ShardingAttr getSharding() const { return sharding; }
  mlir::StringAttr getRole() const { return role; }

  /// Has further collectives and slices inserted elsewhere than after the definition.
  void reshardAfter(std::shared_ptr<InsertionTail> place) { tail = std::move(place); }

  /// Announces the forms in which users want the reduced value, so that one reduction serves all of
  /// them.
  void planReduction(llvm::ArrayRef<comm::ShardingAttr> wanted);

  /// Returns the value in the form `wanted`, inserting collectives and slices after the definition.
  /// A form that is partial over some of the axes is reduced over the others; null where that does
  /// not lead to its dimensions.
  mlir::Value get(comm::ShardingAttr wanted);
  /// The original value, for values that are no tensors.
  mlir::Value get() const { return value; }

private:
  Resharder resharder() const {
    return Resharder(layouts.sizes().vec(), globalType.getShape().vec(), elementBytes(globalType));
  }
  std::vector<Reduction> plan(llvm::ArrayRef<comm::PartialAttr> partials,
                              llvm::ArrayRef<comm::ShardingAttr> wanted) const;
  /// The layout of `value` after the steps of a reduction.
  Layout layoutAfter(llvm::ArrayRef<Reduction> steps) const;
  mlir::Value reduceSome(comm::ShardingAttr wanted);
  mlir::Value emit(mlir::OpBuilder &builder, llvm::ArrayRef<Reduction> steps);
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Value from, const Layout &before,
                   const ReshardStep &step);
  mlir::Value slice(mlir::OpBuilder &builder, mlir::Value from, size_t dim, const SubAxes &axes);
  /// Remarks on the purpose and cost of a new collective. Returns its result.
  mlir::Value report(comm::CollectiveOpInterface collective) const;

  mlir::Value value;
  mlir::RankedTensorType globalType;
  comm::ShardingAttr sharding; ///< of `value`
  MeshLayouts layouts;
  mlir::StringAttr role;
  std::shared_ptr<InsertionTail> tail;
  std::vector<Reduction> reductions; ///< in order
  comm::ShardingAttr base;           ///< the sharding after the reduction; null before
  llvm::MapVector<comm::ShardingAttr, mlir::Value> forms; ///< in the order of requests
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_RESHARDCACHE_H
