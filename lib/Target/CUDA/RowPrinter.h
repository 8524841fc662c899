//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes a row schedule into a skeleton of runtime/kernels/cuda.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TARGET_CUDA_ROWPRINTER_H
#define BRAID_LIB_TARGET_CUDA_ROWPRINTER_H

#include "ScalarPrinter.h"

#include "braid/Runtime/CudaCodec.h"
#include "braid/Target/CUDA/CUDATarget.h"
#include "dialects/RT/IR/RT.h"
#include "lib/Target/Rows/RowSchedule.h"

#include <map>

namespace braid::cuda {

/// The distribution of a row over threads.
struct RowShape {
  enum class Skeleton { Map, WarpRow, BlockRow };
  Skeleton skeleton;
  int64_t columns;      ///< 1 where nothing varies along a column.
  int64_t vector;       ///< Columns that a thread moves at once.
  int64_t threads;      ///< Of a block.
  int64_t steps;        ///< Vectors of a thread.
  int64_t rowsPerOuter; ///< Of the inner row dimensions, which are static.

  /// `maxVector` bounds the vector in addition to columns and element types.
  static RowShape choose(rt::KernelOp kernel, int64_t maxVector);
  mlir::StringRef skeletonName() const;
  int64_t itemsPerRow() const;
  int64_t itemsPerBlock() const;
  /// The rows of a block, and the warps that have a row, where rows are not cut (all but Map).
  int64_t rowsPerBlock() const { return skeleton == Skeleton::WarpRow ? threads / 32 : 1; }
  int64_t warpsPerRow() const { return skeleton == Skeleton::WarpRow ? 1 : threads / 32; }
  /// Whether a thread's last vector may lie beyond the row.
  bool isRagged() const;
};

class RowPrinter {
public:
  RowPrinter(rt::KernelOp kernel, RowShape shape, const rows::RowSchedule &schedule,
             llvm::raw_ostream &os);
  /// Writes the function `name`.
  mlir::FailureOr<runtime::CudaKernel> print(const std::string &name);

private:
  using Key = std::pair<rows::Node *, unsigned>;
  static Key key(rows::NodeValue value) { return {value.node, value.result}; }

  void printSignature(const runtime::CudaKernel &made);
  void printRowNumbers();
  /// Payloads (PayloadPrinter.cpp): what is known of an operand that is one, the checks that all
  /// threads do, the rows that they are decoded to and encoded from, and the calls that encode.
  void addCodec(unsigned number, runtime::CudaOperand &operand);
  void printPayloadChecks();
  void printPayloadRows();
  void printEncodes();
  mlir::LogicalResult printSweep(const rows::Sweep &sweep);
  /// The code of one element of a sweep, and the loads and stores around it.
  mlir::LogicalResult printElement(const rows::Sweep &sweep, std::string &loads, std::string &body,
                                   std::string &stores);
  mlir::LogicalResult printReductions(const rows::Sweep &sweep, llvm::raw_ostream &body);
  mlir::LogicalResult printScalarResults();

  /// Emits a node's computation of `known` values, without the operation `skipped`.
  mlir::LogicalResult printNode(rows::Node &node, ScalarPrinter &printer,
                                const llvm::DenseMap<Key, Expression> &known,
                                mlir::Operation *skipped = nullptr);
  /// A value that does not vary along the column; its computation is emitted at its first use.
  mlir::FailureOr<Expression> scalar(rows::NodeValue value);
  mlir::LogicalResult hoistScalars(rows::Node &node);
  mlir::FailureOr<Expression> splat(rows::Node &node);

  /// Operand `number` (results come after arguments) from its row on, as C++.
  std::string pointer(unsigned number, llvm::ArrayRef<rows::Position> position);
  Expression index(rows::Position place) const;
  mlir::Type elementType(rows::NodeValue value) const;
  /// How often the sweep's code reads the value.
  unsigned countUses(const rows::Sweep &sweep, rows::NodeValue value) const;
  std::string vectorType(mlir::Type element) const;

  rt::KernelOp kernel;
  RowShape shape;
  const rows::RowSchedule &schedule;
  llvm::raw_ostream &os;
  Names names;
  llvm::SmallVector<std::string> operandNames;
  /// Of operands that are payloads.
  struct CodedOperand {
    runtime::CudaCodec codec;
    /// Names: the type of the encoding, and in shared memory the rows of a block and of the thread.
    std::string encoding, memory, row;
  };
  std::map<unsigned, CodedOperand> codecs;
  llvm::SmallVector<llvm::SmallVector<std::string>> strideNames;
  /// Names of pointers to the row, by operand and position.
  llvm::SmallVector<std::pair<std::pair<unsigned, llvm::SmallVector<rows::Position>>, std::string>>
      rowPointers;
  llvm::DenseMap<Key, Expression> scalars;
  llvm::DenseMap<Key, Expression> values;     ///< Of the current element.
  llvm::DenseMap<Key, std::string> registers; ///< Of kept values, with "[s]" where there are steps.
  llvm::DenseMap<rows::Node *, std::string> accumulators;
};

} // namespace braid::cuda
#endif // BRAID_LIB_TARGET_CUDA_ROWPRINTER_H
