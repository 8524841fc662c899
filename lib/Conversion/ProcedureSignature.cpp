//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The arguments and events of a procedure, from the signature of its function.
//
//===----------------------------------------------------------------------===//
#include "ProcedureLowering.h"

using namespace mlir;
using namespace braid;

LogicalResult ProcedureLowering::checkFunction() {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("expects a body of one block to become a procedure");
  bool entry = function->hasAttr(nn::NNDialect::kEntryAttrName);
  for (Type type :
       llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes())) {
    if (isa<comm::HandleType>(type)) {
      if (entry)
        return function.emitOpError("expects an entry to wait for every collective, got ")
               << type << " in its signature";
      continue;
    }
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return function.emitOpError("expects statically shaped tensors in its signature, got ")
             << type;
  }
  return success();
}

LogicalResult ProcedureLowering::buildSignature() {
  Block &block = function.getBody().front();
  bool entry = function->hasAttr(nn::NNDialect::kEntryAttrName);
  SmallVector<nn::ParameterOp> parameters(block.getOps<nn::ParameterOp>());
  if (!entry && !parameters.empty())
    return parameters.front().emitOpError("expects to stand in an entry, got @")
           << function.getSymName();

  const Signature &spaces = plan->getSignature();
  SmallVector<Type> types;
  auto add = [&](RankedTensorType type, bool symmetric) {
    auto space = symmetric ? rt::SpaceAttr::get(builder.getContext(), rt::Space::Symmetric)
                           : rt::SpaceAttr();
    types.push_back(MemRefType::get(type.getShape(), type.getElementType(),
                                    MemRefLayoutAttrInterface{}, space));
  };
  for (nn::ParameterOp parameter : parameters)
    add(cast<RankedTensorType>(parameter.getType()), plan->isSymmetric({parameter, 0}));
  const SmallVector<RankedTensorType> argumentTypes = flattenTypes(function.getArgumentTypes());
  SmallVector<size_t> places(argumentTypes.size());
  for (bool states : {true, false}) // which come before the other arguments of an entry
    for (auto [i, type] : llvm::enumerate(argumentTypes))
      if (states == (entry && nn::getStateResult(function, i))) {
        places[i] = types.size();
        add(type, spaces.arguments[i]);
      }
  const size_t firstResult = types.size();
  for (auto [type, result] :
       llvm::zip_equal(flattenTypes(function.getResultTypes()), spaces.results))
    if (!result.argument)
      add(type, result.symmetric);
  const size_t firstEvent = types.size();
  auto isHandle = [](Type type) { return isa<comm::HandleType>(type); };
  types.append(llvm::count_if(function.getArgumentTypes(), isHandle),
               rt::EventType::get(builder.getContext()));

  builder.setInsertionPoint(function);
  procedure = rt::ProcedureOp::create(builder, function.getLoc(), function.getSymName(), types,
                                      llvm::count_if(function.getResultTypes(), isHandle));
  procedure.setEntry(entry);
  Block &body = procedure.getBody().front();
  builder.setInsertionPointToStart(&body);
  size_t next = 0, event = firstEvent;
  auto give = [&](Stored value, size_t place, Location loc) {
    BlockArgument argument = body.getArgument(place);
    argument.setLoc(loc);
    buffers[value] = argument;
  };
  for (auto [i, parameter] : llvm::enumerate(parameters))
    give({parameter, 0}, i, parameter.getLoc());
  for (BlockArgument argument : block.getArguments()) {
    for (size_t i = 0, count = flattenTypes(argument.getType()).size(); i < count; ++i)
      give({argument, i}, places[next++], argument.getLoc());
    if (isHandle(argument.getType()))
      events[argument] = body.getArgument(event++);
  }
  size_t result = firstResult;
  for (const SignatureResult &expected : spaces.results)
    resultArguments.push_back(
        body.getArgument(expected.argument ? places[*expected.argument] : result++));
  if (entry)
    return describeEntry(parameters);
  nameArguments();
  return success();
}

void ProcedureLowering::nameArguments() {
  for (BlockArgument argument : function.getBody().front().getArguments())
    if (auto loc = argument.getLoc()->findInstanceOf<NameLoc>())
      if (auto given = dyn_cast_or_null<BlockArgument>(memory(argument)))
        procedure.setArgAttr(given.getArgNumber(), rt::RTDialect::kNameAttrName, loc.getName());
  for (auto [argument, result] : llvm::zip_equal(resultArguments, plan->getSignature().results))
    procedure.setArgAttr(argument.getArgNumber(),
                         result.argument ? rt::RTDialect::kInoutAttrName
                                         : rt::RTDialect::kResultAttrName,
                         builder.getUnitAttr());
}

LogicalResult ProcedureLowering::describeEntry(ArrayRef<nn::ParameterOp> parameters) {
  for (auto [i, op] : llvm::enumerate(parameters)) {
    nn::ParameterOp parameter = op; // accessors are not const
    auto attr = rt::ParameterAttr::get(builder.getContext(), parameter.getName(),
                                       parameter.getParameterType(), parameter.getShardingAttr(),
                                       parameter.getPlaceAttr(), parameter.getInitAttr(),
                                       parameter.getSlices(), parameter.getQuantizedAttr());
    procedure.setArgAttr(i, rt::RTDialect::kParameterAttrName, attr);
  }
  auto describe = [&](unsigned i, bool isResult) -> LogicalResult {
    StringRef what = isResult ? "result " : "argument ";
    NamedAttrList attrs(isResult ? function.getResultAttrDict(i) : function.getArgAttrDict(i));
    auto get = [&](StringRef name, auto type) {
      return dyn_cast_or_null<decltype(type)>(attrs.get(name));
    };
    auto name = get(nn::NNDialect::kNameAttrName, StringAttr());
    if (!name)
      return function.emitOpError("expects ")
             << what << i << " of an entry to have '" << nn::NNDialect::kNameAttrName << "'";
    auto sharding = get(comm::CommDialect::kShardingAttrName, comm::ShardingAttr());
    if (isResult && sharding && sharding.isPartial())
      return function.emitOpError("expects result ")
             << i << " of an entry to be reduced, got " << sharding;
    const std::optional<unsigned> newState =
        isResult ? std::nullopt : nn::getStateResult(function, i);
    auto global = get(comm::CommDialect::kGlobalTypeAttrName, TypeAttr()),
         unpadded = newState ? function.getResultAttrOfType<TypeAttr>(
                                   *newState, nn::NNDialect::kUnpaddedAttrName)
                             : get(nn::NNDialect::kUnpaddedAttrName, TypeAttr());
    Type local = isResult ? function.getResultTypes()[i] : function.getArgumentTypes()[i];
    auto type = cast<RankedTensorType>(global ? global.getValue() : local),
         padded = RankedTensorType();
    if (unpadded && unpadded.getValue() != type)
      padded = std::exchange(type, cast<RankedTensorType>(unpadded.getValue()));
    procedure.setArgAttr(
        isResult ? resultArguments[i].getArgNumber()
                 : cast<BlockArgument>(memory(function.getArgument(i))).getArgNumber(),
        isResult   ? rt::RTDialect::kResultAttrName
        : newState ? rt::RTDialect::kStateAttrName
                   : rt::RTDialect::kOperandAttrName,
        rt::ValueAttr::get(builder.getContext(), name.getValue(), type, padded, sharding,
                           get(nn::NNDialect::kDefaultAttrName, IntegerAttr()),
                           get(nn::NNDialect::kBelowAttrName, IntegerAttr()),
                           get(comm::CommDialect::kOnAttrName, comm::PlaceAttr())));
    return success();
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (failed(describe(i, /*isResult=*/false)))
      return failure();
    const StringRef sharding = comm::CommDialect::kShardingAttrName;
    const std::optional<unsigned> result = nn::getStateResult(function, i);
    if (result && function.getArgAttr(i, sharding) != function.getResultAttr(*result, sharding))
      return function.emitOpError("expects state ")
             << function.getArgAttr(i, nn::NNDialect::kNameAttrName) << " to keep its sharding "
             << function.getArgAttr(i, sharding) << ", got a result with "
             << function.getResultAttr(*result, sharding);
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (!nn::getStateArgument(function, i) && failed(describe(i, /*isResult=*/true)))
      return failure();
  return success();
}
