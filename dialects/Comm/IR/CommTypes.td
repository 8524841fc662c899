//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMTYPES_TD
#define BRAID_DIALECTS_COMM_COMMTYPES_TD

include "dialects/Comm/IR/CommBase.td"

def Comm_HandleType : Comm_Type<"Handle", "handle"> {
  let summary = "a pending collective";
  let description = [{
    The values of the collective exist only as results of the `comm.wait` on the handle; the parameters are their types.
    A handle is waited for exactly once.
  }];
  let parameters = (ins OptionalArrayRefParameter<"::mlir::Type">:$valueTypes);
  let assemblyFormat = "(`<` $valueTypes^ `>`)?";
}

#endif
