//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
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

/// An axis on a dimension, and when it got there: what came earlier wins.
struct Cut {
  AxisAttr axis;
  unsigned stamp;
};

/// A tensor value, or a result of a function.
struct Node {
  RankedTensorType type;
  SmallVector<SmallVector<Cut, 2>, 4> dims;
  SmallVector<bool, 4> closed; ///< takes no further axes: so stated in the IR, or cannot be cut
  ShardingAttr stated;         ///< in the IR; null if it is not

  explicit Node(RankedTensorType type)
      : type(type), dims(type.getRank()), closed(type.getRank(), false) {}
  bool uses(AxisAttr axis) const {
    return llvm::any_of(dims, [&](const auto &dim) {
      return llvm::any_of(dim, [&](const Cut &cut) { return overlap(cut.axis, axis); });
    });
  }
  AxisList axes(size_t dim) const {
    return AxisList(llvm::map_range(dims[dim], [](const Cut &c) { return c.axis; }));
  }
};

constexpr int kNoNode = -1;

/// An operation, or an equality between two values, over factors.
struct Equation {
  Operation *op;
  ShardingRule rule;
  SmallVector<int> operands,
      results;     ///< nodes of the rule's tensors; kNoNode for what is no tensor
  FactorAxes axes; ///< as last resolved
};

struct Candidate {
  int64_t factor;
  AxisList axes;
  unsigned stamp;
  /// Among what is stated: results decide, which say how the operation is cut; see preferSums.
  enum Kind { Sum, Result, Operand } kind;
  size_t order; ///< among equals
};

class Propagation {
public:
  Propagation(ModuleOp module, MeshOp mesh) : module(module), mesh(mesh) {}

  LogicalResult build();
  LogicalResult run();
  void derivePartials();
  void write();

  int64_t sweeps = 0, conflicts = 0;

private:
  int addNode(Value value, bool fixed);
  int addNode(RankedTensorType type, ShardingAttr stated, bool fixed);
  int nodeOf(Value value) const {
    auto it = nodeIds.find(value);
    return it == nodeIds.end() ? kNoNode : it->second;
  }
  LogicalResult buildFunction(func::FuncOp func);
  LogicalResult buildOp(Operation *op);
  void addEquality(Operation *op, int a, int b);
  LogicalResult resolve(Equation &equation, bool report);
  LogicalResult collect(const Equation &equation, const TensorFactors &tensor, int id, bool result,
                        SmallVectorImpl<Candidate> &candidates) const;
  LogicalResult verifyStatedCall(func::CallOp call);
  SmallVector<PartialAttr> passedPartials(const Equation &equation) const;
  bool writeBack(const Equation &equation);
  bool writeBack(const Equation &equation, const TensorFactors &tensor, int node);
  /// Closed, as partitioning takes it.
  ShardingAttr sharding(const Node &node, ArrayRef<PartialAttr> partial = {}) const;

  ModuleOp module;
  MeshOp mesh;
  std::vector<Node> nodes;
  DenseMap<Value, int> nodeIds;
  DenseMap<std::pair<Operation *, unsigned>, int> functionResults;
  std::vector<Equation> equations;
  DenseMap<Operation *, size_t> equationOf;
  DenseMap<Value, SmallVector<PartialAttr>> partials;
  DenseSet<Value> mayFlow;        ///< partial values that a linear user may take as they are
  DenseSet<Value> mayFlowIntoSum; ///< those that get something added once they are reduced
  unsigned clock = 0;
};

int Propagation::addNode(RankedTensorType type, ShardingAttr stated, bool fixed) {
  Node node(type);
  node.stated = stated;
  node.closed.assign(type.getRank(), fixed);
  if (stated)
    for (auto [d, attr] : llvm::enumerate(stated.getDims())) {
      node.closed[d] = fixed || !attr.getOpen();
      for (AxisAttr axis : attr.getAxes())
        node.dims[d].push_back({axis, 0});
    }
  nodes.push_back(std::move(node));
  return static_cast<int>(nodes.size()) - 1;
}

int Propagation::addNode(Value value, bool fixed) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return kNoNode;
  return nodeIds[value] = addNode(type, getSharding(value), fixed);
}

void Propagation::addEquality(Operation *op, int a, int b) {
  if (a == kNoNode || b == kNoNode)
    return;
  Equation equation{op, {}, {a}, {b}, {}};
  TensorFactors tensor;
  for (auto [i, size] : llvm::enumerate(nodes[a].type.getShape()))
    tensor.push_back({equation.rule.addFactor(std::to_string(i), size)});
  equation.rule.operands = {tensor};
  equation.rule.results = {tensor};
  equations.push_back(std::move(equation));
}

LogicalResult Propagation::buildOp(Operation *op) {
  if (op->getDialect() == mesh->getDialect())
    return emitNamedError(op) << "is not expected before partitioning";
  if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    if (parameter.getSharding())
      return emitNamedError(op) << "is partitioned already";
    addNode(parameter.getResult(), false);
    return success();
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (!callee)
      return emitNamedError(op) << "calls '" << call.getCallee() << "', which is no func.func";
    for (auto [i, operand] : llvm::enumerate(call.getOperands()))
      if (!callee.isExternal())
        addEquality(op, nodeOf(operand), nodeOf(callee.getArgument(i)));
    for (auto [i, result] : llvm::enumerate(call.getResults()))
      addEquality(op, functionResults.lookup({callee, i}), addNode(result, callee.isExternal()));
    return success();
  }
  if (auto ret = dyn_cast<func::ReturnOp>(op)) {
    for (auto [i, operand] : llvm::enumerate(ret.getOperands()))
      if (int node = nodeOf(operand); node != kNoNode)
        addEquality(op, node, functionResults.lookup({op->getParentOp(), i}));
    return success();
  }
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  for (Value result : op->getResults())
    addNode(result, /*fixed=*/!shardable);
  if (!shardable)
    return success();
  Equation equation{op, shardable.getShardingRule(), {}, {}, {}};
  if (equation.rule.operands.size() != op->getNumOperands() ||
      equation.rule.results.size() != op->getNumResults())
    return emitNamedError(op) << "states a sharding rule of " << equation.rule.operands.size()
                              << " operands and " << equation.rule.results.size()
                              << " results, got " << op->getNumOperands() << " and "
                              << op->getNumResults();
  for (Value operand : op->getOperands())
    equation.operands.push_back(nodeOf(operand));
  for (Value result : op->getResults())
    equation.results.push_back(nodeOf(result));
  equationOf[op] = equations.size();
  equations.push_back(std::move(equation));
  return success();
}

LogicalResult Propagation::buildFunction(func::FuncOp func) {
  if (func.isExternal())
    return success();
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("expects one block to propagate shardings through, got ")
           << func.getBody().getBlocks().size();
  for (Operation &op : func.getBody().front())
    if (failed(buildOp(&op)))
      return failure();
  return success();
}

LogicalResult Propagation::build() {
  // Signatures first: a call may stand above its callee.
  for (auto func : module.getOps<func::FuncOp>()) {
    auto partial = [&](ShardingAttr sharding) { return sharding && sharding.isPartial(); };
    // Whoever defines it knows nothing of ranks.
    auto external = [&](ShardingAttr sharding, StringRef what, unsigned i) -> LogicalResult {
      if (!func.isExternal() || !sharding || sharding.isReplicated())
        return success();
      return func.emitOpError("is external and works on whole values, got ")
             << what << " " << i << " stated as " << sharding;
    };
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      auto stated = func.getArgAttrOfType<ShardingAttr>(i, CommDialect::kShardingAttrName);
      if (partial(stated))
        return func.emitOpError("argument ") << i << " expects a sharding without partial axes";
      if (failed(external(stated, "argument", i)))
        return failure();
      if (func.getArgAttr(i, CommDialect::kGlobalTypeAttrName))
        return func.emitOpError("is partitioned already");
      if (!func.isExternal())
        addNode(func.getArgument(i), false);
    }
    for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
      if (partial(getResultSharding(func, i)))
        return func.emitOpError("result ") << i << " expects a sharding without partial axes";
      if (failed(external(getResultSharding(func, i), "result", i)))
        return failure();
      auto tensor = dyn_cast<RankedTensorType>(type);
      functionResults[{func, i}] =
          tensor ? addNode(tensor, getResultSharding(func, i), func.isExternal()) : kNoNode;
    }
  }
  for (auto func : module.getOps<func::FuncOp>())
    if (failed(buildFunction(func)))
      return failure();
  return success();
}

/// What the dimensions of a tensor say of the factors.
LogicalResult Propagation::collect(const Equation &equation, const TensorFactors &tensor, int id,
                                   bool result, SmallVectorImpl<Candidate> &candidates) const {
  if (id == kNoNode)
    return success();
  const ShardingRule &rule = equation.rule;
  const Node &node = nodes[id];
  for (auto [d, factors] : llvm::enumerate(tensor)) {
    if (node.dims[d].empty())
      continue;
    FactorAxes axes(rule.factors.size());
    if (failed(projectDim(equation.op, mesh, rule, factors, node.axes(d), axes)))
      return failure();
    unsigned stamp = node.dims[d].back().stamp;
    for (int64_t factor : factors) {
      if (!axes[factor].empty())
        candidates.push_back({factor, axes[factor], stamp,
                              result ? Candidate::Result : Candidate::Operand, candidates.size()});
    }
  }
  return success();
}

/// A sum whose terms are stated to be cut over an axis, and its result too, is cut as its terms
/// are; the result is once the sum is complete. Unless an operand is cut as the result is: then the
/// others are brought together for it.
void preferSums(const ShardingRule &rule, MutableArrayRef<Candidate> candidates) {
  auto share = [](const Candidate &a, const Candidate &b) {
    return a.stamp == 0 && b.stamp == 0 && llvm::any_of(a.axes, [&](AxisAttr x) {
             return llvm::any_of(b.axes, [&](AxisAttr y) { return overlap(x, y); });
           });
  };
  for (Candidate &term : candidates) {
    if (term.kind != Candidate::Operand || rule.factors[term.factor].kind != FactorKind::Reduction)
      continue;
    for (const Candidate &result : candidates)
      if (result.kind == Candidate::Result && share(term, result) &&
          llvm::none_of(candidates, [&](const Candidate &other) {
            return other.kind == Candidate::Operand && other.factor == result.factor &&
                   share(other, result);
          }))
        term.kind = Candidate::Sum;
  }
}

/// Decides over which axes each factor of an equation is cut: those stated or derived first, as far
/// as they agree.
LogicalResult Propagation::resolve(Equation &equation, bool report) {
  const ShardingRule &rule = equation.rule;
  SmallVector<Candidate> candidates;
  for (auto [tensor, id] : llvm::zip_equal(rule.operands, equation.operands))
    if (failed(collect(equation, tensor, id, /*result=*/false, candidates)))
      return failure();
  for (auto [tensor, id] : llvm::zip_equal(rule.results, equation.results))
    if (failed(collect(equation, tensor, id, /*result=*/true, candidates)))
      return failure();
  preferSums(rule, candidates);
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    auto key = [](const Candidate &c) {
      return std::make_tuple(c.stamp, c.stamp == 0 ? c.kind : Candidate::Sum, c.order);
    };
    return key(a) < key(b);
  });
  // A closed dimension of a result takes no other axes, so neither does the operation.
  SmallVector<bool> decided(rule.factors.size(), false);
  for (auto [tensor, id] : llvm::zip_equal(rule.results, equation.results))
    if (id != kNoNode)
      for (auto [d, factors] : llvm::enumerate(tensor))
        for (int64_t factor : factors)
          decided[factor] |= nodes[id].closed[d];

  FactorAxes axes(rule.factors.size());
  llvm::SmallDenseSet<int64_t> conflicted;
  for (const Candidate &candidate : candidates) {
    AxisList &current = axes[candidate.factor];
    bool mayAdd = candidate.kind == Candidate::Result || !decided[candidate.factor];
    for (size_t i = 0; i < candidate.axes.size(); ++i) {
      AxisAttr axis = candidate.axes[i];
      if (i < current.size() && current[i] == axis)
        continue;
      bool taken = false, summed = false;
      for (auto [list, factor] : llvm::zip_equal(axes, rule.factors))
        if (llvm::any_of(list, [&](AxisAttr other) { return overlap(other, axis); })) {
          taken = true;
          summed |= factor.kind == FactorKind::Reduction;
        }
      if (i == current.size() && !taken && mayAdd) {
        current.push_back(axis);
        continue;
      }
      // The result of a sum is cut once the sum is complete.
      bool afterwards = summed && candidate.kind == Candidate::Result;
      if (report && !afterwards && conflicted.insert(candidate.factor).second) {
        ++conflicts;
        std::string text = (equation.op->getName().getStringRef() + ": dimension '" +
                            rule.factors[candidate.factor].name + "' is not cut over axis '" +
                            axis.getName() + "', which an earlier sharding decides otherwise")
                               .str();
        remark::missed(equation.op->getLoc(),
                       remark::RemarkOpts::name("ShardingConflict").category("sharding"))
            << text;
      }
      break;
    }
  }
  dropInexpressible(mesh, rule, axes);
  equation.axes = std::move(axes);
  return success();
}

/// A call gives what its callee gives.
LogicalResult Propagation::verifyStatedCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  for (auto [i, result] : llvm::enumerate(call.getResults())) {
    int own = nodeOf(result), given = functionResults.lookup({callee, i});
    if (own == kNoNode || !nodes[own].stated)
      continue;
    for (size_t d = 0; d < nodes[own].dims.size(); ++d)
      if (nodes[own].axes(d) != nodes[given].axes(d)) {
        ShardingAttr gives = sharding(nodes[given]);
        return emitNamedError(call) << "states result " << i << " as " << nodes[own].stated
                                    << ", but '" << call.getCallee() << "' gives it as " << gives;
      }
  }
  return success();
}

bool Propagation::writeBack(const Equation &equation, const TensorFactors &tensor, int id) {
  if (id == kNoNode)
    return false;
  Node &node = nodes[id];
  bool changed = false;
  for (auto [d, wanted] : llvm::enumerate(dimsOf(tensor, equation.axes))) {
    if (node.closed[d])
      continue;
    AxisList current = node.axes(d);
    if (wanted.size() <= current.size() ||
        ArrayRef(wanted).take_front(current.size()) != ArrayRef(current))
      continue;
    for (AxisAttr axis : ArrayRef(wanted).drop_front(current.size())) {
      if (node.uses(axis))
        break;
      node.dims[d].push_back({axis, ++clock});
      changed = true;
    }
  }
  return changed;
}

bool Propagation::writeBack(const Equation &equation) {
  bool changed = false;
  for (auto [tensor, id] : llvm::zip_equal(equation.rule.operands, equation.operands))
    changed |= writeBack(equation, tensor, id);
  for (auto [tensor, id] : llvm::zip_equal(equation.rule.results, equation.results))
    changed |= writeBack(equation, tensor, id);
  return changed;
}

LogicalResult Propagation::run() {
  // Values only ever get more axes, so this ends.
  for (bool changed = true; changed;) {
    changed = false;
    ++sweeps;
    for (Equation &equation : equations) {
      if (failed(resolve(equation, /*report=*/false)))
        return failure();
      changed |= writeBack(equation);
    }
  }
  for (Equation &equation : equations)
    if (failed(resolve(equation, /*report=*/true)))
      return failure();
  WalkResult calls =
      module.walk([&](func::CallOp call) { return WalkResult(verifyStatedCall(call)); });
  return failure(calls.wasInterrupted());
}

/// The partial axes that flow from the operands of an operation into its results.
SmallVector<PartialAttr> Propagation::passedPartials(const Equation &equation) const {
  if (!equation.rule.linear || equation.rule.partialOperands.empty())
    return {};
  SmallVector<PartialAttr> common;
  int64_t elements = 0;
  for (auto [n, i] : llvm::enumerate(equation.rule.partialOperands)) {
    Value value = equation.op->getOperand(i);
    // With another user the value is reduced anyway, and would then be reduced twice.
    bool flows = mayFlow.contains(value) || (equation.rule.sum && mayFlowIntoSum.contains(value));
    if (!flows || !llvm::all_of(value.getUsers(), [&](Operation *u) { return u == equation.op; }))
      return {};
    SmallVector<PartialAttr> own = partials.lookup(value);
    if (n != 0 && own != common)
      return {};
    common = own;
    elements = std::max(elements, cast<RankedTensorType>(value.getType()).getNumElements());
  }
  for (Type type : equation.op->getResultTypes())
    if (cast<RankedTensorType>(type).getNumElements() > elements)
      return {};
  FactorAxes axes = equation.axes;
  for (PartialAttr partial : common)
    for (AxisList &list : axes) {
      auto *taken =
          llvm::find_if(list, [&](AxisAttr axis) { return overlap(axis, partial.getAxis()); });
      // One reduction of a sum is less to send than one of every term, cut or not.
      if (taken != list.end() && !equation.rule.sum)
        return {};
      list.erase(taken, list.end());
    }
  // An addend of one part says nothing about another part.
  auto isCutSo = [&](const TensorFactors &tensor, int id) {
    return dimsOf(sharding(nodes[id], common)) == dimsOf(tensor, axes);
  };
  for (int64_t i : equation.rule.partialOperands)
    if (!isCutSo(equation.rule.operands[i], equation.operands[i]))
      return {};
  for (auto [tensor, id] : llvm::zip_equal(equation.rule.results, equation.results))
    if (id != kNoNode && !isCutSo(tensor, id))
      return {};
  return common;
}

void Propagation::derivePartials() {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    for (Operation &op : func.getBody().front()) {
      auto it = equationOf.find(&op);
      if (it == equationOf.end())
        continue;
      const Equation &equation = equations[it->second];
      const ShardingRule &rule = equation.rule;
      SmallVector<PartialAttr> own;
      SmallVector<int64_t> reduced;
      for (auto [f, factor] : llvm::enumerate(rule.factors)) {
        if (factor.kind != FactorKind::Reduction || equation.axes[f].empty())
          continue;
        reduced.push_back(f);
        for (AxisAttr axis : equation.axes[f])
          own.push_back(PartialAttr::get(op.getContext(), axis, ReduceKind::Sum));
      }
      SmallVector<PartialAttr> passed = passedPartials(equation);
      llvm::append_range(own, passed);
      if (own.empty())
        continue;
      // An operand without a reduced factor may be a term that is added after the reduction
      // (FinishFn).
      bool finishes =
          !reduced.empty() && llvm::any_of(rule.operands, [&](const TensorFactors &tensor) {
            return llvm::none_of(tensor, [&](const DimFactors &factors) {
              return llvm::any_of(factors,
                                  [&](int64_t f) { return llvm::is_contained(reduced, f); });
            });
          });
      if (!passed.empty())
        finishes |= llvm::any_of(rule.partialOperands,
                                 [&](int64_t i) { return !mayFlow.contains(op.getOperand(i)); });
      for (auto [i, result] : llvm::enumerate(op.getResults())) {
        if (equation.results[i] == kNoNode)
          continue;
        // Stated once by an earlier run, perhaps.
        if (ShardingAttr stated = getSharding(result); stated && stated.isPartial())
          continue;
        partials[result] = own;
        (finishes ? mayFlowIntoSum : mayFlow).insert(result);
      }
    }
  }
}

ShardingAttr Propagation::sharding(const Node &node, ArrayRef<PartialAttr> partial) const {
  DimAxes dims;
  for (size_t d = 0; d < node.dims.size(); ++d) {
    // Users may want an axis on a dimension of a sum over that axis: the operation gives addends of
    // the whole dimension, and the cut follows the reduction.
    dims.emplace_back();
    for (AxisAttr axis : node.axes(d)) {
      if (llvm::any_of(partial, [&](PartialAttr p) { return overlap(p.getAxis(), axis); }))
        break;
      dims.back().push_back(axis);
    }
  }
  return makeSharding(mesh, dims, partial);
}

void Propagation::write() {
  for (auto [value, id] : nodeIds) {
    ShardingAttr stated = nodes[id].stated;
    setSharding(value, stated && stated.isPartial() ? sharding(nodes[id], stated.getPartials())
                                                    : sharding(nodes[id], partials.lookup(value)));
  }
  for (auto [key, id] : functionResults)
    if (id != kNoNode)
      cast<func::FuncOp>(key.first).setResultAttr(key.second, CommDialect::kShardingAttrName,
                                                  sharding(nodes[id]));
}

struct PropagateShardings : impl::PropagateShardingsBase<PropagateShardings> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    Propagation propagation(getOperation(), *mesh);
    if (failed(propagation.build()) || failed(propagation.run()))
      return signalPassFailure();
    propagation.derivePartials();
    propagation.write();
    numSweeps += propagation.sweeps;
    numConflicts += propagation.conflicts;
  }
};

} // namespace
} // namespace braid
