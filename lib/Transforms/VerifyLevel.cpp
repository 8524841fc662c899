//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "HandleUses.h"
#include "TensorParts.h"

#include "braid/Analysis/RuleNames.h"
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
  static constexpr StringLiteral kNames[] = {"nn", "comm", "kernels", "scheduled", "rt"};
  return kNames[static_cast<size_t>(level)];
}

namespace {

/// Functions and the operations that structure a module.
bool isStructure(StringRef dialect) { return dialect == "builtin" || dialect == "func"; }

/// Upstream computation that the reference interpreter supports.
bool isPlain(Operation *op, StringRef dialect) {
  if (isTensorPart(op))
    return whyNoPart(op).empty();
  if (dialect == "tensor")
    return isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::DimOp, tensor::EmptyOp,
               tensor::ExpandShapeOp, tensor::ExtractOp>(op);
  return isStructure(dialect) || dialect == "arith" || dialect == "math" || dialect == "linalg";
}

/// An operation of any dialect with a sharding rule, which partitioning requires of a model's
/// operations.
bool isModelOp(Operation *op, StringRef dialect) {
  return dialect == "nn" || (isa<ShardingRuleOpInterface>(op) && dialect != "comm");
}

/// Kernels and their launches.
bool isOnTensors(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name == "rt.kernel" || name == "rt.launch";
}

bool isAllowed(Operation *op, Level level) {
  if (level > Level::Comm && op->hasAttr(CommDialect::kEncodingAttrName))
    return false;
  StringRef dialect = op->getName().getDialectNamespace();
  bool computes = isPlain(op, dialect) || isModelOp(op, dialect);
  bool byValue = dialect == "comm" && !isa<StartOp, WaitOp, YieldOp>(op);
  switch (level) {
  case Level::NN:
    return computes || isa<MeshOp>(op);
  case Level::Comm:
    return computes || byValue;
  case Level::Kernels:
    // Row operations are in kernels, which verify their own bodies; library calls, views and
    // parameters remain.
    if (auto decomposable = dyn_cast<nn::DecomposeOpInterface>(op))
      return !decomposable.isRowOperation();
    if (isa<nn::LibraryKernelOpInterface>(op))
      return false;
    if (dialect == "nn" || isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      return true;
    return isStructure(dialect) || isOnTensors(op) || byValue;
  case Level::Scheduled:
    // A program written by hand may have its row operations outside of kernels. A collective is
    // inside a start.
    return computes || isOnTensors(op) ||
           (dialect == "comm" &&
            (!isa<CollectiveOpInterface>(op) || isa_and_nonnull<StartOp>(op->getParentOp())));
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

/// An argument or result of a function.
struct SignatureValue {
  StringRef what;
  size_t index;
  Type type;
  DictionaryAttr attributes;
  bool has(StringRef name) const { return attributes && attributes.contains(name); }
  ShardingAttr sharding() const {
    return attributes ? attributes.getAs<ShardingAttr>(CommDialect::kShardingAttrName)
                      : ShardingAttr();
  }
};

SmallVector<SignatureValue> signatureOf(func::FuncOp func) {
  SmallVector<SignatureValue> values;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
    values.push_back({"argument", i, type, func.getArgAttrDict(i)});
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    values.push_back({"result", i, type, func.getResultAttrDict(i)});
  return values;
}

/// The first level that admits such operations.
Level firstLevelOf(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "rt")
    return isOnTensors(op) ? Level::Kernels : Level::RT;
  if (isa<StartOp, WaitOp, YieldOp>(op))
    return Level::Scheduled;
  if (dialect == "comm" && !isa<MeshOp>(op))
    return Level::Comm;
  if (auto parameter = dyn_cast<nn::ParameterOp>(op);
      parameter && (parameter.getGlobalType() || parameter.getPlaceAttr()))
    return Level::Comm;
  if (isa<func::CallOp>(op) && op->hasAttr(CommDialect::kOnAttrName))
    return Level::Comm;
  if (auto func = dyn_cast<func::FuncOp>(op))
    for (const SignatureValue &value : signatureOf(func))
      if (value.has(CommDialect::kGlobalTypeAttrName) || value.has(CommDialect::kOnAttrName))
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
                                      << op->getName() << "' op" << notAllowed() << whyNot(op));
                     return checkAttributes(op);
                   }).wasInterrupted());
  }

private:
  /// Explanations for dialects that one might expect to be allowed.
  std::string whyNot(Operation *op) const {
    StringRef dialect = op->getName().getDialectNamespace();
    if (op->hasAttr(CommDialect::kEncodingAttrName))
      return ": braid-expand-encoded expands its encoding at level comm";
    if (isTensorPart(op) && !whyNoPart(op).empty())
      return (": " + whyNoPart(op)).str();
    if (dialect == "scf" || dialect == "cf")
      return ": nothing runs control flow; loops are unrolled or become calls";
    if (dialect == "tensor" && !isPlain(op, dialect))
      return ": neither the interpreter nor a kernel computes it";
    if (level == Level::Kernels && isPlain(op, dialect))
      return ": a procedure has no command for it outside of a kernel";
    return "";
  }

  std::string notAllowed() const {
    return (" is not allowed at level " + stringifyLevel(level)).str();
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
                     << CommDialect::kShardingsAttrName << "'" << notAllowed()
                     << ", where types are per-rank");
    auto parameter = dyn_cast<nn::ParameterOp>(op);
    if (level == Level::NN && (placeOf(op) || (parameter && parameter.getPlaceAttr())))
      return explain(op->emitOpError("runs on some ranks only, which") << notAllowed());
    if (auto func = dyn_cast<func::FuncOp>(op))
      for (const SignatureValue &value : signatureOf(func))
        if (failed(checkSignature(func, value)))
          return failure();
    return success();
  }

  LogicalResult checkSignature(func::FuncOp func, const SignatureValue &value) {
    auto error = [&](StringRef what) {
      return func.emitOpError(value.what) << " " << value.index << " " << what << notAllowed();
    };
    bool local = value.has(CommDialect::kGlobalTypeAttrName);
    if (isa<HandleType>(value.type) && level != Level::Scheduled)
      return explain(error("is a handle, which") << ": collectives are started at level scheduled");
    if (isa<HandleType>(value.type) && func->hasAttr(nn::NNDialect::kEntryAttrName))
      return explain(error("is a handle, which")
                     << " in the signature of an entry, whose callers cannot wait for it");
    if (level == Level::NN && local)
      return explain(error("has a per-rank type, which"));
    if (level == Level::NN && value.has(CommDialect::kOnAttrName))
      return explain(error("is on some ranks only, which"));
    if (level != Level::NN && !local && value.has(CommDialect::kShardingAttrName))
      return explain(error("has a sharding but no 'comm.global_type', which"));
    if (local && value.sharding() && value.sharding().isPartial())
      return explain(error("is partial, which") << ": an entry takes and gives reduced values");
    return success();
  }

  Level level;
  Operation *reason;
};

struct VerifyLevel : impl::VerifyLevelBase<VerifyLevel> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<SmallVector<HandleRule>> rules =
        findRules(getOperation(), skip, "handles", symbolizeHandleRule);
    if (failed(rules))
      return signalPassFailure();
    if (failed(LevelVerifier(level).verify(getOperation())) ||
        (level == Level::Scheduled && failed(verifyHandles(getOperation(), *rules))))
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
