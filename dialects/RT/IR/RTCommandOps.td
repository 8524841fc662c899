//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_RT_RTCOMMANDOPS_TD
#define BRAID_DIALECTS_RT_RTCOMMANDOPS_TD

include "dialects/RT/IR/RTProcedureOps.td"
include "dialects/Comm/IR/CommAttrs.td"

class RT_Reads<Type type> : Arg<type, "", [MemRead]>;
class RT_Writes<Type type> : Arg<type, "", [MemWrite]>;

/// A command of one queue's stream.
class RT_CommandOp<string mnemonic, list<Trait> traits = []> : RT_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Computation.
//===----------------------------------------------------------------------===//

def RT_LaunchOp : RT_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                   DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs a kernel over a number of rows";
  let description = [{
    On memory in a procedure, and on tensors between kernel forming and lowering:
    ```mlir
    rt.launch @add rows 1024 ins(%x, %y : memref<1024x384xf32>, memref<1024x384xf32>) outs(%o : memref<1024x384xf32>)
    %r = rt.launch @add rows 1024 ins(%x, %y : tensor<8x128x384xf32>, tensor<8x128x384xf32>) -> tensor<8x128x384xf32>
    ```
    A tensor may have more leading dimensions than the kernel's type; they are collapsed into the rows. It may also lack
    them, as one row.

    Outputs are written, and those of a kernel of the runtime's library that adds to them (`accumulate` of `matmul`) are
    read first.

    Constraints:
    - (rt.launch_c1) the kernel exists and has as many arguments and results as the launch has inputs and outputs;
    - (rt.launch_c2) inputs and outputs are all tensors (and outputs are results), or all memory;
    - (rt.launch_c3) an operand has the kernel's type with `rows` as the dynamic dimension; a tensor may have more
      leading dimensions, whose product is `rows`, or, if that is 1, none;
    - (rt.launch_c4, ODS) `rows` is at least 1;
    - (rt.launch_c5) `rows` of a kernel of the runtime's library is the number of rows that the kernel computes;
    - (rt.launch_c6) an operand that the kernel encodes (`rt.payload`) is a payload of all of its rows.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, ConfinedAttr<I64Attr, [IntPositive]>:$rows,
                       Variadic<AnyTypeOf<[RT_Memory, RT_Tensor]>>:$inputs,
                       Variadic<RT_Memory>:$outputs, RT_OnCompute:$queue);
  let results = (outs Variadic<RT_Tensor>:$results);
  let assemblyFormat = [{
    $kernel `rows` $rows (`ins` `(` $inputs^ `:` type($inputs) `)`)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`->` type($results)^)? (`on` `` $queue^)? attr-dict
  }];
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::FlatSymbolRefAttr":$kernel, "int64_t":$rows,
                   "::mlir::ValueRange":$inputs)>,
    OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$kernel, "int64_t":$rows, "::mlir::ValueRange":$inputs,
                   "::mlir::ValueRange":$outputs, CArg<"QueueAttr", "{}">:$queue)>];
  let extraClassDeclaration = [{
    bool onTensors() { return getOutputs().empty(); }
    /// The kernel that `kernel` names; null before symbols are verified if there is none.
    KernelOp getKernelOp();
  }];
}

def RT_CopyOp : RT_CommandOp<"copy"> {
  let summary = "Copies memory";
  let description = [{
    ```mlir
    rt.copy ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32, #rt.space<symmetric>>) on communication
    ```
    With `comm.on`, only the ranks of a place run it.

    Constraints:
    - (rt.copy_c1) shapes and element types are the same.
  }];
  let arguments = (ins RT_Reads<RT_Memory>:$source, RT_Writes<RT_Memory>:$dest, RT_OnCompute:$queue);
  let assemblyFormat = [{
    `ins` `(` $source `:` type($source) `)` `outs` `(` $dest `:` type($dest) `)` (`on` `` $queue^)? attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Communication and the order between queues.
//===----------------------------------------------------------------------===//

/// Orders commands of the queues among each other.
def RT_QueueState : Resource<"::braid::rt::QueueResource">;

def RT_StartOp : RT_Op<"start", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                 MemoryEffects<[MemRead<RT_QueueState>, MemWrite<RT_QueueState>]>]> {
  let summary = "Runs a collective on a communication queue and sets an event when it is done";
  let description = [{
    ```mlir
    %done = rt.start all_reduce with sum ins(%a : memref<8x4xf32, #rt.space<symmetric>>)
        outs(%b : memref<8x4xf32, #rt.space<symmetric>>) over <@mesh, {tp}> role "mlp.down" event 1
    %sum = rt.start all_reduce with sum ins(%c : memref<4x4xf32, #rt.space<symmetric>>)
        outs(%d : memref<4x4xf32, #rt.space<symmetric>>) over <@mesh, {dp}> on communication<1> event 2
    ```
    Done means that the outputs are written and that no other rank still reads this rank's inputs. All ranks of a group
    run its collectives of one queue in the same order; collectives of different queues may be in flight together.
    Without a wait, the collective is still done before the later commands of its queue begin.

    The last values of an all_to_all_v are the counts. A send has no outputs and a recv no inputs:
    ```mlir
    %s = rt.start send ins(%a : memref<8xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {pp}>
    %r = rt.start recv outs(%b : memref<8xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {pp}>
    ```

    Constraints:
    - (rt.start_c1) the group has a known mesh and axes of it;
    - (rt.start_c2) a send has inputs only, a recv has outputs only, and any other collective has as many outputs as
      inputs and at least one, in an all_to_all_v at least one besides the counts;
    - (rt.start_c3) inputs and outputs are symmetric memory;
    - (rt.start_c4) outputs have the inputs' types, except for dimension `dim`: all_gather multiplies it by the group's
      size, reduce_scatter and all_to_all divide it, and all_to_all multiplies dimension `concat`;
    - (rt.start_c5) each attribute is given for these kinds and no others: a reduction for all_reduce, reduce_scatter
      and reduce, `dim` for all_gather, reduce_scatter and all_to_all, `concat` for all_to_all, `root` for reduce and
      broadcast, `pairs` for permute, send and recv, `tag` for send and recv;
    - (rt.start_c6) `root` and `pairs` hold positions of the group;
    - (rt.start_c7) `pairs` alternates sources and targets, each position is at most once a source and at most once a
      target, and no position sends to itself in send and recv;
    - (rt.start_c8) the values of an all_to_all_v are [blocks, capacity, ...] with one capacity, its counts [blocks] of
      i32 or i64, and the group's size divides the blocks;
    - (rt.start_c9, ODS) `tag` is at least 0;
    - (rt.start_c10) no queue waits for its event twice;
    - (rt.start_c11) the queue is a communication queue.
  }];
  let arguments = (ins RT_CollectiveKindAttr:$kind, OptionalAttr<Comm_ReduceKindAttr>:$reduce,
                       Arg<Variadic<RT_Memory>, "", [MemRead]>:$inputs, Arg<Variadic<RT_Memory>, "", [MemWrite]>:$outputs,
                       OptionalAttr<I64Attr>:$dim, OptionalAttr<I64Attr>:$concat, OptionalAttr<I64Attr>:$root,
                       OptionalAttr<DenseI64ArrayAttr>:$pairs, OptionalAttr<ConfinedAttr<I32Attr, [IntNonNegative]>>:$tag,
                       Comm_GroupAttr:$group, OptionalAttr<StrAttr>:$role, RT_OnCommunication:$queue,
                       OptionalAttr<I64Attr>:$event);
  let results = (outs RT_EventType:$done);
  let assemblyFormat = [{
    `` $kind (`with` `` $reduce^)? (`ins` `(` $inputs^ `:` type($inputs) `)`)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`dim` $dim^)? (`concat` $concat^)? (`root` $root^)? (`pairs` $pairs^)? (`tag` $tag^)? `over` $group
    (`role` $role^)? (`on` `` $queue^)? (`event` $event^)? attr-dict
  }];
  let hasVerifier = 1;
}

def RT_WaitOp : RT_Op<"wait", [MemoryEffects<[MemRead<RT_QueueState>, MemWrite<RT_QueueState>]>]> {
  let summary = "A queue waits for a collective of another queue";
  let description = [{
    ```mlir
    rt.wait %done
    rt.wait %done on communication<1>
    ```
    It differs from rt.await in that the time that the compute queue spends in it is exposed communication.

    Constraints:
    - (rt.wait_c1) the event is that of an rt.start on another queue, or one that a caller passes or a callee hands out.
  }];
  let arguments = (ins RT_EventType:$event, RT_OnCompute:$queue);
  let assemblyFormat = "$event (`on` `` $queue^)? attr-dict";
  let hasVerifier = 1;
}

def RT_RecordOp : RT_Op<"record", [MemoryEffects<[MemRead<RT_QueueState>, MemWrite<RT_QueueState>]>]> {
  let summary = "Sets an event when the queue reaches it";
  let description = [{
    ```mlir
    %e = rt.record on compute event 0
    rt.await %e on communication
    ```
  }];
  let arguments = (ins RT_QueueAttr:$queue, OptionalAttr<I64Attr>:$event);
  let results = (outs RT_EventType:$recorded);
  let assemblyFormat = "`on` `` $queue (`event` $event^)? attr-dict";
}

def RT_AwaitOp : RT_Op<"await", [MemoryEffects<[MemRead<RT_QueueState>, MemWrite<RT_QueueState>]>]> {
  let summary = "A queue waits until the event is set";
  let description = [{
    Constraints:
    - (rt.await_c1) the event is that of an rt.record on another queue, or one that a caller passes or a callee hands out.
  }];
  let arguments = (ins RT_EventType:$event, RT_QueueAttr:$queue);
  let assemblyFormat = "$event `on` `` $queue attr-dict";
  let hasVerifier = 1;
}

#endif
