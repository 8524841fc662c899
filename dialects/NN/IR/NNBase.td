//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNBASE_TD
#define BRAID_DIALECTS_NN_NNBASE_TD

include "dialects/Comm/IR/CommBase.td"

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::braid::nn";
  let summary = "The operations of transformer layers";
  let description = [{
    Operations on statically shaped tensors of f32, bf16 or f16, of at most 2^48 elements. Activations are [batch, sequence, hidden], weights of
    linear layers [out, in] as in PyTorch checkpoints. Before partitioning they describe one logical device, after it
    the computation of one rank; every operation means the same in both.

    A model is a module of functions. An entry (unit attribute `nn.entry`) reads parameters and calls one function per
    distinct layer, passing the layer's weights. Operands and results of an entry carry the name that `--input` and
    `--output` use (`nn.name`).

    An argument with `nn.state` is memory of the model that outlives a run, such as a cache of keys. Runs find it as the
    run before has left it, zeros at first. A module may have several entries, which share states (and parameters) by
    name:
    ```mlir
    func.func @decode(%ids: tensor<1x1xi32> {nn.name = "ids"}, %cache: tensor<1x64x4x16xf32> {nn.name = "keys", nn.state})
        -> (tensor<1x1x100xf32> {nn.name = "logits"}, tensor<1x64x4x16xf32> {nn.name = "keys"}) attributes {nn.entry}
    ```

    Constraints on the discardable attributes:
    - (nn.attributes_c1) `nn.entry` is a unit attribute and stands on a function with a body;
    - (nn.attributes_c2) `nn.name` is a string that is not empty, on arguments and results of an entry;
    - (nn.attributes_c3) every argument and every result of an entry has `nn.name`, and no two arguments (no two results)
      share one;
    - (nn.attributes_c4) `nn.unpadded`, the type of a result without its padding, stands on results of an entry. It is a
      statically shaped tensor type of the unpartitioned result's rank and element type, and no larger in any dimension;
    - (nn.attributes_c5) `nn.default`, what every element of an argument is when the caller leaves it out, and `nn.below`,
      a bound that its elements are below, stand on arguments of an entry with integer elements. They are integers of
      that type, the bound is at least 1, and the default is not negative and below the bound;
    - (nn.attributes_c6) `nn.state`, a unit attribute, stands on arguments of an entry. The entry has a result of the
      argument's name, type and unpartitioned type, which is the state's value after the run;
    - (nn.attributes_c7) a result of an entry has the name of an argument only if that is a state.
  }];
  // Bodies of nn.map hold arith and math operations.
  let dependentDialects = ["::braid::comm::CommDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    /// Reads modules that were written before activations became one operation: `nn.gelu erf`, `nn.gelu tanh` and
    /// `nn.silu` become `nn.activation gelu`, `gelu_tanh` and `silu`.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef opName) const override;

    /// Discardable attribute on entry arguments and results: the name that --input and --output use.
    static constexpr ::llvm::StringLiteral kNameAttrName = "nn.name";
    /// Discardable attribute on entry results: their type without padding.
    static constexpr ::llvm::StringLiteral kUnpaddedAttrName = "nn.unpadded";
    /// Discardable attributes on entry arguments: what every element is when the argument is left out, and what all
    /// elements are below.
    static constexpr ::llvm::StringLiteral kDefaultAttrName = "nn.default";
    static constexpr ::llvm::StringLiteral kBelowAttrName = "nn.below";
    /// Discardable unit attribute on entry arguments: the model keeps the value between runs.
    static constexpr ::llvm::StringLiteral kStateAttrName = "nn.state";
    /// Discardable unit attribute on a function: it is an entry of the model.
    static constexpr ::llvm::StringLiteral kEntryAttrName = "nn.entry";
  }];
}

class NN_Attr<string name, string m, list<Trait> traits = []> : AttrDef<NN_Dialect, name, traits> {
  let mnemonic = m;
}

def NN_Float : AnyTypeOf<[F32, BF16, F16], "f32, bf16 or f16">;
def NN_Tensor : ConfinedType<StaticShapeTensorOf<[NN_Float]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 f32, bf16 or f16 values">;
def NN_Ids : ConfinedType<StaticShapeTensorOf<[I32, I64]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 i32 or i64 values">;
class NN_TensorOfRank<int rank> : ConfinedType<NN_Tensor,
    [CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == " # rank>],
    "statically shaped tensor of rank " # rank # " of at most 2^48 f32, bf16 or f16">;
class NN_IdsOfRank<int rank> : ConfinedType<NN_Ids,
    [CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == " # rank>],
    "statically shaped tensor of rank " # rank # " of at most 2^48 i32 or i64">;

#endif
