//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A value during partitioning: a rank's shard of it, and the resharded forms that its users want.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_RESHARDCACHE_H
#define BRAID_LIB_TRANSFORMS_RESHARDCACHE_H

#include "ReductionPlan.h"

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

struct CollectiveCounts {
  int64_t allReduce = 0, reduceScatter = 0, allGather = 0, allToAll = 0, permute = 0,
          localSlice = 0;
};

/// One value of the program before partitioning.
class ReshardCache {
public:
  /// A value that is no tensor and the same on every rank.
  explicit ReshardCache(mlir::Value value) : value(value) {}
  ReshardCache(mlir::Value value, comm::ShardingAttr sharding, comm::MeshOp mesh,
               mlir::StringAttr role, std::shared_ptr<InsertionTail> tail, CollectiveCounts *counts)
      : value(value), sharding(sharding), mesh(mesh), role(role), tail(std::move(tail)),
        counts(counts) {
    forms[sharding] = value;
  }

  comm::ShardingAttr getSharding() const { return sharding; }
  mlir::StringAttr getRole() const { return role; }

  /// Announces a form in which a user wants the reduced value, so that one reduction serves all
  /// users.
  void planReduction(llvm::ArrayRef<comm::ShardingAttr> wanted);

  /// Returns the value in the form `wanted`, inserting collectives and slices after the definition.
  /// A form that is partial over some of the axes is reduced over the others; null where that does
  /// not lead to its dimensions.
  mlir::Value get(comm::ShardingAttr wanted);
  /// The original value, for values that are no tensors.
  mlir::Value get() const { return value; }

private:
  /// The unpartitioned value.
  mlir::RankedTensorType globalType() const;
  void reduce(mlir::OpBuilder &builder);
  mlir::Value reduceSome(comm::ShardingAttr wanted);
  /// The steps from `value` on.
  mlir::Value emit(mlir::OpBuilder &builder, llvm::ArrayRef<Reduction> steps);
  mlir::Value allGather(mlir::OpBuilder &builder, mlir::Value from, int64_t dim,
                        llvm::ArrayRef<comm::AxisAttr> axes);
  mlir::Value localSlice(mlir::OpBuilder &builder, mlir::Value from, int64_t dim,
                         llvm::ArrayRef<comm::AxisAttr> axes);
  /// Splits along `split` and concatenates along `concat`.
  mlir::Value allToAll(mlir::OpBuilder &builder, mlir::Value from, int64_t split, int64_t concat,
                       llvm::ArrayRef<comm::AxisAttr> axes);
  mlir::Value permute(mlir::OpBuilder &builder, mlir::Value from, llvm::ArrayRef<int64_t> pairs,
                      llvm::ArrayRef<comm::AxisAttr> axes);
  /// Remarks on the purpose and cost of a collective.
  void report(comm::CollectiveOpInterface collective);
  comm::GroupAttr group(llvm::ArrayRef<comm::AxisAttr> axes);
  /// Number of ranks of a group over `axes`; nothing is exchanged in a group of one.
  int64_t shards(llvm::ArrayRef<comm::AxisAttr> axes) const;

  mlir::Value value;
  comm::ShardingAttr sharding; ///< of `value`; once reduced, of `base`
  comm::MeshOp mesh;
  mlir::StringAttr role;
  std::shared_ptr<InsertionTail> tail;
  CollectiveCounts *counts = nullptr;
  llvm::SmallVector<Reduction> reductions; ///< in order
  comm::ShardingAttr base;                 ///< the sharding after the reduction; null before
  llvm::MapVector<comm::ShardingAttr, mlir::Value> forms; ///< in the order of requests
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_RESHARDCACHE_H
