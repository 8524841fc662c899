//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decompositions of operations that targets implement themselves: matmuls, attention, look-ups and
// views. They define these operations in terms of linalg and are never faster.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/DecomposeBuilder.h"
#include "dialects/NN/IR/OpUtils.h"

#include <limits>

using namespace mlir;
using namespace braid::nn;

bool EmbeddingOp::isRowOperation() { return false; }
bool PositionIdsOp::isRowOperation() { return false; }
bool LinearOp::isRowOperation() { return false; }

AddOp LinearOp::getBiasAddition() {
  if (!getResult().hasOneUse())
    return {};
  auto add = dyn_cast<AddOp>(*getResult().user_begin());
  if (!add || add->getBlock() != (*this)->getBlock() || add.getLhs() != getResult() ||
      typeOf(add.getRhs()).getRank() != 1)
    return {};
  Operation *bias = add.getRhs().getDefiningOp();
  return bias && bias->getBlock() == (*this)->getBlock() && !bias->isBeforeInBlock(*this) ? AddOp()
                                                                                          : add;
}

/// An addition that the matmul kernel performs is not a row operation.
bool AddOp::isRowOperation() {
  auto matmul = getLhs().getDefiningOp<LinearOp>();
  return !matmul || matmul.getBiasAddition() != *this;
}

bool SplitHeadsOp::isRowOperation() { return false; }
bool MergeHeadsOp::isRowOperation() { return false; }
bool AttentionOp::isRowOperation() { return false; }

static RankedTensorType typeWith(Value like, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, typeOf(like).getElementType());
}

FailureOr<SmallVector<Value>> EmbeddingOp::decompose(OpBuilder &builder, ValueRange operands) {
  if (getGroup()) // linalg cannot express which rows a rank has
    return failure();
  int64_t rank = typeOf(operands[0]).getRank();
  Type elementType = typeOf(operands[1]).getElementType();
  Value table = operands[1];
  // An indexing map cannot depend on a value, so the body reads the table.
  Location loc = NameLoc::get(builder.getStringAttr("rows"), getLoc());
  SmallVector<OpFoldResult> sizes;
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(tensor::getMixedSize(builder, loc, operands[0], d));
  sizes.push_back(tensor::getMixedSize(builder, loc, table, 1));
  Value init = tensor::EmptyOp::create(builder, loc, sizes, elementType);
  AffineMap all = builder.getMultiDimIdentityMap(rank + 1);
  SmallVector<utils::IteratorType> iterators(rank + 1, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, init.getType(), operands[0], init, {all.dropResult(rank), all}, iterators,
      [&](OpBuilder &nested, Location nestedLoc, ValueRange arguments) {
        Value row =
            arith::IndexCastOp::create(nested, nestedLoc, nested.getIndexType(), arguments[0]);
        Value column = linalg::IndexOp::create(nested, nestedLoc, rank);
        Value element =
            tensor::ExtractOp::create(nested, nestedLoc, table, ValueRange{row, column});
        linalg::YieldOp::create(nested, nestedLoc, element);
      });
  return SmallVector<Value>{generic.getResult(0)};
}

FailureOr<SmallVector<Value>> PositionIdsOp::decompose(OpBuilder &builder, ValueRange operands) {
  RankedTensorType type = typeOf(operands[0]);
  auto element = cast<IntegerType>(type.getElementType());
  auto constant = [&](OpBuilder &at, Location loc, int64_t value) -> Value {
    return arith::ConstantOp::create(at, loc, at.getIntegerAttr(element, value));
  };
  auto isToken = [&](OpBuilder &at, Location loc, Value id) -> Value {
    return arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ne, id,
                                 constant(at, loc, getPadding()));
  };
  auto parallel = utils::IteratorType::parallel, reduction = utils::IteratorType::reduction;
  enum : unsigned { batch, position, other };
  Location loc = NameLoc::get(builder.getStringAttr("tokens"), getLoc());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  Value zeros = linalg::FillOp::create(builder, loc, constant(builder, loc, 0), empty).getResult(0);
  AffineMap all = builder.getMultiDimIdentityMap(3);
  auto tokens = linalg::GenericOp::create(
      builder, loc, type, operands[0], zeros,
      {all.getSubMap({batch, other}), all.getSubMap({batch, position})},
      {parallel, parallel, reduction}, [&](OpBuilder &at, Location loc, ValueRange x) {
        Value before = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sle,
                                             linalg::IndexOp::create(at, loc, other),
                                             linalg::IndexOp::create(at, loc, position));
        Value counts = arith::AndIOp::create(at, loc, before, isToken(at, loc, x[0]));
        Value one =
            arith::SelectOp::create(at, loc, counts, constant(at, loc, 1), constant(at, loc, 0));
        linalg::YieldOp::create(at, loc, arith::AddIOp::create(at, loc, x[1], one).getResult());
      });
  loc = NameLoc::get(builder.getStringAttr("positions"), getLoc());
  AffineMap both = builder.getMultiDimIdentityMap(2);
  auto positions = linalg::GenericOp::create(
      builder, loc, type, {operands[0], tokens.getResult(0)}, empty, {both, both, both},
      {parallel, parallel}, [&](OpBuilder &at, Location loc, ValueRange x) {
        Value padding = constant(at, loc, getPadding());
        Value counted = arith::AddIOp::create(at, loc, x[1], padding);
        linalg::YieldOp::create(
            at, loc,
            arith::SelectOp::create(at, loc, isToken(at, loc, x[0]), counted, padding).getResult());
      });
  return SmallVector<Value>{positions.getResult(0)};
}

FailureOr<SmallVector<Value>> LinearOp::decompose(OpBuilder &builder, ValueRange operands) {
  GenericBuilder generic(builder, getLoc());
  Type elementType = typeOf(operands[0]).getElementType();
  // (rows..., out, in)
  int64_t rows = typeOf(operands[0]).getRank() - 1, out = rows, in = rows + 1;
  GenericBuilder::Dims inputDims = firstDims(rows), result = firstDims(rows + 1);
  inputDims.push_back(in);
  Value matmul = generic.reduce(
      "matmul", rows + 2, {{operands[0], inputDims}, {operands[1], {out, in}}}, result, 0.0,
      [](Scalars &s, Value acc, ValueRange x) { return s.add(acc, s.mul(x[0], x[1])); });
  if (elementType.isF32())
    return SmallVector<Value>{matmul};
  return SmallVector<Value>{generic.map("rounded", rows + 1, {{matmul, result}}, elementType,
                                        [](Scalars &, ValueRange x) { return x[0]; })};
}

/// [[0], [1], [2, 3]]
static const SmallVector<ReassociationIndices> kHeads = {{0}, {1}, {2, 3}};

FailureOr<SmallVector<Value>> SplitHeadsOp::decompose(OpBuilder &builder, ValueRange operands) {
  SmallVector<int64_t> shape(typeOf(operands[0]).getShape().take_front(2));
  llvm::append_range(shape, getType().getShape().take_back(2));
  return SmallVector<Value>{tensor::ExpandShapeOp::create(
      builder, getLoc(), typeWith(operands[0], shape), operands[0], kHeads)};
}

FailureOr<SmallVector<Value>> MergeHeadsOp::decompose(OpBuilder &builder, ValueRange operands) {
  return SmallVector<Value>{
      tensor::CollapseShapeOp::create(builder, getLoc(), operands[0], kHeads)};
}

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder &builder, ValueRange operands) {
  // The segments of `operands` are this operation's.
  ValueRange rest = operands.drop_front(3);
  auto take = [&](bool present) {
    Value value = present ? rest.front() : Value();
    rest = rest.drop_front(present);
    return value;
  };
  Value mask = take(static_cast<bool>(getMask())),
        length = take(static_cast<bool>(getValidLength())),
        offset = take(static_cast<bool>(getPositionOffset()));
  GenericBuilder generic(builder, getLoc());
  Type f32 = builder.getF32Type();
  double infinity = std::numeric_limits<double>::infinity();

  // Query heads as (key head, member of its group), so that maps stay projected permutations.
  int64_t keyHeads = getKey().getType().getDimSize(2),
          group = getQuery().getType().getDimSize(2) / keyHeads;
  ArrayRef<int64_t> queryShape = typeOf(operands[0]).getShape();
  SmallVector<ReassociationIndices> grouping = {{0}, {1}, {2, 3}, {4}};
  Value query = tensor::ExpandShapeOp::create(
      builder, getLoc(),
      typeWith(operands[0], {queryShape[0], queryShape[1], keyHeads, group, queryShape[3]}),
      operands[0], grouping);

  // Scores over (batch, key head, member, query, key).
  enum : int64_t { batch, head, member, q, k, inner };
  GenericBuilder::Dims pairs = firstDims(5), rows = firstDims(4);
  Value dots = generic.reduce(
      "dots", 6, {{query, {batch, q, head, member, inner}}, {operands[1], {batch, k, head, inner}}},
      pairs, 0.0,
      [](Scalars &s, Value acc, ValueRange x) { return s.add(acc, s.mul(x[0], x[1])); });
  SmallVector<GenericBuilder::Input> inputs{{dots, pairs}};
  if (mask)
    inputs.push_back({mask, {batch, k}});
  if (length)
    inputs.push_back({length, {batch}});
  if (offset)
    inputs.push_back({offset, {batch}});
  Value scores = generic.map("scores", 5, inputs, f32, [&](Scalars &s, ValueRange x) {
    auto index = [&](int64_t dim) -> Value {
      return linalg::IndexOp::create(s.builder, s.loc, dim);
    };
    auto toIndex = [&](Value id) -> Value {
      return arith::IndexCastOp::create(s.builder, s.loc, s.builder.getIndexType(), id);
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) -> Value {
      return arith::CmpIOp::create(s.builder, s.loc, predicate, a, b);
    };
    SmallVector<Value> conditions;
    size_t next = 1;
    if (mask) {
      Value bit = x[next++];
      Value zero =
          arith::ConstantOp::create(s.builder, s.loc, s.builder.getIntegerAttr(bit.getType(), 0));
      conditions.push_back(compare(arith::CmpIPredicate::ne, bit, zero));
    }
    if (length)
      conditions.push_back(compare(arith::CmpIPredicate::slt, index(k), toIndex(x[next++])));
    if (getCausal()) {
      Value last = index(q);
      if (offset)
        last = arith::AddIOp::create(s.builder, s.loc, last, toIndex(x[next++]));
      conditions.push_back(compare(arith::CmpIPredicate::sle, index(k), last));
    }
    Value score = s.mul(x[0], s.constant(getScale().convertToDouble()));
    if (conditions.empty())
      return score;
    Value allowed = conditions.front();
    for (Value condition : ArrayRef(conditions).drop_front())
      allowed = arith::AndIOp::create(s.builder, s.loc, allowed, condition);
    return s.select(allowed, score, s.constant(-infinity));
  });

  // Softmax, with the division after the matmul with the values. In a row without any allowed key
  // the maximum is -inf, every weight exp(-inf) = 0, and the sum 0: such rows give zeros.
  Value maximum =
      generic.reduce("row_max", 5, {{scores, pairs}}, rows, -infinity,
                     [](Scalars &s, Value acc, ValueRange x) { return s.max(acc, x[0]); });
  Value weights = generic.map(
      "weights", 5, {{scores, pairs}, {maximum, rows}}, f32, [&](Scalars &s, ValueRange x) {
        // -inf - -inf is NaN.
        Value shift = s.select(s.less(s.constant(-infinity), x[1]), x[1], s.constant(0.0));
        return s.unary<math::ExpOp>(s.sub(x[0], shift));
      });
  Value total =
      generic.reduce("total", 5, {{weights, pairs}}, rows, 0.0,
                     [](Scalars &s, Value acc, ValueRange x) { return s.add(acc, x[0]); });

  // The result over (batch, query, key head, member, value's dimension).
  enum : int64_t { rBatch, rQ, rHead, rMember, rDim, rKey };
  GenericBuilder::Dims resultDims = firstDims(5);
  Value matmul = generic.reduce(
      "matmul", 6,
      {{weights, {rBatch, rHead, rMember, rQ, rKey}}, {operands[2], {rBatch, rKey, rHead, rDim}}},
      resultDims, 0.0,
      [](Scalars &s, Value acc, ValueRange x) { return s.add(acc, s.mul(x[0], x[1])); });
  Value average =
      generic.map("average", 5, {{matmul, resultDims}, {total, {rBatch, rHead, rMember, rQ}}},
                  typeOf(operands[0]).getElementType(), [](Scalars &s, ValueRange x) {
                    Value zero = s.constant(0.0);
                    return s.select(s.less(zero, x[1]), s.div(x[0], x[1]), zero);
                  });
  SmallVector<Value> results{tensor::CollapseShapeOp::create(builder, getLoc(), average, grouping)};
  if (!getLogSum())
    return results;
  // Over (batch, query, key head, member).
  GenericBuilder::Dims sums{rBatch, rHead, rMember, rQ};
  Value logSum = generic.map(
      "log_sum", 4, {{maximum, sums}, {total, sums}}, f32, [&](Scalars &s, ValueRange x) {
        Value sum = s.add(x[0], s.unary<math::LogOp>(x[1]));
        return s.select(s.less(s.constant(0.0), x[1]), sum, s.constant(-infinity));
      });
  results.push_back(tensor::CollapseShapeOp::create(
      builder, getLoc(), logSum, SmallVector<ReassociationIndices>{{0}, {1}, {2, 3}}));
  return results;
}
