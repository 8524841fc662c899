//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ShardingGraph.h"

#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#include "braid/Transforms/Passes.h.inc"

namespace {

/// The decided sharding of an operation.
struct Form {
  FactorAxes axes;
  SmallVector<ShardingAttr> results; ///< null for values that are no tensors
};

/// Builds the equations of a module and derives the shardings of its values.
class Propagation {
public:
  Propagation(ModuleOp module, MeshOp mesh) : module(module), layouts(mesh), graph(mesh) {}

  LogicalResult run();
  int64_t conflicts = 0; ///< rejected proposals
  int64_t visits() const { return graph.visits; }

private:
  LogicalResult build();
  /// Whether every value has a closed sharding, as after this pass: then nothing is decided again.
  bool isComplete() const;
  /// Decides the sharding of every operation and remarks on rejected proposals.
  void decide();
  void write();

  int addNode(Value value, bool fixed);
  int nodeOf(Value value) const { return nodeIds.lookup_or(value, kNoNode); }
  /// States of one name share a node, over all entries, and so do their new values.
  LogicalResult addState(func::FuncOp entry, unsigned argument, unsigned result);
  LogicalResult buildSignature(func::FuncOp func);
  LogicalResult buildOp(Operation *op);
  LogicalResult buildShardable(ShardingRuleOpInterface op);
  bool isFree(Operation *op) const;

  std::vector<TensorState> operandStates(Operation *op, const ShardingEquation &equation) const;
  Form decideForm(Operation *op, const ShardingEquation &equation, FactorDecision &decision);
  SmallVector<PartialAttr> passedPartials(Operation *op, const ShardingRule &rule,
                                          FactorAxes &axes) const;
  SmallVector<Layout> wantsOf(Value value) const;
  bool isReducedAlike(Value value, const Layout &dims) const;
  bool reshardEarlier(Operation *op);
  void shardFreeValue(Operation *op);
  void adaptResults(func::FuncOp func);
  void reportConflict(Operation *op, const ShardingRule &rule,
                      const FactorConflict &conflict) const;
  void reportMisfits(Operation *op, const ShardingEquation &equation) const;
  /// The sharding of a value whose operation has been decided.
  ShardingAttr shardingOf(Value value) const;
  ShardingAttr shardingOf(int node) const { return layouts.sharding(graph.nodes[node].dims); }
  Layout layoutOf(Value value) const { return layouts.layout(shardingOf(value)); }

  ModuleOp module;
  MeshLayouts layouts;
  ShardingGraph graph;
  DenseMap<Value, int> nodeIds;
  DenseMap<std::pair<Operation *, unsigned>, int> functionResults;
  struct State {
    func::FuncOp entry; ///< the first one that has it
    int node;
    ShardingAttr stated;
  };
  llvm::StringMap<State> states; ///< by name
  DenseMap<Operation *, size_t> equationOf;
  /// What the results state to be partial over. An axis of one rank needs no reduction.
  DenseMap<Operation *, SmallVector<PartialAttr>> statedPartials;
  DenseMap<Operation *, Form> forms;
};

int Propagation::addNode(Value value, bool fixed) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return kNoNode;
  return nodeIds[value] = graph.addNode(type, getSharding(value), fixed);
}

/// Whether any sharding of the results is free, as for a constant or an empty tensor.
bool Propagation::isFree(Operation *op) const {
  return isPure(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           int node = nodeOf(operand);
           return node == kNoNode || graph.nodes[node].isFree;
         });
}

LogicalResult Propagation::buildShardable(ShardingRuleOpInterface op) {
  ShardingEquation equation{op.getShardingRule(), {}, {}, {}};
  if (equation.rule.operands.size() != op->getNumOperands() ||
      equation.rule.results.size() != op->getNumResults())
    return emitNamedError(op) << "states a sharding rule of " << equation.rule.operands.size()
                              << " operands and " << equation.rule.results.size()
                              << " results, got " << op->getNumOperands() << " and "
                              << op->getNumResults();
  bool free = isFree(op);
  for (Value operand : op->getOperands())
    equation.operands.push_back(nodeOf(operand));
  for (Value result : op->getResults()) {
    equation.results.push_back(nodeOf(result));
    if (int node = nodeOf(result); node != kNoNode)
      graph.nodes[node].isFree = free;
    if (ShardingAttr stated = getSharding(result))
      for (PartialAttr partial : stated.getPartials())
        if (SubAxis axis = layouts.subAxis(partial.getAxis());
            axis.size() != 1 && !llvm::is_contained(equation.partials, axis)) {
          equation.partials.push_back(axis);
          statedPartials[op].push_back(partial);
        }
  }
  equationOf[op] = graph.addEquation(std::move(equation));
  return success();
}

LogicalResult Propagation::buildOp(Operation *op) {
  if (isa_and_nonnull<CommDialect>(op->getDialect()))
    return emitNamedError(op) << "is not expected before partitioning";
  if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    if (parameter.getSharding())
      return emitNamedError(op) << "is partitioned already";
    addNode(parameter.getResult(), false);
    return success();
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    func::FuncOp callee = calleeOf(call);
    if (!callee)
      return emitNamedError(op) << "calls '" << call.getCallee() << "', which is no func.func";
    for (auto [i, operand] : llvm::enumerate(call.getOperands()))
      if (!callee.isExternal())
        graph.addEquality(nodeOf(operand), nodeOf(callee.getArgument(i)));
    for (auto [i, result] : llvm::enumerate(call.getResults()))
      graph.addEquality(functionResults.lookup({callee, i}), addNode(result, callee.isExternal()));
    return success();
  }
  if (auto ret = dyn_cast<func::ReturnOp>(op)) {
    for (auto [i, operand] : llvm::enumerate(ret.getOperands()))
      graph.addEquality(nodeOf(operand), functionResults.lookup({op->getParentOp(), i}));
    return success();
  }
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  for (Value result : op->getResults())
    addNode(result, /*fixed=*/!shardable);
  return shardable ? buildShardable(shardable) : success();
}

LogicalResult Propagation::addState(func::FuncOp entry, unsigned argument, unsigned result) {
  Value value = entry.getArgument(argument);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return success();
  auto name = entry.getArgAttrOfType<StringAttr>(argument, nn::NNDialect::kNameAttrName);
  ShardingAttr before = getSharding(value), after = getResultSharding(entry, result);
  if (before && after && before != after)
    return entry.emitOpError("expects state ")
           << name << " to keep its sharding " << before << ", got a result with " << after;
  ShardingAttr stated = before ? before : after;
  auto [known, isNew] = states.try_emplace(name.getValue(), State{entry, kNoNode, stated});
  State &state = known->second;
  if (isNew) {
    state.node = graph.addNode(type, stated, /*fixed=*/false);
  } else if (graph.nodes[state.node].type != type) {
    InFlightDiagnostic diag = entry.emitOpError("expects state ")
                              << name << " to have type " << graph.nodes[state.node].type
                              << " as in entry '" << state.entry.getSymName() << "', got " << type;
    diag.attachNote(state.entry.getLoc()) << "the other entry";
    return diag;
  } else if (stated && state.stated && stated != state.stated) {
    InFlightDiagnostic diag = entry.emitOpError("expects state ")
                              << name << " to have sharding " << state.stated << " as in entry '"
                              << state.entry.getSymName() << "', got " << stated;
    diag.attachNote(state.entry.getLoc()) << "the other entry";
    return diag;
  } else if (stated && !state.stated) {
    state.stated = stated;
    graph.setStated(state.node, stated);
  }
  nodeIds[value] = state.node;
  return success();
}

LogicalResult Propagation::buildSignature(func::FuncOp func) {
  auto check = [&](ShardingAttr sharding, StringRef what, unsigned i) -> LogicalResult {
    if (sharding && sharding.isPartial())
      return func.emitOpError(what) << " " << i << " expects a sharding without partial axes";
    // Its definition does not know ranks.
    if (func.isExternal() && sharding && !sharding.isReplicated())
      return func.emitOpError("is external and expects replicated values, got ")
             << what << " " << i << " stated as " << sharding;
    return success();
  };
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    if (failed(check(func.getArgAttrOfType<ShardingAttr>(i, CommDialect::kShardingAttrName),
                     "argument", i)))
      return failure();
    if (func.getArgAttr(i, CommDialect::kGlobalTypeAttrName))
      return func.emitOpError("is partitioned already");
    if (std::optional<unsigned> result = nn::getStateResult(func, i)) {
      if (failed(addState(func, i, *result)))
        return failure();
    } else if (!func.isExternal()) {
      addNode(func.getArgument(i), false);
    }
  }
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    ShardingAttr stated = getResultSharding(func, i);
    if (failed(check(stated, "result", i)))
      return failure();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (std::optional<unsigned> state = nn::getStateArgument(func, i)) {
      functionResults[{func, i}] = nodeOf(func.getArgument(*state));
      continue;
    }
    functionResults[{func, i}] =
        tensor ? graph.addNode(tensor, stated, func.isExternal()) : kNoNode;
  }
  return success();
}

LogicalResult Propagation::build() {
  // Signatures first: a call may stand above its callee.
  for (auto func : module.getOps<func::FuncOp>())
    if (failed(buildSignature(func)))
      return failure();
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    if (!func.getBody().hasOneBlock())
      return func.emitOpError("expects one block to propagate shardings through, got ")
             << func.getBody().getBlocks().size();
    for (Operation &op : func.getBody().front())
      if (failed(buildOp(&op)))
        return failure();
  }
  return success();
}

ShardingAttr Propagation::shardingOf(Value value) const {
  if (Operation *op = value.getDefiningOp()) {
    if (auto it = forms.find(op); it != forms.end())
      return it->second.results[cast<OpResult>(value).getResultNumber()];
    // A call's result has the sharding of its callee's.
    if (auto call = dyn_cast<func::CallOp>(op))
      if (func::FuncOp callee = calleeOf(call))
        if (int node = functionResults.lookup({callee, cast<OpResult>(value).getResultNumber()});
            node != kNoNode)
          return shardingOf(node);
  }
  int node = nodeOf(value);
  return node == kNoNode ? ShardingAttr() : shardingOf(node);
}

/// The partial axes that flow from the operands of an operation into its results when its factors
/// are sharded over `axes`.
SmallVector<PartialAttr> Propagation::passedPartials(Operation *op, const ShardingRule &rule,
                                                     FactorAxes &axes) const {
  if (!rule.linear || rule.partialOperands.empty())
    return {};
  SmallVector<PartialAttr> common;
  llvm::SmallDenseSet<Value> terms;
  SaturatingCount elements = 0;
  for (auto [n, i] : llvm::enumerate(rule.partialOperands)) {
    Value value = op->getOperand(i);
    // Another user reduces the value anyway, which would reduce it twice.
    if (!llvm::all_of(value.getUsers(), [&](Operation *u) { return u == op; }))
      return {};
    ArrayRef<PartialAttr> own = shardingOf(value).getPartials();
    if (n != 0 && own != ArrayRef(common))
      return {};
    common.assign(own.begin(), own.end());
    if (terms.insert(value).second)
      elements += cast<RankedTensorType>(value.getType()).getNumElements();
  }
  // Reducing the results must not send more than reducing all operands.
  for (Type type : op->getResultTypes())
    if (elements < SaturatingCount(cast<RankedTensorType>(type).getNumElements()))
      return {};
  FactorAxes passing = axes;
  for (PartialAttr partial : common) {
    // Linear operations do not commute with a maximum.
    if (partial.getKind() != ReduceKind::Sum)
      return {};
    SubAxis axis = layouts.subAxis(partial.getAxis());
    // Reducing a sum once sends less than reducing every term, sharded or not.
    if (!rule.sum && !braid::isFree(passing, axis))
      return {};
    for (SubAxes &list : passing)
      list.erase(llvm::find_if(list, [&](const SubAxis &own) { return !own.isDisjoint(axis); }),
                 list.end());
  }
  // A partial sum over one sub-axis does not cover another.
  for (int64_t i : rule.partialOperands)
    if (layoutOf(op->getOperand(i)) != dimsOf(rule.operands[i], passing))
      return {};
  axes = std::move(passing);
  return common;
}

/// The operands are decided already.
std::vector<TensorState> Propagation::operandStates(Operation *op,
                                                    const ShardingEquation &equation) const {
  std::vector<TensorState> operands;
  for (auto [operand, node] : llvm::zip_equal(op->getOperands(), equation.operands)) {
    TensorState &state = operands.emplace_back(graph.state(node));
    if (!state.type)
      continue;
    state.dims = layoutOf(operand);
    for (PartialAttr partial : shardingOf(operand).getPartials())
      state.partials.push_back(layouts.subAxis(partial.getAxis()));
  }
  return operands;
}

Form Propagation::decideForm(Operation *op, const ShardingEquation &equation,
                             FactorDecision &decision) {
  const ShardingRule &rule = equation.rule;
  std::vector<TensorState> results;
  for (int node : equation.results)
    results.push_back(graph.state(node));
  decision =
      FactorStrategy(rule, operandStates(op, equation), results, equation.partials).settled();
  Form form{decision.axes, {}};

  SmallVector<PartialAttr> partials = statedPartials.lookup(op);
  if (partials.empty()) {
    for (auto [factor, axes] : llvm::zip_equal(rule.factors, form.axes))
      if (factor.kind == FactorKind::Reduction)
        for (const SubAxis &axis : axes)
          partials.push_back(PartialAttr::get(op->getContext(), layouts.axis(axis), factor.reduce));
    llvm::append_range(partials, passedPartials(op, rule, form.axes));
  }
  for (auto [i, tensor, node] : llvm::enumerate(rule.results, equation.results)) {
    const bool complete = llvm::is_contained(rule.completeResults, static_cast<int64_t>(i));
    form.results.push_back(node == kNoNode
                               ? ShardingAttr()
                               : layouts.sharding(dimsOf(tensor, form.axes),
                                                  complete ? ArrayRef<PartialAttr>() : partials));
  }
  return form;
}

/// The distinct layouts in which users take a value.
SmallVector<Layout> Propagation::wantsOf(Value value) const {
  SmallVector<Layout> wants;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    Layout wanted(cast<RankedTensorType>(value.getType()).getRank());
    if (auto form = forms.find(user); form != forms.end()) {
      wanted =
          dimsOf(graph.equations[equationOf.at(user)].rule.operands[number], form->second.axes);
    } else if (isa<func::ReturnOp>(user)) {
      wanted = graph.nodes[functionResults.at({user->getParentOp(), number})].dims;
    } else if (auto call = dyn_cast<func::CallOp>(user)) {
      if (func::FuncOp callee = calleeOf(call); !callee.isExternal())
        wanted = graph.nodes[nodeOf(callee.getArgument(number))].dims;
    }
    if (!llvm::is_contained(wants, wanted))
      wants.push_back(wanted);
  }
  return wants;
}

/// Whether users that reduce over a sharded dimension of a value still find it sharded with `dims`:
/// partitioning derives from its operands what an operation reduces.
bool Propagation::isReducedAlike(Value value, const Layout &dims) const {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    auto form = forms.find(use.getOwner());
    if (form == forms.end())
      return true;
    const ShardingRule &rule = graph.equations[equationOf.at(use.getOwner())].rule;
    const TensorFactors &tensor = rule.operands[use.getOperandNumber()];
    FactorAxes own = project(rule, tensor, dims);
    for (const DimFactors &factors : tensor)
      for (int64_t f : factors)
        if (rule.factors[f].kind == FactorKind::Reduction &&
            !llvm::all_of(form->second.axes[f],
                          [&](const SubAxis &axis) { return llvm::is_contained(own[f], axis); }))
          return false;
    return true;
  });
}

/// Where all users want a value in another form, its operation produces that form if no more bytes
/// are sent: this serves all users at once, and may continue further up.
bool Propagation::reshardEarlier(Operation *op) {
  auto it = equationOf.find(op);
  if (it == equationOf.end() || op->getNumResults() != 1)
    return false;
  const ShardingEquation &equation = graph.equations[it->second];
  Form &form = forms.at(op);
  int id = equation.results[0];
  if (id == kNoNode || graph.nodes[id].stated || form.results[0].isPartial())
    return false;
  SmallVector<Layout> wants = wantsOf(op->getResult(0));
  std::vector<TensorState> operands = operandStates(op, equation);
  auto parallelism = [&](const FactorAxes &axes) {
    int64_t n = 1;
    for (const SubAxes &list : axes)
      n *= shards(list);
    return n;
  };
  auto bytes = [&](const FactorAxes &axes) {
    TensorState result = graph.state(id);
    result.dims = dimsOf(equation.rule.results[0], axes);
    SaturatingCount sum = FactorStrategy(equation.rule, operands, result).bytes(axes);
    for (const Layout &want : wants)
      sum += bytesToReshard(result.type, result.dims, {}, want);
    return sum;
  };
  SaturatingCount least = bytes(form.axes);
  bool isFirst = true;
  for (const Layout &want : wants) {
    TensorState result = graph.state(id);
    result.dims = want;
    result.closed.assign(want.size(), true);
    FactorAxes axes = FactorStrategy(equation.rule, operands, result).settled().axes;
    bool reduces = llvm::any_of(llvm::zip_equal(equation.rule.factors, axes), [](auto pair) {
      return std::get<0>(pair).kind == FactorKind::Reduction && !std::get<1>(pair).empty();
    });
    if (axes == form.axes || reduces || parallelism(axes) < parallelism(form.axes) ||
        !isReducedAlike(op->getResult(0), dimsOf(equation.rule.results[0], axes)))
      continue;
    SaturatingCount cost = bytes(axes);
    if (!(cost < least || (isFirst && cost == least)))
      continue;
    least = cost;
    isFirst = false;
    form.axes = std::move(axes);
    form.results = {layouts.sharding(dimsOf(equation.rule.results[0], form.axes))};
  }
  return !isFirst;
}

/// A free value gets the axes that all its users share; each slices the rest.
void Propagation::shardFreeValue(Operation *op) {
  auto equation = equationOf.find(op);
  if (equation == equationOf.end() || op->getNumResults() != 1)
    return;
  int id = nodeOf(op->getResult(0));
  if (id == kNoNode || !graph.nodes[id].isFree || graph.nodes[id].stated)
    return;
  SmallVector<Layout> wants = wantsOf(op->getResult(0));
  if (wants.empty())
    return;
  for (const Layout &want : wants)
    for (auto [dim, other] : llvm::zip_equal(wants[0], want))
      dim = commonPrefix(dim, other);
  const ShardingRule &rule = graph.equations[equation->second].rule;
  Form &form = forms.at(op);
  form.axes = project(rule, rule.results[0], wants[0]);
  dropInexpressible(rule, form.axes);
  form.results = {layouts.sharding(dimsOf(rule.results[0], form.axes))};
}

/// The results of an entry without stated shardings keep the sharding of their values.
void Propagation::adaptResults(func::FuncOp func) {
  if (!isEntry(func) || !SymbolTable::symbolKnownUseEmpty(func, module))
    return;
  for (auto [i, operand] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands())) {
    int id = functionResults.at({func, i});
    if (id == kNoNode || graph.nodes[id].stated || graph.nodes[nodeOf(operand)].stated ||
        nn::getStateArgument(func, i))
      continue;
    if (ShardingAttr sharding = shardingOf(operand); !sharding.isPartial())
      graph.nodes[id].dims = layouts.layout(sharding);
  }
}

/// "operand 1" or "result 0"
static std::string nameOf(Operation *op, size_t tensor) {
  size_t operands = op->getNumOperands();
  return tensor < operands ? "operand " + std::to_string(tensor)
                           : "result " + std::to_string(tensor - operands);
}

static std::string text(AxisAttr axis) {
  std::string result = axis.getName().str();
  if (!axis.isFull())
    result += ":(" + std::to_string(axis.getPre()) + ")" + std::to_string(axis.getSize());
  return result;
}

void Propagation::reportConflict(Operation *op, const ShardingRule &rule,
                                 const FactorConflict &conflict) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op->getName() << ": dimension '" << rule.factors[conflict.factor].name
         << "' is not split over axis '" << braid::text(layouts.axis(conflict.axis)) << "' as in "
         << nameOf(op, conflict.tensor) << ", because '" << rule.factors[conflict.winnerFactor].name
         << "' is split as in " << nameOf(op, conflict.winner) << ": a rank sends "
         << conflict.bytes << " bytes";
  if (conflict.others)
    stream << " instead of " << *conflict.others;
  remark::missed(op->getLoc(), remark::RemarkOpts::name("ShardingConflict").category("sharding"))
      << text;
}

void Propagation::reportMisfits(Operation *op, const ShardingEquation &equation) const {
  const ShardingRule &rule = equation.rule;
  SmallVector<int64_t> reported;
  for (auto [tensor, value] : llvm::zip_equal(rule.operands, op->getOperands())) {
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    FactorAxes axes(rule.factors.size());
    for (auto [factors, dim] : llvm::zip_equal(tensor, layoutOf(value))) {
      std::optional<Misfit> misfit = projectDim(rule, factors, dim, axes);
      if (!misfit || llvm::is_contained(reported, misfit->factor))
        continue;
      reported.push_back(misfit->factor);
      const Factor &factor = rule.factors[misfit->factor];
      remark::missed(op->getLoc(), remark::RemarkOpts::name("DoesNotDivide").category("sharding"))
          << (op->getName().getStringRef() + ": dimension '" + factor.name + "' of size " +
              Twine(factor.size) + " does not divide over axis '" +
              text(layouts.axis(misfit->axis)) + "' of size " + Twine(misfit->axis.size()) +
              " and is split " + Twine(shards(axes[misfit->factor])) + " ways")
                 .str();
    }
  }
}

bool Propagation::isComplete() const {
  return llvm::all_of(graph.nodes, [](const ShardingNode &node) {
    return node.stated && llvm::all_of(node.closed, [](bool closed) { return closed; });
  });
}

void Propagation::decide() {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    Block &block = func.getBody().front();
    llvm::MapVector<Operation *, FactorDecision> decisions;
    for (Operation &op : block)
      if (auto it = equationOf.find(&op); it != equationOf.end())
        forms[&op] = decideForm(&op, graph.equations[it->second], decisions[&op]);
    adaptResults(func);
    for (Operation &op : llvm::reverse(block)) {
      shardFreeValue(&op);
      if (reshardEarlier(&op))
        decisions[&op].conflicts.clear();
    }
    for (const auto &[op, decision] : decisions) {
      const ShardingEquation &equation = graph.equations[equationOf.at(op)];
      conflicts += static_cast<int64_t>(decision.conflicts.size());
      for (const FactorConflict &conflict : decision.conflicts)
        reportConflict(op, equation.rule, conflict);
      reportMisfits(op, equation);
    }
  }
}

void Propagation::write() {
  for (auto [value, id] : nodeIds)
    setSharding(value, shardingOf(value));
  for (auto [key, id] : functionResults)
    if (id != kNoNode)
      cast<func::FuncOp>(key.first).setResultAttr(key.second, CommDialect::kShardingAttrName,
                                                  shardingOf(id));
}

LogicalResult Propagation::run() {
  if (failed(build()))
    return failure();
  if (isComplete())
    return success();
  graph.run();
  decide();
  write();
  return success();
}

struct PropagateShardings : impl::PropagateShardingsBase<PropagateShardings> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    Propagation propagation(getOperation(), *mesh);
    if (failed(propagation.run()))
      return signalPassFailure();
    numConflicts += propagation.conflicts;
    numVisits += propagation.visits();
  }
};

} // namespace
} // namespace braid
