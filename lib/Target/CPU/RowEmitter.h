//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes a row schedule as loops over rows and, per sweep, over vectors of columns.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TARGET_CPU_ROWEMITTER_H
#define BRAID_LIB_TARGET_CPU_ROWEMITTER_H

#include "lib/Target/Rows/RowSchedule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace braid::cpu {

using rows::Node;
using rows::NodeValue;
using rows::Position;
using rows::RowSchedule;
using rows::Sweep;

class RowEmitter {
public:
  struct Shape {
    int64_t width = 16; ///< Columns per vector; 1 for scalars.
    int64_t accumulators =
        2; ///< Independent vectors that a reduction runs on, to hide its latency.
  };

  /// `operands` and `results` are the kernel's memrefs; code is inserted at the builder's position.
  RowEmitter(mlir::OpBuilder &builder, mlir::Location loc, const RowSchedule &schedule, Shape shape,
             mlir::ValueRange operands, mlir::ValueRange results);
  void emit();

private:
  /// The elements of one vector: those from `column` on that the mask selects.
  struct Block {
    mlir::Value column;
    mlir::Value mask; ///< Null when it selects all.
  };
  using Values = llvm::DenseMap<std::pair<Node *, unsigned>, mlir::Value>;

  bool vectors() const { return shape.width > 1; }
  mlir::Type typed(mlir::Type element) const;
  mlir::Value index(int64_t value);
  mlir::Value splat(mlir::Value scalar);

  void emitRow();
  void emitSweep(const Sweep &sweep);
  /// One vector of a sweep; updates its accumulators, one per reduction.
  void emitBlock(const Sweep &sweep, Block block, llvm::MutableArrayRef<mlir::Value> accumulators);

  mlir::Value scalarValue(NodeValue value);
  mlir::Value load(mlir::Value memref, mlir::Type element, llvm::ArrayRef<Position> position,
                   const Block *block);
  void store(mlir::Value value, mlir::Value memref, llvm::ArrayRef<Position> position,
             const Block *block);
  llvm::SmallVector<mlir::Value> indices(llvm::ArrayRef<Position> position, const Block *block);

  /// Emits the op's region on the given arguments and returns the values that it yields. With a
  /// block, on vectors.
  llvm::SmallVector<mlir::Value> emitRegion(Node &node, mlir::ValueRange arguments,
                                            const Block *block);
  mlir::Value emitSplat(Node &node);
  mlir::Value emitConstant(mlir::Value constant, const Block *block);
  /// The value of linalg.index of a loop at `place`.
  mlir::Value emitIndex(Position place, const Block *block);
  mlir::Value combine(mlir::linalg::GenericOp reduction, mlir::Value lhs, mlir::Value rhs);
  /// Reduces a vector of partial results to a scalar by adding its upper to its lower lanes again
  /// and again, so that the order of sums does not depend on the machine.
  mlir::Value reduceLanes(mlir::linalg::GenericOp reduction, mlir::Value vector);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const RowSchedule &schedule;
  Shape shape;
  mlir::ValueRange operands, results;
  llvm::SmallVector<mlir::Value> rows;
  Values buffers; ///< Row buffers of kept values.
  Values scalars; ///< Of the current row.
  Values splats;  ///< The same as vectors.
};

} // namespace braid::cpu
#endif // BRAID_LIB_TARGET_CPU_ROWEMITTER_H
