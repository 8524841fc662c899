//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RowEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace braid::cpu;
using braid::rows::kColumn;

/// Row buffers start on a cache line, so that none of their vectors crosses one.
static constexpr int64_t kBufferAlignment = 64;

RowEmitter::RowEmitter(OpBuilder &builder, Location loc, const RowSchedule &schedule, Shape shape,
                       ValueRange operands, ValueRange results)
    : builder(builder), loc(loc), schedule(schedule), shape(shape), operands(operands),
      results(results) {
  if (!schedule.scalarReason.empty())
    this->shape.width = 1;
  // A vector need not be wider than the row.
  while (this->shape.width / 2 >= std::max<int64_t>(schedule.numColumns, 1))
    this->shape.width /= 2;
}

Type RowEmitter::typed(Type element) const {
  return vectors() ? Type(VectorType::get({shape.width}, element)) : element;
}

Value RowEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value RowEmitter::splat(Value scalar) {
  return vectors() ? vector::BroadcastOp::create(builder, loc, typed(scalar.getType()), scalar)
                   : scalar;
}

void RowEmitter::emit() {
  for (NodeValue value : schedule.kept) {
    Type element = getElementTypeOrSelf(value.node->op->getResult(value.result).getType());
    auto type = MemRefType::get({schedule.numColumns}, element);
    buffers[{value.node, value.result}] =
        memref::AllocaOp::create(builder, loc, type, builder.getI64IntegerAttr(kBufferAlignment));
  }
  // Every result has all row dimensions, so the first one has the extents of the loops.
  OpBuilder::InsertionGuard guard(builder);
  for (unsigned dim = 0; dim < schedule.numRowDims; ++dim) {
    Value zero = index(0), one = index(1);
    Value extent = memref::DimOp::create(builder, loc, results.front(), dim);
    auto loop = scf::ForOp::create(builder, loc, zero, extent, one);
    rows.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  emitRow();
}

void RowEmitter::emitRow() {
  for (const Sweep &sweep : schedule.sweeps)
    emitSweep(sweep);
  for (auto [number, result] : llvm::enumerate(schedule.results))
    if (!result.value.node->varies)
      store(scalarValue(result.value), results[number], result.position, nullptr);
}

void RowEmitter::emitSweep(const Sweep &sweep) {
  // Values that do not vary along the column are computed once, before the loop.
  splats.clear();
  auto hoist = [&](ArrayRef<NodeValue> arguments) {
    for (NodeValue argument : arguments)
      if (argument.node && !argument.node->varies)
        splats.try_emplace({argument.node, argument.result}, splat(scalarValue(argument)));
  };
  for (const Sweep::Step &step : sweep.steps)
    if (step.action == Sweep::Action::Compute)
      hoist(step.value.node->arguments);

  SmallVector<Value> identities;
  for (Node *reduction : sweep.reductions) {
    hoist(ArrayRef(reduction->arguments).drop_back());
    Value init = scalarValue(reduction->arguments.back());
    identities.push_back(splat(init));
  }

  int64_t width = shape.width, unroll = sweep.reductions.empty() ? 1 : shape.accumulators;
  int64_t columns = schedule.numColumns;
  unroll = std::min(unroll, std::max<int64_t>(columns / width, 1));
  int64_t step = width * unroll;
  unsigned numReductions = sweep.reductions.size();
  SmallVector<Value> accumulators;
  for (int64_t i = 0; i < unroll; ++i)
    llvm::append_range(accumulators, identities);
  auto part = [&](MutableArrayRef<Value> all, int64_t i) {
    return all.slice(i * numReductions, numReductions);
  };

  int64_t looped = columns / step * step;
  if (looped) {
    auto loop =
        scf::ForOp::create(builder, loc, index(0), index(looped), index(step), accumulators);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> carried(loop.getRegionIterArgs());
    for (int64_t i = 0; i < unroll; ++i) {
      Value column = loop.getInductionVar();
      if (i)
        column = arith::AddIOp::create(builder, loc, column, index(i * width));
      emitBlock(sweep, {column, nullptr}, part(carried, i));
    }
    if (numReductions)
      scf::YieldOp::create(builder, loc, carried);
    accumulators.assign(loop.getResults().begin(), loop.getResults().end());
  }
  int64_t column = looped;
  for (int64_t i = 0; column + width <= columns; ++i, column += width)
    emitBlock(sweep, {index(column), nullptr}, part(accumulators, i));
  if (column < columns) {
    auto type = VectorType::get({width}, builder.getI1Type());
    Value mask =
        vector::ConstantMaskOp::create(builder, loc, type, ArrayRef<int64_t>{columns - column});
    emitBlock(sweep, {index(column), mask}, part(accumulators, unroll - 1));
  }

  for (auto [number, reduction] : llvm::enumerate(sweep.reductions)) {
    SmallVector<Value> partial;
    for (int64_t i = 0; i < unroll; ++i)
      partial.push_back(accumulators[i * numReductions + number]);
    while (partial.size() > 1) {
      SmallVector<Value> halved;
      for (size_t i = 0; i + 1 < partial.size(); i += 2)
        halved.push_back(combine(reduction->op, partial[i], partial[i + 1]));
      if (partial.size() % 2)
        halved.push_back(partial.back());
      partial = std::move(halved);
    }
    scalars[{reduction, 0}] = reduceLanes(reduction->op, partial.front());
  }
}

void RowEmitter::emitBlock(const Sweep &sweep, Block block, MutableArrayRef<Value> accumulators) {
  Values values;
  auto value = [&](NodeValue at) {
    return at.node->varies ? values.lookup({at.node, at.result})
                           : splats.lookup({at.node, at.result});
  };
  for (const Sweep::Step &step : sweep.steps) {
    NodeValue at = step.value;
    Node *node = at.node;
    switch (step.action) {
    case Sweep::Action::Load: {
      if (node->kind == Node::Kind::Splat) {
        values[{node, 0}] = splat(emitSplat(*node));
        break;
      }
      unsigned number = cast<BlockArgument>(node->value).getArgNumber();
      Type element = getElementTypeOrSelf(node->value.getType());
      values[{node, 0}] = load(operands[number], element, node->position, &block);
      break;
    }
    case Sweep::Action::Reload: {
      Type element = getElementTypeOrSelf(node->op->getResult(at.result).getType());
      if (Value buffer = buffers.lookup({node, at.result})) {
        values[{node, at.result}] = load(buffer, element, {kColumn}, &block);
        break;
      }
      auto found =
          llvm::find_if(schedule.reread, [at](const auto &pair) { return pair.first == at; });
      values[{node, at.result}] =
          load(results[found->second], element, schedule.results[found->second].position, &block);
      break;
    }
    case Sweep::Action::Compute: {
      SmallVector<Value> arguments;
      for (NodeValue argument : node->arguments)
        arguments.push_back(argument.node ? value(argument) : Value());
      for (auto [result, yielded] : llvm::enumerate(emitRegion(*node, arguments, &block)))
        values[{node, result}] = yielded;
      break;
    }
    }
  }
  for (auto [number, reduction] : llvm::enumerate(sweep.reductions)) {
    SmallVector<Value> arguments;
    for (NodeValue argument : ArrayRef(reduction->arguments).drop_back())
      arguments.push_back(argument.node ? value(argument) : Value());
    arguments.push_back(accumulators[number]);
    Value next = emitRegion(*reduction, arguments, &block).front();
    if (block.mask)
      next = arith::SelectOp::create(builder, loc, block.mask, next, accumulators[number]);
    accumulators[number] = next;
  }
  // Stores come last: a result may alias an operand of the same elements.
  for (const Sweep::Step &step : sweep.steps) {
    if (step.action != Sweep::Action::Compute)
      continue;
    Node *node = step.value.node;
    for (unsigned result = 0, end = node->op->getNumResults(); result != end; ++result)
      if (Value buffer = buffers.lookup({node, result}))
        store(values[{node, result}], buffer, {kColumn}, &block);
  }
  for (unsigned output : sweep.outputs)
    store(value(schedule.results[output].value), results[output], schedule.results[output].position,
          &block);
}

Value RowEmitter::scalarValue(NodeValue at) {
  if (Value known = scalars.lookup({at.node, at.result}))
    return known;
  Node *node = at.node;
  Value value;
  switch (node->kind) {
  case Node::Kind::Operand: {
    unsigned number = cast<BlockArgument>(node->value).getArgNumber();
    value = load(operands[number], getElementTypeOrSelf(node->value.getType()), node->position,
                 nullptr);
    break;
  }
  case Node::Kind::Splat:
    value = emitSplat(*node);
    break;
  case Node::Kind::Map: {
    SmallVector<Value> arguments;
    for (NodeValue argument : node->arguments)
      arguments.push_back(argument.node ? scalarValue(argument) : Value());
    for (auto [result, yielded] : llvm::enumerate(emitRegion(*node, arguments, nullptr)))
      scalars[{node, result}] = yielded;
    return scalars[{node, at.result}];
  }
  case Node::Kind::Reduce:
    llvm_unreachable("a reduction is known after its sweep");
  }
  return scalars[{node, 0}] = value;
}

Value RowEmitter::emitSplat(Node &node) {
  Attribute attribute;
  if (auto fill = node.value.getDefiningOp<linalg::FillOp>())
    matchPattern(fill.value(), m_Constant(&attribute));
  else if (DenseElementsAttr elements; matchPattern(node.value, m_Constant(&elements)))
    attribute = elements.getSplatValue<Attribute>();
  return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(attribute));
}

SmallVector<Value> RowEmitter::indices(ArrayRef<Position> position, const Block *block) {
  SmallVector<Value> values;
  for (Position place : position)
    values.push_back(place == kColumn ? block->column : rows[place]);
  return values;
}

Value RowEmitter::load(Value memref, Type element, ArrayRef<Position> position,
                       const Block *block) {
  SmallVector<Value> at = indices(position, block);
  if (!block || !vectors())
    return memref::LoadOp::create(builder, loc, memref, at);
  auto type = cast<VectorType>(typed(element));
  if (!block->mask)
    return vector::LoadOp::create(builder, loc, type, memref, at);
  Value zeros = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, memref, at, block->mask, zeros);
}

void RowEmitter::store(Value value, Value memref, ArrayRef<Position> position, const Block *block) {
  SmallVector<Value> at = indices(position, block);
  if (!block || !vectors())
    memref::StoreOp::create(builder, loc, value, memref, at);
  else if (!block->mask)
    vector::StoreOp::create(builder, loc, value, memref, at);
  else
    vector::MaskedStoreOp::create(builder, loc, memref, at, block->mask, value);
}

Value RowEmitter::emitConstant(Value constant, const Block *block) {
  Attribute attribute;
  matchPattern(constant, m_Constant(&attribute));
  Value scalar = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(attribute));
  return block ? splat(scalar) : scalar;
}

Value RowEmitter::emitIndex(Position place, const Block *block) {
  Value start = place == kColumn ? block->column : rows[place];
  if (!block || !vectors())
    return start;
  Value value = splat(start);
  if (place != kColumn)
    return value;
  Value lanes = vector::StepOp::create(builder, loc, cast<VectorType>(value.getType()));
  return arith::AddIOp::create(builder, loc, value, lanes);
}

SmallVector<Value> RowEmitter::emitRegion(Node &node, ValueRange arguments, const Block *block) {
  mlir::Block *body = node.op.getBody();
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(body->getArguments(), arguments))
    if (to)
      mapping.map(from, to);
  // Canonicalization may move constants out of the region.
  auto mapped = [&](Value value) {
    if (!mapping.contains(value))
      mapping.map(value, emitConstant(value, block));
    return mapping.lookup(value);
  };
  for (Operation &op : body->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (auto at = dyn_cast<linalg::IndexOp>(op)) {
      mapping.map(at.getResult(), emitIndex(node.position[at.getDim()], block));
      continue;
    }
    SmallVector<Value> from = llvm::map_to_vector(op.getOperands(), mapped);
    SmallVector<Type> types = llvm::map_to_vector(
        op.getResultTypes(), [&](Type type) { return block ? typed(type) : type; });
    Operation *made =
        builder.create(op.getLoc(), op.getName().getIdentifier(), from, types, op.getAttrs());
    mapping.map(op.getResults(), made->getResults());
  }
  return llvm::map_to_vector(body->getTerminator()->getOperands(), mapped);
}

Value RowEmitter::combine(linalg::GenericOp reduction, Value lhs, Value rhs) {
  Operation *combiner = reduction.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  return builder
      .create(combiner->getLoc(), combiner->getName().getIdentifier(), {lhs, rhs}, {lhs.getType()},
              combiner->getAttrs())
      ->getResult(0);
}

Value RowEmitter::reduceLanes(linalg::GenericOp reduction, Value vector) {
  if (!vectors())
    return vector;
  for (int64_t lanes = shape.width / 2; lanes; lanes /= 2) {
    auto slice = [&](int64_t offset) {
      return vector::ExtractStridedSliceOp::create(builder, loc, vector, ArrayRef<int64_t>{offset},
                                                   ArrayRef<int64_t>{lanes}, ArrayRef<int64_t>{1});
    };
    Value low = slice(0), high = slice(lanes);
    vector = combine(reduction, low, high);
  }
  return vector::ExtractOp::create(builder, loc, vector, 0);
}
