//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference interpreter: what a module means. It runs the nn, comm and scheduled forms of a
// model, and the linalg form of its operations; a pass is right when the answer is the same before
// and after it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_EVALUATE_H
#define BRAID_INTERPRETER_EVALUATE_H

#include "braid/Interpreter/Core/ProcessGrid.h"
#include "braid/Runtime/Weights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace braid::interp {

class EvaluatorTable;

/// A global (unpartitioned) value under the name that --input and --output use.
struct NamedTensor {
  std::string name;
  Tensor value;
};

struct EvaluateOptions {
  /// The function to run. Empty: the one function marked nn.entry, else @main.
  std::string entry;
  /// One for each argument of the entry, whole, whatever the partitioning; Tensor::fromHost makes
  /// them.
  std::vector<NamedTensor> inputs;
  /// Where nn.parameter reads; may be null for a module without parameters.
  runtime::WeightSource *weights = nullptr;
  GridOptions grid;
  /// Round every operation's results to their element type, instead of keeping f64.
  bool roundToStorage = false;
  /// Which operations are known; null: those of collectEvaluators().
  const EvaluatorTable *evaluators = nullptr;
};

struct Evaluation {
  /// The results, whole, in the order of the entry's results.
  std::vector<NamedTensor> results;
  int64_t numRanks = 1;
  /// How often rank 0 executed each operation; a collective counts where it is started.
  std::map<std::string, int64_t> executed;
};

/// Runs an entry. A module that has been partitioned runs on every rank of its mesh: inputs are cut
/// and results put together as comm.sharding and comm.global_type of the entry say, and ranks that
/// hold the same part of a result must hold the same values.
Result<Evaluation> evaluate(mlir::ModuleOp module, const EvaluateOptions &options);

/// The function that evaluate() would run.
Result<mlir::func::FuncOp> findEntry(mlir::ModuleOp module, const std::string &name);

/// nn.name of an argument or result, or "arg0", "result0", ... without one.
std::string argumentName(mlir::func::FuncOp func, unsigned index);
std::string resultName(mlir::func::FuncOp func, unsigned index);
/// The type of an argument or result of an entry before partitioning.
mlir::Type globalArgumentType(mlir::func::FuncOp func, unsigned index);
mlir::Type globalResultType(mlir::func::FuncOp func, unsigned index);

/// Elements of a constant. Error when the element type is not one that the interpreter knows.
Result<Tensor> fromAttribute(mlir::ElementsAttr attr);
/// i1 gives i8 (0 or 1) and index gives i64.
Result<DType> dtypeOf(mlir::Type type);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_EVALUATE_H
