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
#include "mlir/Transforms/RegionUtils.h"

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
  SmallVector<ShardingAttr> operands, results; ///< null for values that are no tensors
  SmallVector<PartialAttr> partials;           ///< of the results
  GroupAttr partial; ///< over which reduction factors are sharded; null when none is
};

/// Shardings of a function's arguments and results; null for values that are no tensors.
struct Signature {
  SmallVector<ShardingAttr> arguments, results;
};

class Partitioner {
public:
  Partitioner(ModuleOp module, MeshOp mesh) : module(module), mesh(mesh), layouts(mesh) {}
  LogicalResult run();

private:
  LogicalResult readSignatures();
  LogicalResult runOnFunction(func::FuncOp func);
  LogicalResult emit(Operation *op, OpBuilder &builder);
  LogicalResult emitReplicated(Operation *op, OpBuilder &builder);
  LogicalResult emitLocal(Operation *op, const LocalForm &form, OpBuilder &builder);
  LogicalResult emitParameter(nn::ParameterOp op, OpBuilder &builder);

  FailureOr<LocalForm> localForm(Operation *op);
  LogicalResult reductionAxes(Operation *op, LocalForm &form);
  void dropUnsplitReductions(LocalForm &form);
  LogicalResult readWants(Operation *op);
  /// Values captured by regions of an operation are replicated.
  LogicalResult wantCaptured(Operation *op);
  LogicalResult takeCaptured(Operation *op, IRMapping &mapping);
  void define(Value value, Value local, ShardingAttr sharding, const LocalForm *form = nullptr,
              StringAttr role = {});
  FailureOr<SmallVector<Type>> localTypes(Operation *op, TypeRange types,
                                          ArrayRef<ShardingAttr> shardings);
  /// Null for what is no tensor.
  ShardingAttr replicated(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? layouts.replicated(tensor.getRank()) : ShardingAttr();
  }
  /// The local value of `operand` in the form that its user wants; null, with an error, when that
  /// form cannot be reached.
  Value take(OpOperand &operand);
  FailureOr<SmallVector<Value>> takeOperands(Operation *op);

  ModuleOp module;
  MeshOp mesh;
  MeshLayouts layouts;
  DenseMap<Operation *, Signature> signatures;
  // Of the current function.
  DenseMap<Value, std::unique_ptr<ReshardCache>> values;
  DenseMap<OpOperand *, ShardingAttr> wants; ///< null for values that are no tensors
  DenseMap<Operation *, LocalForm> forms;
  std::shared_ptr<InsertionTail> argumentTail;
  Block *localBlock = nullptr;
  DenseSet<Value> gathered; ///< parameters stored apart from their use that have been used
};

LogicalResult Partitioner::readSignatures() {
  auto read = [&](func::FuncOp func, Type type, ShardingAttr stated, const Twine &what,
                  SmallVector<ShardingAttr> &shardings) -> LogicalResult {
    if (!isa<RankedTensorType>(type))
      stated = {};
    else if (!stated)
      return func.emitOpError(what) << " has no sharding (braid-propagate-shardings states one)";
    shardings.push_back(stated);
    return success();
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    Signature &signature = signatures[func];
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
      if (func.getArgAttr(i, CommDialect::kGlobalTypeAttrName))
        return func.emitOpError("is partitioned already");
      // The definition of an external function does not know ranks.
      auto stated = func.isExternal()
                        ? replicated(type)
                        : func.getArgAttrOfType<ShardingAttr>(i, CommDialect::kShardingAttrName);
      if (failed(read(func, type, stated, "argument " + Twine(i), signature.arguments)))
        return failure();
    }
    for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
      ShardingAttr stated = getResultSharding(func, i);
      if (failed(read(func, type, stated, "result " + Twine(i), signature.results)))
        return failure();
      if (stated && stated.isPartial())
        return func.emitOpError("result ") << i << " expects a sharding without partial axes";
    }
  }
  return success();
}

/// The per-rank types of values; a type without a sharding stays.
FailureOr<SmallVector<Type>> Partitioner::localTypes(Operation *op, TypeRange types,
                                                     ArrayRef<ShardingAttr> shardings) {
  SmallVector<Type> locals(types);
  for (auto [type, sharding] : llvm::zip_equal(locals, shardings)) {
    if (!sharding)
      continue;
    FailureOr<RankedTensorType> local = localType(mesh, cast<RankedTensorType>(type), sharding);
    if (failed(local))
      return emitNamedError(op) << "has a value of type " << type << " that does not divide as "
                                << sharding << " says";
    type = *local;
  }
  return locals;
}

Value Partitioner::take(OpOperand &operand) {
  ReshardCache &local = *values.at(operand.get());
  ShardingAttr want = wants.lookup(&operand);
  // Gathered at its definition, a stored parameter would occupy memory until its use.
  auto parameter = operand.get().getDefiningOp<nn::ParameterOp>();
  if (parameter && parameter.getStored() && gathered.insert(parameter).second)
    local.reshardAfter(std::make_shared<InsertionTail>(&localBlock->back()));
  Value value = want ? local.get(want) : local.get();
  if (!value)
    emitNamedError(operand.getOwner())
        << "takes operand " << operand.getOperandNumber() << " as " << want << ", which is "
        << local.getSharding() << " and does not become that";
  return value;
}

FailureOr<SmallVector<Value>> Partitioner::takeOperands(Operation *op) {
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands())
    if (!operands.emplace_back(take(operand)))
      return failure();
  return operands;
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
    SubAxis axis = layouts.subAxis(partial.getAxis());
    bool found = false;
    for (auto [i, tensor] : llvm::enumerate(form.rule.operands)) {
      ShardingAttr sharding = getSharding(op->getOperand(i));
      if (!sharding || found)
        continue;
      for (auto [dim, factors] : llvm::zip(sharding.getDims(), tensor)) {
        FactorAxes axes(form.rule.factors.size());
        projectDim(form.rule, factors, layouts.subAxes(dim.getAxes()), axes);
        for (int64_t f : factors)
          if (!found && form.rule.factors[f].kind == FactorKind::Reduction &&
              llvm::is_contained(axes[f], axis)) {
            form.axes[f].push_back(axis);
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
      form.operands[i] = layouts.sharding(layouts.layout(sharding), passed);
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
  SubAxes reduced;
  for (auto [factor, axes] : llvm::zip_equal(form.rule.factors, form.axes))
    if (factor.kind == FactorKind::Reduction)
      llvm::append_range(reduced, axes);
  if (!reduced.empty())
    form.partial = layouts.group(reduced);
  llvm::erase_if(form.partials, [&](PartialAttr partial) {
    bool isPassed = llvm::any_of(form.operands, [&](ShardingAttr operand) {
      return operand && llvm::is_contained(operand.getPartials(), partial);
    });
    return !isPassed && !llvm::is_contained(reduced, layouts.subAxis(partial.getAxis()));
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
    for (auto [dim, factors] : llvm::zip_equal(sharding.getDims(), form.rule.results[i])) {
      FactorAxes axes(form.rule.factors.size());
      projectDim(form.rule, factors, layouts.subAxes(dim.getAxes()), axes);
      // If the stated shardings of results differ, the first decides how the operation is sharded;
      // the others are resharded for their users.
      for (int64_t f : factors)
        if (form.axes[f].empty())
          for (const SubAxis &axis : axes[f]) {
            if (!isFree(form.axes, axis))
              break;
            form.axes[f].push_back(axis);
          }
    }
  }
  if (failed(reductionAxes(op, form)))
    return failure();
  dropInexpressible(form.rule, form.axes);
  dropUnsplitReductions(form);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (!isa<RankedTensorType>(operand.getType()))
      continue;
    ShardingAttr &sharding = form.operands[i];
    sharding = layouts.sharding(dimsOf(form.rule.operands[i], form.axes),
                                sharding ? sharding.getPartials() : ArrayRef<PartialAttr>());
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    ShardingAttr &sharding = form.results.emplace_back();
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    SmallVector<PartialAttr> partials(
        llvm::make_filter_range(getSharding(result).getPartials(), [&](PartialAttr partial) {
          return llvm::is_contained(form.partials, partial);
        }));
    sharding = layouts.sharding(dimsOf(form.rule.results[i], form.axes), partials);
  }
  return form;
}

/// Announces the forms in which an operation wants its operands.
LogicalResult Partitioner::readWants(Operation *op) {
  auto want = [&](ArrayRef<ShardingAttr> shardings) {
    for (auto [operand, sharding] : llvm::zip_equal(op->getOpOperands(), shardings))
      wants[&operand] = sharding;
  };
  if (auto call = dyn_cast<func::CallOp>(op)) {
    want(signatures.at(calleeOf(call)).arguments);
    return success();
  }
  if (isa<func::ReturnOp>(op)) {
    want(signatures.at(op->getParentOp()).results);
    return success();
  }
  if (isa<ShardingRuleOpInterface>(op)) {
    FailureOr<LocalForm> form = localForm(op);
    if (failed(form))
      return failure();
    want(form->operands);
    forms[op] = std::move(*form);
    return wantCaptured(op);
  }
  for (OpOperand &operand : op->getOpOperands())
    wants[&operand] = replicated(operand.get().getType());
  return wantCaptured(op);
}

LogicalResult Partitioner::wantCaptured(Operation *op) {
  WalkResult inside = op->walk([&](Operation *nested) {
    if (nested == op)
      return WalkResult::advance();
    if (isa<func::CallOp, nn::ParameterOp>(nested) ||
        isa_and_nonnull<CommDialect>(nested->getDialect())) {
      emitNamedError(nested) << "is not expected inside '" << op->getName()
                             << "', which runs replicated on every rank";
      return WalkResult::interrupt();
    }
    for (OpOperand &operand : nested->getOpOperands())
      wants[&operand] = replicated(operand.get().getType());
    return WalkResult::advance();
  });
  return failure(inside.wasInterrupted());
}

void Partitioner::define(Value value, Value local, ShardingAttr sharding, const LocalForm *form,
                         StringAttr role) {
  if (!sharding) {
    values[value] = std::make_unique<ReshardCache>(local);
    return;
  }
  Operation *op = value.getDefiningOp();
  auto tail =
      local.getDefiningOp() ? std::make_shared<InsertionTail>(local.getDefiningOp()) : argumentTail;
  if (op && !role)
    role = op->getAttrOfType<StringAttr>("role");
  if (form && !role) // A partial value keeps its role through the operations that it flows through.
    for (int64_t i : form->rule.partialOperands)
      if (form->operands[i] && form->operands[i].isPartial() && !role)
        role = values.at(op->getOperand(i))->getRole();
  auto result = std::make_unique<ReshardCache>(local, cast<RankedTensorType>(value.getType()),
                                               sharding, layouts, role, tail);
  SmallVector<ShardingAttr> wanted;
  for (OpOperand &use : value.getUses())
    if (ShardingAttr want = wants.lookup(&use); want && want != sharding && !want.isPartial())
      wanted.push_back(want);
  result->planReduction(wanted);
  values[value] = std::move(result);
}

LogicalResult Partitioner::emitParameter(nn::ParameterOp op, OpBuilder &builder) {
  ShardingAttr sharding = getSharding(op.getResult());
  if (!sharding)
    return emitNamedError(op) << "has no sharding (braid-propagate-shardings states one)";
  auto local = cast<nn::ParameterOp>(builder.clone(*op));
  local->removeAttr(CommDialect::kShardingsAttrName);
  if (ShardingAttr stored = op.getStoredAttr())
    sharding = layouts.sharding(layouts.layout(stored));
  local.removeStoredAttr();
  local.setGlobalType(op.getType());
  local.setShardingAttr(sharding);
  local.getResult().setType(*localType(mesh, cast<RankedTensorType>(op.getType()), sharding));
  define(op.getResult(), local.getResult(), sharding, /*form=*/nullptr,
         op.getStored() ? op.getNameAttr() : StringAttr());
  return success();
}

/// Maps the values that the regions of an operation capture to local values.
LogicalResult Partitioner::takeCaptured(Operation *op, IRMapping &mapping) {
  bool taken = true;
  visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *operand) {
    if (Value value = taken ? take(*operand) : Value())
      mapping.map(operand->get(), value);
    else
      taken = false;
  });
  return success(taken);
}

LogicalResult Partitioner::emitReplicated(Operation *op, OpBuilder &builder) {
  FailureOr<SmallVector<Value>> operands = takeOperands(op);
  IRMapping mapping;
  if (failed(operands) || failed(takeCaptured(op, mapping)))
    return failure();
  mapping.map(op->getOperands(), *operands);
  Operation *local = builder.clone(*op, mapping);
  local->removeAttr(CommDialect::kShardingsAttrName);
  for (auto [result, value] : llvm::zip_equal(op->getResults(), local->getResults()))
    define(result, value, replicated(result.getType()));
  return success();
}

LogicalResult Partitioner::emitLocal(Operation *op, const LocalForm &form, OpBuilder &builder) {
  FailureOr<SmallVector<Value>> operands = takeOperands(op);
  if (failed(operands))
    return failure();
  FailureOr<SmallVector<Type>> types = localTypes(op, op->getResultTypes(), form.results);
  if (failed(types))
    return failure();
  IRMapping captured;
  if (failed(takeCaptured(op, captured)))
    return failure();
  Block *block = builder.getBlock();
  builder.setInsertionPointToEnd(block);
  Operation *last = block->empty() ? nullptr : &block->back();
  FailureOr<SmallVector<Value>> locals =
      cast<ShardingRuleOpInterface>(op).buildLocal(builder, *operands, *types, form.partial);
  if (failed(locals))
    return emitNamedError(op) << "cannot be built on per-rank operands";
  for (auto it = last ? std::next(last->getIterator()) : block->begin(); it != block->end(); ++it)
    for (Region &region : it->getRegions())
      for (auto [global, value] : captured.getValueMap())
        replaceAllUsesInRegionWith(global, value, region);
  if (TypeRange(ValueRange(*locals)) != TypeRange(*types))
    return emitNamedError(op) << "expects per-rank results of types (" << TypeRange(*types)
                              << "), got (" << TypeRange(ValueRange(*locals)) << ")";
  for (auto [result, local, sharding] : llvm::zip_equal(op->getResults(), *locals, form.results))
    define(result, local, sharding, &form);
  return success();
}

LogicalResult Partitioner::emit(Operation *op, OpBuilder &builder) {
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return emitParameter(parameter, builder);
  if (auto it = forms.find(op); it != forms.end())
    return emitLocal(op, it->second, builder);
  if (!isa<func::CallOp, func::ReturnOp>(op))
    return emitReplicated(op, builder);
  FailureOr<SmallVector<Value>> operands = takeOperands(op);
  if (failed(operands))
    return failure();
  builder.setInsertionPointToEnd(builder.getBlock());
  auto call = dyn_cast<func::CallOp>(op);
  if (!call) {
    func::ReturnOp::create(builder, op->getLoc(), *operands);
    return success();
  }
  const Signature &signature = signatures.at(calleeOf(call));
  FailureOr<SmallVector<Type>> types = localTypes(op, op->getResultTypes(), signature.results);
  if (failed(types))
    return failure();
  auto local = func::CallOp::create(builder, op->getLoc(), call.getCallee(), *types, *operands);
  local->setDiscardableAttrs(call->getDiscardableAttrDictionary());
  local->removeDiscardableAttr(CommDialect::kShardingsAttrName);
  for (auto [result, value, sharding] :
       llvm::zip_equal(op->getResults(), local.getResults(), signature.results))
    define(result, value, sharding);
  return success();
}

LogicalResult Partitioner::runOnFunction(func::FuncOp func) {
  const Signature &signature = signatures.at(func);
  FailureOr<SmallVector<Type>> arguments =
      localTypes(func, func.getArgumentTypes(), signature.arguments);
  if (failed(arguments))
    return failure();
  FailureOr<SmallVector<Type>> results = localTypes(func, func.getResultTypes(), signature.results);
  if (failed(results))
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
  localBlock = local;
  gathered.clear();
  for (auto [argument, type, sharding] :
       llvm::zip_equal(global->getArguments(), *arguments, signature.arguments))
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

  // Only the entry keeps its shardings: inside the program the per-rank types suffice.
  bool entry = isEntry(func);
  auto updated = [&](DictionaryAttr attributes, Type type, ShardingAttr sharding) {
    NamedAttrList list(attributes);
    if (sharding && entry)
      list.set(CommDialect::kGlobalTypeAttrName, TypeAttr::get(type));
    else
      list.erase(CommDialect::kShardingAttrName);
    return list.getDictionary(func.getContext());
  };
  for (auto [i, type, sharding] : llvm::enumerate(func.getArgumentTypes(), signature.arguments))
    func.setArgAttrs(i, updated(func.getArgAttrDict(i), type, sharding));
  for (auto [i, type, sharding] : llvm::enumerate(func.getResultTypes(), signature.results))
    func.setResultAttrs(i, updated(func.getResultAttrDict(i), type, sharding));
  func.setType(FunctionType::get(func.getContext(), *arguments, *results));
  return success();
}

LogicalResult Partitioner::run() {
  WalkResult found = module.walk([&](Operation *op) {
    if (!isa_and_nonnull<CommDialect>(op->getDialect()) || isa<MeshOp>(op))
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
    if (failed(Partitioner(getOperation(), *mesh).run()))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      numAllReduce += isa<AllReduceOp>(op);
      numReduceScatter += isa<ReduceScatterOp>(op);
      numAllGather += isa<AllGatherOp>(op);
      numAllToAll += isa<AllToAllOp>(op);
      numPermute += isa<PermuteOp>(op);
      numPart += isa<PartOp>(op);
    });
  }
};

} // namespace
} // namespace braid
