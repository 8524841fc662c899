//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives in which what a rank sends or gets depends on its position in the group: all_to_all, and those with a root
// or with pairs of positions.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMEXCHANGEOPS_TD
#define BRAID_DIALECTS_COMM_COMMEXCHANGEOPS_TD

include "dialects/Comm/IR/CommCollective.td"

def Comm_AllToAllOp : Comm_CollectiveOp<"all_to_all"> {
  let summary = "Every rank of a group sends each rank its part along a dimension";
  let description = [{
    In a group of n, every rank cuts `inputs[i]` into n equal parts along `split` and sends the p-th to the rank at
    position p, which joins what it gets along `concat`, by the positions of the senders. A value that is cut along
    `concat` over the group thereby becomes cut along `split`.

    ```mlir
    %r = comm.all_to_all(%x) split 2 concat 1 over <@mesh, {tp}> : tensor<8x32x384xf32> -> tensor<8x128x96xf32>
    ```

    Constraints:
    - (C1) there is at least one value;
    - (C2) there are as many results as operands;
    - (C3) the group names a mesh of the module, and each of its axes is the mesh's, a sub-axis divides its axis;
    - (C4) `split` and `concat` are dimensions of every operand;
    - (C5) the group's size divides dimension `split`, and each result has its operand's type with dimension `split`
      divided and dimension `concat` multiplied by the group's size.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, I64Attr:$split_dim, I64Attr:$concat_dim, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `split` $split_dim `concat` $concat_dim `over` $group (`role` $role^)? attr-dict
    `:` type($inputs) `->` type($outputs)
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
    - (C1) there is at least one value;
    - (C2) there are as many results as operands;
    - (C3) the group names a mesh of the module, and each of its axes is the mesh's, a sub-axis divides its axis;
    - (C4) element types are integers or floats;
    - (C5) each result has its operand's type;
    - (C6) `root` is a position of the group.
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
    `outputs[i]` is, on every rank of the group, what the rank at position `root` has as `inputs[i]`.

    ```mlir
    %r = comm.broadcast(%x) from 0 over <@mesh, {dp}> : tensor<8x384xf32>
    ```

    Constraints:
    - (C1) there is at least one value;
    - (C2) there are as many results as operands;
    - (C3) the group names a mesh of the module, and each of its axes is the mesh's, a sub-axis divides its axis;
    - (C4) each result has its operand's type;
    - (C5) `root` is a position of the group.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, I64Attr:$root, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `from` $root `over` $group (`role` $role^)? attr-dict `:` type($inputs)
  }];
}

def Comm_PermuteOp : Comm_CollectiveOp<"permute", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Ranks of a group pass their values on to others";
  let description = [{
    For every pair `s -> t`, the rank at position t of the group gets what the rank at position s has. A position that
    is nobody's target gets zeros.

    ```mlir
    %r = comm.permute(%x) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<8x384xf32>
    ```

    Constraints:
    - (C1) there is at least one value;
    - (C2) there are as many results as operands;
    - (C3) the group names a mesh of the module, and each of its axes is the mesh's, a sub-axis divides its axis;
    - (C4) element types are integers or floats;
    - (C5) each result has its operand's type;
    - (C6) `pairs` holds positions of the group, two for each pair;
    - (C7) no position is the source of two pairs, and none the target of two.
  }];
  let arguments = (ins Variadic<Comm_Tensor>:$inputs, DenseI64ArrayAttr:$pairs, Comm_GroupAttr:$group,
                       OptionalAttr<StrAttr>:$role);
  let results = (outs Variadic<Comm_Tensor>:$outputs);
  let assemblyFormat = [{
    `(` $inputs `)` `pairs` custom<Pairs>($pairs) `over` $group (`role` $role^)? attr-dict `:` type($inputs)
  }];
}

#endif
