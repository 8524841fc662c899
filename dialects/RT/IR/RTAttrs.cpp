//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RT.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace braid::rt;

#include "dialects/RT/IR/RTEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/RT/IR/RTAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/RT/IR/RTTypes.cpp.inc"

void RTDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/RT/IR/RTAttrs.cpp.inc"
      >();
}

void RTDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/RT/IR/RTTypes.cpp.inc"
      >();
}

LogicalResult FrameAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t local,
                                int64_t symmetric, int64_t events) {
  if (local < 0 || symmetric < 0 || events < 0)
    return emitError() << "expects no negative extent, got <local " << local << ", symmetric "
                       << symmetric << ", events " << events << "> [rt.frame_c1]";
  if (events > std::numeric_limits<int32_t>::max())
    return emitError() << "expects at most 2^31 - 1 events, got " << events << " [rt.frame_c2]";
  return success();
}

LogicalResult QueueAttr::verify(function_ref<InFlightDiagnostic()> emitError, QueueKind kind,
                                int64_t index) {
  const int64_t limit = kind == QueueKind::Communication ? kMaxCommunicationQueues : 1;
  if (index < 0 || index >= limit)
    return emitError() << "expects an index below " << limit << " of a queue of kind "
                       << stringifyQueueKind(kind) << ", got " << index << " [rt.queue_c1]";
  return success();
}

std::string QueueAttr::str() const {
  std::string name = stringifyQueueKind(getKind()).str();
  return getIndex() == 0 ? name : name + "<" + std::to_string(getIndex()) + ">";
}

static LogicalResult verifyGlobalType(function_ref<InFlightDiagnostic()> emitError,
                                      RankedTensorType type, StringRef id) {
  if (!type.hasStaticShape())
    return emitError() << "expects a statically shaped type, got " << type << " [" << id << "]";
  return braid::verifyBounded(type, emitError, id);
}

LogicalResult ValueAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                RankedTensorType global, RankedTensorType padded,
                                braid::comm::ShardingAttr, IntegerAttr defaultValue,
                                IntegerAttr below, braid::comm::PlaceAttr) {
  if (name.empty())
    return emitError() << "expects a name [rt.value_c1]";
  for (RankedTensorType type : {global, padded})
    if (type && failed(verifyGlobalType(emitError, type, "rt.value_c2")))
      return failure();
  for (IntegerAttr integer : {defaultValue, below})
    if (integer && integer.getType() != global.getElementType())
      return emitError() << "expects default and bound of type " << global.getElementType()
                         << ", got " << integer << " [rt.value_c5]";
  if ((below && below.getInt() < 1) ||
      (defaultValue &&
       (defaultValue.getInt() < 0 || (below && defaultValue.getInt() >= below.getInt()))))
    return emitError() << "expects a bound of at least 1, and a default of 0 or more below it "
                          "[rt.value_c5]";
  if (padded &&
      (padded.getElementType() != global.getElementType() || padded.getRank() != global.getRank() ||
       !llvm::all_of_zip(padded.getShape(), global.getShape(), std::greater_equal<>())))
    return emitError() << "expects a padded type that begins with " << global << ", got " << padded
                       << " [rt.value_c3]";
  return success();
}

LogicalResult ParameterAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                    RankedTensorType global, braid::comm::ShardingAttr,
                                    braid::comm::PlaceAttr, braid::nn::InitKindAttr,
                                    ArrayAttr slices, braid::nn::QuantizedPartAttr) {
  if (name.empty())
    return emitError() << "expects a name [rt.parameter_c1]";
  for (Attribute slice : slices)
    if (!isa<braid::nn::SliceAttr>(slice))
      return emitError() << "expects slices to be #nn.slice, got " << slice << " [rt.parameter_c3]";
  return verifyGlobalType(emitError, global, "rt.parameter_c2");
}

//===----------------------------------------------------------------------===//
// Payload: `<"int8:128" of f32 senders 4>`, with the encoding in its canonical form.
//===----------------------------------------------------------------------===//

LogicalResult PayloadAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  braid::comm::EncodingAttr encoding, Type type, int64_t senders,
                                  bool absent, int64_t own, braid::comm::GroupAttr group,
                                  int64_t first) {
  if (!encoding.isSingle())
    return emitError() << "expects one encoding, got '" << encoding.getText()
                       << "' [rt.payload_c1]";
  if (!type.isF32() && !type.isF16() && !type.isBF16())
    return emitError() << "expects an encoded type f32, f16 or bf16, got " << type
                       << " [rt.payload_c2]";
  if (senders < 0)
    return emitError() << "expects at least 1 sender [rt.payload_c3]";
  if (senders != 0 && absent)
    return emitError() << "expects no absent parts of a sum [rt.payload_c3]";
  if (own < -1 || (senders != 0 && (own >= 0) != static_cast<bool>(group)) || (own >= 0 && !group))
    return emitError() << "expects the number of an argument and a group of 'own' [rt.payload_c4]";
  if (own >= 0 && senders == 0)
    return emitError() << "expects 'own' beside 'senders' only [rt.payload_c4]";
  if (first < 0 || (first != 0 && (!group || senders != 0)))
    return emitError() << "expects 'first' of at least 0 and beside 'over' only [rt.payload_c5]";
  return success();
}

Attribute PayloadAttr::parse(AsmParser &parser, Type) {
  std::string text;
  SMLoc loc;
  Type type;
  int64_t senders = 0;
  if (parser.parseLess() || parser.getCurrentLocation(&loc) || parser.parseString(&text) ||
      parser.parseKeyword("of") || parser.parseType(type))
    return {};
  if (succeeded(parser.parseOptionalKeyword("senders"))) {
    if (parser.parseInteger(senders))
      return {};
    senders = senders == 0 ? -1 : senders; // 0 stands for none
  }
  int64_t own = -1;
  braid::comm::GroupAttr group;
  if (succeeded(parser.parseOptionalKeyword("own"))) {
    if (parser.parseInteger(own))
      return {};
    own = own == -1 ? -2 : own; // -1 stands for none
  }
  if (succeeded(parser.parseOptionalKeyword("over")) &&
      parser.parseCustomAttributeWithFallback(group))
    return {};
  int64_t first = 0;
  if (succeeded(parser.parseOptionalKeyword("first")) && parser.parseInteger(first))
    return {};
  const bool absent = succeeded(parser.parseOptionalKeyword("absent"));
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if (const auto pair = braid::runtime::EncodingPair::parse(text); pair.ok())
    text = pair->str();
  auto encoding =
      braid::comm::EncodingAttr::getChecked(emitError, parser.getContext(), StringRef(text));
  if (!encoding)
    return {};
  return PayloadAttr::getChecked(emitError, parser.getContext(), encoding, type, senders, absent,
                                 own, group, first);
}

void PayloadAttr::print(AsmPrinter &printer) const {
  printer << "<\"" << getEncoding().getText() << "\" of " << getType();
  if (getSenders() != 0)
    printer << " senders " << getSenders();
  if (getOwn() >= 0)
    printer << " own " << getOwn();
  if (getGroup()) {
    printer << " over ";
    printer.printStrippedAttrOrType(getGroup());
  }
  if (getFirst() != 0)
    printer << " first " << getFirst();
  printer << (getAbsent() ? " absent>" : ">");
}
