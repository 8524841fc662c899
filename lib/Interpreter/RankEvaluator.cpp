//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/RankSet.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/EvaluatorTable.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;

namespace braid::interp {

std::string locationOf(Operation *op) {
  if (auto loc = op->getLoc()->findInstanceOf<FileLineColLoc>())
    return loc.getFilename().str() + ":" + std::to_string(loc.getLine()) + ":" +
           std::to_string(loc.getColumn());
  if (auto loc = op->getLoc()->findInstanceOf<NameLoc>())
    return loc.getName().str();
  return "";
}

Status errorAt(Operation *op, const Status &status) {
  std::string where = locationOf(op);
  return Status::error((where.empty() ? "" : where + ": ") + "'" +
                           op->getName().getStringRef().str() + "': " + status.message(),
                       status.code());
}

Status OpContext::set(mlir::Value v, Result<Tensor> result) {
  RETURN_IF_ERROR(result.status());
  set(v, RuntimeValue(std::move(*result)));
  return {};
}

Status OpContext::setAll(ResultRange values, Result<std::vector<Tensor>> results) {
  RETURN_IF_ERROR(results.status());
  for (auto [v, result] : llvm::zip_equal(values, *results))
    set(v, RuntimeValue(std::move(result)));
  return {};
}

const EvaluateFn *EvaluatorTable::lookup(Operation *op) const {
  auto found = functions.find(op->getName().getStringRef());
  if (found != functions.end())
    return &found->second;
  if (isa<nn::KernelCallOpInterface>(op))
    if (auto library = functions.find(kLibraryKernels); library != functions.end())
      return &library->second;
  // Every structured operation is defined by its maps and its body.
  if (isa<linalg::LinalgOp>(op))
    if (auto generic = functions.find(linalg::GenericOp::getOperationName());
        generic != functions.end())
      return &generic->second;
  return nullptr;
}

Status RankEvaluator::checkResults(Operation *op, Frame &frame) {
  for (OpResult result : op->getResults()) {
    RuntimeValue &value = frame.find(result)->second;
    auto *tensor = std::get_if<Tensor>(&value);
    if (!tensor)
      continue;
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (type && type.hasStaticShape() && type.getShape() != ArrayRef<int64_t>(tensor->shape()))
      return Status::error("expects a result of type " + debugString(type) + ", computed " +
                           tensor->typeString());
    if (shared.roundToStorage)
      value = tensor->roundedToStorage();
  }
  return {};
}

bool RankEvaluator::isOn(comm::PlaceAttr place) const {
  return !place || comm::toRuntime(place).contains(process.mesh(), process.rank());
}

Status RankEvaluator::checkOperands(Operation *op, const Frame &frame) const {
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (auto found = frame.find(operand);
        found != frame.end() && std::holds_alternative<Absent>(found->second)) {
      Operation *producer = operand.getDefiningOp();
      std::string what = "operand " + std::to_string(i);
      if (auto parameter = dyn_cast_or_null<nn::ParameterOp>(producer))
        what = "parameter '" + parameter.getName().str() + "'";
      else if (producer)
        what += ", a result of '" + producer->getName().getStringRef().str() + "'";
      return errorAt(op, Status::error("reads " + what + ", which rank " +
                                       std::to_string(process.rank()) + " does not have"));
    }
  return {};
}

Status RankEvaluator::evaluate(Operation *op, Frame &frame) {
  RETURN_IF_ERROR(process.progress());
  auto parameter = dyn_cast<nn::ParameterOp>(op);
  const bool isPartOfAbsent =
      isa<nn::SliceOp, nn::ConcatOp>(op) && llvm::any_of(op->getOperands(), [&](mlir::Value v) {
        return std::holds_alternative<Absent>(frame.find(v)->second);
      });
  if (isPartOfAbsent || !isOn(parameter ? parameter.getPlaceAttr() : comm::placeOf(op))) {
    for (mlir::Value result : op->getResults())
      frame[result] = Absent{};
    return {};
  }
  RETURN_IF_ERROR(checkOperands(op, frame));
  const EvaluateFn *fn = shared.table.lookup(op);
  if (!fn)
    return errorAt(op, Status::error("is an operation that the interpreter does not know"));
  ++executed[op->getName().getStringRef().str()];
  OpContext context(*this, frame, op);
  Status status = (*fn)(context);
  if (status.ok())
    status = checkResults(op, frame);
  else if (isa<CallOpInterface>(op))
    return status; // names the callee's operation already
  return status.ok() ? status : errorAt(op, status);
}

Result<std::vector<RuntimeValue>> RankEvaluator::call(func::FuncOp func,
                                                      std::vector<RuntimeValue> arguments) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return errorAt(func, Status::error("expects function '" + func.getSymName().str() +
                                       "' to have a body of one block"));
  Block &body = func.getBody().front();
  if (!isa<func::ReturnOp>(body.getTerminator()))
    return errorAt(body.getTerminator(),
                   Status::error("is a terminator that the interpreter does not know"));
  return run(body, std::move(arguments));
}

Result<std::vector<RuntimeValue>> RankEvaluator::run(Block &body,
                                                     std::vector<RuntimeValue> arguments) {
  Frame frame;
  for (auto [parameter, argument] : llvm::zip_equal(body.getArguments(), arguments))
    frame[parameter] = std::move(argument);
  for (Operation &op : body.without_terminator())
    RETURN_IF_ERROR(evaluate(&op, frame));
  std::vector<RuntimeValue> results;
  for (mlir::Value result : body.getTerminator()->getOperands())
    results.push_back(frame.find(result)->second);
  return results;
}

void populateFuncEvaluators(EvaluatorTable &table) {
  table.add<func::CallOp>([](OpContext &context, func::CallOp call) -> Status {
    auto callee = context.rank.shared.functions.find(call.getCallee());
    if (callee == context.rank.shared.functions.end())
      return errorAt(call,
                     Status::error("calls unknown function '" + call.getCallee().str() + "'"));
    std::vector<RuntimeValue> arguments;
    for (mlir::Value operand : call.getOperands())
      arguments.push_back(context.value(operand));
    ASSIGN_OR_RETURN(std::vector<RuntimeValue> results,
                     context.rank.call(callee->second, std::move(arguments)));
    for (auto [v, result] : llvm::zip_equal(call.getResults(), results))
      context.set(v, std::move(result));
    return {};
  });
}

const EvaluatorTable &defaultEvaluators() {
  static const EvaluatorTable table = [] {
    EvaluatorTable all;
    populateFuncEvaluators(all);
    populateNNEvaluators(all);
    populateMapEvaluator(all);
    populateCommEvaluators(all);
    populateScalarEvaluators(all);
    populateTensorEvaluators(all);
    populateLinalgEvaluators(all);
    populateKernelEvaluators(all);
    return all;
  }();
  return table;
}

EvaluatorTable collectEvaluators(MLIRContext *context) {
  EvaluatorTable table = defaultEvaluators();
  for (Dialect *dialect : context->getLoadedDialects())
    if (const auto *provider = dialect->getRegisteredInterface<EvaluatorProvider>())
      provider->populate(table);
  return table;
}

} // namespace braid::interp
