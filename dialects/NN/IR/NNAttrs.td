//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNATTRS_TD
#define BRAID_DIALECTS_NN_NNATTRS_TD

include "dialects/NN/IR/NNBase.td"

def NN_SliceAttr : NN_Attr<"Slice", "slice"> {
  let summary = "slice of a checkpoint's tensor that a parameter is loaded from";
  let description = [{
    `parameter[dest + i] = permute(tensor, permutation)[source + i]` for 0 <= i < sizes, elementwise over dimensions.
    Dimension d of the permuted tensor is dimension `permutation[d]` of the checkpoint's; no permutation is the identity.
    Elements of a parameter that no slice covers are zero. Offsets of zero and full sizes are not printed:

    ```mlir
    #nn.slice<"w"[384, 1536]>                                     // all of w
    #nn.slice<"w"[384, 1536] permuted [1, 0] from [0, 128] to [0, 64] size [1536, 32]>
    ```

    Constraints:
    - (nn.slice_attr_c1) the tensor has a name;
    - (nn.slice_attr_c2) shape, offsets, sizes and the permutation (if any) have one length, the tensor's rank;
    - (nn.slice_attr_c3) the permutation names every dimension once;
    - (nn.slice_attr_c4) the tensor's shape is static, sizes are at least 1, and source offsets and sizes stay inside of the
      permuted tensor;
    - (nn.slice_attr_c5) destination offsets are at least 0.
  }];
  let parameters = (ins StringRefParameter<"name in the checkpoint">:$tensor,
      OptionalArrayRefParameter<"int64_t">:$tensorShape, OptionalArrayRefParameter<"int64_t">:$permutation,
      OptionalArrayRefParameter<"int64_t">:$sourceOffsets, OptionalArrayRefParameter<"int64_t">:$destOffsets,
      OptionalArrayRefParameter<"int64_t">:$sizes);
  let extraClassDeclaration = [{
    /// The full tensor, not permuted.
    static SliceAttr full(::mlir::MLIRContext *context, ::llvm::StringRef tensor, ::llvm::ArrayRef<int64_t> shape);
    /// Whether the slice is the full tensor, perhaps permuted, and starts at the parameter's origin.
    bool isFull() const;
    /// The shape of the tensor after the permutation.
    ::llvm::SmallVector<int64_t> getPermutedShape() const;
    /// The assembly without the angle brackets, for operations that hold slices.
    static ::mlir::FailureOr<SliceAttr> parseBody(::mlir::AsmParser &parser);
    void printBody(::mlir::AsmPrinter &printer) const;
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}
def NN_SliceArrayAttr : TypedArrayAttrBase<NN_SliceAttr, "slices of checkpoint tensors">;

def NN_InitKind : I32EnumAttr<"InitKind", "the distribution of a parameter's random weights", [
    I32EnumAttrCase<"Normal", 0, "normal">, I32EnumAttrCase<"Ones", 1, "ones">, I32EnumAttrCase<"Zeros", 2, "zeros">]> {
  let cppNamespace = "::braid::nn";
  let genSpecializedAttr = 0;
}
def NN_InitAttr : EnumAttr<NN_Dialect, NN_InitKind, "init"> { let assemblyFormat = "$value"; }

def NN_QuantizedPart : I32EnumAttr<"QuantizedPart", "what of its quantized matrix a parameter is", [
    I32EnumAttrCase<"Values", 0, "values">, I32EnumAttrCase<"Scales", 1, "scales">]> {
  let cppNamespace = "::braid::nn";
  let genSpecializedAttr = 0;
}
def NN_QuantizedAttr : EnumAttr<NN_Dialect, NN_QuantizedPart, "quantized"> { let assemblyFormat = "$value"; }

def NN_ActivationKind : I32EnumAttr<"ActivationKind", "an elementwise function of one value", [
    I32EnumAttrCase<"Gelu", 0, "gelu">, I32EnumAttrCase<"GeluTanh", 1, "gelu_tanh">,
    I32EnumAttrCase<"Silu", 2, "silu">, I32EnumAttrCase<"QuickGelu", 3, "quick_gelu">,
    I32EnumAttrCase<"Gelu10", 4, "gelu_10">, I32EnumAttrCase<"Relu", 5, "relu">, I32EnumAttrCase<"Relu2", 6, "relu2">,
    I32EnumAttrCase<"Relu6", 7, "relu6">, I32EnumAttrCase<"LeakyRelu", 8, "leaky_relu">,
    I32EnumAttrCase<"Mish", 9, "mish">, I32EnumAttrCase<"Tanh", 10, "tanh">, I32EnumAttrCase<"Sigmoid", 11, "sigmoid">,
    I32EnumAttrCase<"Hardswish", 12, "hardswish">, I32EnumAttrCase<"Laplace", 13, "laplace">]> {
  let description = [{
    | kind | of x |
    |------|------|
    | `gelu` | `x / 2 * (1 + erf(x / sqrt(2)))` |
    | `gelu_tanh` | `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))` |
    | `silu`, also known as swish | `x / (1 + exp(-x))` |
    | `quick_gelu` | `x / (1 + exp(-1.702 x))` |
    | `gelu_10` | `gelu`, clamped to [-10, 10] |
    | `relu` | `max(x, 0)` |
    | `relu2` | `max(x, 0)^2` |
    | `relu6` | `min(max(x, 0), 6)` |
    | `leaky_relu` | `x` where it is positive, else `0.01 x` |
    | `mish` | `x * tanh(log(1 + exp(x)))` |
    | `tanh` | `tanh(x)` |
    | `sigmoid` | `1 / (1 + exp(-x))` |
    | `hardswish` | `x * min(max(x + 3, 0), 6) / 6` |
    | `laplace` | `(1 + erf((x - 0.707107) / (0.282095 * sqrt(2)))) / 2` |

    A NaN gives NaN. Infinities give what the formula says in IEEE arithmetic: `x * 0` of an infinite x is NaN.
  }];
  let cppNamespace = "::braid::nn";
  let genSpecializedAttr = 0;
}
def NN_ActivationAttr : EnumAttr<NN_Dialect, NN_ActivationKind, "activation"> { let assemblyFormat = "$value"; }

#endif
