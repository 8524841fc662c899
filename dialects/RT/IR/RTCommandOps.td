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
    - (L4) `rows` is at least 1.
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
                   "::mlir::ValueRange":$outputs)>];
  let extraClassDeclaration = [{
    bool onValues() { return getOutputs().empty(); }
    /// The kernel that `kernel` names; null before symbols are verified if there is none.
    KernelOp getKernelOp();
  }];
}

def RT_ProductOp : RT_CommandOp<"product"> {
  let summary = "out = lhs . rhs^T (+ bias), accumulated in f32";
  let description = [{
    ```mlir
    rt.product ins(%x, %w : memref<8x128x384xf32>, memref<1536x384xf32>) bias(%b : memref<1536xf32>)
        outs(%o : memref<8x128x1536xf32, #rt.space<local>>)
    ```
    The leading dimensions of lhs and out are one.

    Constraints:
    - (D1) lhs [m..., k], rhs [n, k], out [m..., n] and bias [n] agree;
    - (D2) all have one element type.
  }];
  let arguments = (ins RT_Reads<RT_Memory>:$lhs, RT_Reads<RT_Memory>:$rhs, Arg<Optional<RT_Memory>, "", [MemRead]>:$bias,
                       RT_Writes<RT_Memory>:$out, RT_OnCompute:$queue);
  let assemblyFormat = [{
    `ins` `(` $lhs `,` $rhs `:` type($lhs) `,` type($rhs) `)` (`bias` `(` $bias^ `:` type($bias) `)`)?
    `outs` `(` $out `:` type($out) `)` (`on` `` $queue^)? attr-dict
  }];
}

def RT_AttentionOp : RT_CommandOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    ```mlir
    rt.attention causal ins(%q, %k, %v : ...) mask(%m : memref<8x128xi64>) outs(%o : ...) scale 0.125
    ```
    Means what nn.attention means, on memory.

    Constraints:
    - (T1) query [b, s, h, d], key [b, t, g, d], value [b, t, g, e] and out [b, s, h, e] agree, and g divides h;
    - (T2) they have one element type;
    - (T3) mask [b, t], valid_length [b] and position_offset [b] are i32 or i64.
  }];
  let arguments = (ins RT_Reads<RT_Memory>:$query, RT_Reads<RT_Memory>:$key, RT_Reads<RT_Memory>:$value,
                       Arg<Optional<RT_Memory>, "", [MemRead]>:$mask,
                       Arg<Optional<RT_Memory>, "", [MemRead]>:$valid_length,
                       Arg<Optional<RT_Memory>, "", [MemRead]>:$position_offset,
                       RT_Writes<RT_Memory>:$out, F64Attr:$scale, UnitAttr:$causal, RT_OnCompute:$queue);
  let assemblyFormat = [{
    (`causal` $causal^)? `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,` type($value) `)`
    (`mask` `(` $mask^ `:` type($mask) `)`)? (`valid_length` `(` $valid_length^ `:` type($valid_length) `)`)?
    (`position_offset` `(` $position_offset^ `:` type($position_offset) `)`)?
    `outs` `(` $out `:` type($out) `)` `scale` $scale (`on` `` $queue^)? attr-dict
  }];
}

def RT_RotaryTableOp : RT_CommandOp<"rotary_table"> {
  let summary = "Cosines and sines of the angles that positions turn by";
  let description = [{
    ```mlir
    rt.rotary_table [1.0, 0.01] outs(%cos, %sin : memref<128x2xf32>, memref<128x2xf32>)
    rt.rotary_table [1.0, 0.01] position_offset(%p : memref<8xi64>) scale 1.2
        outs(%c, %s : memref<8x128x2xf32>, memref<8x128x2xf32>)
    ```
    Means what nn.rotary_table means, on memory.

    Constraints:
    - (A1) cos and sin have one type, of shape [s, n] without and [b, s, n] with position_offset [b] of i32 or i64, n the
      number of frequencies, which is at least 1;
    - (A2) frequencies and scale are finite.
  }];
  let arguments = (ins DenseF64ArrayAttr:$frequencies, DefaultValuedAttr<F64Attr, "1.0">:$scale,
                       Arg<Optional<RT_Memory>, "", [MemRead]>:$position_offset,
                       RT_Writes<RT_Memory>:$cos, RT_Writes<RT_Memory>:$sin, RT_OnCompute:$queue);
  let assemblyFormat = [{
    $frequencies (`position_offset` `(` $position_offset^ `:` type($position_offset) `)`)? (`scale` $scale^)?
    `outs` `(` $cos `,` $sin `:` type($cos) `,` type($sin) `)` (`on` `` $queue^)? attr-dict
  }];
}

def RT_RotaryOp : RT_CommandOp<"rotary"> {
  let summary = "Turns pairs of a head's elements by their position's angles";
  let description = [{
    ```mlir
    rt.rotary ins(%q, %cos, %sin : memref<8x128x9x64xf32>, memref<128x32xf32>, memref<128x32xf32>)
        outs(%o : memref<8x128x9x64xf32>)
    ```
    Means what nn.rotary means, on memory. A command of its own rather than a kernel: either half of a head's row is needed
    for the other, where a kernel's operands are read at one column.

    Constraints:
    - (O1) input and out are [b, s, h, 2 * n], cos and sin both [s, n] or both [b, s, n];
    - (O2) all have one element type.
  }];
  let arguments = (ins RT_Reads<RT_Memory>:$input, RT_Reads<RT_Memory>:$cos, RT_Reads<RT_Memory>:$sin,
                       RT_Writes<RT_Memory>:$out, RT_OnCompute:$queue);
  let assemblyFormat = [{
    `ins` `(` $input `,` $cos `,` $sin `:` type($input) `,` type($cos) `,` type($sin) `)`
    `outs` `(` $out `:` type($out) `)` (`on` `` $queue^)? attr-dict
  }];
}

def RT_GatherOp : RT_CommandOp<"gather", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "out[..., :] = source[ids[...], :]";
  let description = [{
    With a group, source is this rank's part of a table that is cut by rows: an id in another rank's part gives zeros.
    With `rows`, the whole table has no more of them: what follows is padding, and an id there is an error.

    ```mlir
    rt.gather ins(%table, %ids : memref<30522x384xf32>, memref<8x128xi64>) outs(%o : memref<8x128x384xf32>)
    rt.gather ins(%part, %ids : memref<15261x384xf32>, memref<8x128xi64>) outs(%o : memref<8x128x384xf32>) over <@mesh, {tp}>
    ```
    Constraints:
    - (G1) source [n, h] and out [i..., h] have one element type, ids [i...] is i32 or i64;
    - (G2) the group, if any, is of a known mesh;
    - (G3) `rows` is at least 1, and the whole table has as many.
  }];
  let arguments = (ins RT_Reads<RT_Memory>:$source, RT_Reads<RT_Memory>:$ids, RT_Writes<RT_Memory>:$out,
                       OptionalAttr<I64Attr>:$rows, OptionalAttr<Comm_GroupAttr>:$group, RT_OnCompute:$queue);
  let assemblyFormat = [{
    `ins` `(` $source `,` $ids `:` type($source) `,` type($ids) `)` `outs` `(` $out `:` type($out) `)`
    (`rows` $rows^)? (`over` $group^)? (`on` `` $queue^)? attr-dict
  }];
}

def RT_PositionIdsOp : RT_CommandOp<"position_ids"> {
  let summary = "Positions of a sequence's tokens, padding not counted";
  let description = [{
    ```mlir
    rt.position_ids ins(%ids : memref<8x128xi64>) padding 1 outs(%o : memref<8x128xi64>)
    ```
    Means what nn.position_ids means, on memory.

    Constraints:
    - (I1) ids and out [b, s] have one type, of i32 or i64.
  }];
  let arguments = (ins RT_Reads<RT_Memory>:$ids, I64Attr:$padding, RT_Writes<RT_Memory>:$out, RT_OnCompute:$queue);
  let assemblyFormat = [{
    `ins` `(` $ids `:` type($ids) `)` `padding` $padding `outs` `(` $out `:` type($out) `)` (`on` `` $queue^)? attr-dict
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

def RT_LocalSliceOp : RT_Op<"local_slice", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Copies this rank's part of memory along a dimension";
  let description = [{
    ```mlir
    rt.local_slice ins(%x : memref<8x4xf32>) outs(%y : memref<4x4xf32>) dim 0 over <@mesh, {dp}>
    ```
    Constraints:
    - (S1) the group is of a known mesh, and dest is source with dimension `dim` divided by the group's size.
  }];
  let arguments = (ins RT_Reads<RT_Memory>:$source, RT_Writes<RT_Memory>:$dest, I64Attr:$dim, Comm_GroupAttr:$group,
                       RT_OnCompute:$queue);
  let assemblyFormat = [{
    `ins` `(` $source `:` type($source) `)` `outs` `(` $dest `:` type($dest) `)` `dim` $dim `over` $group
    (`on` `` $queue^)? attr-dict
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
    %s = rt.start send ins(%a : memref<8xf32, #rt.space<symmetric>>) pairs [0, 1] channel 0 over <@mesh, {pp}>
    %r = rt.start recv outs(%b : memref<8xf32, #rt.space<symmetric>>) pairs [0, 1] channel 0 over <@mesh, {pp}>
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
      broadcast, `pairs` to permute, send and recv, `channel` to send and recv: there it is given, elsewhere it is not;
    - (R7) `root` and `pairs` hold positions of the group; `pairs` is source and target in turn, each position at most
      once as either, and in send and recv not both in one pair;
    - (R8) the values of an all_to_all_v are [blocks, capacity, ...] with one capacity, its counts [blocks] of i32 or i64,
      and the group's size divides the blocks;
    - (R9) `channel` is at least 0.
  }];
  let arguments = (ins RT_CollectiveKindAttr:$kind, OptionalAttr<Comm_ReduceKindAttr>:$reduce,
                       Arg<Variadic<RT_Memory>, "", [MemRead]>:$inputs, Arg<Variadic<RT_Memory>, "", [MemWrite]>:$outputs,
                       OptionalAttr<I64Attr>:$dim, OptionalAttr<I64Attr>:$concat, OptionalAttr<I64Attr>:$root,
                       OptionalAttr<DenseI64ArrayAttr>:$pairs, OptionalAttr<ConfinedAttr<I32Attr, [IntNonNegative]>>:$channel,
                       Comm_GroupAttr:$group, OptionalAttr<StrAttr>:$role, OptionalAttr<I64Attr>:$event);
  let results = (outs RT_EventType:$done);
  let assemblyFormat = [{
    `` $kind (`with` `` $reduce^)? (`ins` `(` $inputs^ `:` type($inputs) `)`)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`dim` $dim^)? (`concat` $concat^)? (`root` $root^)? (`pairs` $pairs^)? (`channel` $channel^)? `over` $group
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
