//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RT.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace braid::rt;

#include "dialects/RT/IR/RTDialect.cpp.inc"

void RTDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/RT/IR/RTOps.cpp.inc"
      >();
}

LogicalResult RTDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argIndex,
                                                  NamedAttribute attr) {
  StringRef name = attr.getName();
  auto expects = [&](StringRef what) {
    return op->emitOpError("expects '") << name << "' of argument " << argIndex << " to be " << what
                                        << ", got " << attr.getValue();
  };
  if (name == kNameAttrName)
    return isa<StringAttr>(attr.getValue()) ? success() : expects("a string");
  if (name == kPayloadAttrName && isa<KernelOp>(op))
    return isa<PayloadAttr>(attr.getValue()) ? success() : expects("#rt.payload");
  auto procedure = dyn_cast<ProcedureOp>(op);
  if (!procedure)
    return op->emitOpError("expects '") << name << "' on arguments of rt.procedure only";
  if (name == kInoutAttrName || (name == kResultAttrName && !procedure.getEntry()))
    return isa<UnitAttr>(attr.getValue()) ? success() : expects("a unit attribute");
  if (name == kParameterAttrName)
    return isa<ParameterAttr>(attr.getValue()) ? success() : expects("#rt.parameter");
  if (name == kStateAttrName || name == kOperandAttrName || name == kResultAttrName)
    return isa<ValueAttr>(attr.getValue()) ? success() : expects("#rt.value");
  return op->emitOpError("does not know the argument attribute '") << name << "'";
}
