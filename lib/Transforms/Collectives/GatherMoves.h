//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by sinking and hoisting all_gathers: a worklist of gathers. A move is first matched,
// without changes, and then applied.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_GATHERMOVES_H
#define BRAID_LIB_TRANSFORMS_GATHERMOVES_H

#include "CollectiveUtils.h"
#include "Replication.h"
#include "SliceWise.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace braid {

/// A matched move; calling it changes the module. Fails, with an error, only where an operation
/// contradicts its own sharding rule.
using Move = std::function<mlir::LogicalResult()>;

/// The base of passes that move gathers. The analyses run once: the call graph does not change, and
/// moves report every operation that they create or erase to Replication.
class GatherMover : private mlir::RewriterBase::Listener {
public:
  /// How often a gather has moved.
  struct Counts {
    mlir::Pass::Statistic &past, &intoCalls, &outOfCalls;
  };
  GatherMover(mlir::ModuleOp module, comm::MeshOp mesh, bool acrossCalls, Counts counts);

  /// Makes all moves of the mover MoverT, where there are gathers.
  template <typename MoverT>
  static mlir::LogicalResult run(mlir::ModuleOp module, bool acrossCalls, Counts counts) {
    if (collectivesIn<comm::AllGatherOp>(module).empty())
      return mlir::success();
    mlir::FailureOr<comm::MeshOp> mesh = getModuleMesh(module);
    return mlir::success(succeeded(mesh) &&
                         succeeded(MoverT(module, *mesh, acrossCalls, counts).moveAll()));
  }

protected:
  using MatchFn = llvm::function_ref<mlir::FailureOr<Move>(comm::AllGatherOp)>;

  /// Applies the moves that `match` finds to every gather of the module, the last first unless
  /// `firstFirst`, and to gathers that moves create. Returns whether anything moved.
  mlir::FailureOr<bool> move(MatchFn match, bool firstFirst = false);
  /// The distinct reasons that `match` reports.
  std::string explain(llvm::function_ref<void()> match);
  /// All calls of a function whose signature may change. Fails for the entry, a function without a
  /// body or with several blocks, a recursive function, and one with uses other than calls.
  mlir::FailureOr<llvm::SmallVector<mlir::func::CallOp>> matchCalls(mlir::func::FuncOp func);
  /// Fails where a move past `op` would increase the bytes sent.
  mlir::LogicalResult matchBytes(mlir::Operation *op, SaturatingCount before,
                                 SaturatingCount after);
  /// Gathers `shard` along `dim` like `like`, at the insertion point; under its name unless `name`
  /// is given.
  mlir::Value gather(mlir::Value shard, int64_t dim, comm::AllGatherOp like,
                     llvm::StringRef name = "");

  Counts counts;
  mlir::ModuleOp module;
  bool acrossCalls;
  Replication replication;
  mlir::IRRewriter rewriter;

private:
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint previous) override {
    inserted.insert(op);
  }
  void notifyOperationErased(mlir::Operation *op) override;
  void notifyMatchFailure(mlir::Location loc,
                          llvm::function_ref<void(mlir::Diagnostic &)> reason) override;

  mlir::SymbolTableCollection symbols;
  mlir::SymbolUserMap users;
  llvm::SmallPtrSet<mlir::Operation *, 4> acyclic; ///< functions that no call leads back to
  llvm::SetVector<mlir::Operation *> worklist, inserted;
  llvm::SmallVector<std::string> *reasons = nullptr; ///< where they are wanted
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_GATHERMOVES_H
