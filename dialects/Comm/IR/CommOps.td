//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMOPS_TD
#define BRAID_DIALECTS_COMM_COMMOPS_TD

include "dialects/Comm/IR/CommCollective.td"
include "dialects/Comm/IR/CommExchangeOps.td"

def Comm_MeshOp : Comm_Op<"mesh", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A grid of ranks with named axes";
  let description = [{
    ```mlir
    comm.mesh @mesh <dp = 2, tp = 4>
    comm.mesh @mesh <dp = 2, tp = 2> order [0, 2, 1, 3]
    ```
    The first axis is the major one. `order[i]` is the rank of the i-th coordinate tuple (row-major); without it, rank i.

    Constraints:
    - (comm.mesh_c1) there are as many axis sizes as names;
    - (comm.mesh_c2) axis names are unique and not empty, sizes are at least 1, and `order` is a permutation of all
      ranks.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axis_names, DenseI64ArrayAttr:$axis_sizes,
                       OptionalAttr<DenseI64ArrayAttr>:$order);
  let assemblyFormat = [{
    $sym_name custom<MeshAxes>($axis_names, $axis_sizes) (`order` $order^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Comm_AllReduceOp : Comm_CollectiveOp<"all_reduce", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Combines the values of all ranks of a group; every rank gets the result";
  let description = [{
    `outputs[i]` is, on every rank of the group, the elementwise sum (max, min) of its ranks' `inputs[i]`. Values of one
    collective are exchanged together.

    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<8x384xf32>
    %0:2 = comm.all_reduce sum(%a, %b) over <@mesh, {dp, tp}> : tensor<8x384xf32>, tensor<384xf32>
    ```

    Constraints:
    - (comm.all_reduce_c1) there is at least one value;
    - (comm.all_reduce_c2) there are as many results as operands;
    - (comm.all_reduce_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.all_reduce_c4, ODS) element types are integers or floats;
    - (comm.all_reduce_c5, ODS) each result has its operand's type.
  }];
  let arguments = (ins Comm_ReduceKindAttr:$kind, Variadic<Comm_Tensor>:$inputs, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    custom<ReduceKind>($kind) `(` $inputs `)` `over` $group (`role` $role^)? attr-dict `:` type($inputs)
  }];
}

def Comm_ReduceScatterOp : Comm_CollectiveOp<"reduce_scatter"> {
  let summary = "Combines the values of all ranks of a group; each rank gets its shard along a dimension";
  let description = [{
    As `comm.all_reduce`, but the rank at position p of a group of n gets only the p-th of n equal shards along `dim`.

    ```mlir
    %r = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> : tensor<8x128x384xf32> -> tensor<8x32x384xf32>
    ```

    Constraints:
    - (comm.reduce_scatter_c1) there is at least one value;
    - (comm.reduce_scatter_c2) there are as many results as operands;
    - (comm.reduce_scatter_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.reduce_scatter_c4, ODS) element types are integers or floats;
    - (comm.reduce_scatter_c5) `dim` is a dimension of every operand;
    - (comm.reduce_scatter_c6) the group's size divides that dimension, and each result has its operand's type with the
      dimension divided.
  }];
  let arguments = (ins Comm_ReduceKindAttr:$kind, Variadic<Comm_Tensor>:$inputs, I64Attr:$dim, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    custom<ReduceKind>($kind) `(` $inputs `)` `dim` $dim `over` $group (`role` $role^)? attr-dict
    `:` type($inputs) `->` type($outputs)
  }];
}

def Comm_AllGatherOp : Comm_CollectiveOp<"all_gather"> {
  let summary = "Concatenates the shards of all ranks of a group along a dimension; every rank gets the result";
  let description = [{
    `outputs[i]` is, on every rank of the group, the concatenation along `dim` of its ranks' `inputs[i]`, by position in
    the group.

    ```mlir
    %r = comm.all_gather(%x) dim 1 over <@mesh, {tp}> : tensor<8x32x384xf32> -> tensor<8x128x384xf32>
    ```

    Constraints:
    - (comm.all_gather_c1) there is at least one value;
    - (comm.all_gather_c2) there are as many results as operands;
    - (comm.all_gather_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.all_gather_c4) `dim` is a dimension of every operand;
    - (comm.all_gather_c5) each result has its operand's type with that dimension multiplied by the group's size.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, I64Attr:$dim, Comm_GroupAttr:$group, OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `dim` $dim `over` $group (`role` $role^)? attr-dict `:` type($inputs) `->` type($outputs)
  }];
}

def Comm_PartOp : Comm_Op<"part", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The part of a value that the rank's position chooses";
  let description = [{
    On the rank at position p of a group of n: part (p + `shift`) mod n of n equal parts of the input along `dim`. With
    the same input on all ranks and no shift this is each rank's shard. Nothing is sent.

    ```mlir
    %r = comm.part %x dim 1 over <@mesh, {tp}> : tensor<8x128x384xf32> -> tensor<8x32x384xf32>
    %next = comm.part %x dim 1 shift 1 over <@mesh, {tp}> : tensor<8x128x384xf32> -> tensor<8x32x384xf32>
    ```

    Constraints:
    - (comm.part_c1) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.part_c2) `dim` is a dimension of the operand;
    - (comm.part_c3) the group's size divides that dimension, and the result has the operand's type with the
      dimension divided.
  }];
  let arguments = (ins Comm_Tensor:$input, I64Attr:$dim, DefaultValuedAttr<I64Attr, "0">:$shift, Comm_GroupAttr:$group);
  let results = (outs Comm_Tensor:$output);
  let assemblyFormat = [{
    $input `dim` $dim (`shift` $shift^)? `over` $group attr-dict `:` type($input) `->` type($output)
  }];
  let hasCanonicalizer = 1;
}

def Comm_AssembleOp : Comm_Op<"assemble", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A value from parts whose places the rank's position chooses";
  let description = [{
    The counterpart of `comm.part`: on the rank at position p of a group of n, a value of n equal parts along `dim`, of
    which operand i is part (p + `shifts[i]`) mod n. Where ranks receive the parts of others one after the other, as in
    a ring, this puts them in order. Nothing is sent.

    ```mlir
    %r = comm.assemble %own, %first, %second shifts [0, -1, -2] dim 0 over <@mesh, {tp}>
        : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32> -> tensor<6x8xf32>
    ```

    Constraints:
    - (comm.assemble_c1) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.assemble_c2) there is one operand and one shift for each rank of the group;
    - (comm.assemble_c3) modulo the group's size, no two shifts are equal;
    - (comm.assemble_c4) `dim` is a dimension of every operand;
    - (comm.assemble_c5) the result has each operand's type with that dimension multiplied by the group's size.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, DenseI64ArrayAttr:$shifts, I64Attr:$dim, Comm_GroupAttr:$group);
  let results = (outs Comm_Tensor:$output);
  let assemblyFormat = [{
    $inputs `shifts` $shifts `dim` $dim `over` $group attr-dict `:` type($inputs) `->` type($output)
  }];
  let hasCanonicalizer = 1;
}

def Comm_StartOp : Comm_Op<"start", [SingleBlock, IsolatedFromAbove,
      MemoryEffects<[MemRead<Comm_Channel>, MemWrite<Comm_Channel>]>]> {
  let summary = "Starts a collective; its values exist after the wait";
  let description = [{
    The collective inside overlaps with the operations up to its wait. All ranks of its group start their collectives in
    the same order. The operands must not change until the wait, which therefore keeps them.

    `on` is the index of the communication queue that runs the collective, 0 without it. A queue runs its collectives one
    after another; those of different queues may be in flight together.

    ```mlir
    %h = comm.start (%a = %x) : tensor<8x384xf32> -> !comm.handle<tensor<8x384xf32>> {
      %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x384xf32>
      comm.yield %r : tensor<8x384xf32>
    }
    %y = comm.wait %h keeping %x : !comm.handle<tensor<8x384xf32>>, tensor<8x384xf32> -> tensor<8x384xf32>
    ```

    A send has no results, a receive no operands:
    ```mlir
    %s = comm.start (%a = %x) : tensor<8xf32> -> !comm.handle {
      comm.send(%a) pairs [0 -> 1] over <@mesh, {pp}> : tensor<8xf32>
      comm.yield
    }
    %r = comm.start () on 1 -> !comm.handle<tensor<8xf32>> {
      %b = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<8xf32>
      comm.yield %b : tensor<8xf32>
    }
    comm.wait %s keeping %x : !comm.handle, tensor<8xf32>
    %y = comm.wait %r : !comm.handle<tensor<8xf32>> -> tensor<8xf32>
    ```

    Constraints:
    - (comm.start_c1) the body is one collective and `comm.yield`;
    - (comm.start_c2) the body's arguments have the operands' types;
    - (comm.start_c3) the collective takes the body's arguments in order;
    - (comm.start_c4) `comm.yield` gives the collective's results in order;
    - (comm.start_c5) the handle has the collective's result types;
    - (comm.start_c6) the handle has exactly one use: its wait, or a call or return that carries it there;
    - (comm.start_c7) the index of the queue is at least 0 and below 8.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, DefaultValuedAttr<I64Attr, "0">:$queue);
  let results = (outs Comm_HandleType:$handle);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The collective inside.
    ::braid::comm::CollectiveOpInterface getCollective();
    /// More would be more threads of a rank than serve any program.
    static constexpr int64_t kMaxQueues = 8;
  }];
}

def Comm_YieldOp : Comm_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"::braid::comm::StartOp">]> {
  let summary = "Ends the body of a start";
  let description = [{ Makes the collective's results the values of the handle; see `comm.start`. }];
  let arguments = (ins Variadic<Comm_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Comm_WaitOp : Comm_Op<"wait", [MemoryEffects<[MemRead<Comm_Channel>, MemWrite<Comm_Channel>]>]> {
  let summary = "Waits for a collective and takes its values";
  let description = [{
    The values of a started collective exist only as results of its wait. `kept` are the operands of the start: they are
    live until here, while the collective may read them. They accompany a handle across calls.

    ```mlir
    %y = comm.wait %h keeping %x : !comm.handle<tensor<8x384xf32>>, tensor<8x384xf32> -> tensor<8x384xf32>
    ```

    With `on`, the communication queue of this index waits, and not the compute queue: what it runs next, a launch on that
    queue or another collective, may use the values. The queue that ran the collective has nothing to wait for.
    ```mlir
    %y = comm.wait %h on 0 keeping %x : !comm.handle<tensor<8x384xf32>>, tensor<8x384xf32> -> tensor<8x384xf32>
    ```

    Constraints:
    - (comm.wait_c1) the results have the handle's types;
    - (comm.wait_c2) the kept values are the operands of the start, if it is in the same function;
    - (comm.wait_c3) a handle is waited for exactly once: this is its one use;
    - (comm.wait_c4) the index of the queue is at least 0 and below 8.
  }];
  let arguments = (ins Comm_HandleType:$handle, Variadic<Comm_Tensor>:$kept, OptionalAttr<I64Attr>:$queue);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    $handle (`on` $queue^)? (`keeping` $kept^)? attr-dict
    `:` qualified(type($handle)) (`,` type($kept)^)? (`->` type($outputs)^)?
  }];
  let hasVerifier = 1;
}

#endif
