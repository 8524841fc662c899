//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMBASE_TD
#define BRAID_DIALECTS_COMM_COMMBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Comm_Dialect : Dialect {
  let name = "comm";
  let cppNamespace = "::braid::comm";
  let summary = "Meshes, shardings and collectives with value semantics";
  let description = [{
    Communication between the ranks of a distributed program. Types are per-rank. Collectives name mesh axes rather than
    rank lists, so one program serves every rank. Values have at most 2^48 elements, which are integers or floats of at
    most 64 bits.

    Operations of other dialects carry these attributes:
    - `comm.sharding` on a function's argument or result: how the tensor is sharded;
    - `comm.global_type` beside it, after partitioning: the unpartitioned type;
    - `comm.shardings` on an operation: one sharding per result;
    - `comm.call` on a call: its name in call paths (`layer#3`), which it keeps when its callee is replaced by a clone;
    - `comm.on` on a call or rt.copy, or on an entry's argument or result: the ranks that run it, or have it
      (#comm.place);
    - `comm.encoding` on a collective: how its values travel (#comm.encoding). `braid-expand-encoded` makes it of
      `nn.encode`, collectives of bytes and `nn.decode`. The reference interpreter computes the collective as it is without.

    Constraints on them:
    - (comm.attributes_c1) `comm.sharding` is a #comm.sharding;
    - (comm.attributes_c2) `comm.global_type` is a statically shaped tensor;
    - (comm.attributes_c3) `comm.global_type` stands beside a `comm.sharding` without open dimensions;
    - (comm.attributes_c4) `comm.global_type`, sharded, is the argument's or result's type;
    - (comm.attributes_c5) `comm.shardings` is an array;
    - (comm.attributes_c6) it has one element per result, a #comm.sharding or `unit`;
    - (comm.attributes_c7) `unit` stands only for a result that is no tensor;
    - (comm.attributes_c8) `comm.call` is a string without `/`, not empty;
    - (comm.attributes_c9) `comm.on` is a #comm.place, on a call or rt.copy, or on an argument or result of an entry;
    - (comm.attributes_c10) a value with `comm.on` is not sharded over an axis that the place names;
    - (comm.attributes_c11) `comm.encoding` is a #comm.encoding, on a collective;
    - (comm.attributes_c12) the collective can be encoded: it is no comm.reduce, its reduction is a sum, and its values
      are of f32, f16 or bf16, but for counts, and have at least one dimension;
    - (comm.attributes_c13) `comm.encoding` has two encodings on an all_reduce only.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();

    /// Discardable attribute on function arguments and results: their #comm.sharding.
    static constexpr ::llvm::StringLiteral kShardingAttrName = "comm.sharding";
    /// Discardable attribute on operations: one #comm.sharding per result.
    static constexpr ::llvm::StringLiteral kShardingsAttrName = "comm.shardings";
    /// Discardable attribute on entry arguments and results after partitioning: the unpartitioned type.
    static constexpr ::llvm::StringLiteral kGlobalTypeAttrName = "comm.global_type";
    /// Discardable attribute on calls: the call's name in call paths.
    static constexpr ::llvm::StringLiteral kCallAttrName = "comm.call";
    /// Discardable attribute on calls, and on entry arguments and results: the #comm.place of the ranks that run or have
    /// them.
    static constexpr ::llvm::StringLiteral kOnAttrName = "comm.on";
    /// Discardable attribute on collectives: their #comm.encoding.
    static constexpr ::llvm::StringLiteral kEncodingAttrName = "comm.encoding";
  }];
}

class Comm_Op<string mnemonic, list<Trait> traits = []> : Op<Comm_Dialect, mnemonic, traits>;
class Comm_Type<string name, string m, list<Trait> traits = []> : TypeDef<Comm_Dialect, name, traits> {
  let mnemonic = m;
}
class Comm_Attr<string name, string m, list<Trait> traits = []> : AttrDef<Comm_Dialect, name, traits> {
  let mnemonic = m;
}

/// Keeps sizes computed from a type within 64 bits (Bounds.h).
def Comm_Bounded : CPred<"::braid::isBounded(::llvm::cast<::mlir::ShapedType>($_self))">;

/// The communication resource: keeps upstream passes from dropping, merging or reordering collectives.
def Comm_Channel : Resource<"::braid::comm::ChannelResource">;

#endif
