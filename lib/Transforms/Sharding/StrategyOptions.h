//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses the pass options for a mesh and a strategy.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_STRATEGYOPTIONS_H
#define BRAID_LIB_TRANSFORMS_STRATEGYOPTIONS_H

#include "dialects/Comm/IR/Comm.h"

#include "mlir/IR/BuiltinOps.h"

namespace braid {

inline constexpr llvm::StringLiteral kDataAxis = "dp", kTensorAxis = "tp";

/// Shards nothing beyond what the module states.
inline constexpr llvm::StringLiteral kNoStrategy = "none";

struct MeshAxis {
  llvm::StringRef name;
  int64_t size;
  bool operator==(const MeshAxis &other) const { return name == other.name && size == other.size; }
};
llvm::SmallVector<MeshAxis> axesOf(comm::MeshOp mesh);
/// Parses 'dp=2,tp=4'. Emits errors on the module, also for an axis that no strategy uses unless
/// `anyAxis`.
mlir::FailureOr<llvm::SmallVector<MeshAxis>> parseMesh(mlir::ModuleOp module, llvm::StringRef mesh,
                                                       bool anyAxis = false);

/// A component of a strategy and the axis that it uses. A strategy has at most one of each kind.
struct StrategyComponent {
  llvm::StringLiteral name, axis, kind;
};
llvm::ArrayRef<StrategyComponent> strategyComponents();
/// Parses a list such as 'tp-sp,dp', except 'auto'. Emits errors on the module.
mlir::FailureOr<llvm::SmallVector<const StrategyComponent *>>
parseStrategy(mlir::ModuleOp module, llvm::StringRef strategy);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_STRATEGYOPTIONS_H
