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

/// A command that stands in one queue's stream.
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
    On memory, as a procedure holds it, and on values, as kernel forming leaves it:
    ```mlir
    rt.launch @add rows 1024 ins(%x, %y : memref<1024x384xf32>, memref<1024x384xf32>) outs(%o : memref<1024x384xf32>)
    %r = rt.launch @add rows 1024 ins(%x, %y : tensor<8x128x384xf32>, tensor<8x128x384xf32>) -> tensor<8x128x384xf32>
    ```
    On values, the leading dimensions of a row operand are taken together where the kernel has fewer of them.

    Constraints:
    - (L1) the kernel exists and takes and gives as many values as the launch;
    - (L2) inputs and outputs are all tensors (and outputs are results), or all memory;
    - (L3) an operand has the kernel's type with `rows` as the dynamic dimension; a tensor may have more leading dimensions
      that multiply to the kernel's first;
    - (L4) `rows` is at least 1, and of a kernel of the runtime's library it is the number of rows that the kernel
      computes.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, ConfinedAttr<I64Attr, [IntPositive]>:$rows,
                       Variadic<AnyTypeOf<[RT_Memory, RT_Tensor]>>:$inputs,
                       Variadic<RT_Memory>:$outputs, RT_OnCompute:$queue);
  let results = (outs Variadic<RT_Tensor>:$results);
  let assemblyFormat = [{
    $kernel `rows` $rows `ins` `(` $inputs `:` type($inputs) `)` (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`->` type($results)^)? (`on` `` $queue^)? attr-dict
  }];
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::FlatSymbolRefAttr":$kernel, "int64_t":$rows,
                   "::mlir::ValueRange":$inputs)>,
    OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$kernel, "int64_t":$rows, "::mlir::ValueRange":$inputs,
                   "::mlir::ValueRange":$outputs, CArg<"Queue", "Queue::Compute">:$queue)>];
  let extraClassDeclaration = [{
    bool onValues() { return getOutputs().empty(); }
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
    Constraints:
    - (Y1) shapes and element types are the same.
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
  let summary = "Runs a collective on the communication queue; its event is set when it is done";
  let description = [{
    ```mlir
    %done = rt.start all_reduce with sum ins(%a : memref<8x4xf32, #rt.space<symmetric>>)
        outs(%b : memref<8x4xf32, #rt.space<symmetric>>) over <@mesh, {tp}> role "mlp.down" event 1
    ```
    Done means that the outputs are there and that no other rank reads this rank's inputs any more.

    The last values of an all_to_all_v are the counts. A send has no outputs and a recv no inputs:
    ```mlir
    %s = rt.start send ins(%a : memref<8xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {pp}>
    %r = rt.start recv outs(%b : memref<8xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {pp}>
    ```

    Constraints:
    - (R1) the group is of a known mesh; there is at least one value, in an all_to_all_v one beside the counts, and as
      many outputs as inputs, but no outputs of a send and no inputs of a recv;
    - (R2) inputs and outputs are contiguous symmetric memory;
    - (R3) outputs have the inputs' types, but for dimension `dim`: all_gather multiplies it by the group's size,
      reduce_scatter and all_to_all divide it, and all_to_all multiplies dimension `concat`;
    - (R4) all_reduce, reduce_scatter and reduce have a reduction, the others have none;
    - (R5) its event is waited for by exactly one rt.wait;
    - (R6) `dim` belongs to all_gather, reduce_scatter and all_to_all, `concat` to all_to_all, `root` to reduce and
      broadcast, `pairs` to permute, send and recv, `tag` to send and recv: there it is given, elsewhere it is not;
    - (R7) `root` and `pairs` hold positions of the group; `pairs` is source and target in turn, each position at most
      once as either, and in send and recv not both in one pair;
    - (R8) the values of an all_to_all_v are [blocks, capacity, ...] with one capacity, its counts [blocks] of i32 or i64,
      and the group's size divides the blocks;
    - (R9) `tag` is at least 0.
  }];
  let arguments = (ins RT_CollectiveKindAttr:$kind, OptionalAttr<Comm_ReduceKindAttr>:$reduce,
                       Arg<Variadic<RT_Memory>, "", [MemRead]>:$inputs, Arg<Variadic<RT_Memory>, "", [MemWrite]>:$outputs,
                       OptionalAttr<I64Attr>:$dim, OptionalAttr<I64Attr>:$concat, OptionalAttr<I64Attr>:$root,
                       OptionalAttr<DenseI64ArrayAttr>:$pairs, OptionalAttr<ConfinedAttr<I32Attr, [IntNonNegative]>>:$tag,
                       Comm_GroupAttr:$group, OptionalAttr<StrAttr>:$role, OptionalAttr<I64Attr>:$event);
  let results = (outs RT_EventType:$done);
  let assemblyFormat = [{
    `` $kind (`with` `` $reduce^)? (`ins` `(` $inputs^ `:` type($inputs) `)`)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`dim` $dim^)? (`concat` $concat^)? (`root` $root^)? (`pairs` $pairs^)? (`tag` $tag^)? `over` $group
    (`role` $role^)? (`event` $event^)? attr-dict
  }];
  let hasVerifier = 1;
}

def RT_WaitOp : RT_Op<"wait", [MemoryEffects<[MemRead<RT_QueueState>, MemWrite<RT_QueueState>]>]> {
  let summary = "The compute queue waits for a collective";
  let description = [{
    ```mlir
    rt.wait %done
    ```
    Kept apart from rt.await because the time spent in it is exposed communication.

    Constraints:
    - (N1) the event is that of an rt.start.
  }];
  let arguments = (ins RT_EventType:$event, RT_OnCompute:$queue);
  let assemblyFormat = "$event (`on` `` $queue^)? attr-dict";
  let hasVerifier = 1;
}

def RT_RecordOp : RT_Op<"record", [MemoryEffects<[MemRead<RT_QueueState>, MemWrite<RT_QueueState>]>]> {
  let summary = "An event that is set when the queue gets here";
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
  let summary = "A queue goes on when the event is set";
  let description = [{
    Constraints:
    - (E1) the event is that of an rt.record on another queue.
  }];
  let arguments = (ins RT_EventType:$event, RT_QueueAttr:$queue);
  let assemblyFormat = "$event `on` `` $queue attr-dict";
  let hasVerifier = 1;
}

#endif
