//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "QuantizedWeights.h"

using namespace mlir;

namespace braid {

/// The calls of a function that nothing else uses; nullopt if something does.
static std::optional<SmallVector<func::CallOp>> callsOf(func::FuncOp function) {
  SmallVector<func::CallOp> calls;
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(function, function->getParentOfType<ModuleOp>());
  if (!uses)
    return std::nullopt;
  for (const SymbolTable::SymbolUse &use : *uses) {
    auto call = dyn_cast<func::CallOp>(use.getUser());
    if (!call)
      return std::nullopt;
    calls.push_back(call);
  }
  return calls;
}

static func::FuncOp functionOf(BlockArgument argument) {
  return dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
}

std::string weightObstacle(Value weight) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (Operation *producer = weight.getDefiningOp()) {
    if (!isa<nn::ParameterOp>(producer))
      os << "its weight is the result of " << producer->getName() << ", expects a parameter";
    return text;
  }
  auto argument = cast<BlockArgument>(weight);
  func::FuncOp function = functionOf(argument);
  const auto calls = function ? callsOf(function) : std::nullopt;
  if (!calls || calls->empty()) {
    os << "its weight is argument " << argument.getArgNumber();
    if (function)
      os << " of @" << function.getSymName();
    os << ", expects a parameter";
    return text;
  }
  for (func::CallOp call : *calls)
    if (std::string why = weightObstacle(call.getOperand(argument.getArgNumber())); !why.empty())
      return why;
  return "";
}

Location named(Location loc, StringRef suffix) {
  auto name = loc->findInstanceOf<NameLoc>();
  if (!name)
    return loc;
  return NameLoc::get(StringAttr::get(loc.getContext(), name.getName().getValue() + suffix));
}

QuantizedWeights::Parts QuantizedWeights::get(Value weight) {
  if (auto it = known.find(weight); it != known.end())
    return it->second;
  auto parameter = weight.getDefiningOp<nn::ParameterOp>();
  Parts parts = parameter ? splitParameter(parameter) : splitArgument(cast<BlockArgument>(weight));
  known[weight] = parts;
  return parts;
}

QuantizedWeights::Parts QuantizedWeights::splitParameter(nn::ParameterOp parameter) {
  OpBuilder builder(parameter);
  builder.setInsertionPointAfter(parameter);
  MLIRContext *context = builder.getContext();
  RankedTensorType type = cast<RankedTensorType>(parameter.getType());
  auto add = [&](StringRef suffix, nn::QuantizedPart part) -> Value {
    const bool values = part == nn::QuantizedPart::Values;
    auto partOf = [&](RankedTensorType whole) {
      return values ? whole.clone(builder.getI8Type())
                    : RankedTensorType::get(whole.getShape().take_front(), builder.getF32Type());
    };
    TypeAttr global;
    if (std::optional<Type> given = parameter.getGlobalType())
      global = TypeAttr::get(partOf(cast<RankedTensorType>(*given)));
    comm::ShardingAttr sharding = parameter.getShardingAttr();
    if (sharding && !values)
      sharding = comm::ShardingAttr::get(context, sharding.getMesh(),
                                         sharding.getDims().take_front(), sharding.getPartials());
    return nn::ParameterOp::create(builder, named(parameter.getLoc(), suffix), partOf(type),
                                   builder.getStringAttr(parameter.getName() + suffix),
                                   parameter.getSlices(), parameter.getInitAttr(), global, sharding,
                                   comm::ShardingAttr(), parameter.getPlaceAttr(),
                                   nn::QuantizedPartAttr::get(context, part));
  };
  // The first one comes first.
  const Value scales = add(".scales", nn::QuantizedPart::Scales);
  builder.setInsertionPointAfter(parameter);
  return {add(".int8", nn::QuantizedPart::Values), scales};
}

QuantizedWeights::Parts QuantizedWeights::splitArgument(BlockArgument argument) {
  func::FuncOp function = functionOf(argument);
  const unsigned number = argument.getArgNumber();
  const SmallVector<func::CallOp> calls = *callsOf(function);
  Parts parts;
  for (func::CallOp call : calls) {
    const Parts given = get(call.getOperand(number));
    if (!parts.values) {
      const unsigned end = function.getNumArguments();
      const Location loc = argument.getLoc();
      (void)function.insertArgument(end, given.values.getType(), {}, named(loc, ".int8"));
      (void)function.insertArgument(end + 1, given.scales.getType(), {}, named(loc, ".scales"));
      parts = {function.getArgument(end), function.getArgument(end + 1)};
    }
    call.getOperandsMutable().append({given.values, given.scales});
  }
  return parts;
}

void QuantizedWeights::eraseUnused() {
  // A callee's argument is before the values that its calls give.
  for (auto &[weight, parts] : llvm::reverse(known)) {
    if (!weight.use_empty())
      continue;
    if (auto parameter = weight.getDefiningOp<nn::ParameterOp>()) {
      parameter.erase();
      continue;
    }
    auto argument = cast<BlockArgument>(weight);
    func::FuncOp function = functionOf(argument);
    const unsigned number = argument.getArgNumber();
    const SmallVector<func::CallOp> calls = *callsOf(function);
    for (func::CallOp call : calls)
      call->eraseOperand(number);
    (void)function.eraseArgument(number);
  }
}

} // namespace braid
