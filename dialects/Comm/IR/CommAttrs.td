//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMATTRS_TD
#define BRAID_DIALECTS_COMM_COMMATTRS_TD

include "dialects/Comm/IR/CommBase.td"

def Comm_ReduceKind : I32EnumAttr<"ReduceKind", "how partial values are combined", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::braid::comm";
  let genSpecializedAttr = 0;
}
def Comm_ReduceKindAttr : EnumAttr<Comm_Dialect, Comm_ReduceKind, "reduce"> {
  let assemblyFormat = "$value";
}

def Comm_AxisAttr : Comm_Attr<"Axis", "axis"> {
  let summary = "a mesh axis, or a sub-axis of one";
  let description = [{
    `tp` is a full axis. `tp:(1)2` is a sub-axis: the middle factor of an axis of size n seen as `[pre, size, n / (pre
    * size)]`. A full axis has `size` 0.

    Constraints:
    - (comm.axis_c1) the name is not empty;
    - (comm.axis_c2) `pre` and `size` are at least 1, except in a full axis;
    - (comm.axis_c3) `pre * size` fits 64 bits.
  }];
  let parameters = (ins StringRefParameter<"axis name">:$name, "int64_t":$pre, "int64_t":$size);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name), [{ return $_get($_ctxt, name, 1, 0); }]>];
  let extraClassDeclaration = [{
    bool isFull() const { return getSize() == 0; }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Comm_DimAttr : Comm_Attr<"Dim", "dim"> {
  let summary = "the axes that a dimension is sharded over, major first";
  let description = [{
    `{dp, tp}`. Propagation may add axes to an open dimension, `{dp, ?}` or `{?}`.
  }];
  let parameters = (ins OptionalArrayRefParameter<"::braid::comm::AxisAttr">:$axes, "bool":$open);
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<::braid::comm::AxisAttr>":$axes),
                              [{ return $_get($_ctxt, axes, /*open=*/false); }]>];
  let hasCustomAssemblyFormat = 1;
}

def Comm_PartialAttr : Comm_Attr<"Partial", "partial"> {
  let summary = "an axis over which a value is not reduced yet, and its reduction";
  let parameters = (ins "::braid::comm::AxisAttr":$axis, "::braid::comm::ReduceKind":$kind);
  let hasCustomAssemblyFormat = 1;
}

def Comm_ShardingAttr : Comm_Attr<"Sharding", "sharding"> {
  let summary = "which shard of a value a rank holds";
  let description = [{
    `#comm.sharding<@mesh, [{tp}, {} ], partial = [dp = sum]>`: one brace per dimension names the axes that split it,
    major first. Over the axes in `partial`, every rank holds a partial sum; over all other axes the value is
    replicated. Before propagation a dimension may be open: `[{tp, ?}, {?} ]`.

    Constraints:
    - (comm.sharding_c1) an axis occurs at most once (of two sub-axes of one axis, `pre * size` of one divides `pre` of
      the other);
    - (comm.sharding_c2) the value is a ranked tensor of as many dimensions;
    - (comm.sharding_c3) every axis belongs to the mesh, and a sub-axis divides its axis;
    - (comm.sharding_c4) every dimension divides over its axes;
    - (comm.sharding_c5) a value of static shape has at most 2^48 elements.
    The first is checked when the attribute is built, the others where it is used.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh, OptionalArrayRefParameter<"::braid::comm::DimAttr">:$dims,
                        OptionalArrayRefParameter<"::braid::comm::PartialAttr">:$partials);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// No dimension is split and no axis is partial.
    bool isReplicated() const;
    bool isPartial() const { return !getPartials().empty(); }
    /// Propagation may still add axes to a dimension.
    bool isOpen() const;
  }];
}

def Comm_GroupAttr : Comm_Attr<"Group", "group"> {
  let summary = "the ranks that differ only along these axes";
  let description = [{
    Constraints:
    - (comm.group_c1) an axis occurs at most once.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh, OptionalArrayRefParameter<"::braid::comm::AxisAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Comm_CoordinatesAttr : Comm_Attr<"Coordinates", "coordinates"> {
  let summary = "some coordinates of a mesh axis";
  let parameters = (ins StringRefParameter<"axis name">:$axis, ArrayRefParameter<"int64_t">:$coordinates);
  let assemblyFormat = "`<` $axis `=` `[` $coordinates `]` `>`";
}

def Comm_EncodingAttr : Comm_Attr<"Encoding", "encoding"> {
  let summary = "how values travel in fewer bits";
  let description = [{
    `#comm.encoding<"int8:128">`: an element, the elements of a group, and options (braid/Base/Encoding.h has all of them
    and what they do to a number). A collective that reduces may have two, one for what is sent to the rank that adds,
    and one for the sum: `#comm.encoding<"int4:128+spikes/int8:128">`, the mixed form of Flash Communication.

    Constraints:
    - (comm.encoding_c1) the text is an encoding or two.
  }];
  let parameters = (ins StringRefParameter<"canonical text">:$text);
  let builders = [AttrBuilder<(ins "const ::braid::runtime::EncodingPair &":$pair), [{
    return $_get($_ctxt, pair.str());
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::braid::runtime::EncodingPair getPair() const;
    /// Both halves are encoded alike.
    bool isSingle() const { return !getText().contains('/'); }
  }];
}

def Comm_PlaceAttr : Comm_Attr<"Place", "place"> {
  let summary = "the ranks at some coordinates of the mesh";
  let description = [{
    `#comm.place<@mesh, {pp = [0], tp = [0, 1]}>`: the ranks with these coordinates along `pp` and `tp`, and any along the
    other axes. As `comm.on` of a call, or `on` of an nn.parameter, it says which ranks run or have it.

    Constraints:
    - (comm.place_c1) it names at least one axis, and none twice;
    - (comm.place_c2) the mesh is known and has the axes;
    - (comm.place_c3) an axis lists some of its coordinates, but not all, in ascending order.
    The last two are checked where the attribute is used.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh, ArrayRefParameter<"::braid::comm::CoordinatesAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif
