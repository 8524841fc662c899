//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifies the attributes that this dialect puts on operations of other dialects.
//
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace braid::comm;

namespace {

/// Verifies one attribute of a function's argument or result, which has `attributes` and `type`.
LogicalResult verifyOnSignature(Operation *op, NamedAttribute attribute, DictionaryAttr attributes,
                                Type type, const Twine &what) {
  std::string where = what.str();
  auto emitError = [&] { return op->emitOpError() << where << ": "; };
  auto sharding = dyn_cast_or_null<ShardingAttr>(attributes.get(CommDialect::kShardingAttrName));
  if (attribute.getName() == CommDialect::kShardingAttrName) {
    if (!sharding)
      return emitError() << "expects '" << CommDialect::kShardingAttrName
                         << "' to be a #comm.sharding, got " << attribute.getValue()
                         << " [comm.attributes_c1]";
    // The sharding describes the unpartitioned type.
    if (auto global = attributes.getAs<TypeAttr>(CommDialect::kGlobalTypeAttrName))
      type = global.getValue();
    return verifySharding(op, type, sharding, emitError);
  }
  if (attribute.getName() == CommDialect::kGlobalTypeAttrName) {
    auto global = dyn_cast<TypeAttr>(attribute.getValue());
    auto tensor = global ? dyn_cast<RankedTensorType>(global.getValue()) : RankedTensorType();
    if (!tensor || !tensor.hasStaticShape())
      return emitError() << "expects '" << CommDialect::kGlobalTypeAttrName
                         << "' to be a statically shaped tensor type, got " << attribute.getValue()
                         << " [comm.attributes_c2]";
    if (!sharding)
      return emitError() << "expects '" << CommDialect::kShardingAttrName << "' beside '"
                         << CommDialect::kGlobalTypeAttrName << "' [comm.attributes_c3]";
    if (failed(verifySharding(op, tensor, sharding, emitError)))
      return failure();
    if (sharding.isOpen())
      return emitError() << "expects a sharding without open dimensions beside '"
                         << CommDialect::kGlobalTypeAttrName << "', got " << sharding
                         << " [comm.attributes_c3]";
    FailureOr<RankedTensorType> local = localType(op, tensor, sharding);
    if (succeeded(local) && *local != type)
      return emitError() << "expects type " << *local << ", which is " << tensor << " sharded as "
                         << sharding << ", got " << type << " [comm.attributes_c4]";
    return success();
  }
  if (attribute.getName() == CommDialect::kOnAttrName) {
    auto place = dyn_cast<PlaceAttr>(attribute.getValue());
    if (!place || !op->hasAttr("nn.entry"))
      return emitError() << "expects '" << CommDialect::kOnAttrName
                         << "' to be a #comm.place of an entry's argument or result, got "
                         << attribute.getValue() << (place ? " of another function" : "")
                         << " [comm.attributes_c9]";
    if (failed(verifyPlace(op, place, emitError)))
      return failure();
    return verifyShardingOn(place, sharding, "comm.attributes_c10", emitError);
  }
  return emitError() << "has unknown attribute '" << attribute.getName().getValue() << "'";
}

LogicalResult verifyEncoding(Operation *op, Attribute attribute) {
  auto encoding = dyn_cast<EncodingAttr>(attribute);
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!encoding || !collective)
    return op->emitOpError("expects '")
           << CommDialect::kEncodingAttrName << "' to be a #comm.encoding of a collective, got "
           << attribute << " [comm.attributes_c11]";
  auto emitError = [&] {
    InFlightDiagnostic error = op->emitOpError();
    if (StringRef role = collective.getRoleName(); !role.empty())
      error << "'" << role << "' ";
    return error;
  };
  if (std::string why = encodingObstacle(collective); !why.empty())
    return emitError() << "cannot be encoded as '" << encoding.getText() << "': " << why
                       << " [comm.attributes_c12]";
  if (!encoding.isSingle() && !isa<AllReduceOp>(op))
    return emitError() << "has one half, but two encodings '" << encoding.getText()
                       << "' [comm.attributes_c13]";
  return success();
}

} // namespace

std::string braid::comm::encodingObstacle(CollectiveOpInterface op) {
  if (isa<ReduceOp>(op))
    return "a comm.reduce has no encoded form";
  if (auto kind = op->getAttrOfType<ReduceKindAttr>("kind");
      kind && kind.getValue() != ReduceKind::Sum)
    return "it is no sum";
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  if (auto variable = dyn_cast<AllToAllVOp>(op.getOperation()))
    types.assign(variable.getValues().getTypes().begin(), variable.getValues().getTypes().end());
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    if (tensor.getRank() != 0 && (element.isF32() || element.isF16() || element.isBF16()))
      continue;
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return "it has values of " + text + ", and encodings take rows of f32, f16 or bf16";
  }
  return {};
}

LogicalResult CommDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return op->emitOpError("expects '")
           << attribute.getName().getValue() << "' on the arguments of functions only";
  return verifyOnSignature(op, attribute,
                           DictionaryAttr::get(getContext(), func.getArgAttrs(index)),
                           func.getArgumentTypes()[index], "argument " + Twine(index));
}

LogicalResult CommDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return op->emitOpError("expects '")
           << attribute.getName().getValue() << "' on the results of functions only";
  return verifyOnSignature(op, attribute,
                           DictionaryAttr::get(getContext(), func.getResultAttrs(index)),
                           func.getResultTypes()[index], "result " + Twine(index));
}

LogicalResult CommDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kCallAttrName) {
    auto name = dyn_cast<StringAttr>(attribute.getValue());
    if (name && !name.empty() && !name.getValue().contains('/'))
      return success();
    return op->emitOpError("expects '") << kCallAttrName << "' to be the name of a call, got "
                                        << attribute.getValue() << " [comm.attributes_c8]";
  }
  if (attribute.getName() == kOnAttrName) {
    auto place = dyn_cast<PlaceAttr>(attribute.getValue());
    if (!place || !(isa<CallOpInterface>(op) || op->getName().getStringRef() == "rt.copy"))
      return op->emitOpError("expects '")
             << kOnAttrName << "' to be a #comm.place of a call or copy, got "
             << attribute.getValue() << " [comm.attributes_c9]";
    return verifyPlace(op, place, [&] { return op->emitOpError(); });
  }
  if (attribute.getName() == kEncodingAttrName)
    return verifyEncoding(op, attribute.getValue());
  if (attribute.getName() != kShardingsAttrName)
    return op->emitOpError("has unknown attribute '") << attribute.getName().getValue() << "'";
  auto all = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!all)
    return op->emitOpError("expects '") << kShardingsAttrName << "' to be an array, got "
                                        << attribute.getValue() << " [comm.attributes_c5]";
  if (all.size() != op->getNumResults())
    return op->emitOpError("expects '")
           << kShardingsAttrName << "' to have " << op->getNumResults()
           << " elements, one per result, got " << all.size() << " [comm.attributes_c6]";
  for (auto [i, value, type] : llvm::enumerate(all, op->getResultTypes())) {
    if (isa<UnitAttr>(value)) {
      if (isa<RankedTensorType>(type))
        return op->emitOpError("result ")
               << i << ": expects a #comm.sharding for a tensor, got unit [comm.attributes_c7]";
      continue;
    }
    auto sharding = dyn_cast<ShardingAttr>(value);
    if (!sharding)
      return op->emitOpError("result ")
             << i << ": expects a #comm.sharding, got " << value << " [comm.attributes_c6]";
    auto emitError = [&, i = i] { return op->emitOpError("result ") << i << ": "; };
    if (failed(verifySharding(op, type, sharding, emitError)))
      return failure();
  }
  return success();
}
