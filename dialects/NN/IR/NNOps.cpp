//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/NN.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace braid::nn;

/// `sum`. An EnumAttr in an assembly format would print a second space before it.
static ParseResult parseReduceKind(OpAsmParser &parser, braid::comm::ReduceKindAttr &kind) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<braid::comm::ReduceKind> value = braid::comm::symbolizeReduceKind(keyword);
  if (!value)
    return parser.emitError(loc) << "expects sum, max or min, got '" << keyword << "'";
  kind = braid::comm::ReduceKindAttr::get(parser.getContext(), *value);
  return success();
}
static void printReduceKind(OpAsmPrinter &printer, Operation *, braid::comm::ReduceKindAttr kind) {
  printer << braid::comm::stringifyReduceKind(kind.getValue());
}

#define GET_OP_CLASSES
#include "dialects/NN/IR/NNOps.cpp.inc"

//===----------------------------------------------------------------------===//
// nn.parameter
//===----------------------------------------------------------------------===//

void ParameterOp::build(OpBuilder &builder, OperationState &state, RankedTensorType type,
                        StringRef name, InitKind init) {
  Attribute slice = SliceAttr::full(builder.getContext(), name, type.getShape());
  build(builder, state, type, name, builder.getArrayAttr(slice), init, /*global_type=*/TypeAttr(),
        /*sharding=*/comm::ShardingAttr(), /*stored=*/comm::ShardingAttr(),
        /*place=*/comm::PlaceAttr(), /*quantized=*/QuantizedPartAttr());
}

RankedTensorType ParameterOp::getParameterType() {
  return cast<RankedTensorType>(getGlobalType().value_or(getResult().getType()));
}

bool ParameterOp::isFullTensor() {
  if (getSlices().size() != 1)
    return false;
  auto slice = cast<SliceAttr>(getSlices()[0]);
  return slice.getTensor() == getName() && slice.getPermutation().empty() && slice.isFull() &&
         slice.getTensorShape() == getParameterType().getShape();
}

/// `"name" slices [...] quantized values init ones {...} of tensor<...> sharded <...> stored <...>
/// on <...> : tensor<...>`
ParseResult ParameterOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  Properties &properties = result.getOrAddProperties<Properties>();
  std::string name;
  SmallVector<Attribute> slices;
  SMLoc nameLoc = parser.getCurrentLocation();
  if (parser.parseString(&name))
    return failure();
  properties.name = builder.getStringAttr(name);

  bool listed = succeeded(parser.parseOptionalKeyword("slices"));
  auto slice = [&]() -> ParseResult {
    FailureOr<SliceAttr> one = SliceAttr::parseBody(parser);
    if (failed(one))
      return failure();
    slices.push_back(*one);
    return success();
  };
  if (listed && parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, slice))
    return failure();

  if (succeeded(parser.parseOptionalKeyword("quantized"))) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<QuantizedPart> part = symbolizeQuantizedPart(keyword);
    if (!part)
      return parser.emitError(loc, "expects values or scales, got '") << keyword << "'";
    properties.quantized = QuantizedPartAttr::get(builder.getContext(), *part);
  }

  InitKind init = InitKind::Normal;
  if (succeeded(parser.parseOptionalKeyword("init"))) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<InitKind> kind = symbolizeInitKind(keyword);
    if (!kind)
      return parser.emitError(loc, "expects normal, ones or zeros, got '") << keyword << "'";
    init = *kind;
  }
  properties.init = InitKindAttr::get(builder.getContext(), init);

  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  RankedTensorType type, globalType;
  if (succeeded(parser.parseOptionalKeyword("of"))) {
    if (parser.parseType(globalType))
      return failure();
    properties.global_type = TypeAttr::get(globalType);
  }
  auto sharding = [&](StringRef keyword, comm::ShardingAttr &given) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    return parser.parseCustomAttributeWithFallback(given);
  };
  if (sharding("sharded", properties.sharding) || sharding("stored", properties.stored))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("on"))) {
    comm::PlaceAttr place;
    if (parser.parseCustomAttributeWithFallback(place))
      return failure();
    properties.place = place;
  }
  if (parser.parseColonType(type))
    return failure();
  if (!listed) {
    ArrayRef<int64_t> shape = (globalType ? globalType : type).getShape();
    SmallVector<int64_t> zeros(shape.size(), 0);
    if (failed(SliceAttr::verify([&] { return parser.emitError(nameLoc); }, name, shape, {}, zeros,
                                 zeros, shape)))
      return failure();
    slices.push_back(SliceAttr::full(builder.getContext(), name, shape));
  }
  properties.slices = builder.getArrayAttr(slices);
  result.addTypes(type);
  return success();
}

void ParameterOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printString(getName());
  if (!isFullTensor()) {
    printer << " slices [";
    llvm::interleaveComma(getSlices().getAsRange<SliceAttr>(), printer,
                          [&](SliceAttr slice) { slice.printBody(printer); });
    printer << "]";
  }
  if (std::optional<QuantizedPart> part = getQuantized())
    printer << " quantized " << stringifyQuantizedPart(*part);
  if (getInit() != InitKind::Normal)
    printer << " init " << stringifyInitKind(getInit());
  printer.printOptionalAttrDict((*this)->getDiscardableAttrDictionary().getValue());
  if (std::optional<Type> type = getGlobalType())
    printer << " of " << *type;
  auto print = [&](StringRef keyword, comm::ShardingAttr sharding) {
    if (!sharding)
      return;
    printer << " " << keyword << " ";
    printer.printStrippedAttrOrType(sharding);
  };
  print("sharded", getShardingAttr());
  print("stored", getStoredAttr());
  if (comm::PlaceAttr place = getPlaceAttr()) {
    printer << " on ";
    printer.printStrippedAttrOrType(place);
  }
  printer << " : " << getResult().getType();
}

//===----------------------------------------------------------------------===//
// The two views of heads are inverses.
//===----------------------------------------------------------------------===//

OpFoldResult SplitHeadsOp::fold(FoldAdaptor) {
  auto merge = getInput().getDefiningOp<MergeHeadsOp>();
  return merge && merge.getInput().getType() == getType() ? merge.getInput() : Value();
}

OpFoldResult MergeHeadsOp::fold(FoldAdaptor) {
  auto split = getInput().getDefiningOp<SplitHeadsOp>();
  return split && split.getInput().getType() == getType() ? split.getInput() : Value();
}
