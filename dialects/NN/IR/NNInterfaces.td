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
    be formed of them. Arithmetic is in f32 with `fastmath<reassoc, contract>`, storage in the operands' types, and values that
    are stored nowhere in the undecomposed form (means, sums, scores) are f32.

    The result's shape is taken from `operands`, whose dimensions may be dynamic (all but the last) even where this
    operation's own are static.
  }];
  let methods = [
    InterfaceMethod<"Builds the chain on `operands` and gives its results.",
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>,
    InterfaceMethod<"True for operations that act on rows: elementwise, or reducing the last dimension only.", "bool",
      "isRowOperation", (ins), "", "return true;">,
    InterfaceMethod<"What a kernel is called that does this operation.", "::llvm::StringRef", "getKernelName", (ins), "",
      "return $_op->getName().stripDialect();">
  ];
}

def NN_LibraryKernelOpInterface : OpInterface<"LibraryKernelOpInterface"> {
  let cppNamespace = "::braid::nn";
  let description = [{
    An operation that is computed by a function of a library, which a target puts into the bundle: for operations that
    are no chain of row operations, or that somebody has a better kernel for. The kernel becomes an rt.kernel without a
    body. Operands and results are tensors of static shape.

    Row operands are those that a launch may cut into ranges of rows, for several threads to work on. They agree in their
    first `getKernelRowDims` dimensions, which the function sees as one.
  }];
  let methods = [
    InterfaceMethod<"The name of the function for the types that the operation stands on.", "::std::string",
      "getKernelSymbol">,
    InterfaceMethod<"How many leading dimensions of row operands are rows.", "int64_t", "getKernelRowDims", (ins), "", [{
      return ::llvm::cast<::mlir::RankedTensorType>($_op->getResult(0).getType()).getRank() - 1;
    }]>,
    InterfaceMethod<"Whether this operand, or this result, numbered after the operands, is cut with the rows.", "bool",
      "isKernelRowOperand", (ins "unsigned":$index), "", "return false;">,
    InterfaceMethod<"What the function takes besides: integers (passed as int64_t) and floats (as double).",
      "::llvm::SmallVector<::mlir::Attribute>", "getKernelScalars", (ins), "", "return {};">
  ];
}

#endif
