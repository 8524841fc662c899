//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNATTRS_TD
#define BRAID_DIALECTS_NN_NNATTRS_TD

include "dialects/NN/IR/NNBase.td"

def NN_SliceAttr : NN_Attr<"Slice", "slice"> {
  let summary = "part of a checkpoint's tensor that lands in a parameter";
  let description = [{
    `parameter[dest + i] = permute(tensor, permutation)[source + i]` for 0 <= i < sizes, elementwise over dimensions.
    Dimension d of the permuted tensor is dimension `permutation[d]` of the checkpoint's. Elements of a parameter that no
    slice covers are zero.
  }];
  let parameters = (ins StringRefParameter<"name in the checkpoint">:$tensor,
      ArrayRefParameter<"int64_t">:$tensorShape, OptionalArrayRefParameter<"int64_t">:$permutation,
      ArrayRefParameter<"int64_t">:$sourceOffsets, ArrayRefParameter<"int64_t">:$destOffsets,
      ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}
def NN_SliceArrayAttr : TypedArrayAttrBase<NN_SliceAttr, "slices of checkpoint tensors">;

def NN_InitKind : I32EnumAttr<"InitKind", "what random weights a parameter gets", [
    I32EnumAttrCase<"Normal", 0, "normal">, I32EnumAttrCase<"Ones", 1, "ones">, I32EnumAttrCase<"Zeros", 2, "zeros">]> {
  let cppNamespace = "::braid::nn";
  let genSpecializedAttr = 0;
}
def NN_InitAttr : EnumAttr<NN_Dialect, NN_InitKind, "init"> { let assemblyFormat = "$value"; }

def NN_GeluKind : I32EnumAttr<"GeluKind", "how GELU is computed", [
    I32EnumAttrCase<"Erf", 0, "erf">, I32EnumAttrCase<"Tanh", 1, "tanh">]> {
  let cppNamespace = "::braid::nn";
  let genSpecializedAttr = 0;
}
def NN_GeluAttr : EnumAttr<NN_Dialect, NN_GeluKind, "gelu_kind"> { let assemblyFormat = "$value"; }

#endif
