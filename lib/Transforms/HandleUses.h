//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_HANDLEUSES_H
#define BRAID_LIB_TRANSFORMS_HANDLEUSES_H

#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// Checks handles of collectives that cross calls: each is taken exactly once, and its wait keeps
/// the operands of its start. Verifiers check both inside of a function.
llvm::LogicalResult verifyHandles(mlir::ModuleOp module);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_HANDLEUSES_H
