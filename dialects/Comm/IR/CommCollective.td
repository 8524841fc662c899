//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMCOLLECTIVE_TD
#define BRAID_DIALECTS_COMM_COMMCOLLECTIVE_TD

include "dialects/Comm/IR/CommBase.td"
include "dialects/Comm/IR/CommAttrs.td"
include "dialects/Comm/IR/CommTypes.td"
include "dialects/Comm/IR/CommInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Comm_Element : Type<CPred<"$_self.isIntOrFloat() && $_self.getIntOrFloatBitWidth() <= 64">,
    "integer or float of at most 64 bits">;
def Comm_Tensor : ConfinedType<StaticShapeTensorOf<[Comm_Element]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 integers or floats of at most 64 bits">;

/// The base of every collective. `declared` lists the interface methods whose default an operation overrides.
class Comm_CollectiveOp<string mnemonic, list<Trait> traits = [], list<string> declared = []>
    : Comm_Op<mnemonic, !listconcat(traits, [MemoryEffects<[MemRead<Comm_Channel>, MemWrite<Comm_Channel>]>,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<Comm_CollectiveOpInterface, declared>])> {
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

#endif
