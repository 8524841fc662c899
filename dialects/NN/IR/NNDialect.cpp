//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/NNTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace braid::nn;

#include "dialects/NN/IR/NNDialect.cpp.inc"
#include "dialects/NN/IR/NNEnums.cpp.inc"
#include "dialects/NN/IR/NNInterfaces.cpp.inc"

void NNDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/NN/IR/NNOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/NN/IR/NNTableOps.cpp.inc"
      >();
}

/// `%x attr-dict : type`, as every elementwise operation is written.
static ParseResult parseActivation(OpAsmParser &parser, OperationState &state,
                                   ActivationKind kind) {
  OpAsmParser::UnresolvedOperand input;
  Type type;
  if (parser.parseOperand(input) || parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(type) || parser.resolveOperand(input, type, state.operands))
    return failure();
  MLIRContext *context = parser.getContext();
  state.name = OperationName(ActivationOp::getOperationName(), context);
  state.getOrAddProperties<ActivationOp::Properties>().kind =
      ActivationKindAttr::get(context, kind);
  state.addTypes(type);
  return success();
}

std::optional<Dialect::ParseOpHook> NNDialect::getParseOperationHook(StringRef opName) const {
  if (opName == "nn.silu")
    return [](OpAsmParser &parser, OperationState &state) {
      return parseActivation(parser, state, ActivationKind::Silu);
    };
  if (opName != "nn.gelu")
    return std::nullopt;
  return [](OpAsmParser &parser, OperationState &state) -> ParseResult {
    StringRef form;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&form))
      return failure();
    if (form != "erf" && form != "tanh")
      return parser.emitError(loc, "expects 'erf' or 'tanh', got '") << form << "'";
    return parseActivation(parser, state,
                           form == "erf" ? ActivationKind::Gelu : ActivationKind::GeluTanh);
  };
}

//===----------------------------------------------------------------------===//
// Discardable attributes.
//===----------------------------------------------------------------------===//

/// nn.attributes_c3 for one side of an entry's signature.
static LogicalResult verifyNames(FunctionOpInterface function, unsigned count, StringRef what,
                                 function_ref<Attribute(unsigned)> nameOf) {
  llvm::StringSet<> seen;
  for (unsigned i = 0; i < count; ++i) {
    Attribute attribute = nameOf(i);
    if (!attribute)
      return function.emitOpError("expects '")
             << NNDialect::kNameAttrName << "' on every " << what << " of an entry, " << what << " "
             << i << " has none [nn.attributes_c3]";
    // The attribute's own verifier reports a value that is not a string.
    if (auto name = dyn_cast<StringAttr>(attribute); name && !seen.insert(name.getValue()).second)
      return function.emitOpError("expects different names for its ")
             << what << "s, got '" << name.getValue() << "' twice [nn.attributes_c3]";
  }
  return success();
}

LogicalResult NNDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kEntryAttrName)
    return op->emitOpError("has unknown attribute '")
           << attribute.getName().getValue() << "' of the nn dialect";
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!isa<UnitAttr>(attribute.getValue()) || !function || function.isExternal())
    return op->emitOpError("expects '")
           << kEntryAttrName
           << "' to be a unit attribute of a function with a body [nn.attributes_c1]";
  if (failed(verifyNames(function, function.getNumArguments(), "argument",
                         [&](unsigned i) { return function.getArgAttr(i, kNameAttrName); })))
    return failure();
  if (failed(verifyNames(function, function.getNumResults(), "result",
                         [&](unsigned i) { return function.getResultAttr(i, kNameAttrName); })))
    return failure();
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    for (unsigned result = 0; result < function.getNumResults(); ++result)
      if (Attribute name = function.getArgAttr(i, kNameAttrName);
          !function.getArgAttr(i, kStateAttrName) &&
          name == function.getResultAttr(result, kNameAttrName))
        return function.emitOpError("expects only the result of a state to have an argument's "
                                    "name, got ")
               << name << " of argument " << i << ", which has no '" << kStateAttrName
               << "' [nn.attributes_c7]";
  return success();
}

static LogicalResult verifyName(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != NNDialect::kNameAttrName)
    return op->emitOpError("has unknown attribute '")
           << attribute.getName().getValue() << "' of the nn dialect";
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!name || name.getValue().empty())
    return op->emitOpError("expects '")
           << NNDialect::kNameAttrName << "' to be a string that is not empty, got "
           << attribute.getValue() << " [nn.attributes_c2]";
  if (!op->hasAttr(NNDialect::kEntryAttrName))
    return op->emitOpError("expects '")
           << NNDialect::kNameAttrName
           << "' on arguments and results of an entry only [nn.attributes_c2]";
  return success();
}

static LogicalResult verifyInteger(Operation *op, unsigned index, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (!op->hasAttr(NNDialect::kEntryAttrName))
    return op->emitOpError("expects '")
           << name << "' on arguments of an entry only [nn.attributes_c5]";
  auto function = cast<FunctionOpInterface>(op);
  auto value = dyn_cast<IntegerAttr>(attribute.getValue());
  Type element = getElementTypeOrSelf(function.getArgumentTypes()[index]);
  if (!value || !element.isSignlessInteger() || value.getType() != element)
    return op->emitOpError("expects '")
           << name << "' of argument " << index << " to be an integer of its elements' type "
           << element << ", got " << attribute.getValue() << " [nn.attributes_c5]";
  const bool isBound = name == NNDialect::kBelowAttrName;
  if (value.getInt() < (isBound ? 1 : 0))
    return op->emitOpError("expects '")
           << name << "' of argument " << index << " to be at least " << (isBound ? 1 : 0)
           << ", got " << value.getInt() << " [nn.attributes_c5]";
  auto below = function.getArgAttrOfType<IntegerAttr>(index, NNDialect::kBelowAttrName);
  if (!isBound && below && value.getInt() >= below.getInt())
    return op->emitOpError("expects '")
           << name << "' of argument " << index << " to be below " << below.getInt() << ", got "
           << value.getInt() << " [nn.attributes_c5]";
  return success();
}

/// The unpartitioned type that `attribute` states, else the type.
static Type unpartitionedType(Type type, Attribute attribute) {
  auto global = dyn_cast_or_null<TypeAttr>(attribute);
  return global ? global.getValue() : type;
}

static LogicalResult verifyState(Operation *op, unsigned index, NamedAttribute attribute) {
  if (!isa<UnitAttr>(attribute.getValue()) || !op->hasAttr(NNDialect::kEntryAttrName))
    return op->emitOpError("expects '")
           << NNDialect::kStateAttrName
           << "' to be a unit attribute of an argument of an entry [nn.attributes_c6]";
  auto function = cast<FunctionOpInterface>(op);
  auto name = function.getArgAttrOfType<StringAttr>(index, NNDialect::kNameAttrName);
  if (!name) // nn.attributes_c3 reports it
    return success();
  std::optional<unsigned> result = getStateResult(function, index);
  if (!result)
    return op->emitOpError("expects a result with the new value of state '")
           << name.getValue() << "', got none of this name [nn.attributes_c6]";
  const StringRef global = braid::comm::CommDialect::kGlobalTypeAttrName;
  Type before = function.getArgumentTypes()[index], after = function.getResultTypes()[*result];
  if (before == after) {
    before = unpartitionedType(before, function.getArgAttr(index, global));
    after = unpartitionedType(after, function.getResultAttr(*result, global));
  }
  if (before != after)
    return op->emitOpError("expects state '")
           << name.getValue() << "' to keep its type " << before << ", got a result of type "
           << after << " [nn.attributes_c6]";
  return success();
}

std::optional<unsigned> braid::nn::getStateResult(FunctionOpInterface entry, unsigned argument) {
  Attribute name = entry.getArgAttr(argument, NNDialect::kNameAttrName);
  if (name && entry.getArgAttr(argument, NNDialect::kStateAttrName))
    for (unsigned i = 0; i < entry.getNumResults(); ++i)
      if (entry.getResultAttr(i, NNDialect::kNameAttrName) == name)
        return i;
  return std::nullopt;
}

std::optional<unsigned> braid::nn::getStateArgument(FunctionOpInterface entry, unsigned result) {
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    if (getStateResult(entry, i) == result)
      return i;
  return std::nullopt;
}

LogicalResult NNDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                  NamedAttribute attribute) {
  if (attribute.getName() == kDefaultAttrName || attribute.getName() == kBelowAttrName)
    return verifyInteger(op, index, attribute);
  if (attribute.getName() == kStateAttrName)
    return verifyState(op, index, attribute);
  return verifyName(op, attribute);
}

static LogicalResult verifyUnpadded(Operation *op, unsigned index, Attribute attribute) {
  auto type = dyn_cast<TypeAttr>(attribute);
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (!tensor || !tensor.hasStaticShape())
    return op->emitOpError("expects '")
           << NNDialect::kUnpaddedAttrName << "' to be a statically shaped tensor type, got "
           << attribute << " [nn.attributes_c4]";
  if (!op->hasAttr(NNDialect::kEntryAttrName))
    return op->emitOpError("expects '")
           << NNDialect::kUnpaddedAttrName << "' on results of an entry only [nn.attributes_c4]";
  auto function = cast<FunctionOpInterface>(op);
  auto global = dyn_cast_or_null<TypeAttr>(
      function.getResultAttr(index, braid::comm::CommDialect::kGlobalTypeAttrName));
  Type result = global ? global.getValue() : function.getResultTypes()[index];
  auto padded = dyn_cast<RankedTensorType>(result);
  if (!padded || padded.getElementType() != tensor.getElementType() ||
      padded.getRank() != tensor.getRank() ||
      llvm::any_of(llvm::zip_equal(padded.getShape(), tensor.getShape()),
                   [](auto sizes) { return std::get<0>(sizes) < std::get<1>(sizes); }))
    return op->emitOpError("expects '")
           << NNDialect::kUnpaddedAttrName << "' of result " << index << " to be the beginning of "
           << result << ", got " << tensor << " [nn.attributes_c4]";
  return success();
}

LogicalResult NNDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                     NamedAttribute attribute) {
  if (attribute.getName() == kUnpaddedAttrName)
    return verifyUnpadded(op, index, attribute.getValue());
  return verifyName(op, attribute);
}
