//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The interpreter's table from operation names to functions, open to operations that are defined
// elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_EVALUATORTABLE_H
#define BRAID_INTERPRETER_EVALUATORTABLE_H

#include "braid/Interpreter/Evaluate.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <mutex>
#include <variant>

namespace braid::interp {

/// What a rank has in place of a value of other ranks.
struct Absent {};
/// The value of an SSA value: a tensor (scalars are tensors of rank 0), or a pending collective.
using RuntimeValue = std::variant<Tensor, PendingCollective, Absent>;
using Frame = llvm::DenseMap<mlir::Value, RuntimeValue>;

class OpContext;
/// Computes the results of one operation. May run on several threads at once and must not create
/// attributes or types.
using EvaluateFn = std::function<Status(OpContext &)>;

/// The table's name for all operations of nn::KernelCallOpInterface.
constexpr llvm::StringLiteral kLibraryKernels = "library kernels";

class EvaluatorTable {
public:
  void add(llvm::StringRef opName, EvaluateFn fn) { functions[opName] = std::move(fn); }
  /// Takes a function of the context, or of the context and the operation.
  template <typename Op, typename Fn> void add(Fn fn) {
    if constexpr (std::is_invocable_v<Fn, OpContext &, Op>)
      add(Op::getOperationName(),
          [fn](auto &context) -> Status { return fn(context, mlir::cast<Op>(context.op)); });
    else
      add(Op::getOperationName(), EvaluateFn(fn));
  }
  /// Null when the operation is unknown.
  const EvaluateFn *lookup(mlir::Operation *op) const;

private:
  llvm::StringMap<EvaluateFn> functions;
};

void populateFuncEvaluators(EvaluatorTable &table);
void populateNNEvaluators(EvaluatorTable &table);
void populateMapEvaluator(EvaluatorTable &table);
void populateCommEvaluators(EvaluatorTable &table);
/// arith and math on scalars and, element by element, on tensors.
void populateScalarEvaluators(EvaluatorTable &table);
void populateTensorEvaluators(EvaluatorTable &table);
/// linalg operations on tensors, by their indexing maps and bodies.
void populateLinalgEvaluators(EvaluatorTable &table);
/// rt.launch on tensors, by the kernel's body or by the interpreter's kernel of that name.
void populateKernelEvaluators(EvaluatorTable &table);
/// All of the above.
const EvaluatorTable &defaultEvaluators();

/// The evaluators of a dialect that is defined elsewhere: addInterfaces<...>() in
/// Dialect::initialize.
class EvaluatorProvider : public mlir::DialectInterface::Base<EvaluatorProvider> {
public:
  explicit EvaluatorProvider(mlir::Dialect *dialect) : Base(dialect) {}
  virtual void populate(EvaluatorTable &table) const = 0;
};
/// The default evaluators and those that the context's dialects provide.
EvaluatorTable collectEvaluators(mlir::MLIRContext *context);

/// One rank's run through the call tree.
class RankEvaluator {
public:
  struct Shared {
    const EvaluatorTable &table;
    llvm::StringMap<mlir::func::FuncOp> functions;
    runtime::WeightSource *weights = nullptr;
    std::mutex weightsMutex; ///< a WeightSource serves one reader at a time
    bool roundToStorage = false;
  };
  RankEvaluator(Shared &shared, Process &process) : shared(shared), process(process) {}

  Result<std::vector<RuntimeValue>> call(mlir::func::FuncOp func,
                                         std::vector<RuntimeValue> arguments);
  /// Evaluates the block but for its terminator, whose operands it returns.
  Result<std::vector<RuntimeValue>> run(mlir::Block &body, std::vector<RuntimeValue> arguments);

  Shared &shared;
  Process &process;
  std::map<std::string, int64_t> executed;

private:
  Status evaluate(mlir::Operation *op, Frame &frame);
  /// Whether this rank is at a place (all are, without one).
  bool isOn(comm::PlaceAttr place) const;
  Status checkOperands(mlir::Operation *op, const Frame &frame) const;
  Status checkResults(mlir::Operation *op, Frame &frame);
};

/// The arguments of an EvaluateFn.
class OpContext {
public:
  OpContext(RankEvaluator &rank, Frame &frame, mlir::Operation *op)
      : rank(rank), frame(frame), op(op) {}

  const RuntimeValue &value(mlir::Value v) const { return frame.find(v)->second; }
  const Tensor &tensor(mlir::Value v) const { return std::get<Tensor>(value(v)); }
  /// Null for an absent operand.
  const Tensor *optional(mlir::Value v) const { return v ? &tensor(v) : nullptr; }
  void set(mlir::Value v, RuntimeValue result) { frame[v] = std::move(result); }
  void set(mlir::Value v, Tensor result) { frame[v] = std::move(result); }
  /// Sets the value or returns the error.
  Status set(mlir::Value v, Result<Tensor> result);
  Status setAll(mlir::ResultRange values, Result<std::vector<Tensor>> results);

  RankEvaluator &rank;
  Frame &frame;
  mlir::Operation *op;
};

/// "a.mlir:3:4: 'nn.linear': message".
Status errorAt(mlir::Operation *op, const Status &status);
/// "a.mlir:3:4", or nothing when the location is unknown.
std::string locationOf(mlir::Operation *op);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_EVALUATORTABLE_H
