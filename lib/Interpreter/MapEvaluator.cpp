//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Evaluates the body of nn.map element by element.
//
//===----------------------------------------------------------------------===//
#include "ScalarFunctions.h"

#include "braid/Base/StatusMacros.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace braid::interp {

namespace {

Status evaluateMap(OpContext &context, nn::MapOp op) {
  struct Step {
    ScalarFn fn;
    SmallVector<unsigned, 4> operands;
    unsigned result;
  };
  Block &body = op.getBody().front();
  llvm::DenseMap<mlir::Value, unsigned> slots;
  auto slotOf = [&](mlir::Value v) { return slots.try_emplace(v, slots.size()).first->second; };
  for (BlockArgument argument : body.getArguments())
    slotOf(argument);
  std::vector<Step> steps;
  std::vector<std::pair<unsigned, Scalar>> constants;
  for (Operation &inner : body.without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(inner)) {
      std::optional<Scalar> value = constantScalar(constant.getValue());
      if (!value)
        return errorAt(&inner, Status::error("expects a number"));
      constants.emplace_back(slotOf(constant.getResult()), *value);
      continue;
    }
    Step step{scalarFunction(&inner), {}, 0};
    if (!step.fn)
      return errorAt(&inner, Status::error("is an operation that the interpreter does not know"));
    for (mlir::Value operand : inner.getOperands())
      step.operands.push_back(slotOf(operand));
    step.result = slotOf(inner.getResult(0));
    steps.push_back(std::move(step));
  }
  const unsigned yielded = slotOf(cast<nn::YieldOp>(body.back()).getValue());
  std::vector<Scalar> values(slots.size());
  for (auto &[slot, value] : constants)
    values[slot] = value;

  std::vector<const Tensor *> inputs;
  for (mlir::Value input : op->getOperands())
    inputs.push_back(&context.tensor(input));
  const size_t numInputs = op.getInputs().size();
  const int64_t columns = inputs[0]->shape().empty() ? 1 : inputs[0]->shape().back();
  ASSIGN_OR_RETURN(const DType dtype, dtypeOf(op.getResult().getType().getElementType()));
  ElementWriter out(dtype, inputs[0]->numElements());
  for (int64_t i = 0; i < inputs[0]->numElements(); ++i) {
    for (size_t input = 0; input < inputs.size(); ++input)
      values[input] = elementAt(*inputs[input],
                                input < numInputs ? i % inputs[input]->numElements() : i / columns);
    for (const Step &step : steps) {
      SmallVector<Scalar, 4> in;
      for (unsigned slot : step.operands)
        in.push_back(values[slot]);
      step.fn(in.data(), values[step.result]);
    }
    out.set(i, values[yielded]);
  }
  context.set(op.getResult(), std::move(out).finish(inputs[0]->shape()));
  return {};
}

} // namespace

void populateMapEvaluator(EvaluatorTable &table) { table.add<nn::MapOp>(evaluateMap); }

} // namespace braid::interp
