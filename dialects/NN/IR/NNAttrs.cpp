//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Parameter.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid::nn;

#define GET_ATTRDEF_CLASSES
#include "dialects/NN/IR/NNAttrs.cpp.inc"

void NNDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NN/IR/NNAttrs.cpp.inc"
      >();
}

braid::runtime::Init braid::nn::toRuntime(InitKind kind) {
  switch (kind) {
  case InitKind::Normal:
    return runtime::Init::normal;
  case InitKind::Ones:
    return runtime::Init::ones;
  case InitKind::Zeros:
    return runtime::Init::zeros;
  }
  llvm_unreachable("all kinds are listed");
}

braid::runtime::QuantizedPart braid::nn::toRuntime(QuantizedPart part) {
  return part == QuantizedPart::Values ? runtime::QuantizedPart::values
                                       : runtime::QuantizedPart::scales;
}

braid::runtime::Slice braid::nn::toRuntime(SliceAttr slice) {
  return {slice.getTensor().str(),      slice.getTensorShape().vec(),
          slice.getPermutation().vec(), slice.getSourceOffsets().vec(),
          slice.getDestOffsets().vec(), slice.getSizes().vec()};
}

SmallVector<int64_t> SliceAttr::getPermutedShape() const {
  SmallVector<int64_t> shape(getTensorShape());
  for (auto [d, from] : llvm::enumerate(getPermutation()))
    shape[d] = getTensorShape()[from];
  return shape;
}

SliceAttr SliceAttr::full(MLIRContext *context, StringRef tensor, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> zeros(shape.size(), 0);
  return get(context, tensor, shape, {}, zeros, zeros, shape);
}

bool SliceAttr::isFull() const {
  auto zero = [](int64_t offset) { return offset == 0; };
  return llvm::all_of(getSourceOffsets(), zero) && llvm::all_of(getDestOffsets(), zero) &&
         getSizes() == ArrayRef<int64_t>(getPermutedShape());
}

LogicalResult SliceAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef tensor,
                                ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation,
                                ArrayRef<int64_t> source, ArrayRef<int64_t> dest,
                                ArrayRef<int64_t> sizes) {
  if (tensor.empty())
    return emitError() << "expects the name of a checkpoint's tensor [nn.slice_attr_c1]";
  size_t rank = shape.size();
  if (source.size() != rank || dest.size() != rank || sizes.size() != rank ||
      (!permutation.empty() && permutation.size() != rank))
    return emitError() << "expects lists of the rank of tensor '" << tensor << "', which is "
                       << rank << " [nn.slice_attr_c2]";
  SmallVector<bool> seen(rank, false);
  for (int64_t d : permutation) {
    if (d < 0 || d >= static_cast<int64_t>(rank) || seen[d])
      return emitError() << "expects a permutation of " << rank << " dimensions, got ["
                         << permutation << "] [nn.slice_attr_c3]";
    seen[d] = true;
  }
  for (size_t d = 0; d < rank; ++d) {
    int64_t extent = shape[permutation.empty() ? d : permutation[d]];
    if (extent < 0)
      return emitError() << "expects a static shape for tensor '" << tensor
                         << "' [nn.slice_attr_c4]";
    // The sum could overflow; the difference cannot.
    if (sizes[d] < 1 || source[d] < 0 || sizes[d] > extent || source[d] > extent - sizes[d])
      return emitError() << "expects a slice inside of tensor '" << tensor << "', got offset "
                         << source[d] << " and size " << sizes[d] << " in dimension " << d
                         << " of size " << extent << " [nn.slice_attr_c4]";
    if (dest[d] < 0)
      return emitError() << "expects destination offsets of at least 0, got " << dest[d]
                         << " [nn.slice_attr_c5]";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// `"tensor"[512, 384] permuted [1, 0] from [0, 128] to [0, 0] size [384, 128]`; defaults are not
// printed.
//===----------------------------------------------------------------------===//

static ParseResult parseIntegers(AsmParser &parser, SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(values.emplace_back()); });
}

FailureOr<SliceAttr> SliceAttr::parseBody(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  std::string tensor;
  SmallVector<int64_t> shape, permutation, source, dest, sizes;
  if (parser.parseString(&tensor) || parseIntegers(parser, shape))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("permuted")) && parseIntegers(parser, permutation))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("from")) ? parseIntegers(parser, source).failed()
                                                     : (source.assign(shape.size(), 0), false))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("to")) ? parseIntegers(parser, dest).failed()
                                                   : (dest.assign(shape.size(), 0), false))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("size"))) {
    if (parseIntegers(parser, sizes))
      return failure();
  } else {
    // A wrong permutation is not applied here; the verifier reports it.
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t from = permutation.size() == shape.size() ? permutation[d] : static_cast<int64_t>(d);
      sizes.push_back(from >= 0 && from < static_cast<int64_t>(shape.size()) ? shape[from] : 0);
    }
  }
  SliceAttr slice =
      SliceAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), tensor,
                            shape, permutation, source, dest, sizes);
  if (!slice)
    return failure();
  return slice;
}

void SliceAttr::printBody(AsmPrinter &printer) const {
  auto list = [&](StringRef keyword, ArrayRef<int64_t> values) {
    printer << keyword << "[";
    llvm::interleaveComma(values, printer);
    printer << "]";
  };
  auto nonzero = [](ArrayRef<int64_t> values) {
    return llvm::any_of(values, [](int64_t v) { return v != 0; });
  };
  printer.printString(getTensor());
  list("", getTensorShape());
  if (!getPermutation().empty())
    list(" permuted ", getPermutation());
  if (nonzero(getSourceOffsets()))
    list(" from ", getSourceOffsets());
  if (nonzero(getDestOffsets()))
    list(" to ", getDestOffsets());
  if (getSizes() != ArrayRef<int64_t>(getPermutedShape()))
    list(" size ", getSizes());
}

Attribute SliceAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SliceAttr> slice = parseBody(parser);
  if (failed(slice) || parser.parseGreater())
    return {};
  return *slice;
}

void SliceAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printBody(printer);
  printer << ">";
}
