//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives in which a rank's data depends on its position in the group: all_to_all, and those with a root or with
// pairs of positions. Send and receive are the two sides of the latter.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMEXCHANGEOPS_TD
#define BRAID_DIALECTS_COMM_COMMEXCHANGEOPS_TD

include "dialects/Comm/IR/CommCollective.td"

def Comm_AllToAllOp : Comm_CollectiveOp<"all_to_all"> {
  let summary = "Every rank of a group sends each rank a chunk along a dimension";
  let description = [{
    In a group of n, every rank splits `inputs[i]` into n equal chunks along `split` and sends the p-th to the rank at
    position p, which concatenates the chunks it receives along `concat`, by the positions of the senders. A value
    sharded along `concat` over the group becomes sharded along `split`.

    ```mlir
    %r = comm.all_to_all(%x) split 2 concat 1 over <@mesh, {tp}> : tensor<8x32x384xf32> -> tensor<8x128x96xf32>
    ```

    Constraints:
    - (comm.all_to_all_c1) there is at least one value;
    - (comm.all_to_all_c2) there are as many results as operands;
    - (comm.all_to_all_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.all_to_all_c4) `split` and `concat` are dimensions of every operand;
    - (comm.all_to_all_c5) the group's size divides dimension `split`, and each result has its operand's type with
      dimension `split` divided and dimension `concat` multiplied by the group's size.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, I64Attr:$split_dim, I64Attr:$concat_dim, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `split` $split_dim `concat` $concat_dim `over` $group (`role` $role^)? attr-dict
    `:` type($inputs) `->` type($outputs)
  }];
}

def Comm_Counts : ConfinedType<StaticShapeTensorOf<[I32, I64]>,
    [CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == 1">, Comm_Bounded],
    "statically shaped tensor of rank 1 of at most 2^48 i32 or i64">;

def Comm_AllToAllVOp : Comm_CollectiveOp<"all_to_all_v", [DeclareOpInterfaceMethods<InferTypeOpInterface>],
                                         ["hasIndependentValues"]> {
  let summary = "Every rank of a group sends each rank as many rows as counts say";
  let description = [{
    `values[i]` is [blocks, capacity, ...] and `counts` [blocks]: the first `counts[b]` of the `capacity` rows of block
    b are valid. In a group of n, the rank at position p receives the p-th of n equal ranges of every rank's blocks, by
    the positions of the senders, with their counts. Rows beyond a block's count are not sent; the receiver has zeros
    there. With experts as blocks, tokens travel to their experts and back this way: shapes stay static, and the bytes
    sent follow the counts.

    ```mlir
    %r, %n = comm.all_to_all_v(%x) counts %c : tensor<8xi32> over <@mesh, {ep}> : tensor<8x64x384xf32>
    ```

    A count outside of [0, capacity] is an error at run time.

    Constraints:
    - (comm.all_to_all_v_c1) there is at least one value;
    - (comm.all_to_all_v_c2) every value has the dimensions blocks and capacity, the same in all, and there is one count
      for each block;
    - (comm.all_to_all_v_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.all_to_all_v_c4) the group's size divides the number of blocks;
    - (comm.all_to_all_v_c5, ODS) each result has its operand's type;
    - (comm.all_to_all_v_c6, ODS) element types are integers or floats.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$values, Comm_Counts:$counts, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$received, Comm_Counts:$received_counts);
  let assemblyFormat = [{
    `(` $values `)` `counts` $counts `:` type($counts) `over` $group (`role` $role^)? attr-dict `:` type($values)
  }];
}

def Comm_ReduceOp : Comm_CollectiveOp<"reduce", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Combines the values of all ranks of a group; one rank gets the result";
  let description = [{
    As `comm.all_reduce`, but only the rank at position `root` of the group gets the result; the others get zeros.

    ```mlir
    %r = comm.reduce sum(%x) to 0 over <@mesh, {tp}> : tensor<8x384xf32>
    ```

    Constraints:
    - (comm.reduce_c1) there is at least one value;
    - (comm.reduce_c2) there are as many results as operands;
    - (comm.reduce_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.reduce_c4, ODS) element types are integers or floats;
    - (comm.reduce_c5, ODS) each result has its operand's type;
    - (comm.reduce_c6) `root` is a position of the group.
  }];
  let arguments = (ins Comm_ReduceKindAttr:$kind, Variadic<Comm_Tensor>:$inputs, I64Attr:$root, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    custom<ReduceKind>($kind) `(` $inputs `)` `to` $root `over` $group (`role` $role^)? attr-dict `:` type($inputs)
  }];
}

def Comm_BroadcastOp : Comm_CollectiveOp<"broadcast", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Every rank of a group gets the value of one of them";
  let description = [{
    `outputs[i]` is, on every rank of the group, the `inputs[i]` of the rank at position `root`.

    ```mlir
    %r = comm.broadcast(%x) from 0 over <@mesh, {dp}> : tensor<8x384xf32>
    ```

    Constraints:
    - (comm.broadcast_c1) there is at least one value;
    - (comm.broadcast_c2) there are as many results as operands;
    - (comm.broadcast_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.broadcast_c4, ODS) each result has its operand's type;
    - (comm.broadcast_c5) `root` is a position of the group.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, I64Attr:$root, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `from` $root `over` $group (`role` $role^)? attr-dict `:` type($inputs)
  }];
}

def Comm_PermuteOp : Comm_CollectiveOp<"permute", [DeclareOpInterfaceMethods<InferTypeOpInterface>], ["hasSource"]> {
  let summary = "Ranks of a group send their values to other ranks";
  let description = [{
    For every pair `s -> t`, the rank at position t of the group receives the value of the rank at position s. Ranks
    that are no target receive zeros.

    ```mlir
    %r = comm.permute(%x) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<8x384xf32>
    ```

    Constraints:
    - (comm.permute_c1) there is at least one value;
    - (comm.permute_c2) there are as many results as operands;
    - (comm.permute_c3) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.permute_c4, ODS) element types are integers or floats;
    - (comm.permute_c5, ODS) each result has its operand's type;
    - (comm.permute_c6) `pairs` holds positions of the group, two for each pair;
    - (comm.permute_c7) no position is the source of two pairs, and none the target of two.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, DenseI64ArrayAttr:$pairs, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `pairs` custom<Pairs>($pairs) `over` $group (`role` $role^)? attr-dict `:` type($inputs)
  }];
}

def Comm_Tag : ConfinedAttr<I32Attr, [IntNonNegative]>;

def Comm_SendOp : Comm_CollectiveOp<"send", [], ["hasIndependentValues", "hasSource"]> {
  let summary = "The sending side of a permute";
  let description = [{
    For every pair `s -> t`, the rank at position s of the group sends its values to the rank at position t; other ranks
    do nothing. The n-th send to a rank on a tag matches that rank's n-th `comm.recv` from the sender on the
    tag. Unlike in a permute, the receive may stand elsewhere in the program, or in another function that other
    ranks run.

    A send does not wait for its receive while fewer than 4 messages of its rank to the target on the tag have not been
    received: a ring in which all ranks first send and then receive does not deadlock. Beyond, it waits until one is
    received. The operands may change after the send's wait.

    ```mlir
    comm.send(%x) pairs [0 -> 1, 1 -> 2] over <@mesh, {pp}> tag 1 role "activation" : tensor<8x384xf32>
    ```

    Constraints:
    - (comm.send_c1) there is at least one value;
    - (comm.send_c2) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.send_c3, ODS) element types are integers or floats;
    - (comm.send_c4) `pairs` holds positions of the group, two for each pair;
    - (comm.send_c5) no position is the source of two pairs, and none the target of two;
    - (comm.send_c6) no position sends to itself;
    - (comm.send_c7, ODS) `tag` is at least 0.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, DenseI64ArrayAttr:$pairs, Comm_GroupAttr:$group,
                       DefaultValuedAttr<Comm_Tag, "0">:$tag, OptionalAttr<StrAttr>:$role);
  let assemblyFormat = [{
    `(` $inputs `)` `pairs` custom<Pairs>($pairs) `over` $group (`tag` $tag^)? (`role` $role^)? attr-dict
    `:` type($inputs)
  }];
  // Removing a send or receive would leave its counterpart without a match.
  let hasCanonicalizer = 0;
}

def Comm_RecvOp : Comm_CollectiveOp<"recv", [], ["hasIndependentValues"]> {
  let summary = "The receiving side of a permute";
  let description = [{
    For every pair `s -> t`, the rank at position t of the group receives the values of the matching `comm.send` of the
    rank at position s: the n-th receive from a rank on a tag matches the n-th send, which must have values of the
    same types. Ranks that are no target receive zeros.

    ```mlir
    %r = comm.recv pairs [0 -> 1, 1 -> 2] over <@mesh, {pp}> tag 1 role "activation" : tensor<8x384xf32>
    ```

    Constraints:
    - (comm.recv_c1) there is at least one value;
    - (comm.recv_c2) the group names a mesh of the module and axes of it, and sub-axes divide their axis;
    - (comm.recv_c3, ODS) element types are integers or floats;
    - (comm.recv_c4) `pairs` holds positions of the group, two for each pair;
    - (comm.recv_c5) no position is the source of two pairs, and none the target of two;
    - (comm.recv_c6) no position sends to itself;
    - (comm.recv_c7, ODS) `tag` is at least 0.
  }];
  let arguments = (ins DenseI64ArrayAttr:$pairs, Comm_GroupAttr:$group,
                       DefaultValuedAttr<Comm_Tag, "0">:$tag, OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `pairs` custom<Pairs>($pairs) `over` $group (`tag` $tag^)? (`role` $role^)? attr-dict `:` type($outputs)
  }];
  let hasCanonicalizer = 0;
}

#endif
