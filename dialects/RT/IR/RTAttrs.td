//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_RT_RTATTRS_TD
#define BRAID_DIALECTS_RT_RTATTRS_TD

include "dialects/RT/IR/RTBase.td"

def RT_Space : I32EnumAttr<"Space", "which planned arena of a rank a buffer lives in", [
    I32EnumAttrCase<"Local", 0, "local">, I32EnumAttrCase<"Symmetric", 1, "symmetric">]> {
  let cppNamespace = "::braid::rt";
  let genSpecializedAttr = 0;
}
def RT_SpaceAttr : EnumAttr<RT_Dialect, RT_Space, "space"> {
  let summary = "memory space of a planned buffer";
  let description = [{
    `local` is a rank's own memory; `symmetric` is memory that the transport allocates on every rank at the same
    offset, and what collectives read and write. A memref without a space is memory that the caller passed in.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def RT_Queue : I32EnumAttr<"Queue", "which of a rank's workers runs a command", [
    I32EnumAttrCase<"Compute", 0, "compute">, I32EnumAttrCase<"Communication", 1, "communication">]> {
  let cppNamespace = "::braid::rt";
  let genSpecializedAttr = 0;
}
def RT_QueueAttr : EnumAttr<RT_Dialect, RT_Queue, "queue"> {
  let assemblyFormat = "$value";
}
def RT_OnCompute : DefaultValuedAttr<RT_QueueAttr, "::braid::rt::Queue::Compute">;

def RT_CollectiveKind : I32EnumAttr<"CollectiveKind", "what a collective does", [
    I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"ReduceScatter", 1, "reduce_scatter">,
    I32EnumAttrCase<"AllGather", 2, "all_gather">, I32EnumAttrCase<"AllToAll", 3, "all_to_all">,
    I32EnumAttrCase<"Reduce", 4, "reduce">, I32EnumAttrCase<"Broadcast", 5, "broadcast">,
    I32EnumAttrCase<"Permute", 6, "permute">, I32EnumAttrCase<"AllToAllV", 7, "all_to_all_v">,
    I32EnumAttrCase<"Send", 8, "send">, I32EnumAttrCase<"Recv", 9, "recv">]> {
  let cppNamespace = "::braid::rt";
  let genSpecializedAttr = 0;
}
def RT_CollectiveKindAttr : EnumAttr<RT_Dialect, RT_CollectiveKind, "collective"> {
  let assemblyFormat = "$value";
}

def RT_FrameAttr : RT_Attr<"Frame", "frame"> {
  let summary = "extent of a procedure's frame, or where a callee's frame lies in the caller's";
  let description = [{
    Bytes in the local and in the symmetric arena, and events: `<local 4096, symmetric 128, events 2>`.
    Constraints: (F1) none is negative; (F2) there are at most 2^31 - 1 events.
  }];
  let parameters = (ins "int64_t":$local, "int64_t":$symmetric, "int64_t":$events);
  let assemblyFormat = "`<` `local` $local `,` `symmetric` $symmetric `,` `events` $events `>`";
  let genVerifyDecl = 1;
}

def RT_ValueAttr : RT_Attr<"Value", "value"> {
  let summary = "an entry's operand or result as the outside knows it";
  let description = [{
    Stands on arguments of an entry procedure, as `rt.operand` or `rt.result`: the name that input and output files go
    by, the type of the whole value, and which part of it a rank holds (all, without a sharding). A result may be the
    beginning of a larger value, of which ranks hold parts:
    `#rt.value<"logits" of tensor<8x61xf32> padded tensor<8x62xf32> sharded <@mesh, [{}, {tp} ]>>`. An operand may say what
    every element is when it is left out, and what all elements are below:
    `#rt.value<"attention_mask" of tensor<8x61xi64> default 1 : i64 below 2 : i64>`.

    Constraints:
    - (V1) the name is not empty;
    - (V4) the type is statically shaped, of at most 2^48 elements, and so is the padded type;
    - (V3) the padded type has the rank and element type of the value's, and is as large in every dimension; only results
      have one;
    - (V5) default and bound are integers of the element type, the bound at least 1 and the default in [0, bound); only
      operands have them.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "::mlir::RankedTensorType":$globalType,
                        OptionalParameter<"::mlir::RankedTensorType">:$paddedType,
                        OptionalParameter<"::braid::comm::ShardingAttr">:$sharding,
                        OptionalParameter<"::mlir::IntegerAttr">:$defaultValue, OptionalParameter<"::mlir::IntegerAttr">:$below);
  let assemblyFormat = [{
    `<` $name `of` $globalType (`padded` $paddedType^)? (`sharded` $sharding^)? (`default` $defaultValue^)?
    (`below` $below^)? `>`
  }];
  let genVerifyDecl = 1;
}

def RT_ParameterAttr : RT_Attr<"Parameter", "parameter"> {
  let summary = "an entry's weight: where the loader takes it from";
  let description = [{
    Stands on arguments of an entry procedure, as `rt.parameter`: name, whole type and sharding as #rt.value, what random
    weights it gets, and the #nn.slice list that it is put together from.
    Constraints: (V1) the name is not empty; (V2) `slices` holds #nn.slice attributes only; (V4) the type is
    statically shaped, of at most 2^48 elements.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "::mlir::RankedTensorType":$globalType,
                        OptionalParameter<"::braid::comm::ShardingAttr">:$sharding, "::braid::nn::InitKindAttr":$init,
                        "::mlir::ArrayAttr":$slices);
  let assemblyFormat = "`<` $name `of` $globalType (`sharded` $sharding^)? `init` `` $init `slices` $slices `>`";
  let genVerifyDecl = 1;
}

def RT_EventType : RT_Type<"Event", "event"> {
  let summary = "something a queue has done that another queue can wait for";
}

#endif
