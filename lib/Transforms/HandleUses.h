//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_HANDLEUSES_H
#define BRAID_LIB_TRANSFORMS_HANDLEUSES_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace braid {

/// The rules of handles that cross calls. Each refuses programs that the other one accepts.
enum class HandleRule : unsigned {
  Taken, ///< a handle is taken exactly once
  Kept   ///< its wait keeps the operands of its start
};
/// By its name in the option `skip` of braid-verify-level.
std::optional<HandleRule> symbolizeHandleRule(llvm::StringRef name);

/// Checks handles of collectives that cross calls: each is taken exactly once, and its wait keeps
/// the operands of its start. Verifiers check both inside of a function. Rules in `skip`, which
/// tests use to show that both are needed, are not checked.
llvm::LogicalResult verifyHandles(mlir::ModuleOp module, llvm::ArrayRef<HandleRule> skip = {});

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_HANDLEUSES_H
