//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A parallel factor of an operation's sharding rule says that its positions do not depend on each
// other: the operation computes further positions, and the others stay as they are. Padding
// therefore passes through an operation along a parallel factor. Where a factor is of another kind
// (attention over a sequence, a softmax, the last token of a sequence), the operation gets the
// value cut to its own size. What is padded holds copies of the last position, which are valid
// wherever the last position is: as ids, as labels, as divisors.
//
//===----------------------------------------------------------------------===//
#include "RowPadding.h"

#include "PadParameter.h"
#include "lib/Transforms/Collectives/SliceWise.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

using Dims = std::set<int64_t>;

class RowPadder {
public:
  RowPadder(ModuleOp module, StringRef axis, int64_t ranks)
      : module(module), axis(axis), ranks(ranks) {}

  LogicalResult run(ArrayRef<RowDim> seeds);
  int64_t numPadded = 0; ///< results that operations compute with padding

private:
  /// A value in the forms that its users want.
  struct Forms {
    Value value; ///< padded along `dims`
    Dims dims;
    SmallVector<int64_t> shape; ///< without padding
    std::map<Dims, Value> others = {};
  };

  /// Whether values of the function may be padded: it is one block that returns.
  static bool isPlain(Operation *op);
  void readFunctions();
  void add(Value value, int64_t dim);
  void follow(Value value, int64_t dim);
  void passThrough(Operation *op, int64_t factor);
  /// The parallel factor that is this dimension, if padding may pass through the operation along
  /// it.
  static std::optional<int64_t> factorOf(const ShardingRule &rule, const DimFactors &factors);
  const ShardingRule *ruleOf(Operation *op);
  /// The function that a call calls, where its types may change.
  func::FuncOp ownCallee(Operation *op) const;
  /// The state of an entry that the value is before or after a run; empty: none.
  StringRef stateOf(BlockArgument argument) const;
  StringRef stateOf(func::FuncOp func, unsigned result) const;
  void addState(StringRef name, int64_t dim);

  LogicalResult rewrite(func::FuncOp func);
  LogicalResult rewriteOp(Operation *op);
  void rewriteReturn(func::ReturnOp op);
  void rewriteCall(func::CallOp call, func::FuncOp callee);
  void rewriteParameter(nn::ParameterOp parameter);
  LogicalResult rebuildPadded(Operation *op);
  /// `now` has the values of `value`, padded along `dims`.
  void define(Value value, Value now, Dims dims);
  /// The dimensions along which a user wants the padding.
  Dims wantedBy(OpOperand &use);
  /// The dimensions of a tensor along which padding passes through the operation.
  Dims along(Operation *op, const TensorFactors &tensor) const;
  Value get(Value value, const Dims &wanted);
  Value take(OpOperand &use);
  Value resized(OpBuilder &builder, Value value, int64_t dim, int64_t wanted);
  int64_t paddedSize(int64_t size) const { return (size + ranks - 1) / ranks * ranks; }
  RankedTensorType paddedType(Type type, const Dims &dims) const;

  ModuleOp module;
  StringRef axis;
  int64_t ranks;
  DenseMap<Operation *, SmallVector<func::CallOp>> callsOf; ///< of functions whose types may change
  /// By name: the arguments of all entries that are the state, and its new values.
  llvm::StringMap<SmallVector<std::pair<BlockArgument, Value>>> states;
  DenseMap<Operation *, ShardingRule> rules;
  llvm::MapVector<Value, Dims> padded; ///< where any user or the definition wants the padding
  SmallVector<RowDim> work;
  DenseMap<Operation *, std::set<int64_t>> passing; ///< factors, before their sizes change
  DenseMap<Value, Forms> forms;                     ///< of the values in `padded`
  SmallVector<Operation *> replaced;
  int64_t numPads = 0, numCuts = 0, rows = 0, bytes = 0;
};

//===----------------------------------------------------------------------===//
// What is padded
//===----------------------------------------------------------------------===//

bool RowPadder::isPlain(Operation *op) {
  auto func = dyn_cast_or_null<func::FuncOp>(op);
  return func && !func.isExternal() && func.getBody().hasOneBlock() &&
         isa<func::ReturnOp>(func.getBody().front().getTerminator());
}

StringRef RowPadder::stateOf(BlockArgument argument) const {
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!func || !nn::getStateResult(func, argument.getArgNumber()))
    return {};
  return func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), nn::NNDialect::kNameAttrName)
      .getValue();
}

StringRef RowPadder::stateOf(func::FuncOp func, unsigned result) const {
  std::optional<unsigned> argument = nn::getStateArgument(func, result);
  return argument ? stateOf(func.getArgument(*argument)) : StringRef();
}

/// A state is one value in all entries, before and after a run.
void RowPadder::addState(StringRef name, int64_t dim) {
  if (auto it = states.find(name); it != states.end())
    for (auto [before, after] : it->second) {
      add(before, dim);
      add(after, dim);
    }
}

void RowPadder::readFunctions() {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (isPlain(func))
      for (BlockArgument argument : func.getArguments())
        if (std::optional<unsigned> result = nn::getStateResult(func, argument.getArgNumber()))
          states[stateOf(argument)].emplace_back(
              argument, func.getBody().front().getTerminator()->getOperand(*result));
    if (!isPlain(func) || isEntry(func))
      continue;
    std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(func, module);
    SmallVector<func::CallOp> calls;
    bool isCalledOnly = uses.has_value();
    if (uses)
      for (SymbolTable::SymbolUse use : *uses) {
        auto call = dyn_cast<func::CallOp>(use.getUser());
        isCalledOnly &= call && isPlain(call->getParentOp());
        if (call)
          calls.push_back(call);
      }
    if (isCalledOnly)
      callsOf[func] = std::move(calls);
  }
}

func::FuncOp RowPadder::ownCallee(Operation *op) const {
  auto call = dyn_cast<func::CallOp>(op);
  func::FuncOp callee = call ? calleeOf(call) : func::FuncOp();
  return callee && callsOf.contains(callee) ? callee : func::FuncOp();
}

std::optional<int64_t> RowPadder::factorOf(const ShardingRule &rule, const DimFactors &factors) {
  if (factors.size() != 1 || rule.factors[factors[0]].kind != FactorKind::Parallel)
    return std::nullopt;
  for (const auto *tensors : {&rule.operands, &rule.results})
    for (const TensorFactors &tensor : *tensors)
      for (const DimFactors &dim : tensor)
        if (dim.size() > 1 && llvm::is_contained(dim, factors[0]))
          return std::nullopt;
  return factors[0];
}

/// Null for an operation without a rule, and for one that is nested in another.
const ShardingRule *RowPadder::ruleOf(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || !isPlain(op->getParentOp()) || !isMemoryEffectFree(op))
    return nullptr;
  auto it = rules.find(op);
  if (it == rules.end())
    it = rules.try_emplace(op, interface.getShardingRule()).first;
  return &it->second;
}

void RowPadder::add(Value value, int64_t dim) {
  if (isa<RankedTensorType>(value.getType()) && isPlain(value.getParentBlock()->getParentOp()) &&
      padded[value].insert(dim).second)
    work.push_back({value, dim});
}

void RowPadder::passThrough(Operation *op, int64_t factor) {
  if (!passing[op].insert(factor).second)
    return;
  const ShardingRule rule = *ruleOf(op);
  auto addAll = [&](ValueRange values, ArrayRef<TensorFactors> tensors) {
    for (auto [value, tensor] : llvm::zip_equal(values, tensors))
      for (auto [d, factors] : llvm::enumerate(tensor))
        if (llvm::is_contained(factors, factor))
          add(value, static_cast<int64_t>(d));
  };
  addAll(op->getOperands(), rule.operands);
  addAll(op->getResults(), rule.results);
}

/// Adds what the definition and the users of a padded dimension tie to it.
void RowPadder::follow(Value value, int64_t dim) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    addState(stateOf(argument), dim);
    if (auto it = callsOf.find(argument.getOwner()->getParentOp()); it != callsOf.end())
      for (func::CallOp call : it->second)
        add(call.getOperand(argument.getArgNumber()), dim);
  } else {
    auto result = cast<OpResult>(value);
    Operation *op = result.getOwner();
    if (func::FuncOp callee = ownCallee(op)) {
      add(callee.getBody().front().getTerminator()->getOperand(result.getResultNumber()), dim);
    } else if (const ShardingRule *rule = ruleOf(op)) {
      if (auto factor = factorOf(*rule, rule->results[result.getResultNumber()][dim]))
        passThrough(op, *factor);
    }
  }
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (func::FuncOp callee = ownCallee(user)) {
      add(callee.getArgument(use.getOperandNumber()), dim);
    } else if (isa<func::ReturnOp>(user)) {
      addState(stateOf(cast<func::FuncOp>(user->getParentOp()), use.getOperandNumber()), dim);
      if (auto it = callsOf.find(user->getParentOp()); it != callsOf.end())
        for (func::CallOp call : it->second)
          add(call.getResult(use.getOperandNumber()), dim);
    } else if (const ShardingRule *rule = ruleOf(user)) {
      if (auto factor = factorOf(*rule, rule->operands[use.getOperandNumber()][dim]))
        passThrough(user, *factor);
    }
  }
}

//===----------------------------------------------------------------------===//
// Forms of values
//===----------------------------------------------------------------------===//

RankedTensorType RowPadder::paddedType(Type type, const Dims &dims) const {
  auto tensor = cast<RankedTensorType>(type);
  for (int64_t dim : dims)
    tensor = withDim(tensor, dim, paddedSize(tensor.getDimSize(dim)));
  return tensor;
}

void RowPadder::define(Value value, Value now, Dims dims) {
  forms[value] = {now, std::move(dims), SmallVector<int64_t>(typeOf(value).getShape())};
}

/// Cuts a dimension, or repeats its last position.
Value RowPadder::resized(OpBuilder &builder, Value value, int64_t dim, int64_t wanted) {
  const int64_t own = typeOf(value).getDimSize(dim);
  Location loc = value.getLoc();
  if (wanted < own) {
    ++numCuts;
    return nn::SliceOp::create(builder, loc, value, dim, int64_t(0), wanted);
  }
  ++numPads;
  Value last = nn::SliceOp::create(builder, loc, value, dim, own - 1, int64_t(1));
  SmallVector<Value> parts(static_cast<size_t>(wanted - own), last);
  parts.insert(parts.begin(), value);
  return nn::ConcatOp::create(builder, loc, parts, dim);
}

/// The value with padding along these dimensions only, right after its definition.
Value RowPadder::get(Value value, const Dims &wanted) {
  Forms &own = forms.find(value)->second;
  if (own.dims == wanted)
    return own.value;
  Value &form = own.others[wanted];
  if (form)
    return form;
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfterValue(own.value);
  form = own.value;
  for (int64_t dim : padded[value])
    if (const int64_t all = own.shape[dim]; own.dims.count(dim) != wanted.count(dim))
      form = resized(builder, form, dim, wanted.count(dim) ? paddedSize(all) : all);
  return form;
}

Dims RowPadder::along(Operation *op, const TensorFactors &tensor) const {
  Dims dims;
  for (auto [d, factors] : llvm::enumerate(tensor))
    if (factors.size() == 1 && passing.at(op).count(factors[0]))
      dims.insert(static_cast<int64_t>(d));
  return dims;
}

Dims RowPadder::wantedBy(OpOperand &use) {
  Operation *user = use.getOwner();
  const unsigned number = use.getOperandNumber();
  if (func::FuncOp callee = ownCallee(user))
    return padded.lookup(callee.getArgument(number));
  if (isa<func::ReturnOp>(user))
    return callsOf.contains(user->getParentOp()) ? padded.lookup(use.get()) : Dims();
  return passing.contains(user) ? along(user, rules.at(user).operands[number]) : Dims();
}

Value RowPadder::take(OpOperand &use) {
  return forms.contains(use.get()) ? get(use.get(), wantedBy(use)) : use.get();
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

LogicalResult RowPadder::rebuildPadded(Operation *op) {
  const ShardingRule &rule = rules.at(op);
  SmallVector<Value> operands;
  for (OpOperand &use : op->getOpOperands())
    operands.push_back(take(use));
  SmallVector<Type> types;
  for (auto [type, tensor] : llvm::zip_equal(op->getResultTypes(), rule.results)) {
    types.push_back(isa<RankedTensorType>(type) ? paddedType(type, along(op, tensor)) : type);
    auto now = dyn_cast<RankedTensorType>(types.back());
    if (!now)
      continue;
    if (!isBounded(now))
      return emitNamedError(op) << "cannot be padded for axis '" << axis
                                << "': it would have more than 2^48 elements";
    const int64_t more = now.getNumElements() - cast<RankedTensorType>(type).getNumElements();
    rows += more == 0 ? 0 : more / now.getShape().back();
    bytes += more * elementBytes(now);
    numPadded += now != type;
  }
  OpBuilder builder(op);
  FailureOr<SmallVector<Value>> values = rebuild(op, builder, operands, types);
  if (failed(values))
    return failure();
  for (auto [result, value, tensor] : llvm::zip_equal(op->getResults(), *values, rule.results)) {
    if (ShardingAttr stated = getSharding(result))
      setSharding(value, stated);
    if (padded.contains(result))
      define(result, value, along(op, tensor));
    else
      result.replaceAllUsesWith(value);
  }
  replaced.push_back(op);
  return success();
}

/// A parameter has further rows of zeros where all users want it padded.
void RowPadder::rewriteParameter(nn::ParameterOp parameter) {
  Value result = parameter.getResult();
  const Dims &dims = padded[result];
  bool isWanted =
      llvm::all_of(result.getUses(), [&](OpOperand &use) { return wantedBy(use) == dims; });
  if (getSharding(result) || !isWanted)
    return define(result, result, {});
  nn::ParameterOp current = parameter;
  for (int64_t dim : dims) {
    nn::ParameterOp larger =
        padParameter(current, dim, padAtEnd(typeOf(result).getDimSize(dim), ranks));
    if (current != parameter)
      current.erase();
    current = larger;
  }
  define(result, current.getResult(), dims);
  replaced.push_back(parameter);
}

void RowPadder::rewriteCall(func::CallOp call, func::FuncOp callee) {
  for (OpOperand &use : call->getOpOperands())
    use.set(take(use));
  for (Value result : call.getResults())
    if (auto it = padded.find(result); it != padded.end()) {
      define(result, result, it->second);
      result.setType(paddedType(result.getType(), it->second));
    }
}

/// The runtime removes the padding from the results of an entry.
void RowPadder::rewriteReturn(func::ReturnOp op) {
  auto func = cast<func::FuncOp>(op->getParentOp());
  for (OpOperand &use : op->getOpOperands()) {
    Value value = use.get();
    const unsigned i = use.getOperandNumber();
    if (!forms.contains(value))
      continue;
    if (std::optional<unsigned> state = nn::getStateArgument(func, i)) {
      const Dims dims = padded.lookup(func.getArgument(*state));
      if (!dims.empty() && !func.getResultAttr(i, nn::NNDialect::kUnpaddedAttrName))
        func.setResultAttr(i, nn::NNDialect::kUnpaddedAttrName,
                           TypeAttr::get(func.getResultTypes()[i]));
      use.set(get(value, dims));
      continue;
    }
    const Dims dims = forms.find(value)->second.dims;
    if (callsOf.contains(func) || dims.empty() || !func->hasAttr(nn::NNDialect::kEntryAttrName) ||
        getResultSharding(func, i)) {
      use.set(take(use));
      continue;
    }
    if (!func.getResultAttr(i, nn::NNDialect::kUnpaddedAttrName))
      func.setResultAttr(i, nn::NNDialect::kUnpaddedAttrName,
                         TypeAttr::get(func.getResultTypes()[i]));
    use.set(get(value, dims));
  }
}

LogicalResult RowPadder::rewriteOp(Operation *op) {
  op->walk([&](Operation *nested) {
    for (OpOperand &use : nested->getOpOperands())
      if (nested != op)
        use.set(take(use));
  });
  if (auto ret = dyn_cast<func::ReturnOp>(op)) {
    rewriteReturn(ret);
    return success();
  }
  if (func::FuncOp callee = ownCallee(op)) {
    rewriteCall(cast<func::CallOp>(op), callee);
    return success();
  }
  if (passing.contains(op))
    return rebuildPadded(op);
  for (OpOperand &use : op->getOpOperands())
    use.set(take(use));
  auto parameter = dyn_cast<nn::ParameterOp>(op);
  for (Value result : op->getResults())
    if (padded.contains(result)) {
      if (parameter)
        rewriteParameter(parameter);
      else
        define(result, result, {});
    }
  return success();
}

LogicalResult RowPadder::rewrite(func::FuncOp func) {
  Block &block = func.getBody().front();
  const bool isOwn = callsOf.contains(func);
  for (BlockArgument argument : block.getArguments())
    if (auto it = padded.find(argument); it != padded.end()) {
      const bool keepsPadding = isOwn || !stateOf(argument).empty();
      define(argument, argument, keepsPadding ? it->second : Dims());
      if (keepsPadding)
        argument.setType(paddedType(argument.getType(), it->second));
    }
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(rewriteOp(&op)))
      return failure();
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  replaced.clear();
  updateType(func);
  return success();
}

LogicalResult RowPadder::run(ArrayRef<RowDim> seeds) {
  readFunctions();
  for (RowDim seed : seeds)
    add(seed.value, seed.dim);
  while (!work.empty()) {
    RowDim next = work.pop_back_val();
    follow(next.value, next.dim);
  }
  Location loc = seeds.front().value.getLoc();
  const int64_t size = typeOf(seeds.front().value).getDimSize(seeds.front().dim);
  for (auto func : module.getOps<func::FuncOp>())
    if (isPlain(func) && failed(rewrite(func)))
      return failure();
  remark::analysis(loc, remark::RemarkOpts::name("Padding").category("padding"))
      << ("a dimension of " + Twine(size) + " is padded to " + Twine(paddedSize(size)) +
          " for axis '" + axis + "' of size " + Twine(ranks) + ": " + Twine(numPadded) +
          " results get " + Twine(rows) + " more rows, " + Twine(bytes) +
          " bytes; values padded: " + Twine(numPads) + ", cut: " + Twine(numCuts))
             .str();
  return success();
}

} // namespace

FailureOr<int64_t> padRows(ModuleOp module, ArrayRef<RowDim> dims, StringRef axis, int64_t ranks) {
  if (dims.empty())
    return 0;
  RowPadder padder(module, axis, ranks);
  if (failed(padder.run(dims)))
    return failure();
  return padder.numPadded;
}

} // namespace braid
