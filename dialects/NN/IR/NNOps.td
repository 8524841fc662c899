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
include "mlir/IR/SymbolInterfaces.td"

class NN_Op<string mnemonic, list<Trait> traits = []> : Op<NN_Dialect, mnemonic, !listconcat([Pure], traits)> {
  let hasVerifier = 1;
}

/// Operations of a model: sharded, costed and decomposed by interface. `local` lists the methods of the sharding rule
/// that an operation defines beyond the rule itself.
class NN_ComputeOp<string mnemonic, list<Trait> traits = [], list<string> local = [], list<string> decomposed = ["isRowOperation"]>
    : NN_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<Comm_ShardingRuleOpInterface, local>,
                                   DeclareOpInterfaceMethods<NN_CostOpInterface>,
                                   DeclareOpInterfaceMethods<NN_DecomposeOpInterface, decomposed>], traits)>;
/// Operations that act on rows, from which kernels are formed.
class NN_RowOp<string mnemonic, list<Trait> traits = []> : NN_ComputeOp<mnemonic, traits, [], []>;

/// Operations without a decomposition: sharded and costed by interface. Unless a library kernel computes one
/// (NN_KernelCallOpInterface), only the interpreter runs it.
class NN_ReferenceOp<string mnemonic, list<string> local = [], list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<Comm_ShardingRuleOpInterface, local>,
                                   DeclareOpInterfaceMethods<NN_CostOpInterface>], traits)>;

def NN_ParameterTensor : ConfinedType<StaticShapeTensorOf<[F32, BF16, F16, I8]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 f32, bf16, f16 or i8 values">;

def NN_ParameterOp : NN_Op<"parameter", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A weight of the model";
  let description = [{
    A parameter is described by slices of checkpoint tensors (#nn.slice): fusing, transposing, padding and sharding
    compose that list, and only the loader executes it. `slices` is not printed when the parameter is one full tensor
    of its own name.

    ```mlir
    %w = nn.parameter "encoder.layer.0.output.dense.weight" : tensor<384x1536xf32>
    %p = nn.parameter "positions" slices ["embeddings.position_embeddings.weight"[512, 384] size [128, 384]]
        : tensor<128x384xf32>
    %s = nn.parameter "LayerNorm.weight" init ones : tensor<384xf32>
    ```

    After partitioning the result is a rank's shard; the parameter's global type and sharding stand beside it:

    ```mlir
    %w = nn.parameter "w" of tensor<384x384xf32> sharded <@mesh, [{tp}, {} ]> : tensor<192x384xf32>
    ```

    With `on`, only the ranks of a place have the parameter:

    ```mlir
    %w = nn.parameter "last.w" on <@mesh, {pp = [1]}> : tensor<384x384xf32>
    ```

    `init` is the distribution of random weights when there is no checkpoint.

    Before partitioning, `stored` says how the parameter is stored, apart from how it is used: propagation does not see it. The
    partitioned parameter is a shard as stored, and is gathered where it is used.

    ```mlir
    %w = nn.parameter "w" stored <@mesh, [{dp}, {} ]> : tensor<384x384xf32>
    // partitioned, where all of it is used:
    %w = nn.parameter "w" of tensor<384x384xf32> sharded <@mesh, [{dp}, {} ]> : tensor<192x384xf32>
    %0 = comm.all_gather(%w) dim 0 over <@mesh, {dp}> role "w" : tensor<192x384xf32> -> tensor<384x384xf32>
    ```

    With `quantized` the loader quantizes the rows of the f32 matrix [out, in] that the slices describe as nn.quantize_rows does.
    One parameter has the `values`, and another one, without the last dimension, the `scales`. A row is quantized as a whole,
    also where a rank has a part of it only, so that a weight is the same on any mesh:

    ```mlir
    %v = nn.parameter "w.int8" slices ["w"[384, 1536]] quantized values : tensor<384x1536xi8>
    %s = nn.parameter "w.scales" slices ["w"[384, 1536]] quantized scales : tensor<384xf32>
    ```

    Constraints:
    - (nn.parameter_c1) the name is not empty;
    - (nn.parameter_c2) the slices have the rank of the parameter and lie inside of it; those of `quantized scales` have one
      dimension more, along which they are quantized;
    - (nn.parameter_c3) no two slices overlap in the parameter;
    - (nn.parameter_c4) `global_type` and `sharding` come together;
    - (nn.parameter_c5) `global_type` is a statically shaped tensor with the result's element type and at most 2^48
      elements;
    - (nn.parameter_c6) `sharding` suits the global type (comm.sharding_c2 to comm.sharding_c5), has no partial axis and no open
      dimension, and gives the result type;
    - (nn.parameter_c7) `stored` stands without `sharding`, which it becomes, suits the type, and has no partial axis and no
      open dimension;
    - (nn.parameter_c8) `sharding` splits over no axis that the place `on` names;
    - (nn.parameter_c9) a parameter of i8 is `quantized values` of two dimensions and the other way around, and `quantized scales`
      are of f32 with one dimension.
  }];
  let arguments = (ins StrAttr:$name, NN_SliceArrayAttr:$slices,
                       DefaultValuedAttr<NN_InitAttr, "::braid::nn::InitKind::Normal">:$init,
                       OptionalAttr<TypeAttr>:$global_type, OptionalAttr<Comm_ShardingAttr>:$sharding,
                       OptionalAttr<Comm_ShardingAttr>:$stored, OptionalAttr<Comm_PlaceAttr>:$place,
                       OptionalAttr<NN_QuantizedAttr>:$quantized);
  let results = (outs NN_ParameterTensor:$result);
  let hasCustomAssemblyFormat = 1;
  let builders = [
    /// One full tensor of the checkpoint with the parameter's name.
    OpBuilder<(ins "::mlir::RankedTensorType":$type, "::llvm::StringRef":$name, "::braid::nn::InitKind":$init)>];
  let extraClassDeclaration = [{
    /// The type of the unpartitioned parameter.
    ::mlir::RankedTensorType getParameterType();
    /// True for one full tensor of the checkpoint with this parameter's name.
    bool isFullTensor();
  }];
}

def NN_EmbeddingOp
    : NN_ComputeOp<"embedding", [NN_KernelCallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>],
                   ["buildLocal"]> {
  let summary = "Rows of a table, selected by ids";
  let description = [{
    `result[i..., h] = table[ids[i...], h]`. An id outside of [0, rows of the table) is an error at run time.

    With `over`, which partitioning sets, the table is this rank's shard of a table split into equal ranges of rows over
    the group: an id in another rank's shard gives zeros, so that the results of the group's ranks sum to the
    unpartitioned result. An id outside of the unpartitioned table is an error on every rank.

    With `rows` only that many rows of the unpartitioned table are valid: the rest is padding, and an id there is
    outside.

    ```mlir
    %e = nn.embedding %ids, %table role "embedding.word"
        : tensor<8x128xi64>, tensor<30522x384xf32> -> tensor<8x128x384xf32>
    %p = nn.embedding %ids, %shard over <@mesh, {tp}> role "embedding.word"
        : tensor<8x128xi64>, tensor<15261x384xf32> -> tensor<8x128x384xf32>
    %q = nn.embedding %ids, %third rows 30521 over <@mesh, {tp}> : tensor<8x128xi64>, tensor<10174x384xf32>
        -> tensor<8x128x384xf32>
    ```

    Constraints:
    - (nn.embedding_c1) the result's shape is the ids' shape followed by the table's second dimension;
    - (nn.embedding_c2) result and table have the same element type;
    - (nn.embedding_c3) the group, if any, names a mesh of the module, and axes of it;
    - (nn.embedding_c4) `rows` is at least 1 and at most the number of rows of the unpartitioned table.
  }];
  let arguments = (ins NN_Ids:$ids, NN_TensorOfRank<2>:$table, OptionalAttr<I64Attr>:$rows,
                       OptionalAttr<Comm_GroupAttr>:$group, OptionalAttr<StrAttr>:$role);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $ids `,` $table (`rows` $rows^)? (`over` $group^)? (`role` $role^)? attr-dict `:` type($ids) `,` type($table) `->` type($result)
  }];
  let builders = [
    /// Of an unpartitioned table.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$ids, "::mlir::Value":$table, "::mlir::StringAttr":$role),
              [{ build($_builder, $_state, result, ids, table, ::mlir::IntegerAttr(), ::braid::comm::GroupAttr(), role); }]>];
  let extraClassDeclaration = [{
    KernelCall getKernelCall() {
      return {"embedding", {getTable(), getIds()}, {static_cast<int64_t>(getRows().value_or(0))}, {}, getGroupAttr()};
    }
  }];
}

def NN_PositionIdsOp : NN_ComputeOp<"position_ids", [NN_KernelCallOpInterface, SameOperandsAndResultType]> {
  let summary = "Positions of a sequence's tokens without padding";
  let description = [{
    `result[b, s]` is `padding` where `ids[b, s]` is, and elsewhere `padding` plus the number of tokens up to and
    including s that are not padding: the rows of a position table whose row `padding` stands for no position, as in
    RoBERTa.

    ```mlir
    %p = nn.position_ids %ids padding 1 : tensor<8x128xi64>
    ```
  }];
  let arguments = (ins NN_IdsOfRank<2>:$ids, I64Attr:$padding);
  let results = (outs NN_IdsOfRank<2>:$result);
  let assemblyFormat = "$ids `padding` $padding attr-dict `:` type($ids)";
  let extraClassDeclaration = [{
    KernelCall getKernelCall() { return {"position_ids", {getIds()}, {static_cast<int64_t>(getPadding())}}; }
  }];
  // SameOperandsAndResultType is the only constraint.
  let hasVerifier = 0;
}

def NN_LinearOp : NN_ComputeOp<"linear", [NN_KernelCallOpInterface]> {
  let summary = "x . w^T over the last dimension";
  let description = [{
    `result[i..., o] = sum over k of input[i..., k] * weight[o, k]`, accumulated in f32 or wider. `role` names the
    projection in the model; collectives that partitioning inserts keep it.

    A bias is an nn.add of its own. The matmul kernel adds a bias that directly follows the matmul (`getBiasAddition`).

    ```mlir
    %y = nn.linear %x, %w role "attention.query" : tensor<8x128x384xf32>, tensor<384x384xf32> -> tensor<8x128x384xf32>
    %z = nn.add %y, %b : tensor<8x128x384xf32>, tensor<384xf32> -> tensor<8x128x384xf32>
    ```

    Constraints:
    - (nn.linear_c1) the input has at least one dimension, and its last one equals the weight's second;
    - (nn.linear_c2) the result's shape is the input's with the last dimension replaced by the weight's rows;
    - (nn.linear_c3) all element types are the same.
  }];
  let arguments = (ins NN_Tensor:$input, NN_TensorOfRank<2>:$weight, OptionalAttr<StrAttr>:$role);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`role` $role^)? attr-dict `:` type($input) `,` type($weight) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The addition of a bias that the matmul kernel performs: the only user of this result, adding a vector that is
    /// defined before it. Null when there is none.
    AddOp getBiasAddition();
    KernelCall getKernelCall() { return {"matmul", {getInput(), getWeight(), nullptr}, {0, 1, 0}}; }
  }];
}

def NN_MatmulOp : NN_ReferenceOp<"matmul", [], [NN_KernelCallOpInterface, AttrSizedOperandSegments]> {
  let summary = "Products of matrices, one for each position of the leading dimensions";
  let description = [{
    `result[i..., m, n] = sum over k of lhs[i..., m, k] * rhs[i..., k, n]`, accumulated in f32 or wider. A right operand
    of two dimensions is one matrix for all of them, and the left operand may then be a single row. `transposed` follows
    an operand whose last two dimensions are the other way around: a left one `[..., k, m]`, a right one `[..., n, k]`.

    With `counts`, the left operand holds groups of rows, as an expert's block of tokens does: `counts[g]` rows of group
    g are valid, and the others become zeros in the result. A count below 0 or above the number of rows is an error at
    run time.

    `plus` adds an accumulator. Forming kernels joins an nn.add that would be a kernel of its own into it. The kernel then
    adds in the accumulator's memory where nothing else uses it.

    ```mlir
    %s = nn.matmul %q, %k transposed : tensor<8x128x64xf32>, tensor<8x128x64xf32> -> tensor<8x128x128xf32>
    %e = nn.matmul %blocks, %w counts %n : tensor<8xi32>
        : tensor<8x40x384xf32>, tensor<8x384x1536xf32> -> tensor<8x40x1536xf32>
    %g = nn.matmul %dy transposed, %x plus %before : tensor<384x1536xf32>
        : tensor<1024x384xf32>, tensor<1024x1536xf32> -> tensor<384x1536xf32>
    ```

    nn.linear is the projection of a model, by a weight `[out, in]`. Both become calls of one kernel.

    Constraints:
    - (nn.matmul_c1) the left operand has at least one dimension, and at least two if it is transposed;
    - (nn.matmul_c2) the right operand has two dimensions, or at least three with all but the last two as the left one's;
    - (nn.matmul_c3) both operands have the same k;
    - (nn.matmul_c4) the result's shape is the leading dimensions, m and n;
    - (nn.matmul_c5) operands and result have one element type;
    - (nn.matmul_c6) counts `[groups]` come with a left operand `[groups, capacity, k]` that is not transposed and a right
      one of three dimensions, without an accumulator;
    - (nn.matmul_c7) the accumulator has the result's type.
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs, Optional<NN_IdsOfRank<1>>:$counts,
                       Optional<NN_Tensor>:$accumulator, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $lhs (`transposed` $transpose_lhs^)? `,` $rhs (`transposed` $transpose_rhs^)? (`counts` $counts^ `:` type($counts))?
    (`plus` $accumulator^ `:` type($accumulator))? (`role` $role^)? attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let extraClassDeclaration = [{ KernelCall getKernelCall(); }];
}

def NN_MapOp : NN_ComputeOp<"map", [IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments], ["buildLocal"], ["isRowValue"]> {
  let summary = "An elementwise function that is written out";
  let description = [{
    The body computes one element of the result from one of each input, in f32, whatever types they are stored in. Inputs
    after the first may lack leading dimensions of it. Those in `rows` have one element for each row instead: they lack its
    last dimension. It is a row operation as nn.add is: kernels are formed of it and its neighbors.

    ```mlir
    %y = nn.map %x, %w : tensor<8x128x384xf32>, tensor<384xf32> -> tensor<8x128x384xf32> {
    ^bb0(%a: f32, %b: f32):
      %0 = math.tanh %a : f32
      %1 = arith.mulf %0, %b : f32
      nn.yield %1 : f32
    }
    %z = nn.map %x rows(%m) : tensor<8x128x384xf32> rows(tensor<8x128xf32>) -> tensor<8x128x384xf32> {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.subf %a, %b : f32
      nn.yield %0 : f32
    }
    ```

    Constraints:
    - (nn.map_c1) there is an input, the result has the first one's shape, and the shapes of the others are at the end of
      it;
    - (nn.map_c2) the inputs in `rows` have the first one's shape without the last dimension;
    - (nn.map_c3) the body has an argument of f32 for each input, those in `rows` last, and ends in an nn.yield;
    - (nn.map_c4) the body holds arith and math operations on scalars, with one result each.
  }];
  let arguments = (ins Variadic<NN_Tensor>:$inputs, Variadic<NN_Tensor>:$rows);
  let results = (outs NN_Tensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs (`rows` `(` $rows^ `)`)? attr-dict `:` type($inputs) (`rows` `(` type($rows)^ `)`)? `->` type($result) $body
  }];
}
def NN_YieldOp : NN_Op<"yield", [Terminator, HasParent<"::braid::nn::MapOp">]> {
  let summary = "Ends the body of nn.map with the result's element";
  let arguments = (ins F32:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 0;
}

def NN_ReduceOp : NN_ReferenceOp<"reduce", ["buildLocal"], [NN_KernelCallOpInterface]> {
  let summary = "The sum, maximum or minimum over some of the dimensions, or a maximum and a sum";
  let description = [{
    `dims` are reduced and the result has the others: the gradient of a bias is `nn.reduce sum` over all dimensions but
    the last. Sums are accumulated in f32 or wider. A NaN gives NaN, also in a maximum or minimum.

    Where a reduced dimension is sharded, each rank's result is partial, by the same kind of reduction.

    A maximum may have a second result: the sum of `exp(x - max)` over the same elements, 0 where the maximum is -infinity.
    The logarithm of the sum of `exp(x)` is `max + log(sum)`, and softmax divides by the sum. Pairs of ranks combine to
    the pair of the whole: the maximum of the maxima, and the sum of the sums after `sum * exp(max - maximum of the maxima)`.
    Partitioning reduces the maximum, rescales by an nn.map, and leaves a partial sum.

    ```mlir
    %db = nn.reduce sum %dy dims [0, 1] : tensor<8x128x384xf32> -> tensor<384xf32>
    %m = nn.reduce max %scores dims [2] : tensor<8x128x40xf32> -> tensor<8x128xf32>
    %m, %s = nn.reduce max %scores dims [2] : tensor<8x128x40xf32> -> tensor<8x128xf32>, tensor<8x128xf32>
    ```

    Constraints:
    - (nn.reduce_c1) `dims` is not empty, ascending, and each is below the rank of the input;
    - (nn.reduce_c2) the result's shape is the input's without `dims`;
    - (nn.reduce_c3) input and result have the same element type;
    - (nn.reduce_c4) only a maximum has a second result, of f32, with the first one's shape.
  }];
  let arguments = (ins NN_Tensor:$input, Comm_ReduceKindAttr:$kind, DenseI64ArrayAttr:$dims);
  let results = (outs NN_Tensor:$result, Optional<NN_Tensor>:$exp_sum);
  let assemblyFormat = [{
    custom<ReduceKind>($kind) $input `dims` $dims attr-dict `:` type($input) `->` type($result) (`,` type($exp_sum)^)?
  }];
  let extraClassDeclaration = [{ KernelCall getKernelCall(); }];
}

def NN_SplitHeadsOp : NN_ComputeOp<"split_heads"> {
  let summary = "[batch, seq, heads * head_dim] seen as [batch, seq, heads, head_dim]";
  let description = [{
    ```mlir
    %q = nn.split_heads %x : tensor<8x128x384xf32> -> tensor<8x128x12x32xf32>
    ```

    Constraints:
    - (nn.split_heads_c1) the result has the input's first two dimensions, and its last two multiply to the input's last;
    - (nn.split_heads_c2) element types are the same.
  }];
  let arguments = (ins NN_TensorOfRank<3>:$input);
  let results = (outs NN_TensorOfRank<4>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}
def NN_MergeHeadsOp : NN_ComputeOp<"merge_heads"> {
  let summary = "[batch, seq, heads, head_dim] seen as [batch, seq, heads * head_dim]";
  let description = [{
    ```mlir
    %y = nn.merge_heads %x : tensor<8x128x12x32xf32> -> tensor<8x128x384xf32>
    ```

    Constraints:
    - (nn.merge_heads_c1) the result has the input's first two dimensions, and its last is the product of the input's last
      two;
    - (nn.merge_heads_c2) element types are the same.
  }];
  let arguments = (ins NN_TensorOfRank<4>:$input);
  let results = (outs NN_TensorOfRank<3>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def NN_AttentionOp : NN_ComputeOp<"attention", [NN_KernelCallOpInterface, AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    Query [batch, q, heads, head_dim], key [batch, k, kv_heads, head_dim], value [batch, k, kv_heads, value_dim], result
    [batch, q, heads, value_dim]. Heads are grouped: query head h reads key and value head `h / (heads / kv_heads)`.
    Query i may attend to key j when all of these that are given hold:
    - `mask[b, j] != 0`;
    - `j < valid_length[b]`;
    - `causal`: `j <= i + position_offset[b]` (offset 0 when there is none).

    The result is the average of the values that a query may attend to, weighted by softmax over j of `scale *
    dot(query, key)`; scores and softmax are in f32 or wider. A query that may attend to no key results in zeros.

    A second result [batch, q, heads] of f32 is the logarithm of the softmax's denominator, `log(sum over j of exp(scale *
    dot(query, key)))`, which the gradient needs, and which joins attention over parts of the keys; -infinity for a query
    that may attend to no key.

    ```mlir
    %r = nn.attention %q, %k, %v mask %m : tensor<8x128xi64> scale 0.125
        : tensor<8x128x12x64xf32>, tensor<8x128x12x64xf32>, tensor<8x128x12x64xf32> -> tensor<8x128x12x64xf32>
    %c = nn.attention causal %q, %k, %v position_offset %p : tensor<8xi32> scale 0.125 : ...
    %o, %l = nn.attention %q, %k, %v scale 0.125 : ... -> tensor<8x128x12x64xf32>, tensor<8x128x12xf32>
    ```

    Constraints:
    - (nn.attention_c1) query, key and value have the same batch;
    - (nn.attention_c2) key and value have the same sequence length and heads;
    - (nn.attention_c3) query and key have the same head_dim;
    - (nn.attention_c4) the query's heads are a multiple of the key's;
    - (nn.attention_c5) the result's shape is [batch, q, heads, value_dim];
    - (nn.attention_c6) all element types are the same (mask, valid_length and position_offset aside);
    - (nn.attention_c7) the mask's shape is [batch, k];
    - (nn.attention_c8) valid_length and position_offset have one element per batch;
    - (nn.attention_c9) position_offset comes with `causal` only;
    - (nn.attention_c10) `scale` is positive and finite;
    - (nn.attention_c11) the second result, if there is one, is of f32 and has the shape [batch, q, heads].
  }];
  let arguments = (ins NN_TensorOfRank<4>:$query, NN_TensorOfRank<4>:$key, NN_TensorOfRank<4>:$value,
                       Optional<NN_IdsOfRank<2>>:$mask, Optional<NN_IdsOfRank<1>>:$valid_length,
                       Optional<NN_IdsOfRank<1>>:$position_offset, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs NN_TensorOfRank<4>:$result, Optional<NN_TensorOfRank<3>>:$log_sum);
  let assemblyFormat = [{
    (`causal` $causal^)? $query `,` $key `,` $value (`mask` $mask^ `:` type($mask))?
    (`valid_length` $valid_length^ `:` type($valid_length))?
    (`position_offset` $position_offset^ `:` type($position_offset))? `scale` $scale attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result) (`,` type($log_sum)^)?
  }];
  let extraClassDeclaration = [{
    KernelCall getKernelCall() {
      return {"attention",
              {getQuery(), getKey(), getValue(), getMask(), getValidLength(), getPositionOffset()},
              {getCausal()},
              {getScale().convertToDouble()}};
    }
  }];
}

def NN_TopKOp : NN_ReferenceOp<"top_k", [], [NN_KernelCallOpInterface]> {
  let summary = "The largest elements of the last dimension, and their positions";
  let description = [{
    `values[i..., :]` are the k largest of `input[i..., :]`, largest first, and `indices[i..., :]` their positions; k is
    the last dimension of the results. Among equal elements the lower index comes first, and the zeros are equal. A NaN is
    larger than every number, and NaNs are equal.

    ```mlir
    %v, %i = nn.top_k %logits : tensor<8x50257xf32> -> tensor<8x40xf32>, tensor<8x40xi64>
    ```

    Constraints:
    - (nn.top_k_c1) values and indices have the input's shape but for the last dimension, which is at least 1 and at most
      the input's;
    - (nn.top_k_c2) values have the input's element type;
    - (nn.top_k_c3) with indices of i32 the input's last dimension is less than 2^31.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$values, NN_Ids:$indices);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($values) `,` type($indices)";
  let extraClassDeclaration = [{
    KernelCall getKernelCall() { return {"top_k", {getInput()}}; }
  }];
}

def NN_LastTokenOp : NN_ReferenceOp<"last_token", [], [NN_KernelCallOpInterface]> {
  let summary = "The row of each sequence's last valid token";
  let description = [{
    `result[b, 0, h] = input[b, s, h]`, where s is the last position with `mask[b, s] != 0`. Padding may precede the tokens
    or follow them. A sequence without a valid token results in zeros.

    ```mlir
    %y = nn.last_token %x mask %m : tensor<8x128x384xf32>, tensor<8x128xi64> -> tensor<8x1x384xf32>
    ```

    Constraints:
    - (nn.last_token_c1) the mask's shape is [batch, seq], the input's first two dimensions;
    - (nn.last_token_c2) the result's shape is the input's with a sequence of 1;
    - (nn.last_token_c3) input and result have the same element type.
  }];
  let arguments = (ins NN_TensorOfRank<3>:$input, NN_IdsOfRank<2>:$mask);
  let results = (outs NN_TensorOfRank<3>:$result);
  let assemblyFormat = "$input `mask` $mask attr-dict `:` type($input) `,` type($mask) `->` type($result)";
  let extraClassDeclaration = [{
    KernelCall getKernelCall() { return {"last_token", {getInput(), getMask()}}; }
  }];
}

def NN_LayerNormOp : NN_RowOp<"layer_norm"> {
  let summary = "Normalizes the last dimension to mean 0 and variance 1, then scales and shifts";
  let description = [{
    `result = (input - mean) / sqrt(variance + epsilon) * weight + bias`, mean and (biased) variance over the last dimension,
    in f32 or wider, the variance taken about the mean.

    ```mlir
    %y = nn.layer_norm %x, %w, %b epsilon 1.0e-12
        : tensor<8x128x384xf32>, tensor<384xf32>, tensor<384xf32> -> tensor<8x128x384xf32>
    ```

    Constraints:
    - (nn.layer_norm_c1) weight and bias have as many elements as the input's last dimension; the input has at least one dimension;
    - (nn.layer_norm_c2) the result has the input's type;
    - (nn.layer_norm_c3) all element types are the same;
    - (nn.layer_norm_c4) `epsilon` is positive and finite.
  }];
  let arguments = (ins NN_Tensor:$input, NN_TensorOfRank<1>:$weight, NN_TensorOfRank<1>:$bias, F64Attr:$epsilon);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `,` $bias `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight) `,` type($bias)
    `->` type($result)
  }];
}

def NN_RmsNormOp : NN_RowOp<"rms_norm"> {
  let summary = "Scales the last dimension to a mean square of 1, then by a weight";
  let description = [{
    `result = input / sqrt(mean(input^2) + epsilon) * weight`, the mean over the last dimension, in f32 or wider.

    ```mlir
    %y = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<8x128x576xf32>, tensor<576xf32> -> tensor<8x128x576xf32>
    ```

    Constraints:
    - (nn.rms_norm_c1) the weight has as many elements as the input's last dimension; the input has at least one dimension;
    - (nn.rms_norm_c2) the result has the input's type;
    - (nn.rms_norm_c3) all element types are the same;
    - (nn.rms_norm_c4) `epsilon` is positive and finite.
  }];
  let arguments = (ins NN_Tensor:$input, NN_TensorOfRank<1>:$weight, F64Attr:$epsilon);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight) `->` type($result)
  }];
}

def NN_SoftmaxOp : NN_RowOp<"softmax", [SameOperandsAndResultType]> {
  let summary = "Exponentials of the last dimension, divided by their sum";
  let description = [{
    `result[i..., j] = exp(input[i..., j] - m) / sum over k of exp(input[i..., k] - m)` with `m` the row's maximum, which
    keeps the exponentials from overflowing; in f32 or wider. A row of only -inf gives NaN.

    ```mlir
    %y = nn.softmax %x : tensor<8x128x64xf32>
    ```

    Constraints:
    - (nn.softmax_c1) the input has at least one dimension.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def NN_ActivationOp : NN_ComputeOp<"activation", [SameOperandsAndResultType], [], ["getKernelName"]> {
  let summary = "An activation function of every element";
  let description = [{
    `kind` is the function. The enum ActivationKind lists the formulas.

    ```mlir
    %y = nn.activation gelu %x : tensor<8x128x1536xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_ActivationAttr:$kind);
  let results = (outs NN_Tensor:$result);
  // The enum prints a space of its own.
  let assemblyFormat = "`` $kind $input attr-dict `:` type($input)";
  // SameOperandsAndResultType is the only constraint.
  let hasVerifier = 0;
}

def NN_AddOp : NN_ComputeOp<"add"> {
  let summary = "Elementwise sum; the second operand may lack leading dimensions";
  let description = [{
    `result[i..., j...] = lhs[i..., j...] + rhs[j...]`.

    ```mlir
    %y = nn.add %x, %residual : tensor<8x128x384xf32>, tensor<8x128x384xf32> -> tensor<8x128x384xf32>
    %z = nn.add %x, %positions : tensor<8x128x384xf32>, tensor<128x384xf32> -> tensor<8x128x384xf32>
    %u = nn.add %y, %bias : tensor<8x128x384xf32>, tensor<384xf32> -> tensor<8x128x384xf32>
    ```

    Constraints:
    - (nn.add_c1) the second operand's shape is the end of the first one's;
    - (nn.add_c2) the result has the first operand's type;
    - (nn.add_c3) element types are the same.
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
}

def NN_MulOp : NN_RowOp<"mul"> {
  let summary = "Elementwise product; the second operand may lack leading dimensions";
  let description = [{
    `result[i..., j...] = lhs[i..., j...] * rhs[j...]`.

    ```mlir
    %y = nn.mul %gate, %up : tensor<8x128x1536xf32>, tensor<8x128x1536xf32> -> tensor<8x128x1536xf32>
    ```

    Constraints:
    - (nn.mul_c1) the second operand's shape is the end of the first one's;
    - (nn.mul_c2) the result has the first operand's type;
    - (nn.mul_c3) element types are the same.
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
}

include "dialects/NN/IR/NNRotaryOps.td"
include "dialects/NN/IR/NNExpertOps.td"
include "dialects/NN/IR/NNTrainingOps.td"
include "dialects/NN/IR/NNPartOps.td"
include "dialects/NN/IR/NNCodecOps.td"
include "dialects/NN/IR/NNQuantizedOps.td"

#endif
