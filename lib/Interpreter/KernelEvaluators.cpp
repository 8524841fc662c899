//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/LibraryKernels.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"
#include "braid/Interpreter/EvaluatorTable.h"

#include "dialects/RT/IR/RT.h"

using namespace mlir;

namespace braid::interp {

namespace {
Shape shapeOf(Type type) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  return {shape.begin(), shape.end()};
}

/// Decodes or encodes an operand of a launch, with the library's codec.
Result<Tensor> code(OpContext &context, rt::LaunchOp op, unsigned operand, Type payload,
                    const Tensor &from) {
  const runtime::LibraryCall described = op.getKernelOp().getCodecCall(
      operand, static_cast<int64_t>(op.getRows()), cast<RankedTensorType>(payload));
  const runtime::OperandType &out = described[described.kernel->firstOutput()];
  KernelCall call;
  call.inputs = {&from};
  rt::PayloadAttr how = op.getKernelOp().getPayload(operand);
  if (how.getOwn() >= 0)
    call.inputs.push_back(&context.tensor(op.getInputs()[static_cast<unsigned>(how.getOwn())]));
  if (how.getGroup()) {
    const runtime::Mesh &mesh = context.rank.process.mesh();
    call.part = *mesh.groupPosition(context.rank.process.rank(), comm::toRuntime(how.getGroup()));
    call.parts = described.parts;
  }
  call.outputs = {{out.dtype, out.shape}};
  call.integers = described.integers;
  ASSIGN_OR_RETURN(std::vector<Tensor> results, computeLibraryKernel(described.kernel->name, call));
  return std::move(results.front());
}

/// Decodes payloads, collapses the leading dimensions of other row operands, runs the body, and
/// encodes or expands its results.
Status evaluateBody(OpContext &context, rt::LaunchOp op, rt::KernelOp kernel) {
  std::vector<RuntimeValue> arguments;
  unsigned operand = 0;
  for (auto [input, type] : llvm::zip_equal(op.getInputs(), kernel.getArgumentTypes())) {
    if (const unsigned number = operand++; kernel.getPayload(number)) {
      ASSIGN_OR_RETURN(Tensor rows,
                       code(context, op, number, input.getType(), context.tensor(input)));
      arguments.emplace_back(std::move(rows));
      continue;
    }
    Shape shape = shapeOf(type);
    if (rt::KernelOp::isRowOperand(type))
      shape.front() = static_cast<int64_t>(op.getRows());
    ASSIGN_OR_RETURN(Tensor argument, reshape(context.tensor(input), shape));
    arguments.emplace_back(std::move(argument));
  }
  ASSIGN_OR_RETURN(std::vector<RuntimeValue> results,
                   context.rank.run(kernel.getBody().front(), std::move(arguments)));
  for (auto [result, value] : llvm::zip_equal(op.getResults(), results)) {
    const auto &rows = std::get<Tensor>(value);
    const unsigned number = operand++;
    RETURN_IF_ERROR(context.set(result, kernel.getPayload(number)
                                            ? code(context, op, number, result.getType(), rows)
                                            : reshape(rows, shapeOf(result.getType()))));
  }
  return {};
}

Status evaluateLibraryKernel(OpContext &context, rt::LaunchOp op, rt::KernelOp kernel) {
  const comm::GroupAttr group = kernel.getGroup().value_or(comm::GroupAttr());
  const runtime::Mesh &mesh = context.rank.process.mesh();
  KernelCall call;
  std::vector<runtime::AxisRef> axes;
  if (group) {
    axes = comm::toRuntime(group);
    call.part = *mesh.groupPosition(context.rank.process.rank(), axes);
    call.parts = *mesh.numShards(axes);
  }
  FailureOr<runtime::LibraryCall> described = kernel.getLibraryCall(call.parts);
  if (failed(described))
    return Status::error("expects a kernel of the library");
  const size_t firstOutput = described->kernel->firstOutput();
  size_t next = 0;
  for (size_t i = 0; i < firstOutput; ++i)
    call.inputs.push_back(described->has(i) ? &context.tensor(op.getInputs()[next++]) : nullptr);
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    if (kernel.readsResult(i))
      return Status::error("adds to its output, which only memory can hold before");
  call.integers = described->integers;
  call.numbers = described->numbers;
  for (Type result : op->getResultTypes()) {
    ASSIGN_OR_RETURN(DType dtype, dtypeOf(cast<RankedTensorType>(result).getElementType()));
    call.outputs.push_back({dtype, shapeOf(result)});
  }
  return context.setAll(op->getResults(), computeLibraryKernel(kernel.getLibrary()->str(), call));
}

Status evaluateLaunch(OpContext &context, rt::LaunchOp op) {
  if (!op.onTensors())
    return Status::error("is a command on memory, which only a program has");
  rt::KernelOp kernel = op.getKernelOp();
  if (!kernel.isExternal())
    return evaluateBody(context, op, kernel);
  if (kernel.getLibrary())
    return evaluateLibraryKernel(context, op, kernel);
  return Status::error("runs the function '" + kernel.getLibrarySymbol()->str() +
                       "' of a library, which the interpreter does not know");
}
} // namespace

void populateKernelEvaluators(EvaluatorTable &table) { table.add<rt::LaunchOp>(evaluateLaunch); }

} // namespace braid::interp
