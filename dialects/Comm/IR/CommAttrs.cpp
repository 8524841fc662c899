//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Comm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace braid::comm;

#define GET_ATTRDEF_CLASSES
#include "dialects/Comm/IR/CommAttrs.cpp.inc"

void CommDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Comm/IR/CommAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Axes: `tp` or `tp:(1)2`, in braces `{dp, tp}`.
//===----------------------------------------------------------------------===//

namespace {

FailureOr<AxisAttr> parseAxis(AsmParser &parser) {
  std::string name;
  if (failed(parser.parseKeywordOrString(&name)))
    return failure();
  int64_t pre = 1, size = 0;
  if (succeeded(parser.parseOptionalColon())) {
    if (parser.parseLParen() || parser.parseInteger(pre) || parser.parseRParen() ||
        parser.parseInteger(size))
      return failure();
  }
  AxisAttr axis =
      AxisAttr::getChecked([&] { return parser.emitError(parser.getCurrentLocation()); },
                           parser.getContext(), name, pre, size);
  if (!axis)
    return failure();
  return axis;
}

void printAxis(AsmPrinter &printer, AxisAttr axis) {
  printer.printKeywordOrString(axis.getName());
  if (!axis.isFull())
    printer << ":(" << axis.getPre() << ")" << axis.getSize();
}

/// Sets `open`, if given, when the list ends with `?`.
FailureOr<SmallVector<AxisAttr>> parseAxes(AsmParser &parser, bool *open = nullptr) {
  SmallVector<AxisAttr> axes;
  auto one = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    if (open && *open)
      return parser.emitError(loc, "expects '?' to be last");
    if (open && succeeded(parser.parseOptionalQuestion())) {
      *open = true;
      return success();
    }
    FailureOr<AxisAttr> axis = parseAxis(parser);
    if (failed(axis))
      return failure();
    axes.push_back(*axis);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, one))
    return failure();
  return axes;
}

void printAxes(AsmPrinter &printer, ArrayRef<AxisAttr> axes) {
  printer << "{";
  llvm::interleaveComma(axes, printer, [&](AxisAttr axis) { printAxis(printer, axis); });
  printer << "}";
}

FailureOr<DimAttr> parseDim(AsmParser &parser) {
  bool open = false;
  FailureOr<SmallVector<AxisAttr>> axes = parseAxes(parser, &open);
  if (failed(axes))
    return failure();
  return DimAttr::get(parser.getContext(), *axes, open);
}

void printDim(AsmPrinter &printer, DimAttr dim) {
  printer << "{";
  llvm::interleaveComma(dim.getAxes(), printer, [&](AxisAttr axis) { printAxis(printer, axis); });
  if (dim.getOpen())
    printer << (dim.getAxes().empty() ? "?" : ", ?");
  printer << "}";
}

} // namespace

bool braid::comm::overlap(AxisAttr a, AxisAttr b) {
  if (a.getName() != b.getName())
    return false;
  if (a.isFull() || b.isFull())
    return true;
  // Sub-axes of an axis seen as [pre, size, rest] are disjoint when one is a factor of the other's
  // [pre]. `x:(1)2` and `x:(3)2` of 6 are not: no factorization of the axis has both.
  return b.getPre() % (a.getPre() * a.getSize()) != 0 &&
         a.getPre() % (b.getPre() * b.getSize()) != 0;
}

namespace {

LogicalResult verifyDisjoint(function_ref<InFlightDiagnostic()> emitError, ArrayRef<AxisAttr> axes,
                             StringRef id) {
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (overlap(axes[i], axes[j]))
        return emitError() << "expects every axis at most once, got '" << axes[i].getName()
                           << "' twice [" << id << "]";
  return success();
}

} // namespace

LogicalResult AxisAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                               int64_t pre, int64_t size) {
  if (name.empty())
    return emitError() << "expects an axis name [comm.axis_c1]";
  if (pre < 1 || size < 0 || (size == 0 && pre != 1))
    return emitError() << "expects sub-axis sizes of at least 1, got (" << pre << ")" << size
                       << " [comm.axis_c2]";
  if (!llvm::checkedMul(pre, size))
    return emitError() << "expects sub-axis sizes whose product fits 64 bits, got (" << pre << ")"
                       << size << " [comm.axis_c3]";
  return success();
}

Attribute AxisAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<AxisAttr> axis = parseAxis(parser);
  if (failed(axis) || parser.parseGreater())
    return {};
  return *axis;
}
void AxisAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxis(printer, *this);
  printer << ">";
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}
void DimAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printDim(printer, *this);
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Partial: `tp = sum`.
//===----------------------------------------------------------------------===//

namespace {
FailureOr<PartialAttr> parsePartial(AsmParser &parser) {
  FailureOr<AxisAttr> axis = parseAxis(parser);
  if (failed(axis))
    return failure();
  // parseAxis has consumed the colon of a sub-axis.
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseEqual() || parser.parseKeyword(&keyword))
    return failure();
  std::optional<ReduceKind> kind = symbolizeReduceKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "expects sum, max or min, got '" << keyword << "'";
    return failure();
  }
  return PartialAttr::get(parser.getContext(), *axis, *kind);
}
void printPartial(AsmPrinter &printer, PartialAttr partial) {
  printAxis(printer, partial.getAxis());
  printer << " = " << stringifyReduceKind(partial.getKind());
}
} // namespace

Attribute PartialAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<PartialAttr> partial = parsePartial(parser);
  if (failed(partial) || parser.parseGreater())
    return {};
  return *partial;
}
void PartialAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printPartial(printer, *this);
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Sharding: `<@mesh, [{tp}, {}], partial = [dp = sum]>`.
//===----------------------------------------------------------------------===//

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                   ArrayRef<DimAttr> dims, ArrayRef<PartialAttr> partials) {
  SmallVector<AxisAttr> axes;
  for (DimAttr dim : dims)
    llvm::append_range(axes, dim.getAxes());
  for (PartialAttr partial : partials)
    axes.push_back(partial.getAxis());
  return verifyDisjoint(emitError, axes, "comm.sharding_c1");
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<DimAttr> dims;
  SmallVector<PartialAttr> partials;
  auto dim = [&]() -> ParseResult {
    FailureOr<DimAttr> one = parseDim(parser);
    if (failed(one))
      return failure();
    dims.push_back(*one);
    return success();
  };
  auto partial = [&]() -> ParseResult {
    FailureOr<PartialAttr> one = parsePartial(parser);
    if (failed(one))
      return failure();
    partials.push_back(*one);
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, dim))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("partial") || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, partial))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return ShardingAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh,
                                  dims, partials);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(getDims(), printer, [&](DimAttr dim) { printDim(printer, dim); });
  printer << "]";
  if (!getPartials().empty()) {
    printer << ", partial = [";
    llvm::interleaveComma(getPartials(), printer,
                          [&](PartialAttr partial) { printPartial(printer, partial); });
    printer << "]";
  }
  printer << ">";
}

bool ShardingAttr::isReplicated() const {
  return getPartials().empty() &&
         llvm::all_of(getDims(), [](DimAttr dim) { return dim.getAxes().empty(); });
}
bool ShardingAttr::isOpen() const {
  return llvm::any_of(getDims(), [](DimAttr dim) { return dim.getOpen(); });
}

//===----------------------------------------------------------------------===//
// Group: `<@mesh, {tp}>`.
//===----------------------------------------------------------------------===//

LogicalResult GroupAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                ArrayRef<AxisAttr> axes) {
  return verifyDisjoint(emitError, axes, "comm.group_c1");
}
Attribute GroupAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma())
    return {};
  FailureOr<SmallVector<AxisAttr>> axes = parseAxes(parser);
  if (failed(axes) || parser.parseGreater())
    return {};
  return GroupAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh,
                               *axes);
}
void GroupAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", ";
  printAxes(printer, getAxes());
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Encoding: `<"int8:128">`, kept in its canonical form.
//===----------------------------------------------------------------------===//

LogicalResult EncodingAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef text) {
  const auto pair = braid::runtime::EncodingPair::parse(text.str());
  return pair.ok() ? success() : emitError() << pair.status().message() << " [comm.encoding_c1]";
}

braid::runtime::EncodingPair EncodingAttr::getPair() const {
  return *braid::runtime::EncodingPair::parse(getText().str());
}

Attribute EncodingAttr::parse(AsmParser &parser, Type) {
  std::string text;
  SMLoc loc;
  if (parser.parseLess() || parser.getCurrentLocation(&loc) || parser.parseString(&text) ||
      parser.parseGreater())
    return {};
  if (const auto pair = braid::runtime::EncodingPair::parse(text); pair.ok())
    text = pair->str();
  return EncodingAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                  StringRef(text));
}
void EncodingAttr::print(AsmPrinter &printer) const { printer << "<\"" << getText() << "\">"; }

//===----------------------------------------------------------------------===//
// Place: `<@mesh, {pp = [0], tp = [0, 1]}>`.
//===----------------------------------------------------------------------===//

LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                ArrayRef<CoordinatesAttr> axes) {
  if (axes.empty())
    return emitError() << "expects coordinates of at least one axis [comm.place_c1]";
  for (auto [i, named] : llvm::enumerate(axes))
    for (CoordinatesAttr earlier : axes.take_front(i))
      if (earlier.getAxis() == named.getAxis())
        return emitError() << "expects every axis at most once, got '" << named.getAxis()
                           << "' twice [comm.place_c1]";
  return success();
}

Attribute PlaceAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<CoordinatesAttr> axes;
  auto one = [&]() -> ParseResult {
    std::string name;
    SmallVector<int64_t> coordinates;
    auto coordinate = [&] { return parser.parseInteger(coordinates.emplace_back()); };
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, coordinate))
      return failure();
    axes.push_back(CoordinatesAttr::get(parser.getContext(), name, coordinates));
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, one) || parser.parseGreater())
    return {};
  return PlaceAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh,
                               axes);
}

void PlaceAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", {";
  llvm::interleaveComma(getAxes(), printer, [&](CoordinatesAttr named) {
    printer.printKeywordOrString(named.getAxis());
    printer << " = [";
    llvm::interleaveComma(named.getCoordinates(), printer);
    printer << "]";
  });
  printer << "}>";
}
