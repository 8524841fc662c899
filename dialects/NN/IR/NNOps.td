//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNOPS_TD
#define BRAID_DIALECTS_NN_NNOPS_TD

include "dialects/NN/IR/NNBase.td"
include "dialects/NN/IR/NNAttrs.td"
include "dialects/NN/IR/NNInterfaces.td"
include "dialects/Comm/IR/CommAttrs.td"
include "dialects/Comm/IR/CommInterfaces.td"

class NN_Op<string mnemonic, list<Trait> traits = []> : Op<NN_Dialect, mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

/// Operations of a model: cut, costed and (unless they are library calls) decomposed by interface.
class NN_ComputeOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<Comm_ShardingRuleOpInterface>,
                                   DeclareOpInterfaceMethods<NN_CostOpInterface>], traits)>;

def NN_ParameterOp : NN_Op<"parameter"> {
  let summary = "A weight of the checkpoint";
  let arguments = (ins StrAttr:$name, NN_SliceArrayAttr:$slices, DefaultValuedAttr<NN_InitAttr, "::braid::nn::InitKind::Normal">:$init,
                       OptionalAttr<TypeAttr>:$global_type, OptionalAttr<Comm_ShardingAttr>:$sharding);
  let results = (outs NN_Tensor:$result);
}

def NN_EmbeddingOp : NN_ComputeOp<"embedding"> {
  let summary = "Rows of a table, picked by ids";
  let arguments = (ins NN_Ids:$ids, NN_TensorOfRank<2>:$table, OptionalAttr<StrAttr>:$role);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$ids `,` $table (`role` $role^)? attr-dict `:` type($ids) `,` type($table) `->` type($result)";
}

def NN_LinearOp : NN_ComputeOp<"linear"> {
  let summary = "x . w^T + bias over the last dimension";
  let arguments = (ins NN_Tensor:$input, NN_TensorOfRank<2>:$weight, Optional<NN_TensorOfRank<1>>:$bias,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^ `:` type($bias))? (`role` $role^)? attr-dict
    `:` type($input) `,` type($weight) `->` type($result)
  }];
}

def NN_SplitHeadsOp : NN_ComputeOp<"split_heads"> {
  let summary = "[batch, seq, heads * head_dim] seen as [batch, seq, heads, head_dim]";
  let arguments = (ins NN_TensorOfRank<3>:$input);
  let results = (outs NN_TensorOfRank<4>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}
def NN_MergeHeadsOp : NN_ComputeOp<"merge_heads"> {
  let summary = "[batch, seq, heads, head_dim] seen as [batch, seq, heads * head_dim]";
  let arguments = (ins NN_TensorOfRank<4>:$input);
  let results = (outs NN_TensorOfRank<3>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def NN_AttentionOp : NN_ComputeOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention";
  let arguments = (ins NN_TensorOfRank<4>:$query, NN_TensorOfRank<4>:$key, NN_TensorOfRank<4>:$value,
                       Optional<NN_IdsOfRank<2>>:$mask, Optional<NN_IdsOfRank<1>>:$valid_length,
                       Optional<NN_IdsOfRank<1>>:$position_offset, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs NN_TensorOfRank<4>:$result);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value (`mask` $mask^ `:` type($mask))?
    (`valid_length` $valid_length^ `:` type($valid_length))?
    (`position_offset` $position_offset^ `:` type($position_offset))? `scale` $scale attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result)
  }];
}

def NN_LayerNormOp : NN_ComputeOp<"layer_norm", [DeclareOpInterfaceMethods<NN_DecomposeOpInterface>]> {
  let summary = "Normalizes the last dimension to mean 0 and variance 1, then scales and shifts";
  let arguments = (ins NN_Tensor:$input, NN_TensorOfRank<1>:$weight, NN_TensorOfRank<1>:$bias, F64Attr:$epsilon);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `,` $bias `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight) `,` type($bias)
    `->` type($result)
  }];
}

def NN_GeluOp : NN_ComputeOp<"gelu", [SameOperandsAndResultType, DeclareOpInterfaceMethods<NN_DecomposeOpInterface>]> {
  let summary = "Gaussian error linear unit";
  let arguments = (ins NN_Tensor:$input, DefaultValuedAttr<NN_GeluAttr, "::braid::nn::GeluKind::Erf">:$kind);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$kind $input attr-dict `:` type($input)";
}

def NN_AddOp : NN_ComputeOp<"add", [DeclareOpInterfaceMethods<NN_DecomposeOpInterface>]> {
  let summary = "Elementwise sum; the second operand may lack leading dimensions";
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
}

#endif
