//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/ChannelMaxima.h"

#include "braid/Transforms/ShardingUtils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <set>

using namespace mlir;

namespace braid {
namespace {

/// Linear operations of a function and what makes their input.
struct LocalGroup {
  Value activation;
  SmallVector<Value> divided;
  SmallVector<nn::LinearOp> linears;
};

/// The weights, 1-D or by rows, that scale each channel of a value and nothing else; none if there
/// are no such.
SmallVector<Value> scalesOf(Value activation) {
  Operation *producer = activation.getDefiningOp();
  if (auto norm = dyn_cast_or_null<nn::RmsNormOp>(producer))
    return {norm.getWeight()};
  if (auto norm = dyn_cast_or_null<nn::LayerNormOp>(producer))
    return {norm.getWeight(), norm.getBias()};
  auto product = dyn_cast_or_null<nn::MulOp>(producer);
  if (!product || product.getLhs().getType() != product.getRhs().getType())
    return {};
  for (Value factor : {product.getRhs(), product.getLhs()}) {
    if (!factor.hasOneUse())
      continue;
    SmallVector<Value> scales;
    auto linear = factor.getDefiningOp<nn::LinearOp>();
    if (auto add = factor.getDefiningOp<nn::AddOp>()) {
      linear = add.getLhs().getDefiningOp<nn::LinearOp>();
      if (!linear || linear.getBiasAddition() != add)
        continue;
      scales.push_back(add.getRhs());
    }
    if (!linear)
      continue;
    scales.push_back(linear.getWeight());
    return scales;
  }
  return {};
}

/// The group of the value, if linear operations alone use it.
std::optional<LocalGroup> groupOf(Value activation) {
  LocalGroup group{activation, scalesOf(activation), {}};
  if (group.divided.empty() || cast<RankedTensorType>(activation.getType()).getRank() < 2)
    return std::nullopt;
  for (OpOperand &use : activation.getUses()) {
    auto linear = dyn_cast<nn::LinearOp>(use.getOwner());
    if (!linear || use.getOperandNumber() != 0)
      return std::nullopt;
    group.linears.push_back(linear);
  }
  if (group.linears.empty())
    return std::nullopt;
  return group;
}

class Recorder {
public:
  explicit Recorder(ModuleOp module) : module(module) {}

  FailureOr<std::vector<ChannelGroup>> record() {
    func::FuncOp entry;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function->hasAttr(nn::NNDialect::kEntryAttrName))
        continue;
      if (entry)
        return function.emitOpError("expects to be the only entry of a model whose activations are "
                                    "smoothed, beside @")
               << entry.getSymName();
      entry = function;
    }
    if (!entry)
      return module.emitError("expects a function with '") << nn::NNDialect::kEntryAttrName << "'";
    module.walk([&](nn::ParameterOp parameter) {
      for (auto slice : parameter.getSlices().getAsRange<nn::SliceAttr>())
        readers[slice.getTensor().str()].insert(parameter);
    });
    SmallVector<func::CallOp> path;
    enumerate(entry, path);
    SmallVector<Value> results = addResults(entry);
    for (auto [i, result] : llvm::enumerate(results)) {
      groups[i].result = "channel_maxima." + std::to_string(i);
      const unsigned number = entry.getNumResults() - results.size() + i;
      entry.setResultAttr(number, nn::NNDialect::kNameAttrName,
                          StringAttr::get(module.getContext(), groups[i].result));
    }
    return std::move(groups);
  }

private:
  /// The groups of a function and of what it calls, in order, with their parameters.
  void enumerate(func::FuncOp function, SmallVectorImpl<func::CallOp> &path) {
    function.walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op); call && !calleeOf(call).isExternal()) {
        path.push_back(call);
        enumerate(calleeOf(call), path);
        path.pop_back();
      }
      if (op->getNumResults() != 1)
        return;
      if (std::optional<LocalGroup> local = groupOf(op->getResult(0)))
        groups.push_back(describe(*local, path));
    });
  }

  ChannelGroup describe(const LocalGroup &local, ArrayRef<func::CallOp> path) {
    ChannelGroup group;
    for (func::CallOp call : path)
      group.name += "@" + call.getCallee().str() + " (" + locationName(call) + ") ";
    nn::LinearOp first = local.linears.front(); // accessors are not const
    group.name += "before '" + first.getRole().value_or("").str() + "'";
    std::set<Operation *> own;
    auto find = [&](Value weight) {
      nn::ParameterOp parameter = resolve(weight, path);
      if (!parameter)
        group.obstacle = "a weight is no parameter, or has other users";
      else
        own.insert(parameter);
      return parameter;
    };
    for (Value weight : local.divided)
      group.divided.push_back(find(weight));
    for (nn::LinearOp linear : local.linears)
      group.multiplied.push_back(find(linear.getWeight()));
    for (Operation *op : own)
      for (auto slice : cast<nn::ParameterOp>(op).getSlices().getAsRange<nn::SliceAttr>())
        for (Operation *reader : readers[slice.getTensor().str()])
          if (!own.count(reader))
            group.obstacle = "tensor '" + slice.getTensor().str() + "' has other users";
    return group;
  }

  static std::string locationName(Operation *op) {
    auto name = op->getLoc()->findInstanceOf<NameLoc>();
    return name ? name.getName().str() : "";
  }

  /// The parameter of a weight that has one use in each function; null if there is none.
  static nn::ParameterOp resolve(Value weight, ArrayRef<func::CallOp> path) {
    while (weight.hasOneUse()) {
      auto argument = dyn_cast<BlockArgument>(weight);
      if (!argument)
        return weight.getDefiningOp<nn::ParameterOp>();
      if (path.empty())
        return {};
      func::CallOp call = path.back();
      weight = call.getOperand(argument.getArgNumber());
      path = path.drop_back();
    }
    return {};
  }

  /// Adds the maxima to a function's results, once, in the order of `enumerate`.
  SmallVector<Value> addResults(func::FuncOp function) {
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) { ops.push_back(op); });
    SmallVector<Value> results;
    for (Operation *op : ops) {
      if (auto call = dyn_cast<func::CallOp>(op); call && !calleeOf(call).isExternal()) {
        if (auto [it, isNew] = extended.try_emplace(calleeOf(call), 0); isNew)
          it->second = addResults(calleeOf(call)).size();
        const size_t added = extended.lookup(calleeOf(call));
        OpBuilder builder(call);
        auto longer =
            func::CallOp::create(builder, call.getLoc(), calleeOf(call), call.getOperands());
        longer->setDiscardableAttrs(call->getDiscardableAttrDictionary());
        llvm::append_range(results, longer.getResults().take_back(added));
        call->replaceAllUsesWith(longer.getResults().drop_back(added));
        call.erase();
        continue;
      }
      if (op->getNumResults() == 1)
        if (groupOf(op->getResult(0)))
          results.push_back(maximaOf(op->getResult(0)));
    }
    Operation *ret = function.getBody().front().getTerminator();
    for (Value result : results) {
      (void)function.insertResult(function.getNumResults(), result.getType(), {});
      ret->insertOperands(ret->getNumOperands(), result);
    }
    return results;
  }

  /// max |x| over all dimensions but the last.
  static Value maximaOf(Value value) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    const Location loc = value.getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    auto map = nn::MapOp::create(builder, loc, type, value, ValueRange());
    {
      OpBuilder::InsertionGuard guard(builder);
      Block *body = builder.createBlock(&map.getBody(), {}, builder.getF32Type(), loc);
      Value magnitude = math::AbsFOp::create(builder, loc, body->getArgument(0));
      nn::YieldOp::create(builder, loc, magnitude);
    }
    SmallVector<int64_t> dims;
    for (int64_t d = 0; d + 1 < type.getRank(); ++d)
      dims.push_back(d);
    auto result = RankedTensorType::get(type.getShape().take_back(), type.getElementType());
    return nn::ReduceOp::create(builder, loc, result, Type(), map.getResult(),
                                comm::ReduceKind::Max, dims)
        .getResult();
  }

  ModuleOp module;
  llvm::StringMap<std::set<Operation *>> readers; ///< parameters, by the tensors that they read
  std::vector<ChannelGroup> groups;
  DenseMap<Operation *, size_t> extended; ///< functions, and how many results were added
};

} // namespace

FailureOr<std::vector<ChannelGroup>> recordChannelMaxima(ModuleOp module) {
  return Recorder(module).record();
}

} // namespace braid
