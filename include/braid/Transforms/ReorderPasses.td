//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Passes that split, move, merge and remove collectives of a partitioned module. Each tells of every
// collective that it considered, by a remark of category `communication`, what it did or why not.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_TRANSFORMS_REORDERPASSES_TD
#define BRAID_TRANSFORMS_REORDERPASSES_TD

include "mlir/Pass/PassBase.td"

class ReorderPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def SplitAllReduce : ReorderPass<"braid-split-all-reduce"> {
  let summary = "Split every all_reduce into a reduce_scatter and an all_gather";
  let description = [{
    The two send the same bytes as the one, but can be moved apart (`braid-sink-all-gathers`), and operations between
    them run on a shard on every rank. `braid-join-all-reduce` is the inverse.

    Before:
    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<4x8x16xf32>
    ```
    After:
    ```mlir
    %s = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> role "mlp.down/reduce_scatter" : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    %r = comm.all_gather(%s) dim 1 over <@mesh, {tp}> role "mlp.down/all_gather" : tensor<4x4x16xf32> -> tensor<4x8x16xf32>
    ```
    An all_reduce stays if the dimension does not divide in every value.
  }];
  let options = [Option<"dim", "dim", "int64_t", /*default=*/"-1",
                        "Dimension to scatter over; negative: 1 (the sequence) of values of rank 3 if it divides, or else "
                        "the outermost that does">];
  let statistics = [Statistic<"numSplit", "num-split", "comm.all_reduce split">];
}

def JoinAllReduce : ReorderPass<"braid-join-all-reduce"> {
  let summary = "Join a reduce_scatter and the all_gather of its results into an all_reduce";
  let description = [{
    The inverse of `braid-split-all-reduce`. Other users of the shards take slices of the result, which is free.

    Before:
    ```mlir
    %s = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    %r = comm.all_gather(%s) dim 1 over <@mesh, {tp}> : tensor<4x4x16xf32> -> tensor<4x8x16xf32>
    ```
    After:
    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4x8x16xf32>
    ```
  }];
  let statistics = [Statistic<"numJoined", "num-joined", "Pairs joined">];
}

def SinkAllGathers : ReorderPass<"braid-sink-all-gathers"> {
  let summary = "Move every all_gather down past slice-wise operations, across calls too";
  let description = [{
    An operation is slice-wise over a dimension when its sharding rule gives it a parallel factor that every result has:
    additions, normalizations of another dimension, activations, also a matmul with a replicated weight. It is then
    built on shards: a gathered operand is replaced by its shard, an operand that is the same on all ranks of the group
    by a `comm.part`, and the result is gathered. A slice of a gathered value folds. A gather moves only where
    all operands are the same on all ranks of its group and no more bytes are gathered than before: one whose result has
    other users moves past an addition together with the gather of the other operand.

    A gather moves from a function to its callers if only the return uses it. A gathered operand of a call moves into
    the callee when every caller gathers it alike or has it replicated, and for at least half of the calls the gather
    outside disappears: the layers of a model then pass shards to each other. Recursive functions, and those with uses
    other than calls, keep their signatures. After `braid-split-all-reduce` this turns tensor parallelism into sequence
    parallelism. `braid-hoist-all-gathers` is the inverse.

    Before:
    ```mlir
    %g = comm.all_gather(%s) dim 1 over <@mesh, {tp}> : tensor<4x4x16xf32> -> tensor<4x8x16xf32>
    %y = nn.add %g, %x : tensor<4x8x16xf32>, tensor<4x8x16xf32> -> tensor<4x8x16xf32>
    ```
    After:
    ```mlir
    %p = comm.part %x dim 1 over <@mesh, {tp}> : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    %z = nn.add %s, %p : tensor<4x4x16xf32>, tensor<4x4x16xf32> -> tensor<4x4x16xf32>
    %y = comm.all_gather(%z) dim 1 over <@mesh, {tp}> : tensor<4x4x16xf32> -> tensor<4x8x16xf32>
    ```
    Gathers of several values stay (`braid-unmerge-collectives` separates them).
  }];
  let options = [Option<"acrossCalls", "across-calls", "bool", /*default=*/"true",
                        "Whether gathers move out of and into functions, which changes signatures">];
  let statistics = [
    Statistic<"numSunk", "num-sunk", "Operations that a gather moved past">,
    Statistic<"numIntoCalls", "num-into-calls", "Arguments that became shards">,
    Statistic<"numOutOfCalls", "num-out-of-calls", "Results that became shards">,
  ];
}

def HoistAllGathers : ReorderPass<"braid-hoist-all-gathers"> {
  let summary = "Move every all_gather up past slice-wise operations, across calls too";
  let description = [{
    The inverse of `braid-sink-all-gathers`: the producer of the gathered shard is built on unsharded operands, which
    are the sources of slices, results of other gathers, or are gathered in place of the result if that is no more.
    Other users of the shard take slices. A gather of an argument moves to the callers, one of a call's result into the
    callee if all callers gather it.

    Before:
    ```mlir
    %p = comm.part %x dim 1 over <@mesh, {tp}> : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    %z = nn.add %s, %p : tensor<4x4x16xf32>, tensor<4x4x16xf32> -> tensor<4x4x16xf32>
    %y = comm.all_gather(%z) dim 1 over <@mesh, {tp}> : tensor<4x4x16xf32> -> tensor<4x8x16xf32>
    ```
    After:
    ```mlir
    %g = comm.all_gather(%s) dim 1 over <@mesh, {tp}> : tensor<4x4x16xf32> -> tensor<4x8x16xf32>
    %y = nn.add %g, %x : tensor<4x8x16xf32>, tensor<4x8x16xf32> -> tensor<4x8x16xf32>
    ```
  }];
  let options = [Option<"acrossCalls", "across-calls", "bool", /*default=*/"true",
                        "Whether gathers move out of and into functions, which changes signatures">];
  let statistics = [
    Statistic<"numHoisted", "num-hoisted", "Operations that a gather moved above">,
    Statistic<"numIntoCalls", "num-into-calls", "Results that became replicated">,
    Statistic<"numOutOfCalls", "num-out-of-calls", "Arguments that became replicated">,
  ];
}

def FuseReduceScatter : ReorderPass<"braid-fuse-reduce-scatter"> {
  let summary = "Replace an all_reduce of which only slices are used by a reduce_scatter";
  let description = [{
    When all uses of all results are `comm.part` of one dimension over the same group, each rank needs only its
    shard, which is half the bytes. `braid-unfuse-reduce-scatter` is the inverse. (Canonicalization folds slices of
    gathered values.)

    Before:
    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4x8x16xf32>
    %s = comm.part %r dim 1 over <@mesh, {tp}> : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    ```
    After:
    ```mlir
    %s = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    ```
  }];
  let statistics = [Statistic<"numFused", "num-fused", "comm.all_reduce made comm.reduce_scatter">];
}

def UnfuseReduceScatter : ReorderPass<"braid-unfuse-reduce-scatter"> {
  let summary = "Replace every reduce_scatter by an all_reduce and slices of it";
  let description = [{
    The inverse of `braid-fuse-reduce-scatter`.

    Before:
    ```mlir
    %s = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    ```
    After:
    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4x8x16xf32>
    %s = comm.part %r dim 1 over <@mesh, {tp}> : tensor<4x8x16xf32> -> tensor<4x4x16xf32>
    ```
  }];
  let statistics = [Statistic<"numUnfused", "num-unfused", "comm.reduce_scatter made comm.all_reduce">];
}

def MergeCollectives : ReorderPass<"braid-merge-collectives"> {
  let summary = "Exchange the values of neighbouring collectives of one kind together";
  let description = [{
    Two collectives of a block with no other collective, call or effect between them become one when kind, group,
    reduction and dimension are the same and the second does not depend on the first: the values then share one start-up
    of the exchange. It replaces the second if nothing before reads the first's results, or else the first if the
    second's operands exist there. Different roles are joined by `+`, one per value; `braid-unmerge-collectives`, the
    inverse, separates them. Collectives whose values depend on each other or on another operation (all_to_all_v, send,
    recv) stay.

    Before:
    ```mlir
    %c = comm.all_reduce sum(%a) over <@mesh, {tp}> role "x" : tensor<8x4xf32>
    %d = comm.all_reduce sum(%b) over <@mesh, {tp}> role "y" : tensor<4xf32>
    ```
    After:
    ```mlir
    %0:2 = comm.all_reduce sum(%a, %b) over <@mesh, {tp}> role "x+y" : tensor<8x4xf32>, tensor<4xf32>
    ```
  }];
  let statistics = [Statistic<"numMerged", "num-merged", "Collectives merged into the one before">];
}

def UnmergeCollectives : ReorderPass<"braid-unmerge-collectives"> {
  let summary = "Exchange every value in a collective of its own";
  let description = [{
    The inverse of `braid-merge-collectives`. A role of as many names, joined by `+`, as there are values gives each
    value its own; any other role is numbered (`both/0`, `both/1`).

    Before:
    ```mlir
    %0:2 = comm.all_reduce sum(%a, %b) over <@mesh, {tp}> role "x+y" : tensor<8x4xf32>, tensor<4xf32>
    ```
    After:
    ```mlir
    %c = comm.all_reduce sum(%a) over <@mesh, {tp}> role "x" : tensor<8x4xf32>
    %d = comm.all_reduce sum(%b) over <@mesh, {tp}> role "y" : tensor<4xf32>
    ```
  }];
  let statistics = [Statistic<"numUnmerged", "num-unmerged", "Collectives of several values separated">];
}

def RemoveDeadCollectives : ReorderPass<"braid-remove-dead-collectives"> {
  let summary = "Remove collectives, and values of collectives, that no rank reads";
  let description = [{
    All ranks run the same code, so a value that is unused on one rank is unused on all. Canonicalization includes these
    patterns (`comm::populateRemoveDeadCollectivesPatterns`); this pass applies only them and remarks on each removal.

    Before:
    ```mlir
    %0:2 = comm.all_reduce sum(%a, %b) over <@mesh, {tp}> : tensor<8x4xf32>, tensor<4xf32>
    %1 = comm.all_gather(%a) dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<16x4xf32>
    return %0#1 : tensor<4xf32>
    ```
    After:
    ```mlir
    %0 = comm.all_reduce sum(%b) over <@mesh, {tp}> : tensor<4xf32>
    return %0 : tensor<4xf32>
    ```
  }];
  let statistics = [
    Statistic<"numRemoved", "num-removed", "Collectives removed">,
    Statistic<"numNarrowed", "num-narrowed", "Collectives of which values were removed">,
  ];
}

#endif
