//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The cost of every operation on its own shapes. Elementary functions (exp, erf, tanh, square root)
// and divisions count as one FLOP each, like additions, multiplications and comparisons.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid::nn;

/// Operands read once, results written once; nothing saved.
static OpCost traffic(Operation *op) {
  OpCost cost;
  for (Value operand : op->getOperands())
    cost.bytesRead += bytes(operand);
  for (Value result : op->getResults())
    cost.bytesWritten += bytes(result);
  return cost;
}

/// Of a table or input, only as many bytes are read as the selected rows have.
static OpCost selectionOfRows(Value selector, Value rows) {
  OpCost cost;
  cost.bytesRead = bytes(selector) + bytes(rows);
  cost.bytesWritten = bytes(rows);
  cost.bytesSaved = bytes(selector);
  return cost;
}

OpCost EmbeddingOp::getCost() { return selectionOfRows(getIds(), getResult()); }
OpCost LastTokenOp::getCost() { return selectionOfRows(getMask(), getResult()); }

OpCost PositionIdsOp::getCost() {
  OpCost cost = traffic(*this);
  // A comparison, a sum and a choice.
  cost.vectorFlops = 3 * elements(getResult());
  return cost;
}

OpCost LinearOp::getCost() {
  OpCost cost = traffic(*this);
  SaturatingCount k = cast<RankedTensorType>(getWeight().getType()).getDimSize(1);
  cost.matrixFlops = ((k * 2 - 1) * elements(getResult())).getValue();
  cost.bytesSaved = bytes(getInput());
  return cost;
}

/// Views: nothing moves.
OpCost SplitHeadsOp::getCost() { return {}; }
OpCost MergeHeadsOp::getCost() { return {}; }

OpCost AttentionOp::getCost() {
  OpCost cost = traffic(*this);
  ArrayRef<int64_t> query = getQuery().getType().getShape(),
                    value = getValue().getType().getShape();
  // Masked pairs count too, since the mask is known only at run time.
  int64_t queries = query[0] * query[1] * query[2];
  SaturatingCount pairs = SaturatingCount(queries) * value[1], results = elements(getResult());
  cost.matrixFlops = (pairs * (2 * query[3] - 1) + results * (2 * value[1] - 1)).getValue();
  // Per pair: scale, maximum, difference, exp, sum; then the division of every result by its row's
  // sum.
  cost.vectorFlops = (pairs * 5 + results).getValue();
  // Inputs, output and the row's logarithm of the sum (f32): the scores are recomputed.
  cost.bytesSaved = cost.bytesRead + cost.bytesWritten + (getLogSum() ? 0 : 4 * queries);
  return cost;
}

OpCost LayerNormOp::getCost() {
  OpCost cost = traffic(*this);
  int64_t hidden = elements(getWeight()), rows = hidden == 0 ? 0 : elements(getInput()) / hidden;
  // Per element: mean's sum, difference, square, variance's sum, times reciprocal deviation,
  // weight, bias; per row: two divisions, epsilon, reciprocal square root.
  cost.vectorFlops = 7 * elements(getInput()) + 4 * rows;
  // The normalized values are recomputed from input, mean and reciprocal deviation (f32 each).
  cost.bytesSaved = bytes(getInput()) + 8 * rows;
  return cost;
}

OpCost RmsNormOp::getCost() {
  OpCost cost = traffic(*this);
  int64_t hidden = elements(getWeight()), rows = hidden == 0 ? 0 : elements(getInput()) / hidden;
  // Per element: square, sum, times reciprocal root, weight; per row: division, epsilon, reciprocal
  // square root.
  cost.vectorFlops = 4 * elements(getInput()) + 3 * rows;
  // The normalized values are recomputed from input and reciprocal root (f32).
  cost.bytesSaved = bytes(getInput()) + 4 * rows;
  return cost;
}

OpCost SoftmaxOp::getCost() {
  OpCost cost = traffic(*this);
  // Per element: maximum, difference, exp, sum, division.
  cost.vectorFlops = 5 * elements(getInput());
  cost.bytesSaved = bytes(getResult());
  return cost;
}

OpCost ActivationOp::getCost() {
  OpCost cost = traffic(*this);
  cost.vectorFlops = flopsOf(getKind()) * elements(getInput());
  cost.bytesSaved = bytes(getInput());
  return cost;
}

OpCost AddOp::getCost() {
  OpCost cost = traffic(*this);
  cost.vectorFlops = elements(getResult());
  return cost;
}

OpCost MulOp::getCost() {
  OpCost cost = traffic(*this);
  cost.vectorFlops = elements(getResult());
  // The gradient of either operand needs the other.
  cost.bytesSaved = bytes(getLhs()) + bytes(getRhs());
  return cost;
}
