//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The operation group.rms_norm: its sharding rule, its cost, its kernel, and its evaluation in the
// reference interpreter.
//
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Kernels.h"
#include "braid/Interpreter/EvaluatorTable.h"
#include "braid/Target/CPU/KernelProvider.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"

#include <cmath>

using namespace mlir;

#include "GroupNormDialect.h.inc"
#define GET_OP_CLASSES
#include "GroupNormOps.h.inc"

BRAID_EMBEDDED_KERNELS(group_norm_kernels)

namespace {

/// The archive with group_rms_norm_f32.
struct Kernels : braid::CPUKernelProvider {
  using CPUKernelProvider::CPUKernelProvider;
  braid::CPUKernelArchive getKernels() const override {
    return {"group-norm", BRAID_GET_EMBEDDED_KERNELS(group_norm_kernels)};
  }
};

/// The operation in plain loops, in f64.
braid::interp::Status evaluate(braid::interp::OpContext &context) {
  auto op = cast<group::RmsNormOp>(context.op);
  const braid::interp::Tensor &input = context.tensor(op.getInput());
  const double *x = input.floats(), *weight = context.tensor(op.getWeight()).floats();
  const auto size = static_cast<int64_t>(op.getSize());
  const int64_t columns = input.shape().back();
  std::vector<double> result(static_cast<size_t>(input.numElements()));
  for (int64_t begin = 0; begin < input.numElements(); begin += size) {
    double sum = 0;
    for (int64_t i = begin; i < begin + size; ++i)
      sum += x[i] * x[i];
    const double factor =
        1 / std::sqrt(sum / static_cast<double>(size) + op.getEpsilon().convertToDouble());
    for (int64_t i = begin; i < begin + size; ++i)
      result[static_cast<size_t>(i)] = x[i] * factor * weight[i % columns];
  }
  context.set(op.getResult(),
              braid::interp::Tensor::ofFloats(input.dtype(), input.shape(), std::move(result)));
  return {};
}

struct Evaluators : braid::interp::EvaluatorProvider {
  using EvaluatorProvider::EvaluatorProvider;
  void populate(braid::interp::EvaluatorTable &table) const override {
    table.add<group::RmsNormOp>(evaluate);
  }
};

} // namespace

namespace group {

void GroupNormDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "GroupNormOps.cpp.inc"
      >();
  addInterfaces<Kernels, Evaluators>();
}

LogicalResult RmsNormOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto weight = cast<RankedTensorType>(getWeight().getType());
  if (input.getRank() < 2 || weight.getRank() != 1 ||
      weight.getDimSize(0) != input.getShape().back())
    return emitOpError("expects an input [..., columns] and a weight [columns], got ")
           << input << " and " << weight;
  if (weight.getDimSize(0) % getSize() != 0)
    return emitOpError("expects a size that divides ")
           << weight.getDimSize(0) << ", got " << getSize();
  return success();
}

/// Groups may be distributed over ranks; a group is not split.
braid::comm::ShardingRule RmsNormOp::getShardingRule() {
  auto input = cast<RankedTensorType>(getInput().getType());
  const auto size = static_cast<int64_t>(getSize());
  braid::comm::ShardingRule rule;
  braid::comm::TensorFactors rows;
  for (auto [i, extent] : llvm::enumerate(input.getShape().drop_back()))
    rows.push_back({rule.addFactor("row" + std::to_string(i), extent)});
  braid::comm::DimFactors columns = {
      rule.addFactor("group", input.getShape().back() / size),
      rule.addFactor("column", size, braid::comm::FactorKind::Replicated)};
  rows.push_back(columns);
  rule.operands = {rows, {columns}};
  rule.results = {rows};
  return rule;
}

braid::nn::OpCost RmsNormOp::getCost() {
  auto input = cast<RankedTensorType>(getInput().getType());
  const int64_t elements = input.getNumElements(), columns = input.getShape().back();
  braid::nn::OpCost cost;
  // A square and a sum, the factor and the weight of each element; three operations of each group.
  cost.vectorFlops = 4 * elements + 3 * (elements / static_cast<int64_t>(getSize()));
  cost.bytesRead = 4 * (elements + columns);
  cost.bytesWritten = 4 * elements;
  cost.bytesSaved = 4 * elements;
  return cost;
}

std::string RmsNormOp::getKernelSymbol() { return "group_rms_norm_f32"; }

/// All but the weight: each thread of a launch has a range of rows.
bool RmsNormOp::isKernelRowOperand(unsigned index) { return index != 1; }

SmallVector<Attribute> RmsNormOp::getKernelScalars() { return {getSizeAttr(), getEpsilonAttr()}; }

} // namespace group

#define GET_OP_CLASSES
#include "GroupNormOps.cpp.inc"

#include "GroupNormDialect.cpp.inc"

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "group-norm", "0.1",
          [](DialectRegistry *registry) { registry->insert<group::GroupNormDialect>(); }};
}
