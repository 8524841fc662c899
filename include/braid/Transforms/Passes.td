//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_TRANSFORMS_PASSES_TD
#define BRAID_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTensorParts : Pass<"braid-convert-tensor-parts", "::mlir::ModuleOp"> {
  let summary = "Write parts of tensors as nn.slice and nn.concat";
  let description = [{
    A module may bring `tensor.extract_slice`, `tensor.insert_slice` and `tensor.concat` of static offsets and sizes with
    strides of 1; below there is one form for parts of values. Each dimension that a part does not have all of is an
    `nn.slice`; dimensions of size 1 that it drops or adds are a `tensor.collapse_shape` or `tensor.expand_shape`. A
    value with an inserted part is the concatenation of what is around the part.

    Before:
    ```mlir
    %0 = tensor.extract_slice %x[0, 4] [2, 8] [1, 1] : tensor<2x17xf32> to tensor<2x8xf32>
    %1 = tensor.insert_slice %0 into %y[0, 1] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<2x10xf32>
    ```
    After:
    ```mlir
    %0 = nn.slice %x dim 1 from 4 size 8 : tensor<2x17xf32> -> tensor<2x8xf32>
    %a = nn.slice %y dim 1 from 0 size 1 : tensor<2x10xf32> -> tensor<2x1xf32>
    %b = nn.slice %y dim 1 from 9 size 1 : tensor<2x10xf32> -> tensor<2x1xf32>
    %1 = nn.concat %a, %0, %b dim 1 : tensor<2x1xf32>, tensor<2x8xf32>, tensor<2x1xf32> -> tensor<2x10xf32>
    ```

    Any other form of these operations is an error.
  }];
  let statistics = [Statistic<"numConverted", "num-converted", "Operations of the tensor dialect converted">];
  let dependentDialects = ["::braid::nn::NNDialect", "::mlir::tensor::TensorDialect"];
}

def PadForStrategy : Pass<"braid-pad-for-strategy", "::mlir::ModuleOp"> {
  let summary = "Pad heads, feed-forward dimensions, vocabularies, sequences and batches that an axis does not divide";
  let description = [{
    Between the column-parallel and the row-parallel matmuls of `tp`, a dimension may have any size: rows and columns of
    zeros in the weights are neutral. To make the axis divide it,

    - a feed-forward dimension gets zeros at its end;
    - attention gets groups of query heads, with a key and value head each, of zeros. Where that needs fewer heads in
      total, a group of the model becomes several with the same key and value head, which share its query heads.

    Only types and the slices of parameters, which the loader executes, change; results are the same.

    Before, with `mesh=tp=4 strategy=tp`:
    ```mlir
    %up = nn.parameter "up" : tensor<6x16xf32>
    %down = nn.parameter "down" : tensor<16x6xf32>
    %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<6x16xf32> -> tensor<2x8x6xf32>
    %1 = nn.activation gelu %0 : tensor<2x8x6xf32>
    %2 = nn.linear %1, %down role "mlp.down" : tensor<2x8x6xf32>, tensor<16x6xf32> -> tensor<2x8x16xf32>
    ```
    After:
    ```mlir
    %up = nn.parameter "up" slices ["up"[6, 16]] : tensor<8x16xf32>
    %down = nn.parameter "down" slices ["down"[16, 6]] : tensor<16x8xf32>
    %0 = nn.linear %x, %up role "mlp.up" : tensor<2x8x16xf32>, tensor<8x16xf32> -> tensor<2x8x8xf32>
    %1 = nn.activation gelu %0 : tensor<2x8x8xf32>
    %2 = nn.linear %1, %down role "mlp.down" : tensor<2x8x8xf32>, tensor<16x8xf32> -> tensor<2x8x16xf32>
    ```
    `vocab` pads the embedding table (`embedding.word`) and the head (`lm_head`) by rows of zeros at the end, and logits
    with them. The embedding keeps the number of valid `rows`. The entry's result keeps its own type as `nn.unpadded`,
    and the runtime removes the padding. Between head and result, logits may only pass through elementwise operations;
    an operation on rows, such as softmax, prevents padding:

    ```mlir
    %words = nn.parameter "words" slices ["words"[61, 16]] : tensor<64x16xf32>
    %0 = nn.embedding %ids, %words rows 61 role "embedding.word" : tensor<2x8xi64>, tensor<64x16xf32> -> tensor<2x8x16xf32>
    %1 = nn.linear %0, %words role "lm_head" : tensor<2x8x16xf32>, tensor<64x16xf32> -> tensor<2x8x64xf32>
    ```

    `tp-sp` pads sequences and `dp` batches. Padding passes through an operation along a parallel factor of its sharding
    rule, whose positions do not depend on each other, and across calls. An operation for which other positions matter
    (attention over the sequence, position ids, the last token, ...) gets the value cut to its own size, and its result is
    padded again by copies of the last position. Nothing reads what is computed for them: results of the entry keep their
    own type as `nn.unpadded`. Operands of the entry keep their size and are padded inside. Parameters get rows of zeros.

    Before, with `mesh=tp=2 strategy=tp-sp`:
    ```mlir
    %0 = nn.attention %q, %k, %v scale 0.5 : ... -> tensor<2x17x4x8xf32>
    %1 = nn.merge_heads %0 : tensor<2x17x4x8xf32> -> tensor<2x17x32xf32>
    %2 = nn.linear %1, %w role "attention.output" : tensor<2x17x32xf32>, tensor<32x32xf32> -> tensor<2x17x32xf32>
    ```
    After:
    ```mlir
    %0 = nn.attention %q, %k, %v scale 0.5 : ... -> tensor<2x17x4x8xf32>
    %l = nn.slice %0 dim 1 from 16 size 1 : tensor<2x17x4x8xf32> -> tensor<2x1x4x8xf32>
    %p = nn.concat %0, %l dim 1 : tensor<2x17x4x8xf32>, tensor<2x1x4x8xf32> -> tensor<2x18x4x8xf32>
    %1 = nn.merge_heads %p : tensor<2x18x4x8xf32> -> tensor<2x18x32xf32>
    %2 = nn.linear %1, %w role "attention.output" : tensor<2x18x32xf32>, tensor<32x32xf32> -> tensor<2x18x32xf32>
    ```
    A remark (category `padding`) gives the additional rows and bytes, or the growth of weights. Weights that are no
    parameters, and operations without a sharding rule on the way, are errors. With `auto`, a vocabulary is padded if the
    model has a head and nothing prevents it; otherwise a remark gives the reason.
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", /*default=*/"\"\"", "As of braid-apply-strategy">,
    Option<"strategy", "strategy", "std::string", /*default=*/"\"auto\"", "As of braid-apply-strategy">,
  ];
  let statistics = [Statistic<"numPadded", "num-padded", "Pairs of matmuls padded">,
                    Statistic<"numVocabularies", "num-vocabularies", "Embedding tables and heads padded">,
                    Statistic<"numRows", "num-rows", "Results padded along the sequence or the batch">];
}

def ApplyStrategy : Pass<"braid-apply-strategy", "::mlir::ModuleOp"> {
  let summary = "Make the mesh and seed the shardings of a parallelization strategy";
  let description = [{
    Inserts `comm.mesh @mesh` (or uses the module's own) and states the initial shardings of a strategy, which
    propagation completes. Values with a sharding keep it.

    - `tp` (tensor parallelism): weights of `nn.linear` are split over `tp`, column-parallel then row-parallel:
      dimension 0 (out) for the roles `attention.query`, `attention.key`, `attention.value`, `mlp.gate` and `mlp.up`,
      dimension 1 (in) for `attention.output` and `mlp.down`. An operation without a known role is row-parallel, and its
      producers column-parallel, when it depends on them elementwise or headwise.
    - `tp-sp` (with sequence parallelism): as `tp`, and the result of every row-parallel matmul is split over `tp` along
      the sequence, its last dimension but one. Operations up to the next matmul then run on shards: in a pre-norm layer
      two gathers and two scatters replace two reductions.
    - `dp` (data parallelism): dimension 0 of every tensor operand of the entry is split over `dp`.
    - `fsdp` (fully sharded data parallelism, ZeRO-3): seeds nothing; `braid-store-parameters` cuts the storage of weights.
    - `vocab` (vocabulary parallelism): the table of an `nn.embedding` of role `embedding.word` is split over `tp` by
      rows, the weight of an `nn.linear` of role `lm_head` by outputs. The embedding is then partial, and logits are
      sharded.
    - `auto`: `tp` and `dp`, each if the mesh has its axis; and `vocab` if the model has a head over a vocabulary that `tp`
      divides, after padding where that is possible. Otherwise a list: `tp-sp,vocab,dp`.
    - `none`: nothing, for modules that state their own shardings. Axes of the mesh may then have any names.

    Before, with `mesh=tp=2 strategy=tp`:
    ```mlir
    func.func @layer(%x: tensor<2x8x16xf32>, %w: tensor<64x16xf32>) -> tensor<2x8x64xf32> {
      %0 = nn.linear %x, %w role "mlp.up" : tensor<2x8x16xf32>, tensor<64x16xf32> -> tensor<2x8x64xf32>
      return %0 : tensor<2x8x64xf32>
    }
    ```
    After:
    ```mlir
    comm.mesh @mesh <tp = 2>
    func.func @layer(%x: tensor<2x8x16xf32>,
                     %w: tensor<64x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {} ]>}) -> tensor<2x8x64xf32> {
      %0 = nn.linear %x, %w role "mlp.up" : tensor<2x8x16xf32>, tensor<64x16xf32> -> tensor<2x8x64xf32>
      return %0 : tensor<2x8x64xf32>
    }
    ```
    An axis of size 1 seeds nothing. A sequence that does not divide (braid-pad-for-strategy pads it) stays replicated,
    with a remark. A weight that does not divide is an error, and so is an operand without a padded form, a strategy
    whose axis the mesh lacks, or `tp` on a module without a suitable `nn.linear`. `auto` accepts a module without any
    `nn.linear`, with a remark.
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", /*default=*/"\"\"",
           "Axes and sizes, major first, as 'dp=2,tp=4' (axes: dp, tp; with strategy none any); empty: the module's own mesh, or one rank">,
    Option<"strategy", "strategy", "std::string", /*default=*/"\"auto\"", "'auto', 'none', or a list of 'tp' or 'tp-sp', 'vocab' and 'dp'">,
  ];
  let statistics = [Statistic<"numSeeds", "num-seeds", "Number of values given a sharding">];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def DelayBiases : Pass<"braid-delay-biases", "::mlir::ModuleOp"> {
  let summary = "Add the biases of matmuls after the sum of the matmuls";
  let description = [{
    A row-parallel matmul gives a partial value, and a bias can be added only after its reduction. Where such matmuls
    are added, as in a layer with parallel attention and feed-forward, the sum is partial too and reduced once, unless a
    bias is in between. The biases of the terms are therefore added to the sum instead.

    Before:
    ```mlir
    %0 = nn.add %attention, %b : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
    %1 = nn.add %0, %mlp : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
    ```
    After:
    ```mlir
    %0 = nn.add %attention, %mlp : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
    %1 = nn.add %0, %b : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
    ```
    Sums of other values stay: a residual is no matmul. So do additions with stated shardings.
  }];
}

def PropagateShardings : Pass<"braid-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "Propagate shardings through the whole call tree, by factors";
  let description = [{
    Every operation is an equation over factors (its sharding rule): a factor sharded in one operand is sharded in all.
    The equations of all functions, with calls and returns as equalities between values, are solved to a fixpoint,
    forwards and backwards: first elementwise operations, then contractions, both without conflicts; then conflicts are
    resolved. An axis larger than a factor is split: a sub-axis fits the factor, the rest goes to the next factor of the
    dimension. An axis that does not divide a factor is gathered, with a remark.

    An operation whose reduction factor is sharded has a *partial* result: partial sums (maxima, minima) over these
    axes. A partial value flows on through an operation that is linear in it and its one user; elsewhere partitioning
    reduces it. A sum of partial values is partial too, also where its users want it sharded over these axes: one
    reduce-scatter then serves all terms.

    All structured linalg operations have a rule from their indexing maps: a sum that starts at zero is a reduction, and
    so are maxima and minima (with an unspecified result for NaN); other reductions and loops whose index the body reads
    stay replicated. The factors of tensor.expand_shape and collapse_shape are the dimensions of the expanded side.
    Captured values are replicated. Operands and results of operations without a rule are replicated. The result:
    `comm.sharding` on all tensor arguments and results of functions and `comm.shardings` (one per result) on
    operations.

    Before:
    ```mlir
    func.func @f(%x: tensor<8x16xf32>, %w: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp} ]>}) -> tensor<8x4xf32> {
      %0 = nn.linear %x, %w : tensor<8x16xf32>, tensor<4x16xf32> -> tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp} ]>},
                 %w: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp} ]>})
        -> (tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {} ]>}) {
      %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{}, {} ], partial = [tp = sum]>]} : ...
      return %0 : tensor<8x4xf32>
    }
    ```
    A sharding in the IR is kept; only its open dimensions (`{tp, ?}`, `{?}`) gain axes, and none is open afterwards.
    The sharding of a result determines how the operation is sharded; that of a reduction's result holds after the
    reduction; that of a call's result, and of further results of an operation that are stated differently, holds for
    their users.

    Where shardings conflict in one operation, stated ones take precedence over derived ones. Otherwise the form of the
    operation is chosen with which a rank sends the fewest bytes to reshard operands and results. A remark (category
    `sharding`) names the rejected and the chosen sharding with the bytes of both; partitioning then reshards. If users
    want a value in another form than its operation gives, it is resharded before the operation where that sends no more
    bytes. A free value, a constant or `tensor.empty`, gets the axes that all its users share.

    A module in which every value has a closed sharding is not changed, so the pass is idempotent.

    An external function with sharded or partial values is an error.
  }];
  let statistics = [
    Statistic<"numVisits", "num-visits", "Equations visited until nothing changed">,
    Statistic<"numConflicts", "num-conflicts", "Factors that met two shardings">,
  ];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def StoreParameters : Pass<"braid-store-parameters", "::mlir::ModuleOp"> {
  let summary = "Cut the storage of weights over the ranks that share a batch";
  let description = [{
    With a strategy that lists `fsdp`, every `nn.parameter` of two or more dimensions without `stored` gets one: the sharding in
    which it is used, with the axis `dp` added to the first dimension that divides. Its use does not change: partitioning
    gathers the parameter over `dp` before it is used. A parameter of one dimension (a bias, the weight of a norm) stays whole,
    since a gather of it would cost a meeting of ranks and save almost no memory.

    Before, with `strategy=tp,dp,fsdp`:
    ```mlir
    %w = nn.parameter "w" {comm.shardings = [#comm.sharding<@mesh, [{tp}, {} ]>]} : tensor<64x16xf32>
    ```
    After:
    ```mlir
    %w = nn.parameter "w" {comm.shardings = [#comm.sharding<@mesh, [{tp}, {} ]>]} stored <@mesh, [{tp, dp}, {} ]> : tensor<64x16xf32>
    ```
    A parameter of which no dimension divides is stored as it is used, with a remark (category `sharding`). The pass runs
    after propagation, which does not see how parameters are stored.
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", /*default=*/"\"auto\"", "As of braid-apply-strategy; auto stores nothing apart">,
  ];
  let statistics = [Statistic<"numStored", "num-stored", "Parameters stored apart from their use">];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def Partition : Pass<"braid-partition", "::mlir::ModuleOp"> {
  let summary = "Rewrite every function to one rank's program, with collectives where shardings differ";
  let description = [{
    Turns the shardings of `braid-propagate-shardings` into the SPMD program: per-rank types everywhere, including
    function signatures, and collectives of the comm dialect where a user wants a value in another form than its
    definition gives:

    | has               | wanted        | becomes |
    |-------------------|---------------|---------|
    | partial           | replicated    | `comm.all_reduce` |
    | partial           | sharded       | `comm.reduce_scatter` |
    | sharded           | replicated    | `comm.all_gather` |
    | replicated        | sharded       | `comm.part` |
    | sharded           | sharded over the same axes along another dimension | `comm.all_to_all` |
    | sharded           | sharded over the same axes in another order | `comm.permute` |

    or the sequence of these with which a rank sends the fewest bytes, on ties the shortest. It begins at any existing
    form of the value. One reduction serves all users, in the form from which the others are reached with the fewest
    bytes. Each form of a value is built once, right after its definition, for all its users. Collectives carry the role
    of the operation that produced the value. A parameter with `stored` becomes a shard as stored; the forms in which users
    want it are built right before the first of them, where the whole parameter begins to need memory, and carry its name as
    their role. A call's argument is one use: the callee gets the form in which it uses the parameter. Results of the entry stay sharded but are never partial. Entry arguments
    and results keep their `comm.sharding` and get `comm.global_type`; every `nn.parameter` gets both as its own
    attributes.

    Before:
    ```mlir
    %0 = nn.linear %x, %w role "mlp.down" {comm.shardings = [#comm.sharding<@mesh, [{}, {} ], partial = [tp = sum]>]}
         : tensor<8x16xf32>, tensor<4x16xf32> -> tensor<8x4xf32>
    ```
    After:
    ```mlir
    %0 = nn.linear %x, %w role "mlp.down" : tensor<8x8xf32>, tensor<4x8xf32> -> tensor<8x4xf32>
    %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> role "mlp.down" : tensor<8x4xf32>
    ```
    For each collective a remark (category `sharding`) names its value and the bytes that a rank sends. An operation
    without a sharding rule runs replicated on every rank: its operands are gathered. A call within an operation's
    region and a function of several blocks are errors.
  }];
  let statistics = [
    Statistic<"numAllReduce", "num-all-reduce", "comm.all_reduce inserted">,
    Statistic<"numReduceScatter", "num-reduce-scatter", "comm.reduce_scatter inserted">,
    Statistic<"numAllGather", "num-all-gather", "comm.all_gather inserted">,
    Statistic<"numAllToAll", "num-all-to-all", "comm.all_to_all inserted">,
    Statistic<"numPermute", "num-permute", "comm.permute inserted">,
    Statistic<"numPart", "num-part", "comm.part inserted">,
  ];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def IdentifyCollectives : Pass<"braid-identify-collectives", "::mlir::ModuleOp"> {
  let summary = "Give every collective of a function a name of its own, and every call";
  let description = [{
    A collective is named by the calls that lead to it and by its role: `@main/@layer#3/mlp.down`. Explain, reports and traces
    use this name. The pass makes roles unique in their function: one that occurs again gets a number (`mlp.down#1`), and a
    collective without a role takes the name in its location, or that of its operation. Calls of one callee in a function
    are numbered from 0 by the attribute `comm.call`, unless there is only one. Names that are unique do not change, so
    the pass is idempotent; the pipeline runs it after partitioning and after `passes`.

    Passes that rewrite collectives keep their names or say what came of them (`braid/Transforms/Identity.h`):

    | name | collective |
    |------|------------|
    | `mlp.down#1` | the second of this role in its function |
    | `mlp.down/reduce_scatter` | a part of what it was split into |
    | `mlp.down+mlp.up` | one value of each, merged into one collective |
    | `mlp.down&mlp.up` | takes the place of both, for one value |

    Before:
    ```mlir
    %0 = call @layer(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = call @layer(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = comm.all_gather(%1) dim 0 over <@mesh, {tp}> role "out" : tensor<8x4xf32> -> tensor<16x4xf32>
    %3 = comm.all_gather(%0) dim 0 over <@mesh, {tp}> role "out" : tensor<8x4xf32> -> tensor<16x4xf32>
    ```
    After:
    ```mlir
    %0 = call @layer(%x) {comm.call = "layer#0"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = call @layer(%0) {comm.call = "layer#1"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = comm.all_gather(%1) dim 0 over <@mesh, {tp}> role "out" : tensor<8x4xf32> -> tensor<16x4xf32>
    %3 = comm.all_gather(%0) dim 0 over <@mesh, {tp}> role "out#1" : tensor<8x4xf32> -> tensor<16x4xf32>
    ```
  }];
}

def Specialize : Pass<"braid-specialize", "::mlir::ModuleOp"> {
  let summary = "Give calls callees of their own";
  let description = [{
    Equal layers are calls of one function. Where a pass has to treat one of them differently, this one gives it a clone of
    the function first. `calls` lists paths of calls, each from a function of the module, as `braid-identify-collectives`
    names them; `*`, `?` and `[...]` match as in file names. All calls of a path become specialized. A callee with one call stays.
    The call keeps its name, so that the names of the collectives in the clone do not change either.

    Before, with `calls=@main/@layer#1`:
    ```mlir
    %0 = call @layer(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = call @layer(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
    After:
    ```mlir
    %0 = call @layer(%x) {comm.call = "layer#0"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = call @layer_1(%0) {comm.call = "layer#1"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
    A path that names no call is an error.
  }];
  let options = [ListOption<"calls", "calls", "std::string", "Paths of calls, such as @main/@layer#3">];
  let statistics = [Statistic<"numCloned", "num-cloned", "Functions cloned">];
}

def VerifyLevel : Pass<"braid-verify-level", "::mlir::ModuleOp"> {
  let summary = "Check that a module is at a level, and name the first operation that is not";
  let description = [{
    | level       | beside builtin and func |
    |-------------|-------------------------|
    | `nn`        | nn, `comm.mesh`, plain computation; no per-rank argument types |
    | `comm`      | nn, comm without start, wait and yield, plain computation; no `comm.shardings`, and a sharded argument or result has its `comm.global_type` and is not partial |
    | `kernels`   | nn without row operations (they are in kernels), comm as before, `rt.kernel` and `rt.launch` |
    | `scheduled` | nn, comm with every collective inside a start, `rt.kernel` and `rt.launch`, plain computation |
    | `rt`        | builtin, rt and `comm.mesh` only |

    Plain computation is the part of arith, math, linalg and tensor that the reference interpreter supports (`cast`,
    `collapse_shape`, `dim`, `empty`, `expand_shape`, `extract`; `extract_slice`, `insert_slice` and `concat` where they
    can be nn.slice and nn.concat, as braid-convert-tensor-parts makes them). No level has control flow. At `scheduled`,
    a handle that crosses calls is taken exactly once, and its wait keeps the operands of its start.

    The pipeline comes to `scheduled` with row operations in kernels; a program of that level that is written by hand may
    have them outside, as at `comm`.

    Except at `kernels` and `rt`, operations of other dialects with a sharding rule (`comm::ShardingRuleOpInterface`) are
    allowed beside those of nn; at `kernels` they are in kernels too.

    The module does not change. With `level=nn`, a `comm.start` is rejected as `'comm.start' op is not allowed at level
    nn`.
  }];
  let options = [
    Option<"level", "level", "::braid::Level", /*default=*/"::braid::Level::NN", "The level that is expected",
           [{::llvm::cl::values(
             clEnumValN(::braid::Level::NN, "nn", "whole model on one logical device"),
             clEnumValN(::braid::Level::Comm, "comm", "per-rank shapes, collectives by value"),
             clEnumValN(::braid::Level::Kernels, "kernels", "kernels and their launches, on tensors"),
             clEnumValN(::braid::Level::Scheduled, "scheduled", "collectives as start and wait"),
             clEnumValN(::braid::Level::RT, "rt", "the executor's commands"))}]>,
    ListOption<"skip", "skip", "std::string",
               "Rules of handles that are not checked, for tests that show that each is needed: taken or kept">,
  ];
}
def CheckPlacements : Pass<"braid-check-placements", "::mlir::ModuleOp"> {
  let summary = "Refuse a per-rank program that contradicts what its ranks hold";
  let description = [{
    First checks that the ranks that run an operation have its operands, and that collectives are run by all ranks of
    their groups: a call with `comm.on` runs on some ranks, and its results are there only. A state stays on its ranks.

    Follows for every value of a per-rank program up to level `scheduled`, along every axis of the mesh and its sub-axes,
    whether the ranks hold *the same* value, *parts* of one along a dimension, or *partial sums* (maxima, minima).
    Arguments, parameters and results of the entry are as their shardings declare; without one they are the same on all
    ranks. The first operation that contradicts what its operands hold is an error, and notes tell where that came from:

    - a sum of what is the same on all ranks (a second sum), or of parts, unless each is one index of the dimension;
    - a gather, all_to_all or slice of what is not in parts along the dimension, or not by its minor axes;
    - partial sums in an operation that is not linear in them, in a product of two, or with a bias or any other value that
      each rank adds; partial maxima in an operation that computes;
    - operands of which only one is in parts along a common dimension, among them one that is contracted;
    - parts along a dimension that an operation needs whole, such as that of a normalization;
    - a result that is not as it is declared.

    Nothing is known of what a rank receives, of rows that counts select, of parameters and arguments cut along an axis of
    stages (over which the program sends to some ranks only), and of what is computed from such values: they are accepted
    everywhere but as a result that all ranks shall have alike. A collective makes such a value known again.

    The module does not change. In this program the bias is added before the reduction:

    ```mlir
    %0 = nn.linear %x, %w : tensor<8x16xf32>, tensor<4x16xf32> -> tensor<8x4xf32>
    %1 = nn.add %0, %b : tensor<8x4xf32>, tensor<4xf32> -> tensor<8x4xf32>
    %2 = comm.all_reduce sum(%1) over <@mesh, {tp}> : tensor<8x4xf32>
    ```

    ```
    error: 'nn.add' op expects partial sums over axis 'tp' in operand 1 too, got the same value on all of its ranks
    note: it is added on each of 2 ranks, so that the sum has it 2 times
    note: these are partial sums over axis 'tp', made here
    ```
  }];
  let options = [
    ListOption<"skip", "skip", "std::string",
               "Rules that are not checked, for tests that show that each is needed: called, present, returned, "
               "complete, stays, sum-once, sum-parts, reduce-kind, gather-once, gather-dim, gather-sums, gather-axes, take- "
               "part, one-rank, alike, table-rows, one-factor, whole, sum-or-parts, relative, one-kind, extrema, added- "
               "once, product, linear, shift, ring, declared or declared-axes">,
  ];
}

def DecomposeNN : Pass<"braid-decompose-nn"> {
  let summary = "Decompose nn operations to linalg on tensors";
  let description = [{
    Replaces every operation by its decomposition (`nn::DecomposeOpInterface`), if any. Kernels are formed from
    decomposed row operations; for the others, which targets implement themselves, the decomposition is a definition
    that upstream passes understand. Parameters stay.

    Before:
    ```mlir
    %0 = nn.add %a, %b : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
    ```
    After:
    ```mlir
    %e = tensor.empty() : tensor<2x4xf32>
    %0 = linalg.generic {indexing_maps = [#rc, #c, #rc], iterator_types = ["parallel", "parallel"]}
         ins(%a, %b : tensor<2x4xf32>, tensor<4xf32>) outs(%e : tensor<2x4xf32>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %s = arith.addf %x, %y fastmath<reassoc,contract> : f32
        linalg.yield %s : f32
    } -> tensor<2x4xf32>
    ```
  }];
  let options = [Option<"rowsOnly", "rows-only", "bool", /*default=*/"false",
                        "Only operations that are elementwise or reduce the last dimension">];
  let statistics = [Statistic<"numDecomposed", "num-decomposed", "Operations replaced">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

include "braid/Transforms/ReorderPasses.td"
include "braid/Transforms/EncodingPasses.td"
include "braid/Transforms/MatmulPasses.td"

#endif
