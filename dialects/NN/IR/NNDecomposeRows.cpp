//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decompositions of row operations, from which kernels are formed.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/DecomposeBuilder.h"
#include "dialects/NN/IR/OpUtils.h"

#include <limits>

using namespace mlir;
using namespace braid::nn;

//===----------------------------------------------------------------------===//
// GenericBuilder
//===----------------------------------------------------------------------===//

Value GenericBuilder::empty(Location loc, ArrayRef<Input> inputs, ArrayRef<int64_t> kept,
                            Type elementType) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : kept) {
    // Any input with the dimension gives its size; a static size is preferred.
    OpFoldResult size;
    for (const Input &input : inputs) {
      const auto *at = llvm::find(input.dims, dim);
      if (at == input.dims.end())
        continue;
      int64_t d = at - input.dims.begin();
      auto type = cast<RankedTensorType>(input.value.getType());
      if (!type.isDynamicDim(d)) {
        size = builder.getIndexAttr(type.getDimSize(d));
        break;
      }
      if (!size)
        size = tensor::DimOp::create(builder, loc, input.value, d).getResult();
    }
    assert(size && "a result dimension that no input has");
    sizes.push_back(size);
  }
  return tensor::EmptyOp::create(builder, loc, sizes, elementType);
}

Value GenericBuilder::build(Location loc, int64_t rank, ArrayRef<Input> inputs,
                            ArrayRef<int64_t> kept, Value init,
                            function_ref<Value(Scalars &, ValueRange)> body) {
  auto mapOf = [&](ArrayRef<int64_t> dims) {
    SmallVector<AffineExpr> exprs;
    for (int64_t dim : dims)
      exprs.push_back(builder.getAffineDimExpr(dim));
    return AffineMap::get(rank, 0, exprs, builder.getContext());
  };
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    values.push_back(input.value);
    maps.push_back(mapOf(input.dims));
  }
  maps.push_back(mapOf(kept));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::reduction);
  for (int64_t dim : kept)
    iterators[dim] = utils::IteratorType::parallel;
  Type elementType = cast<RankedTensorType>(init.getType()).getElementType();
  auto generic = linalg::GenericOp::create(
      builder, loc, init.getType(), values, init, maps, iterators,
      [&](OpBuilder &nested, Location nestedLoc, ValueRange arguments) {
        Scalars scalars(nested, nestedLoc);
        SmallVector<Value> widened;
        for (Value argument : arguments)
          widened.push_back(isa<FloatType>(argument.getType()) && argument != arguments.back()
                                ? scalars.widen(argument)
                                : argument);
        linalg::YieldOp::create(nested, nestedLoc,
                                scalars.narrow(body(scalars, widened), elementType));
      });
  return generic.getResult(0);
}

Value GenericBuilder::map(StringRef name, int64_t rank, ArrayRef<Input> inputs, Type elementType,
                          Body body) {
  Location named = NameLoc::get(builder.getStringAttr(name), loc);
  Dims all = firstDims(rank);
  Value init = empty(named, inputs, all, elementType);
  return build(named, rank, inputs, all, init, [&](Scalars &scalars, ValueRange arguments) {
    return body(scalars, arguments.drop_back());
  });
}

Value GenericBuilder::reduce(StringRef name, int64_t rank, ArrayRef<Input> inputs,
                             ArrayRef<int64_t> kept, double initial, Combine combine) {
  Location named = NameLoc::get(builder.getStringAttr(name), loc);
  Value identity = Scalars(builder, named).constant(initial);
  Value init = linalg::FillOp::create(builder, named, identity,
                                      empty(named, inputs, kept, builder.getF32Type()))
                   .getResult(0);
  return build(named, rank, inputs, kept, init, [&](Scalars &scalars, ValueRange arguments) {
    return combine(scalars, arguments.back(), arguments.drop_back());
  });
}

//===----------------------------------------------------------------------===//
// Operations on rows.
//===----------------------------------------------------------------------===//

/// Elementwise over two operands; the second may lack leading dimensions.
static SmallVector<Value> broadcast(OpBuilder &builder, Location loc, StringRef name,
                                    ValueRange operands, GenericBuilder::Body body) {
  RankedTensorType lhs = typeOf(operands[0]), rhs = typeOf(operands[1]);
  GenericBuilder::Dims all = firstDims(lhs.getRank());
  GenericBuilder::Dims last(ArrayRef(all).take_back(rhs.getRank()));
  return {GenericBuilder(builder, loc)
              .map(name, lhs.getRank(), {{operands[0], all}, {operands[1], last}},
                   lhs.getElementType(), body)};
}

FailureOr<SmallVector<Value>> AddOp::decompose(OpBuilder &builder, ValueRange operands) {
  return broadcast(builder, getLoc(), "sum", operands,
                   [](Scalars &s, ValueRange x) { return s.add(x[0], x[1]); });
}

FailureOr<SmallVector<Value>> MulOp::decompose(OpBuilder &builder, ValueRange operands) {
  return broadcast(builder, getLoc(), "product", operands,
                   [](Scalars &s, ValueRange x) { return s.mul(x[0], x[1]); });
}

namespace {

/// Building blocks of normalizations over the last dimension. A row's result lacks that dimension.
class RowBuilder : GenericBuilder {
public:
  RowBuilder(OpBuilder &builder, Location loc, Value value)
      : GenericBuilder(builder, loc), type(typeOf(value)), f32(builder.getF32Type()),
        rank(type.getRank()), all(firstDims(rank)), kept(firstDims(rank - 1)), value(value) {}

  Value reduce(StringRef name, ArrayRef<Input> inputs, double init, Combine combine) {
    return GenericBuilder::reduce(name, rank, inputs, kept, init, combine);
  }
  Value perRow(StringRef name, Value row, Body body) {
    return map(name, rank - 1, {{row, kept}}, f32, body);
  }
  Value perElement(StringRef name, ArrayRef<Input> inputs, Body body) {
    return map(name, rank, inputs, f32, body);
  }
  SmallVector<Value> result(StringRef name, ArrayRef<Input> inputs, Body body) {
    return {map(name, rank, inputs, type.getElementType(), body)};
  }
  /// 1 / sqrt(sum / hidden + epsilon)
  Value reciprocalRoot(StringRef name, Value sum, const APFloat &epsilon) {
    return perRow(name, sum, [&](Scalars &s, ValueRange x) {
      Value mean = s.div(x[0], s.constant(hidden()));
      return s.unary<math::RsqrtOp>(s.add(mean, s.constant(epsilon.convertToDouble())));
    });
  }
  double hidden() { return static_cast<double>(type.getShape().back()); }

  Input input() { return element(value); }
  Input element(Value tensor) { return {tensor, all}; }
  Input row(Value tensor) { return {tensor, kept}; }
  Input column(Value tensor) { return {tensor, {rank - 1}}; }

private:
  RankedTensorType type;
  Type f32;
  int64_t rank;
  Dims all, kept;
  Value value;
};

} // namespace

FailureOr<SmallVector<Value>> LayerNormOp::decompose(OpBuilder &builder, ValueRange operands) {
  RowBuilder rows(builder, getLoc(), operands[0]);
  Value sum = rows.reduce("sum", rows.input(), 0.0,
                          [](Scalars &s, Value acc, ValueRange x) { return s.add(acc, x[0]); });
  Value mean = rows.perRow("mean", sum, [&](Scalars &s, ValueRange x) {
    return s.div(x[0], s.constant(rows.hidden()));
  });
  // About the mean rather than as E[x^2] - E[x]^2, which cancels when the mean is large.
  Value squares = rows.reduce("squares", {rows.input(), rows.row(mean)}, 0.0,
                              [](Scalars &s, Value acc, ValueRange x) {
                                Value centered = s.sub(x[0], x[1]);
                                return s.add(acc, s.mul(centered, centered));
                              });
  Value rstd = rows.reciprocalRoot("rstd", squares, getEpsilon());
  return rows.result("normalized",
                     {rows.input(), rows.row(mean), rows.row(rstd), rows.column(operands[1]),
                      rows.column(operands[2])},
                     [](Scalars &s, ValueRange x) {
                       Value normalized = s.mul(s.sub(x[0], x[1]), x[2]);
                       return s.add(s.mul(normalized, x[3]), x[4]);
                     });
}

FailureOr<SmallVector<Value>> RmsNormOp::decompose(OpBuilder &builder, ValueRange operands) {
  RowBuilder rows(builder, getLoc(), operands[0]);
  Value squares =
      rows.reduce("squares", rows.input(), 0.0, [](Scalars &s, Value acc, ValueRange x) {
        return s.add(acc, s.mul(x[0], x[0]));
      });
  Value rrms = rows.reciprocalRoot("rrms", squares, getEpsilon());
  return rows.result("normalized", {rows.input(), rows.row(rrms), rows.column(operands[1])},
                     [](Scalars &s, ValueRange x) { return s.mul(s.mul(x[0], x[1]), x[2]); });
}

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &builder, ValueRange operands) {
  RowBuilder rows(builder, getLoc(), operands[0]);
  Value maximum = rows.reduce("row_max", rows.input(), -std::numeric_limits<double>::infinity(),
                              [](Scalars &s, Value acc, ValueRange x) { return s.max(acc, x[0]); });
  Value weights =
      rows.perElement("weights", {rows.input(), rows.row(maximum)}, [](Scalars &s, ValueRange x) {
        return s.unary<math::ExpOp>(s.sub(x[0], x[1]));
      });
  Value total = rows.reduce("total", rows.element(weights), 0.0,
                            [](Scalars &s, Value acc, ValueRange x) { return s.add(acc, x[0]); });
  return rows.result("softmax", {rows.element(weights), rows.row(total)},
                     [](Scalars &s, ValueRange x) { return s.div(x[0], x[1]); });
}
