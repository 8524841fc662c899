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
    What a rank of a distributed program says to the others. Types are per-rank; collectives name mesh axes rather
    than rank lists, so one program serves every rank. Values have at most 2^48 elements, which are integers or floats
    of at most 64 bits.

    Attributes of this dialect on operations of others:
    - `comm.sharding` on a function's argument or result: the #comm.sharding of a tensor (A1), which suits its type (S2,
      S3) and divides every dimension (A2);
    - `comm.global_type` beside it after partitioning: the unpartitioned type, a statically shaped tensor (A3), which
      cut by the sharding gives the argument's or result's type (A4);
    - `comm.shardings` on an operation: an array (A5) of one #comm.sharding per result (A6), of which A2 holds, and
      `unit` for what is no tensor (A7).
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
  }];
}

class Comm_Op<string mnemonic, list<Trait> traits = []> : Op<Comm_Dialect, mnemonic, traits>;
class Comm_Type<string name, string m, list<Trait> traits = []> : TypeDef<Comm_Dialect, name, traits> {
  let mnemonic = m;
}
class Comm_Attr<string name, string m, list<Trait> traits = []> : AttrDef<Comm_Dialect, name, traits> {
  let mnemonic = m;
}

/// What keeps sizes computed from a type within 64 bits (Bounds.h).
def Comm_Bounded : CPred<"::braid::isBounded(::llvm::cast<::mlir::ShapedType>($_self))">;

/// The communication resource: keeps upstream passes from dropping, merging or reordering collectives.
def Comm_Channel : Resource<"::braid::comm::ChannelResource">;

#endif
