//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel's computation per row, in sweeps over its columns.
//
// A kernel is a graph of linalg ops over (rows..., column). Values that vary along the column are
// computed in sweeps over it; a reduction of values known in sweep s is known from sweep s + 1 on.
// The analysis does not depend on how a sweep is executed (vectors, threads): all targets share it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TARGET_ROWS_ROWSCHEDULE_H
#define BRAID_LIB_TARGET_ROWS_ROWSCHEDULE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <string>

namespace braid::rows {

/// A row kernel's position along one dimension of a tensor: a row (a number) or the column.
using Position = int;
constexpr Position kColumn = -1;

struct Node;

/// One result of a node.
struct NodeValue {
  Node *node = nullptr;
  unsigned result = 0;
  bool operator==(const NodeValue &other) const {
    return node == other.node && result == other.result;
  }
};

/// A kernel operand, a constant or a linalg.generic at one position.
struct Node {
  enum class Kind { Operand, Splat, Map, Reduce };
  Kind kind;
  mlir::Value value;          ///< Operand: the block argument; Splat: the scalar constant.
  mlir::linalg::GenericOp op; ///< Map and Reduce.
  llvm::SmallVector<Position>
      position; ///< Operand: of its dimensions; Map and Reduce: of the op's loops.
  llvm::SmallVector<NodeValue>
      arguments;       ///< Per block argument of the op; no node where it is not read.
  unsigned level = 0;  ///< The first sweep in which it is known.
  bool varies = false; ///< Along the column.
  unsigned cost = 0;   ///< Rough cycles per element to compute it from operands.
};

struct Sweep {
  enum class Action { Load, Compute, Reload };
  struct Step {
    NodeValue value; ///< Compute computes all results of the node.
    Action action;
  };
  llvm::SmallVector<Step> steps; ///< Values that vary along the column, operands before users.
  llvm::SmallVector<Node *> reductions;
  llvm::SmallVector<unsigned> outputs; ///< Results of the kernel that this sweep stores.
};

/// How a target keeps values between sweeps.
struct Keep {
  uint64_t maxBytes; ///< Of one row, in total.
  /// Keeping values is free (registers), so that every reused value is kept, operands too.
  /// Otherwise they are kept in memory: only values that are costly to recompute and in no result.
  bool inRegisters = false;
};

class RowSchedule {
public:
  /// Analyses `body` with results `results`. Reports the offending op and fails when the body does
  /// not have the form above.
  static mlir::FailureOr<RowSchedule> build(mlir::Block &body, mlir::ValueRange results,
                                            unsigned numRowDims, Keep keep);

  struct Result {
    NodeValue value;
    llvm::SmallVector<Position> position;
  };

  unsigned numRowDims = 0;
  int64_t numColumns = 0; ///< 0 when nothing varies along a column.
  llvm::SmallVector<Sweep, 4> sweeps;
  llvm::SmallVector<Result> results;
  /// Values kept from the first sweep that has them for later ones.
  llvm::SmallVector<NodeValue> kept;
  /// Values that are read again from the kernel's result (number) that holds them.
  llvm::SmallVector<std::pair<NodeValue, unsigned>> reread;
  /// Why vectors cannot be used, at the op in question; empty when they can.
  std::string scalarReason;
  mlir::Location scalarLoc;

  bool isKept(NodeValue value) const { return llvm::is_contained(kept, value); }

private:
  explicit RowSchedule(mlir::Location loc) : scalarLoc(loc) {}
  mlir::FailureOr<NodeValue> node(mlir::Value value, llvm::ArrayRef<Position> position,
                                  mlir::Operation *user);
  mlir::FailureOr<NodeValue> genericNode(mlir::OpResult value, llvm::ArrayRef<Position> position);
  mlir::LogicalResult setColumns(int64_t extent, mlir::Operation *user);
  mlir::LogicalResult checkRegion(Node &node);
  void noteScalar(mlir::Location loc, const llvm::Twine &reason);
  void plan();
  void visit(NodeValue value, unsigned sweep);
  /// Whether a value of an earlier sweep is kept or reread rather than recomputed.
  bool isHeld(NodeValue value, unsigned sweep);

  Keep keep = {};

  llvm::SmallVector<std::unique_ptr<Node>> nodes;
  llvm::DenseMap<Node *, unsigned> firstSweep;
  /// The last sweep in which the value is available.
  llvm::DenseMap<std::pair<Node *, unsigned>, unsigned> lastSweep;
};

} // namespace braid::rows
#endif // BRAID_LIB_TARGET_ROWS_ROWSCHEDULE_H
