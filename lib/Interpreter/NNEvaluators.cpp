//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Experts.h"
#include "braid/Interpreter/Core/Kernels.h"
#include "braid/Interpreter/EvaluatorTable.h"

#include "braid/Base/Mesh.h"
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
  Result<DType> dtype = dtypeOf(type.getElementType());
  if (!dtype.ok())
    return dtype.status();
  runtime::Parameter parameter;
  parameter.name = op.getName().str();
  parameter.dtype = *dtype;
  parameter.init = nn::toRuntime(op.getInit());
  parameter.globalShape = toVector(type.getShape());
  if (std::optional<comm::ShardingAttr> sharding = op.getSharding())
    parameter.sharding = comm::toRuntime(*sharding);
  for (nn::SliceAttr slice : op.getSlices().getAsRange<nn::SliceAttr>())
    parameter.slices.push_back(nn::toRuntime(slice));
  return parameter;
}

Status evaluateParameter(OpContext &context) {
  auto op = cast<nn::ParameterOp>(context.op);
  RankEvaluator::Shared &shared = context.rank.shared;
  if (!shared.weights)
    return Status::error("parameter '" + op.getName().str() + "' expects weights, got none");
  Result<runtime::Parameter> parameter = toRuntime(op);
  if (!parameter.ok())
    return parameter.status();
  Process &process = context.rank.process;
  Result<runtime::Box> box = runtime::localBox(process.mesh(), process.rank(),
                                               parameter->globalShape, parameter->sharding);
  if (!box.ok())
    return box.status();
  runtime::HostTensor host = runtime::HostTensor::zeros(parameter->dtype, box->sizes);
  {
    std::lock_guard<std::mutex> lock(shared.weightsMutex);
    if (Status status = shared.weights->read(*parameter, *box, host.data.data()); !status.ok())
      return status;
  }
  context.set(op.getResult(), RuntimeValue(Tensor::fromHost(host)));
  return {};
}

/// The result's type determines the grouping of elements.
Status evaluateReshape(OpContext &context) {
  OpResult result = context.op->getResult(0);
  return context.set(result,
                     reshape(context.tensor(context.op->getOperand(0)),
                             toVector(cast<RankedTensorType>(result.getType()).getShape())));
}

Status evaluateAttention(OpContext &context) {
  auto op = cast<nn::AttentionOp>(context.op);
  AttentionOperands operands;
  operands.query = &context.tensor(op.getQuery());
  operands.key = &context.tensor(op.getKey());
  operands.value = &context.tensor(op.getValue());
  operands.mask = context.optional(op.getMask());
  operands.validLength = context.optional(op.getValidLength());
  operands.positionOffset = context.optional(op.getPositionOffset());
  operands.scale = op.getScale().convertToDouble();
  operands.causal = op.getCausal();
  return context.set(op.getResult(), attention(operands));
}

Status evaluateRotaryTable(OpContext &context) {
  auto op = cast<nn::RotaryTableOp>(context.op);
  auto type = cast<RankedTensorType>(op.getCos().getType());
  Result<DType> dtype = dtypeOf(type.getElementType());
  if (!dtype.ok())
    return dtype.status();
  Result<RotaryTables> tables =
      rotaryTables(*dtype, type.getShape().drop_back().back(), toVector(op.getFrequencies()),
                   op.getScale().convertToDouble(), context.optional(op.getPositionOffset()));
  if (!tables.ok())
    return tables.status();
  context.set(op.getCos(), std::move(tables->cos));
  context.set(op.getSin(), std::move(tables->sin));
  return {};
}

Status evaluateIota(OpContext &context) {
  auto type = cast<nn::IotaOp>(context.op).getResult().getType();
  Result<DType> dtype = dtypeOf(type.getElementType());
  if (!dtype.ok())
    return dtype.status();
  std::vector<int64_t> positions(static_cast<size_t>(type.getNumElements()));
  std::iota(positions.begin(), positions.end(), 0);
  context.set(context.op->getResult(0),
              Tensor::ofInts(*dtype, toVector(type.getShape()), std::move(positions)));
  return {};
}

Status evaluateDropout(OpContext &context) {
  auto op = cast<nn::DropoutOp>(context.op);
  std::vector<const Tensor *> positions;
  for (mlir::Value value : op.getPositions())
    positions.push_back(&context.tensor(value));
  return context.set(op.getResult(), dropout(context.tensor(op.getInput()), positions,
                                             context.tensor(op.getSeed()).ints()[0], op.getSite(),
                                             op.getRate().convertToDouble()));
}

Status evaluateCrossEntropy(OpContext &context) {
  auto op = cast<nn::CrossEntropyOp>(context.op);
  std::optional<int64_t> ignore;
  if (std::optional<uint64_t> label = op.getIgnore())
    ignore = static_cast<int64_t>(*label);
  return context.set(op.getResult(), crossEntropy(context.tensor(op.getLogits()),
                                                  context.tensor(op.getLabels()), ignore));
}

Status evaluateRouter(OpContext &context) {
  auto op = cast<nn::RouterOp>(context.op);
  Result<Routing> routing =
      router(context.tensor(op.getLogits()), static_cast<int64_t>(op.getTop()),
             static_cast<int64_t>(op.getCapacity()), op.getNormalized());
  if (!routing.ok())
    return routing.status();
  context.set(op.getWeights(), std::move(routing->weights));
  context.set(op.getExperts(), std::move(routing->experts));
  context.set(op.getSlots(), std::move(routing->slots));
  context.set(op.getCounts(), std::move(routing->counts));
  return {};
}

Status evaluateDispatch(OpContext &context) {
  auto op = cast<nn::DispatchOp>(context.op);
  ArrayRef<int64_t> blocks = op.getResult().getType().getShape();
  return context.set(op.getResult(),
                     dispatch(context.tensor(op.getInput()), context.tensor(op.getExperts()),
                              context.tensor(op.getSlots()), blocks[1], blocks[2]));
}
} // namespace

void populateNNEvaluators(EvaluatorTable &table) {
  table.add<nn::IotaOp>(evaluateIota);
  table.add<nn::DropoutOp>(evaluateDropout);
  table.add<nn::CrossEntropyOp>(evaluateCrossEntropy);
  table.add<nn::RouterOp>(evaluateRouter);
  table.add<nn::DispatchOp>(evaluateDispatch);
  table.add<nn::CombineOp>([](OpContext &context) {
    auto op = cast<nn::CombineOp>(context.op);
    return context.set(op.getResult(), combineExperts(context.tensor(op.getBlocks()),
                                                      context.tensor(op.getWeights()),
                                                      context.tensor(op.getExperts()),
                                                      context.tensor(op.getSlots())));
  });
  table.add<nn::ParameterOp>(evaluateParameter);
  table.add<nn::SplitHeadsOp>(evaluateReshape);
  table.add<nn::MergeHeadsOp>(evaluateReshape);
  table.add<nn::AttentionOp>(evaluateAttention);
  table.add<nn::EmbeddingOp>([](OpContext &context) {
    auto op = cast<nn::EmbeddingOp>(context.op);
    TablePart part;
    if (std::optional<comm::GroupAttr> group = op.getGroup()) {
      std::vector<runtime::AxisRef> axes = comm::toRuntime(*group);
      const runtime::Mesh &mesh = context.rank.process.mesh();
      part.index = *mesh.groupPosition(context.rank.process.rank(), axes);
      part.count = *mesh.numShards(axes);
    }
    part.wholeRows = static_cast<int64_t>(op.getRows().value_or(0));
    return context.set(op.getResult(),
                       embedding(context.tensor(op.getIds()), context.tensor(op.getTable()), part));
  });
  table.add<nn::PositionIdsOp>([](OpContext &context) {
    auto op = cast<nn::PositionIdsOp>(context.op);
    return context.set(op.getResult(), positionIds(context.tensor(op.getIds()), op.getPadding()));
  });
  table.add<nn::LinearOp>([](OpContext &context) {
    auto op = cast<nn::LinearOp>(context.op);
    return context.set(op.getResult(), linear(context.tensor(op.getInput()),
                                              context.tensor(op.getWeight()), nullptr));
  });
  table.add<nn::LayerNormOp>([](OpContext &context) {
    auto op = cast<nn::LayerNormOp>(context.op);
    return context.set(op.getResult(),
                       layerNorm(context.tensor(op.getInput()), context.tensor(op.getWeight()),
                                 context.tensor(op.getBias()), op.getEpsilon().convertToDouble()));
  });
  table.add<nn::RmsNormOp>([](OpContext &context) {
    auto op = cast<nn::RmsNormOp>(context.op);
    return context.set(op.getResult(),
                       rmsNorm(context.tensor(op.getInput()), context.tensor(op.getWeight()),
                               op.getEpsilon().convertToDouble()));
  });
  table.add<nn::SoftmaxOp>([](OpContext &context) {
    auto op = cast<nn::SoftmaxOp>(context.op);
    return context.set(op.getResult(), softmax(context.tensor(op.getInput())));
  });
  table.add<nn::RotaryTableOp>(evaluateRotaryTable);
  table.add<nn::RotaryOp>([](OpContext &context) {
    auto op = cast<nn::RotaryOp>(context.op);
    return context.set(op.getResult(),
                       rotary(context.tensor(op.getInput()), context.tensor(op.getCos()),
                              context.tensor(op.getSin())));
  });
  table.add<nn::ActivationOp>([](OpContext &context) {
    auto op = cast<nn::ActivationOp>(context.op);
    return context.set(op.getResult(), activation(nn::stringifyActivationKind(op.getKind()).str(),
                                                  context.tensor(op.getInput())));
  });
  table.add<nn::AddOp>([](OpContext &context) {
    auto op = cast<nn::AddOp>(context.op);
    return context.set(op.getResult(),
                       add(context.tensor(op.getLhs()), context.tensor(op.getRhs())));
  });
  table.add<nn::MulOp>([](OpContext &context) {
    auto op = cast<nn::MulOp>(context.op);
    return context.set(op.getResult(),
                       mul(context.tensor(op.getLhs()), context.tensor(op.getRhs())));
  });
}

} // namespace braid::interp
