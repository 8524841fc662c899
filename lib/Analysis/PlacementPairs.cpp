//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values relative to each rank's own maximum or sum: what an nn.map makes of them. A rank's sum of
// exp(x - m) over its part, with the part's maximum m, is a partial sum after `sum * exp(m - c)`
// with the same c on all ranks; so is its average after `average * exp(l - c)`, where l is the
// logarithm of the sum that the average was divided by.
//
//===----------------------------------------------------------------------===//
#include "PlacementTransfer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace braid {
namespace {

/// How a scalar of a body depends on the addends.
struct Term {
  enum Kind {
    None,        ///< not at all: the same on all ranks
    Sum,         ///< a partial sum
    Reference,   ///< the maximum, or the logarithm of the sum, plus what is the same on all ranks
    Weight,      ///< exp of a reference
    Relative,    ///< relative to the reference
    LogRelative, ///< the logarithm of a relative sum
    LogSum,      ///< plus what is the same on all ranks
    Other
  } kind = None;
  Operation *pair = nullptr; ///< to which reference, weight and relative belong; null if unknown
  bool logSum = false;       ///< whether the reference is the logarithm of a sum
};

class BodyTerms {
public:
  BodyTerms(nn::MapOp op, ArrayRef<std::optional<AddendKind>> held) {
    for (auto [i, kind] : llvm::enumerate(held))
      known[op.getBody().getArgument(i)] = ofOperand(op->getOperand(i), kind);
  }

  Term of(Value value) {
    if (auto it = known.find(value); it != known.end())
      return it->second;
    Term found = ofOperation(value.getDefiningOp());
    return known[value] = found;
  }

  static Term resultOf(nn::MapOp op, ArrayRef<std::optional<AddendKind>> held) {
    return BodyTerms(op, held).of(cast<nn::YieldOp>(op.getBody().front().back()).getValue());
  }

private:
  static Term ofOperand(Value operand, std::optional<AddendKind> kind) {
    if (!kind)
      return {};
    auto result = dyn_cast<OpResult>(operand);
    std::optional<PairResults> pair =
        result ? pairResultsOf(result.getOwner()) : std::optional<PairResults>();
    Operation *owner = pair ? result.getOwner() : nullptr;
    switch (*kind) {
    case AddendKind::Sum:
      return ofSum(operand);
    case AddendKind::Min:
      return {Term::Other};
    case AddendKind::Max:
      return {Term::Reference, owner};
    case AddendKind::LogSum:
      return {Term::Reference, owner, /*logSum=*/true};
    case AddendKind::Relative:
      return {Term::Relative, owner};
    }
    llvm_unreachable("unknown addends");
  }

  /// A partial sum may be the weight that another map has made of a reference. What it was made
  /// relative to is then the same on all ranks, or it would be no partial sum.
  static Term ofSum(Value operand) {
    auto map = operand.getDefiningOp<nn::MapOp>();
    if (!map)
      return {Term::Sum};
    SmallVector<std::optional<AddendKind>> held(map->getNumOperands());
    for (auto [kind, value] : llvm::zip_equal(held, map->getOperands()))
      if (auto result = dyn_cast<OpResult>(value))
        if (std::optional<PairResults> pair = pairResultsOf(result.getOwner()))
          kind = result.getResultNumber() == pair->reference ? pair->referenceKind
                                                             : AddendKind::Relative;
    const Term term = resultOf(map, held);
    return term.kind == Term::Weight && term.logSum ? term : Term{Term::Sum};
  }

  Term ofOperation(Operation *op) {
    SmallVector<Term, 3> in;
    for (Value operand : op->getOperands())
      in.push_back(of(operand));
    if (llvm::all_of(in, [](const Term &term) { return term.kind == Term::None; }))
      return {};
    return llvm::TypeSwitch<Operation *, Term>(op)
        .Case<arith::AddFOp>([&](Operation *) { return sum(in[0], in[1]); })
        .Case<arith::SubFOp>([&](Operation *) { return difference(in[0], in[1]); })
        .Case<arith::MulFOp>([&](Operation *) { return product(in[0], in[1]); })
        .Case<arith::DivFOp>([&](Operation *) {
          return in[1].kind == Term::None ? product(in[0], in[1]) : Term{Term::Other};
        })
        .Case<arith::NegFOp>(
            [&](Operation *) { return in[0].kind == Term::Sum ? in[0] : Term{Term::Other}; })
        .Case<math::ExpOp>([&](Operation *) -> Term {
          if (in[0].kind == Term::LogSum)
            return {Term::Sum};
          if (in[0].kind != Term::Reference)
            return {Term::Other};
          return {Term::Weight, in[0].pair, in[0].logSum};
        })
        .Case<math::LogOp>([&](Operation *) -> Term {
          // The average of attention has no meaning on a logarithmic scale.
          const bool isSum = in[0].pair && isa<nn::ReduceOp>(in[0].pair);
          return in[0].kind == Term::Relative && isSum ? Term{Term::LogRelative, in[0].pair}
                                                       : Term{Term::Other};
        })
        .Case<arith::SelectOp>(
            [&](arith::SelectOp select) { return isGuard(select) ? in[2] : Term{Term::Other}; })
        // What a comparison says differs between ranks; only a guard may use it.
        .Default([](Operation *) { return Term{Term::Other}; });
  }

  static Term sum(const Term &a, const Term &b) {
    if (b.kind == Term::None)
      return a.kind == Term::Reference || a.kind == Term::LogSum ? a : Term{Term::Other};
    if (a.kind == Term::None)
      return sum(b, a);
    if (a.kind == Term::LogRelative && b.kind == Term::Reference)
      return sum(b, a);
    if (a.kind == Term::Reference && b.kind == Term::LogRelative && a.pair && a.pair == b.pair)
      return {Term::LogSum};
    return isSum(a) && isSum(b) ? Term{Term::Sum} : Term{Term::Other};
  }
  static Term difference(const Term &a, const Term &b) {
    if (b.kind == Term::None)
      return sum(a, b);
    return isSum(a) && isSum(b) ? Term{Term::Sum} : Term{Term::Other};
  }
  static Term product(const Term &a, const Term &b) {
    if (a.kind == Term::None)
      return product(b, a);
    if (b.kind == Term::None)
      return a.kind == Term::Sum || a.kind == Term::Weight || a.kind == Term::Relative
                 ? a
                 : Term{Term::Other};
    if (a.kind == Term::Relative && b.kind == Term::Weight)
      return product(b, a);
    const bool scaled = a.kind == Term::Weight && b.kind == Term::Relative;
    return scaled && a.pair && a.pair == b.pair ? Term{Term::Sum} : Term{Term::Other};
  }
  /// Whether ranks' values add up: exp of the logarithm of a sum is one.
  static bool isSum(const Term &term) {
    return term.kind == Term::Sum || (term.kind == Term::Weight && term.logSum);
  }

  /// select(x == y, a, a * exp(x - y)), for the sake of equal infinities, is a * exp(x - y).
  static bool isGuard(arith::SelectOp select) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    if (!compare || (compare.getPredicate() != arith::CmpFPredicate::OEQ &&
                     compare.getPredicate() != arith::CmpFPredicate::UEQ))
      return false;
    auto isWeight = [&](Value value) {
      auto exp = value.getDefiningOp<math::ExpOp>();
      auto sub = exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
      Value x = compare.getLhs(), y = compare.getRhs();
      return sub &&
             ((sub.getLhs() == x && sub.getRhs() == y) || (sub.getLhs() == y && sub.getRhs() == x));
    };
    if (isWeight(select.getFalseValue()))
      return matchPattern(select.getTrueValue(), m_OneFloat());
    auto mul = select.getFalseValue().getDefiningOp<arith::MulFOp>();
    return mul && ((isWeight(mul.getLhs()) && mul.getRhs() == select.getTrueValue()) ||
                   (isWeight(mul.getRhs()) && mul.getLhs() == select.getTrueValue()));
  }

  DenseMap<Value, Term> known;
};

} // namespace

std::optional<PairResults> pairResultsOf(Operation *op) {
  if (auto reduce = dyn_cast<nn::ReduceOp>(op); reduce && reduce.getExpSum())
    return PairResults{/*reference=*/0, /*relative=*/1, AddendKind::Max};
  if (auto attention = dyn_cast<nn::AttentionOp>(op); attention && attention.getLogSum())
    return PairResults{/*reference=*/1, /*relative=*/0, AddendKind::LogSum};
  return std::nullopt;
}

MapOutcome mapAddends(nn::MapOp op, ArrayRef<std::optional<AddendKind>> held) {
  const Term result = BodyTerms::resultOf(op, held);
  switch (result.kind) {
  case Term::None:
    return {MapOutcome::Same};
  case Term::Sum:
    return {MapOutcome::Addends, AddendKind::Sum};
  case Term::LogSum:
    return {MapOutcome::Addends, AddendKind::LogSum};
  case Term::Reference:
    return {MapOutcome::Addends, result.logSum ? AddendKind::LogSum : AddendKind::Max};
  case Term::Relative:
    return {MapOutcome::Addends, AddendKind::Relative};
  case Term::Weight:
    if (result.logSum)
      return {MapOutcome::Addends, AddendKind::Sum};
    break;
  case Term::LogRelative:
  case Term::Other:
    break;
  }
  // From another function, say: it is not known which values belong together.
  for (auto [operand, kind] : llvm::zip_equal(op->getOperands(), held))
    if (kind == AddendKind::Relative) {
      Operation *owner = operand.getDefiningOp();
      if (!owner || !pairResultsOf(owner))
        return {MapOutcome::Unknown};
    }
  return {MapOutcome::Wrong};
}

} // namespace braid
