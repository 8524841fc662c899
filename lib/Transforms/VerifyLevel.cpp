//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Passes.h"
#include "dialects/NN/IR/NN.h"

#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_VERIFYLEVEL
#include "braid/Transforms/Passes.h.inc"

StringRef stringifyLevel(Level level) {
  switch (level) {
  case Level::NN:
    return "nn";
  case Level::Comm:
    return "comm";
  case Level::Scheduled:
    return "scheduled";
  case Level::Kernels:
    return "kernels";
  case Level::RT:
    return "rt";
  }
  llvm_unreachable("unknown level");
}

namespace {

/// Dialects of structure and plain computation on tensors, beside which a model's operations may
/// stand.
bool isPlain(StringRef dialect) {
  static const llvm::StringSet<> kPlain = {"builtin", "func",   "arith", "math",
                                           "tensor",  "linalg", "scf"};
  return kPlain.contains(dialect);
}

bool isAllowed(Operation *op, Level level) {
  StringRef dialect = op->getName().getDialectNamespace();
  bool collective = isa<CollectiveOpInterface>(op);
  bool asynchronous = isa<StartOp, WaitOp, YieldOp>(op);
  switch (level) {
  case Level::NN:
    return isPlain(dialect) || dialect == "nn" || isa<MeshOp>(op);
  case Level::Comm:
    return isPlain(dialect) || dialect == "nn" || (dialect == "comm" && !asynchronous);
  case Level::Scheduled:
    // A collective stands in a start.
    return isPlain(dialect) || dialect == "nn" ||
           (dialect == "comm" && (!collective || isa_and_nonnull<StartOp>(op->getParentOp())));
  case Level::Kernels:
    // Row operations are in kernels by now, whose bodies are theirs to verify; what stays are
    // library calls, views and parameters.
    if (auto decomposable = dyn_cast<nn::DecomposeOpInterface>(op))
      return !decomposable.isRowOperation();
    if (dialect == "nn")
      return true;
    return isPlain(dialect) || dialect == "rt" ||
           (dialect == "comm" && (!collective || isa_and_nonnull<StartOp>(op->getParentOp())));
  case Level::RT:
    return dialect == "builtin" || dialect == "rt" || isa<MeshOp>(op);
  }
  llvm_unreachable("unknown level");
}

struct VerifyLevel : impl::VerifyLevelBase<VerifyLevel> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    WalkResult result = getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isAllowed(op, level)) {
        op->emitError("'") << op->getName() << "' op is not allowed at level "
                           << stringifyLevel(level);
        return WalkResult::interrupt();
      }
      if (failed(checkAttributes(op)) || failed(checkHandles(op)))
        return WalkResult::interrupt();
      // Bodies of kernels are ordinary code.
      return op->getName().getStringRef() == "rt.kernel" ? WalkResult::skip()
                                                         : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Shardings of operations describe unpartitioned values, local entry types partitioned ones.
  LogicalResult checkAttributes(Operation *op) {
    if (level != Level::NN && op->hasAttr(CommDialect::kShardingsAttrName))
      return op->emitOpError("with attribute '")
             << CommDialect::kShardingsAttrName << "' is not allowed at level "
             << stringifyLevel(level) << ", where types are per-rank";
    auto func = dyn_cast<func::FuncOp>(op);
    if (!func)
      return success();
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      bool local = static_cast<bool>(func.getArgAttr(i, CommDialect::kGlobalTypeAttrName));
      bool sharded = static_cast<bool>(func.getArgAttr(i, CommDialect::kShardingAttrName));
      if (level == Level::NN && local)
        return op->emitOpError("argument ")
               << i << " has a per-rank type, which is not allowed at level "
               << stringifyLevel(level);
      if (level != Level::NN && sharded && !local)
        return op->emitOpError("argument ")
               << i << " has a sharding but no '" << CommDialect::kGlobalTypeAttrName
               << "', which is not allowed at level " << stringifyLevel(level);
    }
    return success();
  }

  /// A handle that came as an argument is out of sight of the operations' own verifiers when
  /// nothing takes it.
  LogicalResult checkHandles(Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (isa<HandleType>(argument.getType()) && !argument.hasOneUse())
            return op->emitOpError("argument ")
                   << argument.getArgNumber() << " is a handle and expects one use, got "
                   << std::distance(argument.use_begin(), argument.use_end());
    return success();
  }
};

} // namespace
} // namespace braid
