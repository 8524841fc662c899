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

def Comm_Tensor : AnyTypeOf<[AnyStaticShapeTensor], "statically shaped tensor">;

/// What every collective has in common.
class Comm_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Comm_Op<mnemonic, !listconcat(traits, [MemoryEffects<[MemRead<Comm_Channel>, MemWrite<Comm_Channel>]>,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<Comm_CollectiveOpInterface>])> {
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

#endif
