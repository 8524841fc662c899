//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What operations that compute make of placements, by their sharding rules: the axes that cut a
// dimension are those of its factors, and all operands must agree on the axes of a factor.
//
//===----------------------------------------------------------------------===//
#include "PlacementTransfer.h"

#include "dialects/NN/IR/NNTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

/// Descriptions of a value that are followed further; beyond, nothing is known.
constexpr size_t kMaxAlternatives = 32;

size_t rankOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? static_cast<size_t>(tensor.getRank()) : 0;
}

/// The sharding rule of an elementwise upstream operation, which has no model of its own.
ShardingRule elementwiseRule(Operation *op) {
  ShardingRule rule;
  TensorFactors all;
  if (auto tensor = dyn_cast<RankedTensorType>(op->getResult(0).getType()))
    for (auto [d, size] : llvm::enumerate(tensor.getShape()))
      all.push_back({rule.addFactor("dim" + std::to_string(d), size)});
  for (Value operand : op->getOperands())
    rule.operands.push_back(isa<RankedTensorType>(operand.getType()) ? all : TensorFactors());
  rule.results.assign(op->getNumResults(), all);
  if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>(op)) {
    rule.linear = true;
    rule.partialOperands = {0, 1};
  } else if (isa<arith::MulFOp, arith::MulIOp>(op)) {
    rule.linearIn = {0, 1};
  } else if (isa<arith::NegFOp, arith::ExtFOp, arith::TruncFOp, arith::DivFOp, tensor::CastOp>(
                 op)) {
    rule.linearIn = {0};
  }
  return rule;
}

std::optional<ShardingRule> ruleOf(Operation *op) {
  if (auto shardable = dyn_cast<ShardingRuleOpInterface>(op)) {
    ShardingRule rule = shardable.getShardingRule();
    // An embedding over a group is the reduction over the rows of its ranks.
    if (isa<nn::EmbeddingOp>(op))
      rule.factors[static_cast<size_t>(rule.operands[1][0][0])].kind = FactorKind::Reduction;
    // Attention over parts of the keys gives what an nn.map makes partial sums of. Positions, and a
    // number of keys, count from the first key.
    if (auto attention = dyn_cast<nn::AttentionOp>(op);
        attention && attention.getLogSum() && !attention.getCausal() && !attention.getValidLength())
      rule.factors[static_cast<size_t>(rule.operands[1][1][0])].kind = FactorKind::Reduction;
    return rule;
  }
  if (op->getNumResults() != 0 && op->getNumRegions() == 0 &&
      (op->hasTrait<OpTrait::Elementwise>() || isa<tensor::CastOp>(op)))
    return elementwiseRule(op);
  return std::nullopt;
}

/// Applies a rule to one placement of each operand, over common digits.
class RuleTransfer {
public:
  RuleTransfer(const MeshLayouts &layouts, Operation *op, ShardingRule rule,
               std::vector<Placement> operands, SubAxes varying)
      : layouts(layouts), op(op), rule(std::move(rule)), operands(std::move(operands)),
        varying(std::move(varying)), axes(this->rule.factors.size()),
        owner(this->rule.factors.size()) {}

  void run(std::vector<Placements> &results, std::optional<Contradiction> &contradiction) {
    for (const Placement &operand : operands)
      for (const SubAxis &axis : operand.varying)
        if (!llvm::is_contained(varying, axis))
          varying.push_back(axis);
    // The rule says nothing about the dimensions of such an operand.
    for (auto [i, operand] : llvm::enumerate(operands))
      if (i >= rule.operands.size() || rule.operands[i].size() != operand.dims.size())
        for (const SubAxes &dim : operand.dims)
          for (const SubAxis &axis : dim)
            if (!llvm::is_contained(varying, axis))
              varying.push_back(axis);
    for (Placement &operand : operands)
      for (const SubAxis &axis : varying)
        operand.makeSame(axis);
    found = &results;
    first = &contradiction;
    assignDim(0, 0);
  }

private:
  void assignDim(size_t operand, size_t dim);
  void assignFactor(size_t operand, size_t dim, size_t factor, ArrayRef<SubAxis> rest);
  void finish();
  std::optional<Contradiction> checkFactors(SubAxes &lost);
  std::optional<Contradiction> sums(SubAxes &lost, std::vector<Addend> &addends) const;
  std::optional<Contradiction> tableRows() const;
  void refuse(Contradiction contradiction) {
    if (!*first)
      *first = std::move(contradiction);
  }
  /// Whether the results are the same along a factor: no operand differs along it.
  bool isUniformFactor(int64_t f) const {
    return factorOf(f).kind == FactorKind::Parallel && !axes[static_cast<size_t>(f)];
  }
  std::string on(const SubAxis &axis) const { return nameOf(layouts, axis); }
  const Factor &factorOf(int64_t f) const { return rule.factors[static_cast<size_t>(f)]; }

  const MeshLayouts &layouts;
  Operation *op;
  ShardingRule rule;
  std::vector<Placement> operands;
  SubAxes varying;
  std::vector<std::optional<SubAxes>> axes; ///< of the factors
  std::vector<unsigned> owner;              ///< the operand that says so
  std::vector<Placements> *found = nullptr;
  std::optional<Contradiction> *first = nullptr;
};

void RuleTransfer::assignDim(size_t operand, size_t dim) {
  while (operand < operands.size() &&
         (dim == operands[operand].dims.size() || operand >= rule.operands.size() ||
          rule.operands[operand].empty())) {
    ++operand;
    dim = 0;
  }
  if (operand == operands.size())
    return finish();
  // Such a dimension says nothing about its factors.
  if (operands[operand].uniform[dim])
    return assignDim(operand, dim + 1);
  assignFactor(operand, dim, 0, operands[operand].dims[dim]);
}

/// Gives the major ones of `rest` to a factor of a dimension and the others to the factors minor to
/// it, which can be cut only where this factor has one element left.
void RuleTransfer::assignFactor(size_t operand, size_t dim, size_t factor, ArrayRef<SubAxis> rest) {
  const DimFactors &factors = rule.operands[operand][dim];
  if (factor == factors.size()) {
    if (rest.empty())
      return assignDim(operand, dim + 1);
    // A dimension without factors, of size 1: the ranks have one element each.
    SubAxes before = varying;
    llvm::append_range(varying, rest);
    assignDim(operand, dim + 1);
    varying = std::move(before);
    return;
  }
  auto f = static_cast<size_t>(factors[factor]);
  size_t least = factor + 1 != factors.size() && rule.factors[f].size == 1 ? 0 : rest.size();
  for (size_t count = rest.size() + 1; count-- > least;) {
    SubAxes own(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
    ArrayRef<SubAxis> minor = rest.drop_front(count);
    if (axes[f]) {
      if (*axes[f] == own) {
        assignFactor(operand, dim, factor + 1, minor);
        continue;
      }
      // The first digit that only one of the two has, or that they have in another order.
      const SubAxes &other = *axes[f];
      size_t at = 0;
      while (at < own.size() && at < other.size() && own[at] == other[at])
        ++at;
      SubAxis axis = at < own.size() ? own[at] : other[at];
      unsigned a = owner[f];
      auto b = static_cast<unsigned>(operand);
      refuse({PlacementRule::Alike,
              "expects '" + rule.factors[f].name + "' of operands " + std::to_string(a) + " and " +
                  std::to_string(b) + " in the same parts over " + on(axis) + ", got " +
                  describeHeld(operands[a], axis) + " and " + describeHeld(operands[b], axis),
              "",
              {{a, axis, operands[a].heldOn(axis)}, {b, axis, operands[b].heldOn(axis)}}});
      continue;
    }
    axes[f] = own;
    owner[f] = static_cast<unsigned>(operand);
    assignFactor(operand, dim, factor + 1, minor);
    axes[f].reset();
  }
}

/// The group of an embedding tells which rows of the table a rank has.
std::optional<Contradiction> RuleTransfer::tableRows() const {
  auto embedding = dyn_cast<nn::EmbeddingOp>(op);
  if (!embedding)
    return std::nullopt;
  auto vocabulary = static_cast<size_t>(rule.operands[1][0][0]);
  SubAxes cut = axes[vocabulary].value_or(SubAxes()), group;
  if (std::optional<GroupAttr> over = embedding.getGroup())
    group = layouts.subAxes(over->getAxes());
  SubAxes stated;
  for (const SubAxis &axis : mergeSubAxes(group))
    stated.push_back(axis);
  if (mergeSubAxes(cut) == stated ||
      llvm::any_of(varying, [&](const SubAxis &axis) { return !isFree(stated, axis); }))
    return std::nullopt;
  SubAxis axis = cut.empty() ? stated.front() : cut.front();
  return Contradiction{
      PlacementRule::TableRows,
      "expects the rows of the table in parts over the axes that 'over' names, got " +
          (cut.empty() ? std::string("the same table") : "parts over " + on(cut.front())),
      "",
      {{1, axis, operands[1].heldOn(axis)}}};
}

/// Checks factors that must be whole, and axes that cut two factors. `lost`: axes along which
/// nothing is known of the results.
std::optional<Contradiction> RuleTransfer::checkFactors(SubAxes &lost) {
  SubAxes used;
  std::vector<size_t> users;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (!axes[f] || axes[f]->empty())
      continue;
    const Factor &factor = rule.factors[f];
    for (const SubAxis &axis : *axes[f]) {
      auto other = llvm::find(used, axis);
      if (other != used.end()) {
        size_t g = users[static_cast<size_t>(other - used.begin())];
        return Contradiction{PlacementRule::OneFactor,
                             "expects " + on(axis) + " to cut one of '" + rule.factors[g].name +
                                 "' and '" + factor.name + "', got both",
                             "each rank computes only the block of its own rows and columns",
                             {{owner[g], axis, Held::Part}, {owner[f], axis, Held::Part}}};
      }
      used.push_back(axis);
      users.push_back(f);
    }
    if (factor.kind != FactorKind::Replicated)
      continue;
    if (factor.onShards == OnShards::Wrong)
      return Contradiction{PlacementRule::Whole,
                           "expects '" + factor.name + "' of operand " + std::to_string(owner[f]) +
                               " whole on every rank, got parts over " + on(axes[f]->front()),
                           "",
                           {{owner[f], axes[f]->front(), Held::Part}}};
    if (factor.onShards == OnShards::Unknown)
      llvm::append_range(lost, *axes[f]);
  }
  return std::nullopt;
}

/// The addends of the results: partial sums of operands that flow through, and new ones.
std::optional<Contradiction> RuleTransfer::sums(SubAxes &lost, std::vector<Addend> &addends) const {
  std::map<SubAxis, SmallVector<std::optional<AddendKind>>> held; // by operand
  for (auto [i, operand] : llvm::enumerate(operands))
    for (const Addend &addend : operand.addends) {
      auto &kinds = held[addend.axis];
      kinds.resize(operands.size());
      kinds[i] = addend.kind;
    }
  for (const auto &entry : held) {
    const SubAxis &axis = entry.first;
    ArrayRef<std::optional<AddendKind>> kinds = entry.second;
    if (llvm::is_contained(lost, axis))
      continue;
    SmallVector<unsigned> holders;
    for (auto [i, kind] : llvm::enumerate(kinds))
      if (kind)
        holders.push_back(static_cast<unsigned>(i));
    const AddendKind kind = *kinds[holders[0]];
    std::string what = nameOfPartials(kind).str() + " over " + on(axis);
    SmallVector<Blame, 2> blames;
    for (unsigned i : holders)
      blames.push_back({i, axis, Held::Addend});
    for (size_t f = 0; f < axes.size(); ++f)
      if (axes[f] && llvm::is_contained(*axes[f], axis)) {
        blames.push_back({owner[f], axis, Held::Part});
        return Contradiction{PlacementRule::SumOrParts,
                             "expects operands " + std::to_string(holders[0]) + " and " +
                                 std::to_string(owner[f]) + " reduced alike, got " + what +
                                 " and " + describeHeld(operands[owner[f]], axis),
                             "", blames};
      }
    if (auto map = dyn_cast<nn::MapOp>(op)) {
      const MapOutcome outcome = mapAddends(map, kinds);
      if (outcome.result == MapOutcome::Addends)
        addends.push_back({axis, outcome.kind});
      if (outcome.result == MapOutcome::Unknown)
        lost.push_back(axis);
      if (outcome.result != MapOutcome::Wrong)
        continue;
      if (llvm::is_contained(kinds, AddendKind::Relative))
        return Contradiction{PlacementRule::Relative,
                             "expects operand " + std::to_string(holders[0]) + " reduced, got " +
                                 what,
                             "values relative to a rank's own maximum or sum become partial sums "
                             "when they are multiplied by exp(own - common)",
                             blames};
    }
    for (unsigned i : holders)
      if (*kinds[i] != kind)
        return Contradiction{PlacementRule::OneKind,
                             "expects partial values of one kind over " + on(axis) + ", got " +
                                 nameOfPartials(kind).str() + " and " +
                                 nameOfPartials(*kinds[i]).str(),
                             "",
                             {{holders[0], axis, Held::Addend}, {i, axis, Held::Addend}}};
    if (kind != AddendKind::Sum) {
      if (!keepsExtrema(op, rule, kind))
        return Contradiction{
            PlacementRule::Extrema,
            "expects operand " + std::to_string(holders[0]) + " reduced, got " + what, "", blames};
      addends.push_back({axis, kind});
      continue;
    }
    switch (dependenceOn(op, rule, holders)) {
    case Dependence::None:
    case Dependence::Linear:
      addends.push_back({axis, kind});
      break;
    case Dependence::Affine: {
      std::string times = std::to_string(axis.size());
      unsigned other = 0;
      while (llvm::is_contained(holders, other))
        ++other;
      bool isOperand = other < operands.size() && !isa<linalg::LinalgOp>(op);
      if (isOperand)
        blames.push_back({other, axis, Held::Same});
      return Contradiction{
          PlacementRule::AddedOnce,
          "expects " + what + (isOperand ? " in operand " + std::to_string(other) + " too" : "") +
              ", got the same value on all of its ranks",
          "it is added on each of " + times + " ranks, so that the sum has it " + times + " times",
          blames};
    }
    case Dependence::Product:
      return Contradiction{PlacementRule::Product,
                           "expects " + what + " in one operand, got them in " +
                               std::to_string(holders.size()),
                           "a product of two sums is not the sum of products", blames};
    case Dependence::Nonlinear:
      return Contradiction{PlacementRule::Linear,
                           "expects operand " + std::to_string(holders[0]) + " reduced, got " +
                               what,
                           "the operation is not linear in it", blames};
    }
  }
  for (auto [factor, own] : llvm::zip_equal(rule.factors, axes))
    if (own && factor.kind == FactorKind::Reduction)
      for (const SubAxis &axis : *own)
        addends.push_back({axis, kindOf(factor.reduce)});
  return std::nullopt;
}

void RuleTransfer::finish() {
  SubAxes lost;
  std::vector<Addend> addends;
  std::optional<Contradiction> contradiction = tableRows();
  if (!contradiction)
    contradiction = checkFactors(lost);
  if (!contradiction)
    contradiction = sums(lost, addends);
  if (contradiction)
    return refuse(std::move(*contradiction));
  // All addends of such an operation's results are its own.
  const std::optional<PairResults> pair = pairResultsOf(op);
  for (auto [r, result] : llvm::enumerate(op->getResults())) {
    Placement placement = samePlacement(rankOf(result.getType()));
    placement.addends = addends;
    placement.varying = varying;
    SubAxes unknown = lost;
    if (pair)
      for (Addend &addend : placement.addends)
        addend.kind = r == pair->reference ? pair->referenceKind : AddendKind::Relative;
    if (r < rule.results.size())
      for (auto [d, factors] : llvm::enumerate(rule.results[r])) {
        placement.uniform[d] = !factors.empty() &&
                               llvm::all_of(factors, [&](int64_t f) { return isUniformFactor(f); });
        bool whole = false; // whether a factor major to the next one has several elements
        for (int64_t f : factors) {
          if (const auto &own = axes[static_cast<size_t>(f)]) {
            // Blocks of the minor factor would lie apart in the dimension.
            llvm::append_range(whole ? unknown : placement.dims[d], *own);
          }
          whole |= factorOf(f).size != 1;
        }
      }
    for (const SubAxis &axis : unknown)
      placement.makeVarying(axis);
    placement.normalize();
    Placements &all = (*found)[r];
    if (!llvm::is_contained(all, placement))
      all.push_back(std::move(placement));
  }
}

bool isUniform(Operation *op) {
  if (isa<tensor::EmptyOp>(op))
    return true;
  Attribute value;
  if (!matchPattern(op, m_Constant(&value)))
    return false;
  auto elements = dyn_cast<ElementsAttr>(value);
  return !elements || elements.isSplat();
}

/// Adds the axes along which ranks do not hold the same.
void appendDiffering(const Placement &placement, SubAxes &axes) {
  for (const SubAxes &dim : placement.dims)
    llvm::append_range(axes, dim);
  llvm::append_range(axes, placement.varying);
  for (const Addend &addend : placement.addends)
    axes.push_back(addend.axis);
}

/// Operations of which nothing is known: their results differ wherever an input does.
ResultPlacements unknown(Operation *op, ArrayRef<ArrayRef<Placement>> inputs) {
  SubAxes differing;
  for (ArrayRef<Placement> input : inputs)
    appendDiffering(input.front(), differing);
  ResultPlacements results;
  for (Type type : op->getResultTypes()) {
    Placement placement = samePlacement(rankOf(type));
    placement.varying = differing;
    results.push_back({placement});
  }
  return results;
}

} // namespace

bool isOwnAddend(Operation *op) {
  if (!isa<PartOp, nn::SliceOp, nn::ConcatOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op) ||
      op->use_empty())
    return false;
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto sum = dyn_cast<nn::DecodeSumOp>(use.getOwner());
    return sum ? sum.getOwn() == use.get() : isOwnAddend(use.getOwner());
  });
}

Transfer transferComputation(const MeshLayouts &layouts, Operation *op,
                             ArrayRef<Placements> operands, ArrayRef<Placements> captured) {
  if (isUniform(op)) {
    ResultPlacements results;
    for (Type type : op->getResultTypes()) {
      results.push_back({samePlacement(rankOf(type), /*uniform=*/true)});
    }
    return results;
  }
  auto widened = [&](SubAxes axes, ResultPlacements results) {
    // Sub-axes that overlap become one.
    Digits digits(layouts.sizes());
    digits.add(axes);
    for (Placements &placements : results)
      for (Placement &placement : placements) {
        placement = digits.split(placement);
        SubAxes once;
        for (const SubAxis &axis : placement.varying)
          if (!llvm::is_contained(once, axis))
            once.push_back(axis);
        placement.varying = once;
        placement.normalize();
      }
    return results;
  };
  auto giveUp = [&]() -> Transfer {
    SmallVector<ArrayRef<Placement>> inputs(operands.begin(), operands.end());
    llvm::append_range(inputs, captured);
    ResultPlacements results = unknown(op, inputs);
    return widened(results.empty() ? SubAxes() : SubAxes(results[0][0].varying), results);
  };
  // Shapes are the same on all ranks.
  if (isa<tensor::DimOp>(op))
    return ResultPlacements{{samePlacement(0)}};
  // A payload, or what an encoding gives back, stands for what it was made of: partial sums, which
  // the ranks exchange and add; and so does what a rank has of them as it is.
  if (isa<nn::EncodeOp, nn::DecodeOp, nn::DecodeSumOp, nn::FakeQuantizeOp>(op) || isOwnAddend(op))
    return giveUp();
  std::optional<ShardingRule> rule = ruleOf(op);
  size_t combinations = 1;
  for (const Placements &operand : operands)
    combinations *= operand.size();
  if (!rule || combinations > kMaxAlternatives)
    return giveUp();

  // Only what an axis cuts tells something about a dimension of one element.
  bool primes = llvm::any_of(rule->operands, [&](const TensorFactors &tensor) {
    return llvm::any_of(tensor, [&](const DimFactors &factors) {
      return factors.size() > 1 && llvm::any_of(ArrayRef(factors).drop_back(), [&](int64_t f) {
               return rule->factors[static_cast<size_t>(f)].size == 1;
             });
    });
  });
  std::vector<Placements> results(op->getNumResults());
  std::optional<Contradiction> contradiction;
  for (size_t n = 0; n < combinations; ++n) {
    Digits digits(layouts.sizes());
    std::vector<Placement> chosen;
    size_t rest = n;
    for (const Placements &operand : operands) {
      chosen.push_back(operand[rest % operand.size()]);
      rest /= operand.size();
      digits.add(chosen.back());
    }
    for (const Placements &value : captured)
      digits.add(value.front());
    if (primes)
      digits.addPrimes();
    SubAxes varying;
    for (const Placements &value : captured)
      appendDiffering(digits.split(value.front()), varying);
    SubAxes once;
    for (const SubAxis &axis : varying)
      if (!llvm::is_contained(once, axis))
        once.push_back(axis);
    for (Placement &placement : chosen)
      placement = digits.split(placement);
    RuleTransfer(layouts, op, *rule, std::move(chosen), std::move(once))
        .run(results, contradiction);
  }
  if (op->getNumResults() == 0)
    return ResultPlacements();
  if (results.front().empty())
    return *contradiction;
  if (results.front().size() > kMaxAlternatives)
    return giveUp();
  return ResultPlacements(results.begin(), results.end());
}

} // namespace braid
