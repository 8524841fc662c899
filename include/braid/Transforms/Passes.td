//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_TRANSFORMS_PASSES_TD
#define BRAID_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PadForStrategy : Pass<"braid-pad-for-strategy", "::mlir::ModuleOp"> {
  let summary = "Pad heads, feed-forward dimensions and a vocabulary that an axis does not divide";
  let description = [{
    Between the products that `tp` cuts by columns and the one that it cuts by rows, a dimension may have any size: rows and
    columns of zeros in the weights are neutral. So that every rank has as much of it,

    - a feed-forward dimension gets zeros at its end;
    - attention gets groups of query heads, with a key and value head each, of zeros. Where that makes fewer heads in all, a
      group of the model becomes several with the same key and value head, which share its query heads.

    Only the slices of parameters change, which the loader executes, and types on the way; results are the same.

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
    `vocab` pads the table of words (`embedding.word`) and the head (`lm_head`) by rows of zeros at the end, and logits with
    them. The embedding keeps the number of `rows` that may be looked up. The entry's result keeps its own type as
    `nn.unpadded`: whoever hands it out cuts the padding. In between logits may go through operations that act on each
    element by itself; one that sees a row of them, as a softmax does, is in the way:

    ```mlir
    %words = nn.parameter "words" slices ["words"[61, 16]] : tensor<64x16xf32>
    %0 = nn.embedding %ids, %words rows 61 role "embedding.word" : tensor<2x8xi64>, tensor<64x16xf32> -> tensor<2x8x16xf32>
    %1 = nn.linear %0, %words role "lm_head" : tensor<2x8x16xf32>, tensor<64x16xf32> -> tensor<2x8x64xf32>
    ```

    A remark (category `sharding`) says by how much weights grow. Weights that are no parameters, and operations without a
    sharding rule on the way, are errors. With `auto`, a vocabulary is padded if the model has a head and nothing is in the
    way, else a remark says what is.
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", /*default=*/"\"\"", "As of braid-apply-strategy">,
    Option<"strategy", "strategy", "std::string", /*default=*/"\"auto\"", "As of braid-apply-strategy">,
  ];
  let statistics = [Statistic<"numPadded", "num-padded", "Pairs of products padded">,
                    Statistic<"numVocabularies", "num-vocabularies", "Tables of words and heads padded">];
}

def ApplyStrategy : Pass<"braid-apply-strategy", "::mlir::ModuleOp"> {
  let summary = "Make the mesh and seed the shardings of a parallelization strategy";
  let description = [{
    Inserts `comm.mesh @mesh` (or takes the module's own) and states shardings where a strategy begins; propagation does
    the rest. Values that have a sharding keep it.

    - `tp` (tensor parallelism): weights of `nn.linear` are cut over `tp`, column then row: dimension 0 (out) for the
      roles `attention.query`, `attention.key`, `attention.value`, `mlp.gate` and `mlp.up`, dimension 1 (in) for
      `attention.output` and `mlp.down`. An operation without a known role is cut by rows, and those that it takes from by
      columns, when every element or head that it takes comes of the same element or head of theirs.
    - `tp-sp` (with sequence parallelism): as `tp`, and the result of every product that is cut by rows is cut over `tp` along
      the sequence, its last dimension but one. What follows, up to the next product, is then computed on parts: in a
      pre-norm layer two gathers and two scatters take the place of two reductions.
    - `dp` (data parallelism): dimension 0 of every tensor operand of the entry is cut over `dp`.
    - `vocab` (vocabulary parallelism): the table of an `nn.embedding` of role `embedding.word` is cut over `tp` by rows, the
      weight of an `nn.linear` of role `lm_head` by outputs. The embedding is then a sum over parts, and logits are parts.
    - `auto`: `tp` and `dp`, each if the mesh has its axis; and `vocab` if the model has a head over a vocabulary that `tp`
      divides, after padding where that is possible. Otherwise a list: `tp-sp,vocab,dp`.
    - `none`: nothing, for modules that state their shardings themselves. Axes of the mesh may then have any names.

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
    An axis of size 1 seeds nothing. A sequence that does not divide stays whole, and a remark says so. A weight or operand
    that does not divide is an error, and so is a strategy
    whose axis the mesh lacks, or `tp` on a module without a `nn.linear` to cut. `auto` is content with a module that has no
    `nn.linear` at all, and says so in a remark.
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
  let summary = "Add the biases of products after the products have been added";
  let description = [{
    A product that is cut by rows gives a partial value, and a bias can be added to it only once it is reduced. Where such
    products are added, as in a layer whose attention and feed-forward stand side by side, the sum is partial too and reduced
    once, if no bias stands between. So the biases of the terms are added to the sum instead.

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
    Sums of other values stay: a residual is no product. So do additions that state shardings.
  }];
}

def PropagateShardings : Pass<"braid-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "Spread shardings through the whole call tree, by factors";
  let description = [{
    Every operation is an equation over factors (its sharding rule): a factor that one operand's dimension cuts is cut in
    all. The equations of all functions, with calls and returns as equalities between values, are worked off until nothing
    changes, forwards and backwards. What is elementwise goes first, then contractions, in both what nothing contradicts;
    then conflicts are settled. An axis larger than a factor is split: a sub-axis fits the factor, the rest goes to the next
    factor of the dimension. What does not divide a factor is gathered, which a remark says.

    An operation whose reduction factor is cut has a *partial* result: addends (maxima, minima) over these
    axes. A partial value flows on through an operation that is linear in it and its one user; elsewhere it ends, and
    partitioning reduces it. A sum of values that are all partial is partial too, also where its users want it cut over
    these axes: it is then reduced and cut in one go, once instead of once for each term.

    All structured linalg operations have a rule by their indexing maps: a sum that starts at zero reduces, and so do
    maxima and minima (which of them is taken where one is NaN is not said); other reductions and loops whose index the
    body reads stay whole. tensor.expand_shape and collapse_shape have one whose factors are the dimensions of the expanded
    side. What a body captures is replicated. Operations without a rule take and give whole values. The result: `comm.sharding` on all tensor arguments
    and results of functions and `comm.shardings` (one per result) on operations.

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
    A sharding that the IR already has is kept; only its open dimensions (`{tp, ?}`, `{?}`) take further axes, and none is
    open afterwards. What is stated of a result says how the operation is cut; of the result of a sum over parts, how it
    is cut once it is reduced; of the result of a call, and of results of one operation that are stated differently, how
    their users take it.

    Where shardings meet in one operation, those stated go before those derived. Among equals that form of the operation is
    taken with which a rank sends the fewest bytes to bring operands to it and results from it, and a remark (category
    `sharding`) names what was decided against, in favour of what, and the bytes of both; partitioning then reshards.
    A value that its users want in another form than its operation gives is resharded before the operation where no more is
    sent then. A value that costs nothing to make, a constant or `tensor.empty`, is made as cut as all of its users take it.

    A module in which every value states a closed sharding is left as it is, so a second run changes nothing.

    Errors, which name the operation: anything but whole values stated of an external function.
  }];
  let statistics = [
    Statistic<"numVisits", "num-visits", "Equations visited until nothing changed">,
    Statistic<"numConflicts", "num-conflicts", "Factors that met two shardings">,
  ];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def Partition : Pass<"braid-partition", "::mlir::ModuleOp"> {
  let summary = "Rewrite every function to what one rank does, with collectives where shardings meet";
  let description = [{
    Takes the shardings that `braid-propagate-shardings` left and makes the SPMD program: per-rank types everywhere,
    function signatures included, and collectives of the comm dialect where a value is wanted in another form than its
    definition gives:

    | has               | wanted        | becomes |
    |-------------------|---------------|---------|
    | partial           | whole         | `comm.all_reduce` |
    | partial           | cut           | `comm.reduce_scatter` |
    | cut               | whole         | `comm.all_gather` |
    | whole             | cut           | `comm.local_slice` |
    | cut               | cut over the same axes along another dimension | `comm.all_to_all` |
    | cut               | cut over the same axes in another order | `comm.permute` |

    or a sequence of these, the one with which a rank sends the fewest bytes, and of equals the shortest. It begins at
    whatever form of the value is there already. One reduction serves all users, in the form from which the others
    are reached with the fewest bytes. A value is brought into each form once, right after its definition, for all its
    users. Collectives carry the role of
    the operation that gave the value. Results of the entry stay cut but are never partial. Entry arguments and results
    keep their `comm.sharding` and get `comm.global_type`; every `nn.parameter` gets both as its own attributes.

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
    For each collective a remark (category `sharding`) says for which value it is and how many bytes a rank sends.
    An operation without a sharding rule runs whole on every rank: its operands are gathered. An operation with a region
    that calls a function, or a function of several blocks, is an error.
  }];
  let statistics = [
    Statistic<"numAllReduce", "num-all-reduce", "comm.all_reduce inserted">,
    Statistic<"numReduceScatter", "num-reduce-scatter", "comm.reduce_scatter inserted">,
    Statistic<"numAllGather", "num-all-gather", "comm.all_gather inserted">,
    Statistic<"numAllToAll", "num-all-to-all", "comm.all_to_all inserted">,
    Statistic<"numPermute", "num-permute", "comm.permute inserted">,
    Statistic<"numLocalSlice", "num-local-slice", "comm.local_slice inserted">,
  ];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def StartCollectives : Pass<"braid-start-collectives", "::mlir::ModuleOp"> {
  let summary = "Turn every collective into a start and a wait, as far apart as data allows";
  let description = [{
    A collective becomes a `comm.start` right after the last of its operands, or after the operation before it that
    starts communication (a start, or a call of a function with one), and a `comm.wait` right before the first use of a
    result, each within its block. The order of starts is what it was, the same on all ranks; the executor runs them on
    the communication queue in that order, and whatever computation stands between start and wait hides them.

    Before:
    ```mlir
    %a = nn.activation gelu %x : tensor<8x4xf32>
    %b = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
    %c = nn.activation gelu %a : tensor<8x4xf32>
    %d = nn.add %b, %c : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
    ```
    After:
    ```mlir
    %h = comm.start (%x0 = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
      %r = comm.all_reduce sum(%x0) over <@mesh, {tp}> : tensor<8x4xf32>
      comm.yield %r : tensor<8x4xf32>
    }
    %a = nn.activation gelu %x : tensor<8x4xf32>
    %c = nn.activation gelu %a : tensor<8x4xf32>
    %b = comm.wait %h keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
    %d = nn.add %b, %c : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
    ```
  }];
  let statistics = [Statistic<"numStarted", "num-started", "Collectives turned into start and wait">];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def VerifyLevel : Pass<"braid-verify-level", "::mlir::ModuleOp"> {
  let summary = "Check that a module is at a level, and name the first operation that is not";
  let description = [{
    | level       | beside builtin and func |
    |-------------|-------------------------|
    | `nn`        | nn, `comm.mesh`, plain computation; no per-rank argument types |
    | `comm`      | nn, comm without start, wait and yield, plain computation; no `comm.shardings`, and a sharded argument or result has its `comm.global_type` |
    | `scheduled` | nn, comm with every collective inside a start, plain computation |
    | `kernels`   | nn without row operations (they are in kernels), comm as before, rt |
    | `rt`        | builtin, rt and `comm.mesh` only |

    Plain computation is what the reference interpreter knows of arith, math, linalg and tensor (`cast`, `collapse_shape`,
    `dim`, `empty`, `expand_shape`, `extract`, `extract_slice`). No level has control flow, and a handle does not cross a call:
    every collective is waited for in the function that starts it.

    Up to `scheduled`, operations of other dialects stand beside those of nn if they say how they are cut
    (`comm::ShardingRuleOpInterface`); at `kernels` they are in kernels, too.

    Before and after are the same. With `level=nn`, a `comm.start` is refused as
    `'comm.start' op is not allowed at level nn`.
  }];
  let options = [
    Option<"level", "level", "::braid::Level", /*default=*/"::braid::Level::NN", "The level that is expected",
           [{::llvm::cl::values(
             clEnumValN(::braid::Level::NN, "nn", "whole model on one logical device"),
             clEnumValN(::braid::Level::Comm, "comm", "per-rank shapes, collectives by value"),
             clEnumValN(::braid::Level::Scheduled, "scheduled", "collectives as start and wait"),
             clEnumValN(::braid::Level::Kernels, "kernels", "kernels and commands on tensors"),
             clEnumValN(::braid::Level::RT, "rt", "the executor's commands"))}]>,
  ];
}

def DecomposeNN : Pass<"braid-decompose-nn"> {
  let summary = "Write nn operations as linalg on tensors";
  let description = [{
    Replaces every operation that has a decomposition (`nn::DecomposeOpInterface`) by it. Kernels are formed of row
    operations this way; for the others, which targets implement themselves, it is a definition in terms that upstream
    passes understand. Parameters stay.

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

#endif
