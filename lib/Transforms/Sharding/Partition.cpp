//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "FactorProjection.h"
#include "ReshardCache.h"

#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_PARTITION
#include "braid/Transforms/Passes.h.inc"

namespace {

/// The sharding of an operation, from the shardings of its results.
struct LocalForm {
  ShardingRule rule;
  FactorAxes axes;
  SmallVector<ShardingAttr> operands, results; ///< null for what is no tensor
  SmallVector<PartialAttr> partials;           ///< of the results
  GroupAttr partial; ///< over which reduction factors are cut; null when none is
};

/// Shardings of a function's arguments and results; null for values that are no tensors.
struct Signature {
  SmallVector<ShardingAttr> arguments, results;
};

class Partitioner {
public:
  Partitioner(ModuleOp module, MeshOp mesh) : module(module), mesh(mesh) {}
  LogicalResult run();
  CollectiveCounts counts;

private:
  LogicalResult readSignatures();
  LogicalResult runOnFunction(func::FuncOp func);
  LogicalResult emit(Operation *op, OpBuilder &builder);
  LogicalResult emitWhole(Operation *op, OpBuilder &builder);
  LogicalResult emitLocal(Operation *op, const LocalForm &form, OpBuilder &builder);
  void emitParameter(nn::ParameterOp op, OpBuilder &builder);

  FailureOr<LocalForm> localForm(Operation *op);
  LogicalResult reductionAxes(Operation *op, LocalForm &form);
  void dropUnsplitReductions(LocalForm &form);
  LogicalResult readWants(Operation *op);
  /// Values captured by regions of an operation are replicated.
  LogicalResult wantCaptured(Operation *op);
  LogicalResult takeCaptured(Operation *op, IRMapping &mapping);
  void define(Value value, Value local, ShardingAttr sharding, const LocalForm *form = nullptr);
  FailureOr<RankedTensorType> toLocal(Operation *op, Type type, ShardingAttr sharding);
  /// The type itself when there is no sharding.
  FailureOr<Type> localOr(Operation *op, Type type, ShardingAttr sharding) {
    if (!sharding)
      return type;
    FailureOr<RankedTensorType> local = toLocal(op, type, sharding);
    return failed(local) ? FailureOr<Type>() : FailureOr<Type>(*local);
  }
  ShardingAttr whole(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? ShardingAttr::replicated(FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                                           type.getRank())
                : ShardingAttr();
  }
  /// The local value of `operand` in the form that its user wants; null, with an error, when that
  /// form cannot be reached.
  Value take(OpOperand &operand) {
    ReshardCache &local = *values.at(operand.get());
    ShardingAttr want = wants.lookup(&operand);
    Value value = want ? local.get(want) : local.get();
    if (!value)
      emitNamedError(operand.getOwner())
          << "takes operand " << operand.getOperandNumber() << " as " << want << ", which is "
          << local.getSharding() << " and does not become that";
    return value;
  }

  ModuleOp module;
  MeshOp mesh;
  DenseMap<Operation *, Signature> signatures;
  // Of the current function.
  DenseMap<Value, std::unique_ptr<ReshardCache>> values;
  DenseMap<OpOperand *, ShardingAttr> wants;
  DenseMap<Operation *, LocalForm> forms;
  std::shared_ptr<InsertionTail> argumentTail;
};

LogicalResult Partitioner::readSignatures() {
  auto check = [&](func::FuncOp func, Type type, ShardingAttr &sharding,
                   const Twine &what) -> LogicalResult {
    if (!isa<RankedTensorType>(type)) {
      sharding = {};
      return success();
    }
    if (!sharding)
      return func.emitOpError(what) << " has no sharding (braid-propagate-shardings states one)";
    return success();
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    Signature &signature = signatures[func];
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      if (func.getArgAttr(i, CommDialect::kGlobalTypeAttrName))
        return func.emitOpError("is partitioned already");
      auto sharding = func.getArgAttrOfType<ShardingAttr>(i, CommDialect::kShardingAttrName);
      if (func.isExternal()) // Its definition does not know ranks.
        sharding = isa<RankedTensorType>(func.getArgumentTypes()[i])
                       ? ShardingAttr::replicated(
                             FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                             cast<RankedTensorType>(func.getArgumentTypes()[i]).getRank())
                       : ShardingAttr();
      if (failed(check(func, func.getArgumentTypes()[i], sharding, "argument " + Twine(i))))
        return failure();
      signature.arguments.push_back(sharding);
    }
    for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
      ShardingAttr sharding = getResultSharding(func, i);
      if (failed(check(func, type, sharding, "result " + Twine(i))))
        return failure();
      if (sharding && sharding.isPartial())
        return func.emitOpError("result ") << i << " expects a sharding without partial axes";
      signature.results.push_back(sharding);
    }
  }
  return success();
}

FailureOr<RankedTensorType> Partitioner::toLocal(Operation *op, Type type, ShardingAttr sharding) {
  FailureOr<RankedTensorType> local = localType(mesh, cast<RankedTensorType>(type), sharding);
  if (failed(local))
    emitNamedError(op) << "has a value of type " << type << " that does not divide as " << sharding
                       << " says";
  return local;
}

/// Splits reduction factors so that the result is partial as stated; the remaining axes must come
/// from the operands.
LogicalResult Partitioner::reductionAxes(Operation *op, LocalForm &form) {
  SmallVector<PartialAttr> stated;
  for (Value result : op->getResults())
    if (ShardingAttr sharding = getSharding(result))
      for (PartialAttr partial : sharding.getPartials())
        if (!llvm::is_contained(stated, partial))
          stated.push_back(partial);
  SmallVector<PartialAttr> passed;
  for (PartialAttr partial : stated) {
    bool found = false;
    for (auto [i, tensor] : llvm::enumerate(form.rule.operands)) {
      ShardingAttr sharding = getSharding(op->getOperand(i));
      if (!sharding || found)
        continue;
      for (auto [d, factors] : llvm::enumerate(tensor)) {
        FactorAxes axes(form.rule.factors.size());
        projectDim(mesh, form.rule, factors, sharding.getDims()[d].getAxes(), axes);
        for (int64_t f : factors)
          if (!found && form.rule.factors[f].kind == FactorKind::Reduction &&
              llvm::is_contained(axes[f], partial.getAxis())) {
            form.axes[f].push_back(partial.getAxis());
            found = true;
          }
      }
    }
    (found ? form.partials : passed).push_back(partial);
  }
  llvm::append_range(form.partials, passed);
  if (passed.empty())
    return success();
  // Linear operations map partial operands to partial results; over other axes the operands are
  // reduced.
  for (int64_t i : form.rule.partialOperands) {
    ShardingAttr sharding = getSharding(op->getOperand(i));
    if (form.rule.linear && sharding && llvm::all_of(passed, [&](PartialAttr partial) {
          return llvm::is_contained(sharding.getPartials(), partial);
        }))
      form.operands[i] = makeSharding(mesh, dimsOf(sharding), passed);
    else
      form.rule.linear = false;
  }
  if (!form.rule.linear || form.rule.partialOperands.empty())
    return emitNamedError(op) << "states a result that is partial over axis '"
                              << passed[0].getAxis().getName()
                              << "', which none of its operands accounts for";
  return success();
}

/// Reductions over factors that are not split are complete on every rank.
void Partitioner::dropUnsplitReductions(LocalForm &form) {
  AxisList reduced;
  for (auto [factor, axes] : llvm::zip_equal(form.rule.factors, form.axes))
    if (factor.kind == FactorKind::Reduction)
      llvm::append_range(reduced, axes);
  if (!reduced.empty())
    form.partial =
        GroupAttr::get(mesh.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()), reduced);
  llvm::erase_if(form.partials, [&](PartialAttr partial) {
    bool isPassed = llvm::any_of(form.operands, [&](ShardingAttr operand) {
      return operand && llvm::is_contained(operand.getPartials(), partial);
    });
    return !isPassed && !llvm::is_contained(reduced, partial.getAxis());
  });
}

FailureOr<LocalForm> Partitioner::localForm(Operation *op) {
  LocalForm form;
  form.rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  form.axes.resize(form.rule.factors.size());
  form.operands.resize(op->getNumOperands());
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    ShardingAttr sharding = getSharding(result);
    if (!sharding)
      return emitNamedError(op) << "has no sharding for result " << i
                                << " (braid-propagate-shardings states one)";
    for (auto [d, factors] : llvm::enumerate(form.rule.results[i])) {
      FactorAxes axes(form.rule.factors.size());
      projectDim(mesh, form.rule, factors, sharding.getDims()[d].getAxes(), axes);
      // If the stated shardings of results differ, the first decides how the operation is sharded;
      // the others are resharded for their users.
      for (int64_t f : factors)
        if (form.axes[f].empty())
          for (AxisAttr axis : axes[f]) {
            if (llvm::any_of(form.axes, [&](const AxisList &list) {
                  return llvm::any_of(list, [&](AxisAttr other) { return overlap(other, axis); });
                }))
              break;
            form.axes[f].push_back(axis);
          }
    }
  }
  if (failed(reductionAxes(op, form)))
    return failure();
  dropInexpressible(mesh, form.rule, form.axes);
  dropUnsplitReductions(form);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (!isa<RankedTensorType>(operand.getType()))
      continue;
    ArrayRef<PartialAttr> partials;
    if (form.operands[i])
      partials = form.operands[i].getPartials();
    form.operands[i] = makeSharding(mesh, dimsOf(mesh, form.rule.operands[i], form.axes), partials);
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    ShardingAttr &sharding = form.results.emplace_back();
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    SmallVector<PartialAttr> partials(
        llvm::make_filter_range(getSharding(result).getPartials(), [&](PartialAttr partial) {
          return llvm::is_contained(form.partials, partial);
        }));
    sharding = makeSharding(mesh, dimsOf(mesh, form.rule.results[i], form.axes), partials);
  }
  return form;
}

/// Announces the forms in which an operation wants its operands.
LogicalResult Partitioner::readWants(Operation *op) {
  auto want = [&](OpOperand &operand, ShardingAttr sharding) {
    if (isa<RankedTensorType>(operand.get().getType()))
      wants[&operand] = sharding;
  };
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    for (auto [operand, sharding] :
         llvm::zip_equal(op->getOpOperands(), signatures.at(callee).arguments))
      want(operand, sharding);
    return success();
  }
  if (isa<func::ReturnOp>(op)) {
    for (auto [operand, sharding] :
         llvm::zip_equal(op->getOpOperands(), signatures.at(op->getParentOp()).results))
      want(operand, sharding);
    return success();
  }
  if (isa<ShardingRuleOpInterface>(op)) {
    FailureOr<LocalForm> form = localForm(op);
    if (failed(form))
      return failure();
    for (auto [operand, sharding] : llvm::zip_equal(op->getOpOperands(), form->operands))
      want(operand, sharding);
    forms[op] = std::move(*form);
    return wantCaptured(op);
  }
  for (OpOperand &operand : op->getOpOperands())
    want(operand, whole(operand.get()));
  return wantCaptured(op);
}

LogicalResult Partitioner::wantCaptured(Operation *op) {
  WalkResult inside = op->walk([&](Operation *nested) {
    if (nested == op)
      return WalkResult::advance();
    if (isa<func::CallOp, nn::ParameterOp>(nested) || nested->getDialect() == mesh->getDialect()) {
      emitNamedError(nested) << "is not expected inside '" << op->getName()
                             << "', which runs replicated on every rank";
      return WalkResult::interrupt();
    }
    for (OpOperand &operand : nested->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()))
        wants[&operand] = whole(operand.get());
    return WalkResult::advance();
  });
  return failure(inside.wasInterrupted());
}

void Partitioner::define(Value value, Value local, ShardingAttr sharding, const LocalForm *form) {
  if (!sharding) {
    values[value] = std::make_unique<ReshardCache>(local);
    return;
  }
  Operation *op = value.getDefiningOp();
  auto tail =
      local.getDefiningOp() ? std::make_shared<InsertionTail>(local.getDefiningOp()) : argumentTail;
  auto role = op ? op->getAttrOfType<StringAttr>("role") : StringAttr();
  if (form && !role) // A partial value keeps its role through the operations that it flows through.
    for (int64_t i : form->rule.partialOperands)
      if (form->operands[i] && form->operands[i].isPartial() && !role)
        role = values.at(op->getOperand(i))->getRole();
  auto result = std::make_unique<ReshardCache>(local, sharding, mesh, role, tail, &counts);
  SmallVector<ShardingAttr> wanted;
  for (OpOperand &use : value.getUses())
    if (ShardingAttr want = wants.lookup(&use); want && want != sharding && !want.isPartial())
      wanted.push_back(want);
  result->planReduction(wanted);
  values[value] = std::move(result);
}

void Partitioner::emitParameter(nn::ParameterOp op, OpBuilder &builder) {
  ShardingAttr sharding = getSharding(op.getResult());
  auto local = cast<nn::ParameterOp>(builder.clone(*op));
  local->removeAttr(CommDialect::kShardingsAttrName);
  local.setGlobalType(op.getType());
  local.setShardingAttr(sharding);
  local.getResult().setType(*localType(mesh, cast<RankedTensorType>(op.getType()), sharding));
  define(op.getResult(), local.getResult(), sharding);
}

/// Maps the values that the regions of an operation capture to local values.
LogicalResult Partitioner::takeCaptured(Operation *op, IRMapping &mapping) {
  for (Region &region : op->getRegions()) {
    WalkResult taken = region.walk([&](Operation *nested) {
      for (OpOperand &operand : nested->getOpOperands())
        if (values.contains(operand.get())) {
          Value value = take(operand);
          if (!value)
            return WalkResult::interrupt();
          mapping.map(operand.get(), value);
        }
      return WalkResult::advance();
    });
    if (taken.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult Partitioner::emitWhole(Operation *op, OpBuilder &builder) {
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = take(operand);
    if (!value)
      return failure();
    mapping.map(operand.get(), value);
  }
  if (failed(takeCaptured(op, mapping)))
    return failure();
  Operation *local = builder.clone(*op, mapping);
  local->removeAttr(CommDialect::kShardingsAttrName);
  for (auto [result, value] : llvm::zip_equal(op->getResults(), local->getResults()))
    define(result, value, whole(result));
  return success();
}

LogicalResult Partitioner::emitLocal(Operation *op, const LocalForm &form, OpBuilder &builder) {
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    operands.push_back(take(operand));
    if (!operands.back())
      return failure();
  }
  SmallVector<Type> types;
  for (auto [result, sharding] : llvm::zip_equal(op->getResults(), form.results)) {
    if (!sharding) {
      types.push_back(result.getType());
      continue;
    }
    FailureOr<RankedTensorType> type = toLocal(op, result.getType(), sharding);
    if (failed(type))
      return failure();
    types.push_back(*type);
  }
  IRMapping captured;
  if (failed(takeCaptured(op, captured)))
    return failure();
  Block *block = builder.getBlock();
  builder.setInsertionPointToEnd(block);
  Operation *last = block->empty() ? nullptr : &block->back();
  FailureOr<SmallVector<Value>> locals =
      cast<ShardingRuleOpInterface>(op).buildLocal(builder, operands, types, form.partial);
  if (failed(locals))
    return emitNamedError(op) << "cannot be built on per-rank operands";
  for (auto it = last ? std::next(last->getIterator()) : block->begin(); it != block->end(); ++it)
    for (Region &region : it->getRegions())
      region.walk([&](Operation *nested) {
        for (OpOperand &operand : nested->getOpOperands())
          operand.set(captured.lookupOrDefault(operand.get()));
      });
  if (TypeRange(ValueRange(*locals)) != TypeRange(types))
    return emitNamedError(op) << "expects per-rank results of types (" << TypeRange(types)
                              << "), got (" << TypeRange(ValueRange(*locals)) << ")";
  for (auto [result, local, sharding] : llvm::zip_equal(op->getResults(), *locals, form.results))
    define(result, local, sharding, &form);
  return success();
}

LogicalResult Partitioner::emit(Operation *op, OpBuilder &builder) {
  if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    if (!getSharding(parameter.getResult()))
      return emitNamedError(op) << "has no sharding (braid-propagate-shardings states one)";
    emitParameter(parameter, builder);
    return success();
  }
  if (auto it = forms.find(op); it != forms.end())
    return emitLocal(op, it->second, builder);
  if (!isa<func::CallOp, func::ReturnOp>(op))
    return emitWhole(op, builder);
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    operands.push_back(take(operand));
    if (!operands.back())
      return failure();
  }
  builder.setInsertionPointToEnd(builder.getBlock());
  auto call = dyn_cast<func::CallOp>(op);
  if (!call) {
    func::ReturnOp::create(builder, op->getLoc(), operands);
    return success();
  }
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  const Signature &signature = signatures.at(callee);
  SmallVector<Type> types;
  for (auto [result, sharding] : llvm::zip_equal(op->getResults(), signature.results)) {
    FailureOr<Type> type = localOr(op, result.getType(), sharding);
    if (failed(type))
      return failure();
    types.push_back(*type);
  }
  auto local = func::CallOp::create(builder, op->getLoc(), call.getCallee(), types, operands);
  local->setDiscardableAttrs(call->getDiscardableAttrDictionary());
  local->removeDiscardableAttr(CommDialect::kShardingsAttrName);
  for (auto [result, value, sharding] :
       llvm::zip_equal(op->getResults(), local.getResults(), signature.results))
    define(result, value, sharding);
  return success();
}

LogicalResult Partitioner::runOnFunction(func::FuncOp func) {
  const Signature &signature = signatures.at(func);
  SmallVector<Type> arguments, results;
  auto append = [&](SmallVector<Type> &types, Type type, ShardingAttr sharding) -> LogicalResult {
    FailureOr<Type> local = localOr(func, type, sharding);
    if (succeeded(local))
      types.push_back(*local);
    return local;
  };
  for (auto [type, sharding] : llvm::zip_equal(func.getArgumentTypes(), signature.arguments))
    if (failed(append(arguments, type, sharding)))
      return failure();
  for (auto [type, sharding] : llvm::zip_equal(func.getResultTypes(), signature.results))
    if (failed(append(results, type, sharding)))
      return failure();
  if (func.isExternal())
    return success();
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("expects one block to partition, got ")
           << func.getBody().getBlocks().size();

  values.clear();
  wants.clear();
  forms.clear();
  Block *global = &func.getBody().front();
  for (Operation &op : *global)
    if (failed(readWants(&op)))
      return failure();

  auto *local = new Block();
  func.getBody().push_back(local);
  argumentTail = std::make_shared<InsertionTail>(local);
  for (auto [argument, type, sharding] :
       llvm::zip_equal(global->getArguments(), arguments, signature.arguments))
    define(argument, local->addArgument(type, argument.getLoc()), sharding);
  OpBuilder builder(func.getContext());
  for (Operation &op : *global) {
    builder.setInsertionPointToEnd(local);
    if (failed(emit(&op, builder)))
      return failure();
  }
  values.clear();
  global->dropAllReferences();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*global))) {
    op.dropAllUses();
    op.erase();
  }
  global->erase();

  bool entry = isEntry(func);
  auto attribute = [&](Type type, ShardingAttr sharding, auto set, auto remove) {
    if (!sharding || !entry) // Inside the program the per-rank types suffice.
      return remove(CommDialect::kShardingAttrName);
    set(CommDialect::kGlobalTypeAttrName, TypeAttr::get(type));
  };
  for (auto [i, type, sharding] : llvm::enumerate(func.getArgumentTypes(), signature.arguments))
    attribute(
        type, sharding,
        [&, i = i](StringRef name, Attribute value) { func.setArgAttr(i, name, value); },
        [&, i = i](StringRef name) {
          func.removeArgAttr(i, StringAttr::get(func.getContext(), name));
        });
  for (auto [i, type, sharding] : llvm::enumerate(func.getResultTypes(), signature.results))
    attribute(
        type, sharding,
        [&, i = i](StringRef name, Attribute value) { func.setResultAttr(i, name, value); },
        [&, i = i](StringRef name) {
          func.removeResultAttr(i, StringAttr::get(func.getContext(), name));
        });
  func.setType(FunctionType::get(func.getContext(), arguments, results));
  return success();
}

LogicalResult Partitioner::run() {
  WalkResult found = module.walk([&](Operation *op) {
    if (op->getDialect() != mesh->getDialect() || isa<MeshOp>(op))
      return WalkResult::advance();
    emitNamedError(op) << "is not expected before partitioning";
    return WalkResult::interrupt();
  });
  if (found.wasInterrupted() || failed(readSignatures()))
    return failure();
  for (auto func : module.getOps<func::FuncOp>())
    if (failed(runOnFunction(func)))
      return failure();
  return success();
}

struct Partition : impl::PartitionBase<Partition> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    Partitioner partitioner(getOperation(), *mesh);
    if (failed(partitioner.run()))
      return signalPassFailure();
    numAllReduce += partitioner.counts.allReduce;
    numReduceScatter += partitioner.counts.reduceScatter;
    numAllGather += partitioner.counts.allGather;
    numAllToAll += partitioner.counts.allToAll;
    numPermute += partitioner.counts.permute;
    numLocalSlice += partitioner.counts.localSlice;
  }
};

} // namespace
} // namespace braid
