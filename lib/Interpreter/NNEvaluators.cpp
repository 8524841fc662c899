//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Experts.h"
#include "braid/Interpreter/Core/Kernels.h"
#include "braid/Interpreter/EvaluatorTable.h"

#include "braid/Base/LibraryKernels.h"
#include "braid/Base/Mesh.h"
#include "braid/Base/StatusMacros.h"
#include "dialects/NN/IR/NN.h"

#include <numeric>

using namespace mlir;

namespace braid::interp {

namespace {
template <typename T> std::vector<T> toVector(ArrayRef<T> values) {
  return {values.begin(), values.end()};
}

Result<runtime::Parameter> toRuntime(nn::ParameterOp op) {
  RankedTensorType type = op.getParameterType();
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(type.getElementType()));
  runtime::Parameter parameter;
  parameter.name = op.getName().str();
  parameter.dtype = dtype;
  parameter.init = nn::toRuntime(op.getInit());
  parameter.globalShape = toVector(type.getShape());
  if (std::optional<comm::ShardingAttr> sharding = op.getSharding())
    parameter.sharding = comm::toRuntime(*sharding);
  for (nn::SliceAttr slice : op.getSlices().getAsRange<nn::SliceAttr>())
    parameter.slices.push_back(nn::toRuntime(slice));
  if (std::optional<nn::QuantizedPart> part = op.getQuantized())
    parameter.quantized = nn::toRuntime(*part);
  return parameter;
}

/// The parameter of which the slices of a quantized one tell, and its box of whole rows.
std::pair<runtime::Parameter, runtime::Box> matrixOf(const runtime::Parameter &parameter,
                                                     const runtime::Box &box) {
  runtime::Parameter matrix = parameter;
  matrix.quantized.reset();
  matrix.dtype = DType::f32;
  int64_t columns = 0;
  for (const runtime::Slice &slice : parameter.slices)
    columns = std::max(columns, slice.destOffsets[1] + slice.sizes[1]);
  matrix.globalShape = {parameter.globalShape[0], columns};
  return {matrix, {{box.offsets[0], 0}, {box.sizes[0], columns}}};
}

/// The box of a quantized parameter, from the whole rows of its matrix.
Tensor quantizedBox(const runtime::Parameter &parameter, const runtime::Box &box,
                    const Tensor &rows) {
  QuantizedRows quantized = quantizeRows(rows);
  if (parameter.quantized == runtime::QuantizedPart::scales)
    return quantized.scales;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < box.sizes[0]; ++i)
    for (int64_t j = box.offsets[1]; j < box.offsets[1] + box.sizes[1]; ++j)
      values.push_back(j < rows.dim(1) ? quantized.values.ints()[i * rows.dim(1) + j] : 0);
  return Tensor::ofInts(DType::i8, box.sizes, std::move(values));
}

Status evaluateParameter(OpContext &context, nn::ParameterOp op) {
  RankEvaluator::Shared &shared = context.rank.shared;
  if (!shared.weights)
    return Status::error("parameter '" + op.getName().str() + "' expects weights, got none");
  ASSIGN_OR_RETURN(runtime::Parameter parameter, toRuntime(op));
  Process &process = context.rank.process;
  ASSIGN_OR_RETURN(runtime::Box box, runtime::localBox(process.mesh(), process.rank(),
                                                       parameter.globalShape, parameter.sharding));
  auto [stored, storedBox] =
      parameter.quantized ? matrixOf(parameter, box) : std::pair(parameter, box);
  runtime::HostTensor host = runtime::HostTensor::zeros(stored.dtype, storedBox.sizes);
  {
    std::lock_guard<std::mutex> lock(shared.weightsMutex);
    RETURN_IF_ERROR(shared.weights->read(stored, storedBox, host.data.data()));
  }
  Tensor value = Tensor::fromHost(host);
  context.set(op.getResult(), RuntimeValue(parameter.quantized ? quantizedBox(parameter, box, value)
                                                               : std::move(value)));
  return {};
}

/// The result's type determines the grouping of elements.
Status evaluateReshape(OpContext &context) {
  OpResult result = context.op->getResult(0);
  return context.set(result,
                     reshape(context.tensor(context.op->getOperand(0)),
                             toVector(cast<RankedTensorType>(result.getType()).getShape())));
}

/// Evaluates the library kernel that computes the operation.
Status evaluateKernelCall(OpContext &context) {
  nn::KernelCall op = cast<nn::KernelCallOpInterface>(context.op).getKernelCall();
  KernelCall call;
  const runtime::LibraryKernel &kernel = *runtime::findLibraryKernel(op.kernel.str());
  call.inputs.resize(kernel.operands.size());
  for (auto [input, value] : llvm::zip(call.inputs, op.inputs))
    input = context.optional(value);
  if (op.accumulator)
    call.inputs[kernel.firstOutput()] = &context.tensor(op.accumulator);
  call.integers = toVector(ArrayRef(op.integers));
  call.numbers = toVector(ArrayRef(op.numbers));
  if (op.group) {
    std::vector<runtime::AxisRef> axes = comm::toRuntime(op.group);
    const runtime::Mesh &mesh = context.rank.process.mesh();
    call.part = *mesh.groupPosition(context.rank.process.rank(), axes);
    call.parts = *mesh.numShards(axes);
  }
  for (mlir::Type result : context.op->getResultTypes()) {
    auto type = cast<RankedTensorType>(result);
    ASSIGN_OR_RETURN(DType dtype, dtypeOf(type.getElementType()));
    call.outputs.push_back({dtype, toVector(type.getShape())});
  }
  return context.setAll(context.op->getResults(), computeLibraryKernel(op.kernel.str(), call));
}

Status evaluateIota(OpContext &context, nn::IotaOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(type.getElementType()));
  std::vector<int64_t> positions(static_cast<size_t>(type.getNumElements()));
  std::iota(positions.begin(), positions.end(), 0);
  context.set(op.getResult(),
              Tensor::ofInts(dtype, toVector(type.getShape()), std::move(positions)));
  return {};
}

Status evaluateDropout(OpContext &context, nn::DropoutOp op) {
  std::vector<const Tensor *> positions;
  for (mlir::Value value : op.getPositions())
    positions.push_back(&context.tensor(value));
  return context.set(op.getResult(), dropout(context.tensor(op.getInput()), positions,
                                             context.tensor(op.getSeed()).ints()[0], op.getSite(),
                                             op.getRate().convertToDouble()));
}

Status evaluateCrossEntropy(OpContext &context, nn::CrossEntropyOp op) {
  std::optional<int64_t> ignore;
  if (std::optional<uint64_t> label = op.getIgnore())
    ignore = static_cast<int64_t>(*label);
  return context.set(op.getResult(), crossEntropy(context.tensor(op.getLogits()),
                                                  context.tensor(op.getLabels()), ignore));
}

Status evaluateRouter(OpContext &context, nn::RouterOp op) {
  ASSIGN_OR_RETURN(Routing routing,
                   router(context.tensor(op.getLogits()), static_cast<int64_t>(op.getTop()),
                          static_cast<int64_t>(op.getCapacity()), op.getNormalized()));
  context.set(op.getWeights(), std::move(routing.weights));
  context.set(op.getExperts(), std::move(routing.experts));
  context.set(op.getSlots(), std::move(routing.slots));
  context.set(op.getCounts(), std::move(routing.counts));
  return {};
}

Status evaluateSlice(OpContext &context, nn::SliceOp op) {
  const Tensor &input = context.tensor(op.getInput());
  runtime::Box box{std::vector<int64_t>(input.rank(), 0), input.shape()};
  box.offsets[op.getDim()] = static_cast<int64_t>(op.getFrom());
  box.sizes[op.getDim()] = static_cast<int64_t>(op.getSize());
  context.set(op.getResult(), extractBox(input, box));
  return {};
}

Status evaluateConcat(OpContext &context, nn::ConcatOp op) {
  std::vector<PlacedTensor> parts;
  for (auto [value, offset] : llvm::zip_equal(op.getInputs(), op.getOffsets())) {
    const Tensor &part = context.tensor(value);
    parts.push_back({{std::vector<int64_t>(part.rank(), 0), part.shape()}, part});
    parts.back().box.offsets[op.getDim()] = offset;
  }
  context.set(op.getResult(),
              assemble(parts.front().part.dtype(), toVector(op.getType().getShape()), parts));
  return {};
}

Status evaluateDispatch(OpContext &context, nn::DispatchOp op) {
  ArrayRef<int64_t> blocks = op.getResult().getType().getShape();
  return context.set(op.getResult(),
                     dispatch(context.tensor(op.getInput()), context.tensor(op.getExperts()),
                              context.tensor(op.getSlots()), blocks[1], blocks[2]));
}
} // namespace

void populateNNEvaluators(EvaluatorTable &table) {
  table.add(kLibraryKernels, evaluateKernelCall);
  table.add<nn::IotaOp>(evaluateIota);
  table.add<nn::DropoutOp>(evaluateDropout);
  table.add<nn::CrossEntropyOp>(evaluateCrossEntropy);
  table.add<nn::RouterOp>(evaluateRouter);
  table.add<nn::DispatchOp>(evaluateDispatch);
  table.add<nn::CombineOp>([](OpContext &context, nn::CombineOp op) {
    return context.set(op.getResult(), combineExperts(context.tensor(op.getBlocks()),
                                                      context.tensor(op.getWeights()),
                                                      context.tensor(op.getExperts()),
                                                      context.tensor(op.getSlots())));
  });
  table.add<nn::SliceOp>(evaluateSlice);
  table.add<nn::ConcatOp>(evaluateConcat);
  table.add<nn::ParameterOp>(evaluateParameter);
  table.add<nn::SplitHeadsOp>(evaluateReshape);
  table.add<nn::MergeHeadsOp>(evaluateReshape);
  table.add<nn::LayerNormOp>([](OpContext &context, nn::LayerNormOp op) {
    return context.set(op.getResult(),
                       layerNorm(context.tensor(op.getInput()), context.tensor(op.getWeight()),
                                 context.tensor(op.getBias()), op.getEpsilon().convertToDouble()));
  });
  table.add<nn::RmsNormOp>([](OpContext &context, nn::RmsNormOp op) {
    return context.set(op.getResult(),
                       rmsNorm(context.tensor(op.getInput()), context.tensor(op.getWeight()),
                               op.getEpsilon().convertToDouble()));
  });
  table.add<nn::SoftmaxOp>([](OpContext &context, nn::SoftmaxOp op) {
    return context.set(op.getResult(), softmax(context.tensor(op.getInput())));
  });
  table.add<nn::ActivationOp>([](OpContext &context, nn::ActivationOp op) {
    return context.set(op.getResult(), activation(nn::stringifyActivationKind(op.getKind()).str(),
                                                  context.tensor(op.getInput())));
  });
  table.add<nn::AddOp>([](OpContext &context, nn::AddOp op) {
    return context.set(op.getResult(),
                       add(context.tensor(op.getLhs()), context.tensor(op.getRhs())));
  });
  table.add<nn::MulOp>([](OpContext &context, nn::MulOp op) {
    return context.set(op.getResult(),
                       mul(context.tensor(op.getLhs()), context.tensor(op.getRhs())));
  });
}

} // namespace braid::interp
