//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference interpreter defines the meaning of a module. It runs a model at the levels nn,
// comm, kernels and scheduled, and the linalg form of its operations; a pass is correct when the
// results are the same before and after it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_EVALUATE_H
#define BRAID_INTERPRETER_EVALUATE_H

#include "braid/Base/Weights.h"
#include "braid/Interpreter/Core/ProcessGrid.h"

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
  /// One unpartitioned tensor for each argument of the entry, from Tensor::fromHost. A state
  /// without one is zeros.
  std::vector<NamedTensor> inputs;
  /// The source of nn.parameter; may be null for a module without parameters.
  runtime::WeightSource *weights = nullptr;
  GridOptions grid;
  /// Round every operation's results to their element type, instead of keeping f64.
  bool roundToStorage = false;
  /// The supported operations; null for those of collectEvaluators().
  const EvaluatorTable *evaluators = nullptr;
};

struct Evaluation {
  /// The unpartitioned results, with the new values of states, in the order of the entry's.
  std::vector<NamedTensor> results;
  int64_t numRanks = 1;
  /// The number of executions of each operation on rank 0; a collective counts where it is started.
  std::map<std::string, int64_t> executed;
};

/// Runs an entry. A partitioned module runs on every rank of its mesh: inputs are split and results
/// assembled according to comm.sharding and comm.global_type of the entry, and ranks with the same
/// shard of a result must have the same values.
Result<Evaluation> evaluate(mlir::ModuleOp module, const EvaluateOptions &options);

/// The function that evaluate() would run.
Result<mlir::func::FuncOp> findEntry(mlir::ModuleOp module, const std::string &name);

/// nn.name of an argument or result, or "arg0", "result0", ... without one.
std::string argumentName(mlir::func::FuncOp func, unsigned index);
std::string resultName(mlir::func::FuncOp func, unsigned index);
/// The type of an argument or result of an entry before partitioning.
mlir::Type globalArgumentType(mlir::func::FuncOp func, unsigned index);
mlir::Type globalResultType(mlir::func::FuncOp func, unsigned index);

/// Elements of a constant, or an error for an unsupported element type.
Result<Tensor> fromAttribute(mlir::ElementsAttr attr);
/// i1 gives i8 (0 or 1) and index gives i64.
Result<DType> dtypeOf(mlir::Type type);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_EVALUATE_H
