//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rotary position embedding: verifiers and interfaces of its two operations.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/DecomposeBuilder.h"
#include "dialects/NN/IR/OpUtils.h"

#include <cmath>

using namespace mlir;
using namespace braid::nn;
using braid::comm::FactorKind;
using braid::comm::ShardingRule;
using braid::comm::TensorFactors;

//===----------------------------------------------------------------------===//
// nn.rotary_table
//===----------------------------------------------------------------------===//

void RotaryTableOp::build(OpBuilder &builder, OperationState &state, RankedTensorType table,
                          Value positionOffset, ArrayRef<double> frequencies, double scale) {
  build(builder, state, table, table, positionOffset, builder.getDenseF64ArrayAttr(frequencies),
        builder.getF64FloatAttr(scale));
}

LogicalResult RotaryTableOp::verify() {
  ArrayRef<int64_t> shape = typeOf(getCos()).getShape();
  auto count = static_cast<int64_t>(getFrequencies().size());
  size_t rank = getPositionOffset() ? 3 : 2;
  if (shape.size() != rank || shape.back() != count)
    return emitOpError("expects tables of shape ")
           << (rank == 3 ? "[batch, seq, " : "[seq, ") << count << "], got " << text(shape)
           << " [nn.rotary_table_c1]";
  if (getPositionOffset() && typeOf(getPositionOffset()).getDimSize(0) != shape[0])
    return emitOpError("expects position_offset of shape [")
           << shape[0] << "], got " << text(shapeOf(getPositionOffset()))
           << " [nn.rotary_table_c2]";
  if (count == 0)
    return emitOpError("expects at least one frequency [nn.rotary_table_c3]");
  for (double frequency : getFrequencies())
    if (!std::isfinite(frequency) || frequency < 0)
      return emitOpError("expects frequencies of at least 0 that are finite, got ")
             << frequency << " [nn.rotary_table_c3]";
  double scale = getScale().convertToDouble();
  if (!std::isfinite(scale) || scale <= 0)
    return emitOpError("expects scale to be positive and finite, got ")
           << scale << " [nn.rotary_table_c4]";
  return success();
}

ShardingRule RotaryTableOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors table;
  if (getPositionOffset()) {
    table.push_back({rule.addFactor("batch", typeOf(getCos()).getDimSize(0))});
    rule.operands = {table};
  }
  // Positions count from the start of the unpartitioned sequence and frequencies are constants, so
  // a sharded operation would compute the first rank's shard on every rank.
  int64_t seq = typeOf(getCos()).getShape().drop_back().back();
  table.push_back({rule.addFactor("seq", seq, FactorKind::Replicated)});
  table.push_back(
      {rule.addFactor("pair", typeOf(getCos()).getShape().back(), FactorKind::Replicated)});
  rule.results = {table, table};
  return rule;
}

OpCost RotaryTableOp::getCost() {
  OpCost cost;
  cost.bytesRead = getPositionOffset() ? bytes(getPositionOffset()) : 0;
  cost.bytesWritten = 2 * bytes(getCos());
  // Angle, cosine, sine, and two scalings.
  cost.vectorFlops = 5 * typeOf(getCos()).getNumElements();
  return cost;
}

bool RotaryTableOp::isRowOperation() { return false; }

FailureOr<SmallVector<Value>> RotaryTableOp::decompose(OpBuilder &builder, ValueRange operands) {
  RankedTensorType type = typeOf(getCos());
  int64_t rank = type.getRank();
  auto f64 = builder.getF64Type();
  auto table = RankedTensorType::get(type.getShape().take_back(1), f64);
  Value frequencies =
      arith::ConstantOp::create(builder, getLoc(), DenseElementsAttr::get(table, getFrequencies()));
  SmallVector<Value> inputs{frequencies};
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  SmallVector<AffineMap> maps{all.getSubMap({static_cast<unsigned>(rank - 1)})};
  if (!operands.empty()) {
    inputs.push_back(operands[0]);
    maps.push_back(all.getSubMap({0}));
  }
  maps.push_back(all);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  auto build = [&](StringRef name, bool cosine) -> Value {
    Location loc = NameLoc::get(builder.getStringAttr(name), getLoc());
    Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    auto generic = linalg::GenericOp::create(
        builder, loc, type, inputs, init, maps, iterators,
        [&](OpBuilder &nested, Location at, ValueRange x) {
          Value position = linalg::IndexOp::create(nested, at, rank - 2);
          if (!operands.empty()) {
            Value offset = arith::IndexCastOp::create(nested, at, nested.getIndexType(), x[1]);
            position = arith::AddIOp::create(nested, at, position, offset);
          }
          Value integer = arith::IndexCastOp::create(nested, at, nested.getI64Type(), position);
          Value real = arith::SIToFPOp::create(nested, at, f64, integer);
          Value angle = arith::MulFOp::create(nested, at, real, x[0]);
          Value value = cosine ? math::CosOp::create(nested, at, angle).getResult()
                               : math::SinOp::create(nested, at, angle).getResult();
          Value scale = arith::ConstantOp::create(nested, at, getScaleAttr());
          value = arith::MulFOp::create(nested, at, value, scale);
          Value stored = arith::TruncFOp::create(nested, at, type.getElementType(), value);
          linalg::YieldOp::create(nested, at, stored);
        });
    return generic.getResult(0);
  };
  Value cos = build("cos", true), sin = build("sin", false);
  return SmallVector<Value>{cos, sin};
}

//===----------------------------------------------------------------------===//
// nn.rotary
//===----------------------------------------------------------------------===//

LogicalResult RotaryOp::verify() {
  ArrayRef<int64_t> input = typeOf(getInput()).getShape(), table = typeOf(getCos()).getShape();
  if (input[3] % 2 != 0)
    return emitOpError("expects an even head_dim, got ") << input[3] << " [nn.rotary_c1]";
  SmallVector<int64_t, 3> expected{input[0], input[1], input[3] / 2};
  if (table != ArrayRef(expected) && table != ArrayRef(expected).drop_front())
    return emitOpError("expects tables of shape ")
           << text(ArrayRef(expected).drop_front()) << " or " << text(expected) << ", got "
           << text(table) << " [nn.rotary_c2]";
  if (Type element = typeOf(getInput()).getElementType(), got = typeOf(getCos()).getElementType();
      element != got)
    return emitOpError("expects one element type, got ")
           << element << " and " << got << " [nn.rotary_c3]";
  return success();
}

ShardingRule RotaryOp::getShardingRule() {
  ShardingRule rule;
  ArrayRef<int64_t> shape = typeOf(getInput()).getShape();
  int64_t batch = rule.addFactor("batch", shape[0]), seq = rule.addFactor("seq", shape[1]),
          head = rule.addFactor("head", shape[2]);
  // Each element of a pair depends on both.
  int64_t half = rule.addFactor("half", 2, FactorKind::Replicated),
          pair = rule.addFactor("pair", shape[3] / 2, FactorKind::Replicated);
  TensorFactors input{{batch}, {seq}, {head}, {half, pair}}, table{{seq}, {pair}};
  if (typeOf(getCos()).getRank() == 3)
    table.insert(table.begin(), {batch});
  rule.operands = {input, table, table};
  rule.results = {input};
  rule.linear = true;
  rule.partialOperands = {0};
  return rule;
}

OpCost RotaryOp::getCost() {
  OpCost cost;
  // Two multiplications and an addition per element.
  cost.vectorFlops = 3 * typeOf(getInput()).getNumElements();
  cost.bytesRead = bytes(getInput()) + bytes(getCos()) + bytes(getSin());
  cost.bytesWritten = bytes(getResult());
  // The gradient needs only the tables.
  cost.bytesSaved = bytes(getCos()) + bytes(getSin());
  return cost;
}

bool RotaryOp::isRowOperation() { return false; }

FailureOr<SmallVector<Value>> RotaryOp::decompose(OpBuilder &builder, ValueRange operands) {
  RankedTensorType type = typeOf(operands[0]);
  SmallVector<int64_t> shape(type.getShape().drop_back());
  shape.append({2, type.getShape().back() / 2});
  SmallVector<ReassociationIndices> halves{{0}, {1}, {2}, {3, 4}};
  Value input = tensor::ExpandShapeOp::create(
      builder, getLoc(), RankedTensorType::get(shape, type.getElementType()), operands[0], halves);
  enum : int64_t { batch, seq, head, half, pair };
  GenericBuilder::Dims all = firstDims(5), table{seq, pair};
  if (typeOf(operands[1]).getRank() == 3)
    table.insert(table.begin(), batch);
  Value turned =
      GenericBuilder(builder, getLoc())
          .map("rotary", 5, {{input, all}, {operands[1], table}, {operands[2], table}},
               type.getElementType(), [&](Scalars &s, ValueRange x) {
                 // No permutation of dimensions reaches the other element of the pair.
                 SmallVector<Value> at;
                 for (int64_t d = batch; d <= pair; ++d)
                   at.push_back(linalg::IndexOp::create(s.builder, s.loc, d));
                 Value zero = arith::ConstantIndexOp::create(s.builder, s.loc, 0),
                       one = arith::ConstantIndexOp::create(s.builder, s.loc, 1);
                 Value lower = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::eq,
                                                     at[half], zero);
                 at[half] = arith::SubIOp::create(s.builder, s.loc, one, at[half]);
                 Value other = s.widen(tensor::ExtractOp::create(s.builder, s.loc, input, at));
                 Value turn = s.mul(other, x[2]), keep = s.mul(x[0], x[1]);
                 return s.select(lower, s.sub(keep, turn), s.add(keep, turn));
               });
  return SmallVector<Value>{tensor::CollapseShapeOp::create(builder, getLoc(), turned, halves)};
}
