//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Comm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid::comm;

#include "dialects/Comm/IR/CommDialect.cpp.inc"
#include "dialects/Comm/IR/CommEnums.cpp.inc"
#include "dialects/Comm/IR/CommInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Comm/IR/CommTypes.cpp.inc"

void CommDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Comm/IR/CommTypes.cpp.inc"
      >();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Comm/IR/CommOps.cpp.inc"
      >();
}

FailureOr<SmallVector<Value>> braid::comm::cloneWithTypes(Operation *op, OpBuilder &builder,
                                                          ValueRange operands,
                                                          TypeRange resultTypes) {
  OperationState state(op->getLoc(), op->getName(), operands, resultTypes,
                       llvm::to_vector(op->getDiscardableAttrs()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  // Shardings describe global values, so the local operation drops them.
  state.attributes.erase(CommDialect::kShardingsAttrName);
  if (op->getNumRegions() != 0)
    return failure();
  return SmallVector<Value>(builder.create(state)->getResults());
}
