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
    `local` is a rank's own memory. `symmetric` is memory that the transport allocates on every rank at the same
    offset; collectives read and write it. A memref without a space is memory that the caller passed in.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def RT_QueueKind : I32EnumAttr<"QueueKind", "what a queue is for", [
    I32EnumAttrCase<"Compute", 0, "compute">, I32EnumAttrCase<"Communication", 1, "communication">,
    I32EnumAttrCase<"Copy", 2, "copy">]> {
  let cppNamespace = "::braid::rt";
}
def RT_QueueAttr : RT_Attr<"Queue", "queue"> {
  let summary = "one of a rank's queues";
  let description = [{
    A queue runs its commands in order, beside the other queues: `compute`, `communication`, which is short for
    `communication<0>`, `communication<1>`, ..., or `copy`.

    Constraints:
    - (rt.queue_c1) the index of a communication queue is at least 0 and below 8, and that of another queue is 0.
  }];
  let parameters = (ins EnumParameter<RT_QueueKind>:$kind, DefaultValuedParameter<"int64_t", "0">:$index);
  let assemblyFormat = "$kind (`<` $index^ `>`)?";
  let genVerifyDecl = 1;
  let constBuilderCall = "::braid::rt::QueueAttr::get($_builder.getContext(), $0)";
  let builders = [AttrBuilder<(ins "::braid::rt::QueueKind":$kind), [{ return $_get($_ctxt, kind, 0); }]>];
  let extraClassDeclaration = [{
    static constexpr int64_t kMaxCommunicationQueues = ::braid::comm::StartOp::kMaxQueues;
    bool isCompute() const { return getKind() == QueueKind::Compute; }
    bool isCommunication() const { return getKind() == QueueKind::Communication; }
    /// As it is printed in operations, and in messages: `communication<1>`.
    std::string str() const;
  }];
}
def RT_OnCompute : DefaultValuedAttr<RT_QueueAttr, "::braid::rt::QueueKind::Compute">;
def RT_OnCommunication : DefaultValuedAttr<RT_QueueAttr, "::braid::rt::QueueKind::Communication">;

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

    Constraints:
    - (rt.frame_c1) none is negative;
    - (rt.frame_c2) there are at most 2^31 - 1 events.
  }];
  let parameters = (ins "int64_t":$local, "int64_t":$symmetric, "int64_t":$events);
  let assemblyFormat = "`<` `local` $local `,` `symmetric` $symmetric `,` `events` $events `>`";
  let genVerifyDecl = 1;
}

def RT_ValueAttr : RT_Attr<"Value", "value"> {
  let summary = "an entry's state, operand or result as a caller sees it";
  let description = [{
    An attribute `rt.state`, `rt.operand` or `rt.result` of an argument of an entry procedure: the name in input and
    output files, the global type, and the sharding (replicated without one). A state or result may be padded: ranks then
    hold shards of the padded value, and the value that callers see is its beginning:
    `#rt.value<"logits" of tensor<8x61xf32> padded tensor<8x62xf32> sharded <@mesh, [{}, {tp} ]>>`. An operand may have
    a default, which fills it when the caller leaves it out, and an exclusive upper bound of its elements:
    `#rt.value<"attention_mask" of tensor<8x61xi64> default 1 : i64 below 2 : i64>`. With `on`, only the ranks of a
    place have it.

    Constraints:
    - (rt.value_c1) the name is not empty;
    - (rt.value_c2) the type is statically shaped, of at most 2^48 elements, and so is the padded type;
    - (rt.value_c3) the padded type has the rank and element type of the value's, and is at least as large in every
      dimension;
    - (rt.value_c4) only states and results have a padded type;
    - (rt.value_c5) default and bound are integers of the element type, the bound at least 1 and the default in
      [0, bound);
    - (rt.value_c6) only operands have a default or a bound.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "::mlir::RankedTensorType":$globalType,
                        OptionalParameter<"::mlir::RankedTensorType">:$paddedType,
                        OptionalParameter<"::braid::comm::ShardingAttr">:$sharding,
                        OptionalParameter<"::mlir::IntegerAttr">:$defaultValue, OptionalParameter<"::mlir::IntegerAttr">:$below,
                        OptionalParameter<"::braid::comm::PlaceAttr">:$place);
  let assemblyFormat = [{
    `<` $name `of` $globalType (`padded` $paddedType^)? (`sharded` $sharding^)? (`on` $place^)? (`default` $defaultValue^)?
    (`below` $below^)? `>`
  }];
  let genVerifyDecl = 1;
}

def RT_ParameterAttr : RT_Attr<"Parameter", "parameter"> {
  let summary = "an entry's weight: where the loader takes it from";
  let description = [{
    An attribute `rt.parameter` of an argument of an entry procedure: name, global type, sharding and place as in #rt.value, the
    distribution of random weights, the #nn.slice list that assembles it from checkpoint tensors, and what it is of the quantized
    matrix, as in nn.parameter.

    Constraints:
    - (rt.parameter_c1) the name is not empty;
    - (rt.parameter_c2) the type is statically shaped, of at most 2^48 elements;
    - (rt.parameter_c3) `slices` holds #nn.slice attributes only.
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "::mlir::RankedTensorType":$globalType,
                        OptionalParameter<"::braid::comm::ShardingAttr">:$sharding,
                        OptionalParameter<"::braid::comm::PlaceAttr">:$place, "::braid::nn::InitKindAttr":$init,
                        "::mlir::ArrayAttr":$slices, OptionalParameter<"::braid::nn::QuantizedPartAttr">:$quantized);
  let assemblyFormat = [{
    `<` $name `of` $globalType (`sharded` $sharding^)? (`on` $place^)? `init` `` $init `slices` $slices (`quantized` `` $quantized^)? `>`
  }];
  let genVerifyDecl = 1;
}

def RT_PayloadAttr : RT_Attr<"Payload", "payload"> {
  let summary = "the payload that a kernel's rows are read from or written to";
  let description = [{
    An attribute `rt.payload` of an argument or a result of an rt.kernel with a body, whose type is that of the rows which
    the body reads or gives: launches have a payload of all of their rows in its place, i8 whose last dimension is the
    bytes of a part (braid/Base/Encoding.h). `#rt.payload<"int8:128" of f32>` on an argument stands for what `nn.decode`
    gives, of a tensor of the type `of`, and with `absent` as there; with `senders 4` for what `nn.decode_sum` gives. With `own 1 over <@mesh, {tp}>`,
    argument 1 has the rows that the rank adds itself, as `own` of `nn.decode_sum`; the body need not use it. On a result it is what
    `nn.encode` makes, with `over <@mesh, {tp}> first 2` as there.

    Constraints:
    - (rt.payload_c1) the encoding is one, not two;
    - (rt.payload_c2) the encoded type is f32, f16 or bf16;
    - (rt.payload_c3) `senders`, if given, is at least 1, and then there is no `absent`;
    - (rt.payload_c4) `own` is an argument's number, and stands beside `senders` and `over` only;
    - (rt.payload_c5) `first` is at least 0, and stands beside `over` and without `senders` only.
  }];
  let parameters = (ins "::braid::comm::EncodingAttr":$encoding, "::mlir::Type":$type,
                        DefaultValuedParameter<"int64_t", "0">:$senders, DefaultValuedParameter<"bool", "false">:$absent,
                        DefaultValuedParameter<"int64_t", "-1">:$own, OptionalParameter<"::braid::comm::GroupAttr">:$group,
                        DefaultValuedParameter<"int64_t", "0">:$first);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def RT_EventType : RT_Type<"Event", "event"> {
  let summary = "a point in one queue's stream that another queue can wait for";
}

#endif
