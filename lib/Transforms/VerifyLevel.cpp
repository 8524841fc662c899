//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Passes.h"
#include "dialects/NN/IR/NN.h"

#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

/// Functions and the operations that structure a module.
bool isStructure(StringRef dialect) { return dialect == "builtin" || dialect == "func"; }

/// Upstream computation that the reference interpreter supports.
bool isPlain(Operation *op, StringRef dialect) {
  if (dialect == "tensor")
    return isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::DimOp, tensor::EmptyOp,
               tensor::ExpandShapeOp, tensor::ExtractOp, tensor::ExtractSliceOp>(op);
  return isStructure(dialect) || dialect == "arith" || dialect == "math" || dialect == "linalg";
}

/// An operation of any dialect with a sharding rule, which partitioning requires of a model's
/// operations.
bool isModelOp(Operation *op, StringRef dialect) {
  return dialect == "nn" || (isa<ShardingRuleOpInterface>(op) && dialect != "comm");
}

bool isAllowed(Operation *op, Level level) {
  StringRef dialect = op->getName().getDialectNamespace();
  bool collective = isa<CollectiveOpInterface>(op);
  bool asynchronous = isa<StartOp, WaitOp, YieldOp>(op);
  switch (level) {
  case Level::NN:
    return isPlain(op, dialect) || isModelOp(op, dialect) || isa<MeshOp>(op);
  case Level::Comm:
    return isPlain(op, dialect) || isModelOp(op, dialect) || (dialect == "comm" && !asynchronous);
  case Level::Scheduled:
    // A collective is inside a start.
    return isPlain(op, dialect) || isModelOp(op, dialect) ||
           (dialect == "comm" && (!collective || isa_and_nonnull<StartOp>(op->getParentOp())));
  case Level::Kernels:
    // Row operations are in kernels, which verify their own bodies; library calls, views and
    // parameters remain.
    if (auto decomposable = dyn_cast<nn::DecomposeOpInterface>(op))
      return !decomposable.isRowOperation();
    if (isa<nn::LibraryKernelOpInterface>(op))
      return false;
    if (dialect == "nn")
      return true;
    return isStructure(dialect) || dialect == "rt" ||
           (dialect == "comm" && (!collective || isa_and_nonnull<StartOp>(op->getParentOp())));
  case Level::RT:
    return dialect == "builtin" || dialect == "rt" || isa<MeshOp>(op);
  }
  llvm_unreachable("unknown level");
}

/// Walks a module from the outside in, except bodies of kernels.
WalkResult walkLevel(ModuleOp module, llvm::function_ref<WalkResult(Operation *)> visit) {
  return module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    WalkResult result = visit(op);
    return result.wasInterrupted() || op->getName().getStringRef() != "rt.kernel"
               ? result
               : WalkResult::skip();
  });
}

/// Whether an argument or result of a function has a per-rank type.
bool hasLocalSignature(func::FuncOp func) {
  auto isLocal = [](DictionaryAttr attributes) {
    return attributes && attributes.contains(CommDialect::kGlobalTypeAttrName);
  };
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (isLocal(func.getArgAttrDict(i)))
      return true;
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (isLocal(func.getResultAttrDict(i)))
      return true;
  return false;
}

/// The first level that admits such operations.
Level firstLevelOf(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "rt")
    return op->getName().getStringRef() == "rt.procedure" ? Level::RT : Level::Kernels;
  if (isa<StartOp, WaitOp, YieldOp>(op))
    return Level::Scheduled;
  if (dialect == "comm" && !isa<MeshOp>(op))
    return Level::Comm;
  if (auto parameter = dyn_cast<nn::ParameterOp>(op); parameter && parameter.getGlobalType())
    return Level::Comm;
  if (auto func = dyn_cast<func::FuncOp>(op); func && hasLocalSignature(func))
    return Level::Comm;
  return Level::NN;
}

/// The operations that one level admits.
class LevelVerifier {
public:
  /// `reason` is the operation from which the level was inferred; null when the level was given.
  LevelVerifier(Level level, Operation *reason = nullptr) : level(level), reason(reason) {}

  LogicalResult verify(ModuleOp module) {
    return failure(walkLevel(module, [&](Operation *op) -> WalkResult {
                     if (!isAllowed(op, level))
                       return explain(op->emitError("'")
                                      << op->getName() << "' op is not allowed at level "
                                      << stringifyLevel(level) << whyNot(op));
                     return checkAttributes(op);
                   }).wasInterrupted());
  }

private:
  /// Explanations for dialects that one might expect to be allowed.
  StringRef whyNot(Operation *op) const {
    StringRef dialect = op->getName().getDialectNamespace();
    if (dialect == "scf" || dialect == "cf")
      return ": nothing runs control flow; loops are unrolled or become calls";
    if (dialect == "tensor" && !isPlain(op, dialect))
      return ": neither the interpreter nor a kernel computes it";
    if (level == Level::Kernels && isPlain(op, dialect))
      return ": a procedure has no command for it outside of a kernel";
    return "";
  }

  LogicalResult explain(InFlightDiagnostic &&diag) const {
    if (reason)
      diag.attachNote(reason->getLoc())
          << "the module is taken for one of level " << stringifyLevel(level)
          << " because of this '" << reason->getName() << "' op";
    return failure();
  }

  /// Shardings of operations describe unpartitioned values; local entry types describe partitioned
  /// ones.
  LogicalResult checkAttributes(Operation *op) {
    if (level != Level::NN && op->hasAttr(CommDialect::kShardingsAttrName))
      return explain(op->emitOpError("with attribute '")
                     << CommDialect::kShardingsAttrName << "' is not allowed at level "
                     << stringifyLevel(level) << ", where types are per-rank");
    auto func = dyn_cast<func::FuncOp>(op);
    if (!func)
      return success();
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (failed(checkSignature(func, "argument", i, func.getArgumentTypes()[i],
                                func.getArgAttrDict(i))))
        return failure();
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      if (failed(checkSignature(func, "result", i, func.getResultTypes()[i],
                                func.getResultAttrDict(i))))
        return failure();
    return success();
  }

  LogicalResult checkSignature(func::FuncOp func, StringRef what, unsigned index, Type type,
                               DictionaryAttr attributes) {
    if (isa<HandleType>(type))
      return explain(func.emitOpError(what)
                     << " " << index << " is a handle, which is not allowed at level "
                     << stringifyLevel(level)
                     << ": every collective is waited for in the function that starts it");
    bool local = attributes && attributes.contains(CommDialect::kGlobalTypeAttrName);
    bool sharded = attributes && attributes.contains(CommDialect::kShardingAttrName);
    if (level == Level::NN && local)
      return explain(func.emitOpError(what)
                     << " " << index << " has a per-rank type, which is not allowed at level "
                     << stringifyLevel(level));
    if (level != Level::NN && sharded && !local)
      return explain(func.emitOpError(what)
                     << " " << index << " has a sharding but no '"
                     << CommDialect::kGlobalTypeAttrName << "', which is not allowed at level "
                     << stringifyLevel(level));
    return success();
  }

  Level level;
  Operation *reason;
};

struct VerifyLevel : impl::VerifyLevelBase<VerifyLevel> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(LevelVerifier(level).verify(getOperation())))
      signalPassFailure();
  }
};

} // namespace

FailureOr<Level> detectLevel(ModuleOp module) {
  Level level = Level::NN;
  Operation *reason = nullptr;
  walkLevel(module, [&](Operation *op) {
    if (Level least = firstLevelOf(op); least > level) {
      level = least;
      reason = op;
    }
    return WalkResult::advance();
  });
  if (failed(LevelVerifier(level, reason).verify(module)))
    return failure();
  return level;
}

} // namespace braid
