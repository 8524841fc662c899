//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNINTERFACES_TD
#define BRAID_DIALECTS_NN_NNINTERFACES_TD

include "mlir/IR/OpBase.td"

def NN_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::braid::nn";
  let description = [{ What an operation costs on the shapes it stands on (Cost.h). }];
  let methods = [InterfaceMethod<"FLOPs and bytes.", "::braid::nn::OpCost", "getCost">];
}

def NN_DecomposeOpInterface : OpInterface<"DecomposeOpInterface"> {
  let cppNamespace = "::braid::nn";
  let description = [{
    The operation as a chain of linalg.generic on tensors. Row operations (elementwise, or reducing the last dimension
    only) give operations whose domains are (rows..., column), (rows..., reduced column) or (rows...), so that kernels can
    be formed of them; arithmetic is in f32, storage in the operands' types.
  }];
  let methods = [
    InterfaceMethod<"Builds the chain on `operands` (which may have dynamic leading dimensions) and gives its results.",
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>,
    InterfaceMethod<"True for operations that act on rows: elementwise, or reducing the last dimension only.", "bool",
      "isRowOperation", (ins), "", "return true;">
  ];
}

#endif
