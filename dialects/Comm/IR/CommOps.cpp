//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Comm.h"

#include "dialects/Comm/IR/SaturatingCount.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;
using runtime::CollectiveKind;

/// `<dp = 2, tp = 4>`.
static ParseResult parseMeshAxes(OpAsmParser &parser, ArrayAttr &names, DenseI64ArrayAttr &sizes) {
  SmallVector<Attribute> nameAttrs;
  SmallVector<int64_t> sizeValues;
  auto one = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() || parser.parseInteger(size))
      return failure();
    nameAttrs.push_back(parser.getBuilder().getStringAttr(name));
    sizeValues.push_back(size);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, one))
    return failure();
  names = parser.getBuilder().getArrayAttr(nameAttrs);
  sizes = parser.getBuilder().getDenseI64ArrayAttr(sizeValues);
  return success();
}

static void printMeshAxes(OpAsmPrinter &printer, MeshOp, ArrayAttr names, DenseI64ArrayAttr sizes) {
  printer << "<";
  llvm::interleaveComma(llvm::zip_equal(names.getAsValueRange<StringAttr>(), sizes.asArrayRef()),
                        printer, [&](auto pair) {
                          printer.printKeywordOrString(std::get<0>(pair));
                          printer << " = " << std::get<1>(pair);
                        });
  printer << ">";
}

/// `sum`. An EnumAttr in an assembly format would print a second space before it.
static ParseResult parseReduceKind(OpAsmParser &parser, ReduceKindAttr &kind) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<ReduceKind> value = symbolizeReduceKind(keyword);
  if (!value)
    return parser.emitError(loc) << "expects sum, max or min, got '" << keyword << "'";
  kind = ReduceKindAttr::get(parser.getContext(), *value);
  return success();
}
static void printReduceKind(OpAsmPrinter &printer, Operation *, ReduceKindAttr kind) {
  printer << stringifyReduceKind(kind.getValue());
}

/// `[0 -> 1, 1 -> 0]`.
static ParseResult parsePairs(OpAsmParser &parser, DenseI64ArrayAttr &pairs) {
  SmallVector<int64_t> positions;
  auto one = [&]() -> ParseResult {
    return failure(parser.parseInteger(positions.emplace_back()) || parser.parseArrow() ||
                   parser.parseInteger(positions.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one))
    return failure();
  pairs = parser.getBuilder().getDenseI64ArrayAttr(positions);
  return success();
}
static void printPairs(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr pairs) {
  ArrayRef<int64_t> positions = pairs;
  printer << "[";
  llvm::interleaveComma(llvm::seq<size_t>(0, positions.size() / 2), printer, [&](size_t i) {
    printer << positions[2 * i] << " -> " << positions[2 * i + 1];
  });
  printer << "]";
}

#define GET_OP_CLASSES
#include "dialects/Comm/IR/CommOps.cpp.inc"

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                            ValueRange operands, DictionaryAttr, OpaqueProperties,
                                            RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}
LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         ValueRange operands, DictionaryAttr, OpaqueProperties,
                                         RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}
LogicalResult BroadcastOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                            ValueRange operands, DictionaryAttr, OpaqueProperties,
                                            RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}
LogicalResult AllToAllVOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                            ValueRange operands, DictionaryAttr, OpaqueProperties,
                                            RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}
LogicalResult PermuteOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                          ValueRange operands, DictionaryAttr, OpaqueProperties,
                                          RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

//===----------------------------------------------------------------------===//
// The values of collectives whose operands and results are not one list each.
//===----------------------------------------------------------------------===//

/// Counts are sent as one more value, after the others.
OperandRange AllToAllVOp::getInputs() { return getOperation()->getOperands(); }
ResultRange AllToAllVOp::getOutputs() { return getOperation()->getResults(); }
ResultRange SendOp::getOutputs() { return getOperation()->getResults(); }
OperandRange RecvOp::getInputs() { return getOperation()->getOperands(); }
bool AllToAllVOp::hasIndependentValues() { return false; }
bool SendOp::hasIndependentValues() { return false; }
bool RecvOp::hasIndependentValues() { return false; }

//===----------------------------------------------------------------------===//
// What the bytes that a collective sends follow from.
//===----------------------------------------------------------------------===//

int64_t comm::totalBytes(TypeRange types) {
  SaturatingCount bytes = 0;
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    bytes += tensor.getNumElements() * elementBytes(tensor);
  }
  return bytes.getValue();
}

CollectiveKind AllReduceOp::getCollectiveKind() { return CollectiveKind::allReduce; }
CollectiveKind ReduceScatterOp::getCollectiveKind() { return CollectiveKind::reduceScatter; }
CollectiveKind AllGatherOp::getCollectiveKind() { return CollectiveKind::allGather; }
CollectiveKind AllToAllOp::getCollectiveKind() { return CollectiveKind::allToAll; }
CollectiveKind AllToAllVOp::getCollectiveKind() { return CollectiveKind::allToAllV; }
CollectiveKind ReduceOp::getCollectiveKind() { return CollectiveKind::reduce; }
CollectiveKind BroadcastOp::getCollectiveKind() { return CollectiveKind::broadcast; }
CollectiveKind PermuteOp::getCollectiveKind() { return CollectiveKind::permute; }
CollectiveKind SendOp::getCollectiveKind() { return CollectiveKind::send; }
CollectiveKind RecvOp::getCollectiveKind() { return CollectiveKind::recv; }

bool SendOp::hasSource() { return !getPairs().empty(); }
bool PermuteOp::hasSource() {
  ArrayRef<int64_t> pairs = getPairs();
  for (size_t i = 0; i < pairs.size(); i += 2)
    if (pairs[i] != pairs[i + 1])
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// comm.start
//===----------------------------------------------------------------------===//

CollectiveOpInterface StartOp::getCollective() {
  return dyn_cast<CollectiveOpInterface>(getBody().front().front());
}

ParseResult StartOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> inputTypes;
  Type handle;
  SMLoc loc = parser.getCurrentLocation();
  auto binding = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, binding))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("on"))) {
    int64_t queue;
    if (parser.parseInteger(queue))
      return failure();
    result.getOrAddProperties<Properties>().queue = parser.getBuilder().getI64IntegerAttr(queue);
  }
  if (parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseOptionalColonTypeList(inputTypes) || parser.parseArrow() ||
      parser.parseType(handle) ||
      parser.resolveOperands(operands, inputTypes, loc, result.operands))
    return failure();
  for (auto [argument, type] : llvm::zip_equal(arguments, inputTypes))
    argument.type = type;
  result.addTypes(handle);
  return parser.parseRegion(*result.addRegion(), arguments);
}

void StartOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(
      llvm::zip_equal(getBody().getArguments(), getInputs()), printer,
      [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
  printer << ")";
  if (getQueue() != 0)
    printer << " on " << getQueue();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getQueueAttrName()});
  if (!getInputs().empty()) {
    printer << " : ";
    llvm::interleaveComma(getInputs().getTypes(), printer);
  }
  printer << " -> " << getHandle().getType() << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
