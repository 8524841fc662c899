//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Passes that let collectives of a partitioned module travel in fewer bits.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_TRANSFORMS_ENCODINGPASSES_TD
#define BRAID_TRANSFORMS_ENCODINGPASSES_TD

include "mlir/Pass/PassBase.td"

def QuantizeCollectives : Pass<"braid-quantize-collectives", "::mlir::ModuleOp"> {
  let summary = "Say how the values of collectives are encoded";
  let description = [{
    `encodings` is a list of `PATTERN=ENCODING`, of which the last one that matches a collective counts. A pattern is the
    role of a collective, or the path to it, with `*`, `?` and `[...]` as in file names:

        *=int8:128                                   every collective that can be encoded
        mlp.down=int4:128+spikes/int8:128            4 bits to the rank that adds, 8 bits for the sum
        @main/@layer#3/mlp.down=bf16                 of one call only, which gets a callee of its own
        attention.*=none                             what an earlier pattern encoded travels as it is

    Of an encoding with two halves, a reduce_scatter takes the first, and any collective but an all_reduce the second.

    Before, with `encodings=*=int8:128`:
    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<4x8x576xf32>
    ```
    After:
    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" {comm.encoding = #comm.encoding<"int8:128">}
        : tensor<4x8x576xf32>
    ```

    A pattern that matches nothing is an error, and so is one without `*`, `?` and `[` that matches a collective which cannot
    be encoded: one of integers or of f64, of a maximum or minimum, a comm.reduce, or one in a comm.start. Other patterns pass over
    those, with a remark.

    With a `machine`, a file or a name (docs/costs.md), a collective is encoded only where it is predicted to take at least 15 %
    less time than as it is, by itself, in the group that takes longest; a remark has both times. `hosts` and
    `transport` say where the ranks are. An encoding with `!` behind it, as in `mlp.down=int4:128!`, is taken whatever the times are. A
    machine that does not tell the times is an error.
  }];
  let options = [
    Option<"encodings", "encodings", "std::string", /*default=*/"\"\"",
           "List of PATTERN=ENCODING, separated by commas">,
    Option<"machine", "machine", "std::string", /*default=*/"\"\"",
           "machine file, or the name of a known machine: encode only where that is faster">,
    Option<"transport", "transport", "std::string", /*default=*/"\"\"",
           "threads, shm or ucx (default: shm on one host, ucx over several)">,
    ListOption<"hosts", "hosts", "int64_t", "ranks of each host, in order (default: all on one)">,
    Option<"threads", "threads", "int64_t", /*default=*/"1", "threads of a rank">,
  ];
  let statistics = [Statistic<"numEncoded", "num-encoded", "Collectives with an encoding">];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

def ExpandEncoded : Pass<"braid-expand-encoded", "::mlir::ModuleOp"> {
  let summary = "Make encoded collectives of codecs and collectives of bytes";
  let description = [{
    An all_reduce is the two steps of Flash Communication (algorithm 1): each rank sends the parts of its payload to
    the ranks that add them, which decode them and add them in the order of positions in f32, and send their sum to all. What a
    rank has of the rows that it adds itself does not travel, and is added as it is.
    Rows that the ranks do not divide are cut where whole groups allow, and padded otherwise.

    Before:
    ```mlir
    %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" {comm.encoding = #comm.encoding<"int4:128/int8:128">}
        : tensor<8x384xf32>
    ```
    After, over 2 ranks:
    ```mlir
    %p = nn.encode %x as <"int4:128"> : tensor<8x384xf32> -> tensor<2x832xi8>
    %q = comm.all_to_all(%p) split 0 concat 0 over <@mesh, {tp}> role "mlp.down/all_to_all"
        : tensor<2x832xi8> -> tensor<2x832xi8>
    %own = comm.part %x dim 0 over <@mesh, {tp}> : tensor<8x384xf32> -> tensor<4x384xf32>
    %s = nn.decode_sum %q own %own over <@mesh, {tp}> senders 2 as <"int4:128"> of f32
        : tensor<2x832xi8>, tensor<4x384xf32> -> tensor<4x384xf32>
    %e = nn.encode %s as <"int8:128"> : tensor<4x384xf32> -> tensor<1x1600xi8>
    %g = comm.all_gather(%e) dim 0 over <@mesh, {tp}> role "mlp.down/all_gather" : tensor<1x1600xi8> -> tensor<2x1600xi8>
    %r = nn.decode %g as <"int8:128"> of f32 : tensor<2x1600xi8> -> tensor<8x384xf32>
    ```
    A collective of much payload is cut at whole rows into chunks, each with at least `message-bytes` of payload for every rank
    in either half, so that links carry one chunk while others are encoded, added and decoded. At most four
    chunks are sent ahead of the one that is added, and a chunk is decoded four behind it. Each has equally many rows for every rank to add; so which rows
    of an all_reduce a rank adds itself depends on the number of chunks. Chunks are slices and concatenations, which move no data: where a chunk has rows of a piece for each rank, each piece has
    an encode or a decode of its own. Only where other dimensions are before the pieces, its rows are copied for the codec.

    With `message-bytes=1024`, what is done with a tensor<16x256xf32> in 8 bits:
    ```mlir
    %x0 = nn.slice %x dim 0 from 0 size 8 : tensor<16x256xf32> -> tensor<8x256xf32>
    %p0 = nn.encode %x0 as <"int8:128"> : tensor<8x256xf32> -> tensor<2x1072xi8>
    %q0 = comm.all_to_all(%p0) split 0 concat 0 over <@mesh, {tp}> role "mlp.down/chunk#0/all_to_all" : tensor<2x1072xi8> -> tensor<2x1072xi8>
    %x1 = nn.slice %x dim 0 from 8 size 8 : tensor<16x256xf32> -> tensor<8x256xf32>
    %p1 = nn.encode %x1 as <"int8:128"> : tensor<8x256xf32> -> tensor<2x1072xi8>
    %q1 = comm.all_to_all(%p1) split 0 concat 0 over <@mesh, {tp}> role "mlp.down/chunk#1/all_to_all" : tensor<2x1072xi8> -> tensor<2x1072xi8>
    %own0 = comm.part %x0 dim 0 over <@mesh, {tp}> : tensor<8x256xf32> -> tensor<4x256xf32>
    %s0 = nn.decode_sum %q0 own %own0 over <@mesh, {tp}> senders 2 as <"int8:128"> of f32
        : tensor<2x1072xi8>, tensor<4x256xf32> -> tensor<4x256xf32>
    ...
    %r = nn.concat %r0, %r1 dim 0 : tensor<8x256xf32>, tensor<8x256xf32> -> tensor<16x256xf32>
    ```
    A reduce_scatter is the first step; any other collective exchanges payloads in place of values. Exchanges of several chunks are named
    `mlp.down/chunk#0`. A reduce_scatter and an all_gather are cut along the rows of a rank's part (of all rows, where the last dimension is divided or
    joined), an all_to_all along the longest dimension of the part that goes to a rank but its columns, and a broadcast, permute, send or
    recv at any row. An all_to_all_v is in one chunk, as its counts say at run time how much is sent.

    A recv is cut as its send is, which has the same types. A send waits where 4 messages of its tag have not been received, so that a ring of ranks
    which all send first would wait for ever if all chunks had one tag. The chunks of one number of all messages of a tag have a tag of their
    own, and so wait for each other where the messages would: the first ones have the message's, the others one above those of the module.

    In a group of one rank nothing is sent, and nothing is encoded.
  }];
  let options = [
    Option<"messageBytes", "message-bytes", "int64_t", /*default=*/"::braid::cost::EncodedChunks().leastMessageBytes",
           "least bytes of payload for each rank in each of several chunks; 0: one chunk">,
    Option<"mostChunks", "most-chunks", "int64_t", /*default=*/"::braid::cost::EncodedChunks().most", "most chunks of a collective">,
  ];
  let statistics = [Statistic<"numExpanded", "num-expanded", "Collectives expanded">];
  let dependentDialects = ["::braid::comm::CommDialect", "::braid::nn::NNDialect", "::mlir::tensor::TensorDialect"];
}

#endif
