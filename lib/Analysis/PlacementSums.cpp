//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which operations partial sums may flow through: those that are linear in them. Operations with a
// sharding rule state it; bodies of linalg operations are followed scalar by scalar.
//
//===----------------------------------------------------------------------===//
#include "PlacementTransfer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

bool isZero(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.value();
  return matchPattern(value, m_Zero()) || matchPattern(value, m_AnyZeroFloat());
}

/// Of a sum of two.
Dependence sumOf(Dependence a, bool zeroA, Dependence b, bool zeroB) {
  if (zeroA)
    return b;
  if (zeroB)
    return a;
  if (a == b)
    return a;
  if (a == Dependence::None || b == Dependence::None)
    return std::max(a, b) <= Dependence::Affine ? Dependence::Affine : std::max(a, b);
  return std::max(a, b);
}

Dependence productOf(Dependence a, Dependence b) {
  if (a == Dependence::None)
    return b;
  if (b == Dependence::None)
    return a;
  return a == Dependence::Nonlinear || b == Dependence::Nonlinear ? Dependence::Nonlinear
                                                                  : Dependence::Product;
}

/// Follows the scalars of a body.
class BodyDependence {
public:
  explicit BodyDependence(DenseMap<Value, Dependence> known) : known(std::move(known)) {}

  Dependence of(Value value) {
    if (auto it = known.find(value); it != known.end())
      return it->second;
    Operation *op = value.getDefiningOp();
    // What the body captures does not depend on the operands.
    Dependence found = op && inBody(op) ? ofResult(op) : Dependence::None;
    return known[value] = found;
  }
  Block *body = nullptr;

private:
  bool inBody(Operation *op) const { return op->getBlock() == body; }
  Dependence ofResult(Operation *op) {
    SmallVector<Dependence> operands;
    for (Value operand : op->getOperands())
      operands.push_back(of(operand));
    if (llvm::all_of(operands, [](Dependence d) { return d == Dependence::None; }))
      return Dependence::None;
    return llvm::TypeSwitch<Operation *, Dependence>(op)
        .Case<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>([&](Operation *) {
          return sumOf(operands[0], isZero(op->getOperand(0)), operands[1],
                       isZero(op->getOperand(1)));
        })
        .Case<arith::MulFOp, arith::MulIOp>(
            [&](Operation *) { return productOf(operands[0], operands[1]); })
        .Case<arith::DivFOp>([&](Operation *) {
          return operands[1] == Dependence::None ? operands[0] : Dependence::Nonlinear;
        })
        .Case<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(
            [&](Operation *) { return operands[0]; })
        .Case<arith::SelectOp>([&](Operation *) {
          return operands[0] == Dependence::None ? sumOf(operands[1], isZero(op->getOperand(1)),
                                                         operands[2], isZero(op->getOperand(2)))
                                                 : Dependence::Nonlinear;
        })
        .Default([](Operation *) { return Dependence::Nonlinear; });
  }

  DenseMap<Value, Dependence> known;
};

Dependence ofBody(linalg::LinalgOp op, ArrayRef<unsigned> operands) {
  DenseMap<Value, Dependence> known;
  for (auto [i, argument] : llvm::enumerate(op.getBlock()->getArguments())) {
    bool inSet = llvm::is_contained(operands, static_cast<unsigned>(i));
    OpOperand &operand = op->getOpOperand(i);
    // A reduction that begins with zero: what it has added up depends on the operands as its terms
    // do.
    bool sum = op.isDpsInit(&operand) && op.getNumReductionLoops() != 0 && isZero(operand.get());
    known[argument] = inSet || sum ? Dependence::Linear : Dependence::None;
  }
  BodyDependence body(std::move(known));
  body.body = op.getBlock();
  Dependence all = Dependence::None;
  for (Value yielded : op.getBlock()->getTerminator()->getOperands())
    all = all == Dependence::None ? body.of(yielded) : sumOf(all, false, body.of(yielded), false);
  return all;
}

} // namespace

bool keepsExtrema(Operation *op, const ShardingRule &rule, AddendKind kind) {
  if (op->getNumOperands() != 1)
    return false;
  auto reduces = [](const Factor &factor) { return factor.kind == FactorKind::Reduction; };
  if (llvm::none_of(rule.factors, reduces))
    return rule.linear;
  return llvm::all_of(rule.factors, [&](const Factor &factor) {
    return !reduces(factor) || kindOf(factor.reduce) == kind;
  });
}

Dependence dependenceOn(Operation *op, const ShardingRule &rule, ArrayRef<unsigned> operands) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return ofBody(structured, operands);
  auto isIn = [&](ArrayRef<int64_t> list) {
    return llvm::all_of(operands, [&](unsigned i) { return llvm::is_contained(list, i); });
  };
  if (rule.linear && isIn(rule.partialOperands)) {
    // Zeros are their own partial sums.
    if (llvm::all_of(rule.partialOperands, [&](int64_t i) {
          return llvm::is_contained(operands, static_cast<unsigned>(i)) ||
                 isZero(op->getOperand(static_cast<unsigned>(i)));
        }))
      return Dependence::Linear;
    if (!isIn(rule.linearIn) || rule.linearIn.empty())
      return Dependence::Affine;
  }
  if (!rule.linearIn.empty() && isIn(rule.linearIn))
    return operands.size() == 1 ? Dependence::Linear : Dependence::Product;
  return Dependence::Nonlinear;
}

} // namespace braid
