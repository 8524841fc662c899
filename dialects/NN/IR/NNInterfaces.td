//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNINTERFACES_TD
#define BRAID_DIALECTS_NN_NNINTERFACES_TD

include "mlir/IR/OpBase.td"

def NN_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::braid::nn";
  let description = [{ The cost of an operation on its own shapes (Cost.h). }];
  let methods = [InterfaceMethod<"FLOPs and bytes.", "::braid::nn::OpCost", "getCost">];
}

def NN_DecomposeOpInterface : OpInterface<"DecomposeOpInterface"> {
  let cppNamespace = "::braid::nn";
  let description = [{
    The operation as a chain of linalg.generic on tensors. Row operations (elementwise, or reducing the last dimension
    only) become operations with the domains (rows..., column), (rows..., reduced column) or (rows...), from which
    kernels are formed. Arithmetic is in f32 with `fastmath<reassoc, contract>`, storage in the operands' types, and
    values that are internal to the operation (means, sums, scores) are f32.

    The result's shape comes from `operands`, whose dimensions but the last may be dynamic even where this operation's
    own are static.
  }];
  let methods = [
    InterfaceMethod<"Builds the chain on `operands` and returns its results.",
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>,
    InterfaceMethod<"True for operations that act on rows: elementwise, or reducing the last dimension only.", "bool",
      "isRowOperation", (ins), "", "return true;">,
    InterfaceMethod<[{
      Whether this operand of a row operation has one element for each row: the result's shape without its last dimension.
      Other operands have the result's shape or the end of it.
    }], "bool", "isRowValue", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"The name of a kernel for this operation.", "::llvm::StringRef", "getKernelName", (ins), "",
      "return $_op->getName().stripDialect();">
  ];
}

def NN_KernelCallOpInterface : OpInterface<"KernelCallOpInterface"> {
  let cppNamespace = "::braid::nn";
  let description = [{
    An operation that a kernel of the runtime's library computes (braid/Base/LibraryKernels.h). Lowering launches that
    kernel. The interpreter evaluates the operation by its function for the kernel. The results are the kernel's outputs. Where the kernel adds to its first output, the call names the value that
    it is added to.
  }];
  let methods = [InterfaceMethod<"The kernel and its arguments.", "::braid::nn::KernelCall", "getKernelCall">];
}

def NN_LibraryKernelOpInterface : OpInterface<"LibraryKernelOpInterface"> {
  let cppNamespace = "::braid::nn";
  let description = [{
    An operation that is computed by a library function, which the target adds to the bundle: the operation is not a chain
    of row operations, or the function is faster. It becomes an rt.kernel without a body. Operands and results are tensors
    of static shape.

    A launch may split row operands into ranges of rows for several threads. Row operands agree in their first
    `getKernelRowDims` dimensions, which are one dimension in the function's view.
  }];
  let methods = [
    InterfaceMethod<"The name of the function for the types of this operation.", "::std::string",
      "getKernelSymbol">,
    InterfaceMethod<"The number of leading dimensions of row operands that are rows.", "int64_t", "getKernelRowDims", (ins), "", [{
      return ::llvm::cast<::mlir::RankedTensorType>($_op->getResult(0).getType()).getRank() - 1;
    }]>,
    InterfaceMethod<"Whether this operand is split by rows. Results are numbered after the operands.", "bool",
      "isKernelRowOperand", (ins "unsigned":$index), "", "return false;">,
    InterfaceMethod<"Further arguments of the function: integers (passed as int64_t) and floats (as double).",
      "::llvm::SmallVector<::mlir::Attribute>", "getKernelScalars", (ins), "", "return {};">
  ];
}

#endif
