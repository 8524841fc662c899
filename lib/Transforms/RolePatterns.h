//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Options of passes that choose for operations by their roles: lists of PATTERN=VALUE.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_ROLEPATTERNS_H
#define BRAID_LIB_TRANSFORMS_ROLEPATTERNS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/GlobPattern.h"

namespace braid {

/// An item of such a list: both sides are there.
struct PatternItem {
  llvm::StringRef pattern, value;
  llvm::StringRef text; ///< of both
};
/// Calls `take` for each item. `expected` begins the error of an item without two sides.
mlir::LogicalResult
forEachPattern(mlir::ModuleOp module, llvm::StringRef list, llvm::StringRef expected,
               llvm::function_ref<mlir::LogicalResult(const PatternItem &)> take);

/// "expects ..., got 'a=b'"
mlir::InFlightDiagnostic patternError(mlir::ModuleOp module, llvm::StringRef expected,
                                      llvm::StringRef item);
mlir::FailureOr<llvm::GlobPattern> parseGlob(mlir::ModuleOp module, llvm::StringRef expected,
                                             const PatternItem &item, llvm::StringRef glob);
/// Whether a pattern has one meaning only.
inline bool isExactPattern(llvm::StringRef pattern) {
  return pattern.find_first_of("*?[") == llvm::StringRef::npos;
}

/// " among 'mlp.up', 'mlp.down'": the roles that there are, for a message; `none` without any.
std::string knownRoles(llvm::ArrayRef<llvm::StringRef> roles, llvm::StringRef none);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_ROLEPATTERNS_H
