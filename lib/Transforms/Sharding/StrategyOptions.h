//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The text of a mesh and of a strategy, as options of passes have them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_STRATEGYOPTIONS_H
#define BRAID_LIB_TRANSFORMS_STRATEGYOPTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace braid {

inline constexpr llvm::StringLiteral kDataAxis = "dp", kTensorAxis = "tp";

/// Cuts nothing beyond what the module states.
inline constexpr llvm::StringLiteral kNoStrategy = "none";

struct MeshAxis {
  llvm::StringRef name;
  int64_t size;
};
/// Reads 'dp=2,tp=4'; what is wrong is an error on the module, and so is an axis that no strategy
/// uses, unless `anyAxis`.
mlir::FailureOr<llvm::SmallVector<MeshAxis>> parseMesh(mlir::ModuleOp module, llvm::StringRef mesh,
                                                       bool anyAxis = false);

/// What a strategy consists of, and the axis that it uses. Of one kind there is one at most.
struct StrategyPart {
  llvm::StringLiteral name, axis, kind;
};
llvm::ArrayRef<StrategyPart> strategyParts();
/// Reads a list such as 'tp-sp,dp', which is not 'auto'; what is wrong is an error on the module.
mlir::FailureOr<llvm::SmallVector<const StrategyPart *>> parseStrategy(mlir::ModuleOp module,
                                                                       llvm::StringRef strategy);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_STRATEGYOPTIONS_H
