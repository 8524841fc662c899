//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Target/Rows/RowSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace braid::rows;

namespace {
/// A value that costs less than this is recomputed in a later sweep rather than stored and loaded.
constexpr unsigned kCheapCost = 6;

unsigned costOf(Operation &op) {
  if (isa<math::MathDialect>(op.getDialect()))
    return isa<math::AbsFOp, math::FmaOp, math::CopySignOp>(op) ? 1 : 12;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp>(op))
    return 4;
  return op.hasTrait<OpTrait::ConstantLike>() || op.hasTrait<OpTrait::IsTerminator>() ? 0 : 1;
}
} // namespace

void RowSchedule::noteScalar(Location loc, const Twine &reason) {
  if (!scalarReason.empty())
    return;
  scalarReason = reason.str();
  scalarLoc = loc;
}

LogicalResult RowSchedule::setColumns(int64_t extent, Operation *user) {
  if (ShapedType::isDynamic(extent))
    return user->emitOpError("expects a static number of columns, got a dynamic one");
  if (numColumns && numColumns != extent)
    return user->emitOpError() << "expects " << numColumns
                               << " columns, as other ops of the kernel have, got " << extent;
  numColumns = extent;
  return success();
}

FailureOr<RowSchedule> RowSchedule::build(Block &body, ValueRange values, unsigned numRowDims,
                                          Keep keep) {
  Operation *parent = body.getParentOp();
  RowSchedule schedule(parent->getLoc());
  schedule.keep = keep;
  schedule.numRowDims = numRowDims;
  for (auto [number, value] : llvm::enumerate(values)) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<Position> position;
    for (int64_t dim = 0, rank = type.getRank(); dim < rank; ++dim)
      position.push_back(dim < numRowDims ? Position(dim) : kColumn);
    FailureOr<NodeValue> node = schedule.node(value, position, parent);
    if (failed(node))
      return failure();
    schedule.results.push_back({*node, position});
  }
  schedule.plan();
  return schedule;
}

FailureOr<NodeValue> RowSchedule::node(Value value, ArrayRef<Position> position, Operation *user) {
  if (auto result = dyn_cast<OpResult>(value))
    if (isa<linalg::GenericOp>(result.getOwner()))
      return genericNode(result, position);

  auto found = llvm::find_if(nodes, [&](const std::unique_ptr<Node> &node) {
    return !node->op && node->value == value && ArrayRef<Position>(node->position) == position;
  });
  if (found != nodes.end())
    return NodeValue{found->get(), 0};

  auto node = std::make_unique<Node>();
  node->value = value;
  node->position.assign(position.begin(), position.end());
  if (isa<BlockArgument>(value)) {
    node->kind = Node::Kind::Operand;
    node->varies = llvm::is_contained(position, kColumn);
    node->cost = 1;
    auto type = cast<RankedTensorType>(value.getType());
    for (auto [dim, place] : llvm::enumerate(position))
      if (place == kColumn && failed(setColumns(type.getDimSize(dim), user)))
        return failure();
  } else {
    node->kind = Node::Kind::Splat;
    Operation *definition = value.getDefiningOp();
    if (auto fill = dyn_cast<linalg::FillOp>(definition)) {
      if (!matchPattern(fill.value(), m_Constant()))
        return fill.emitOpError("expects a constant value");
    } else if (DenseElementsAttr splat;
               !matchPattern(value, m_Constant(&splat)) || !splat.isSplat()) {
      return user->emitOpError() << "expects operands made by linalg.generic, linalg.fill or a "
                                    "splat constant, got '"
                                 << definition->getName() << "'";
    }
  }
  nodes.push_back(std::move(node));
  return NodeValue{nodes.back().get(), 0};
}

FailureOr<NodeValue> RowSchedule::genericNode(OpResult value, ArrayRef<Position> position) {
  auto op = cast<linalg::GenericOp>(value.getOwner());
  AffineMap map = op.getIndexingMapMatchingResult(value);

  // Maps the result's positions to the loops' positions. The reduction, which no result names, runs
  // along the column.
  SmallVector<Position> loops(op.getNumLoops(), kColumn);
  bool reduces = op.getNumReductionLoops() != 0;
  if (map.getNumResults() != op.getNumParallelLoops())
    return op.emitOpError("expects a result for each point of its parallel loops");
  for (unsigned dim = 0; dim < position.size(); ++dim)
    loops[map.getDimPosition(dim)] = position[dim];

  auto found = llvm::find_if(nodes, [&](const std::unique_ptr<Node> &node) {
    return node->op == op && node->position == loops;
  });
  if (found != nodes.end())
    return NodeValue{found->get(), value.getResultNumber()};

  auto node = std::make_unique<Node>();
  node->kind = reduces ? Node::Kind::Reduce : Node::Kind::Map;
  node->op = op;
  node->position = loops;
  node->varies = !reduces && llvm::is_contained(loops, kColumn);
  if (node->varies || reduces) {
    int64_t loop = llvm::find(loops, kColumn) - loops.begin();
    if (failed(setColumns(op.getStaticLoopRanges()[loop], op)))
      return failure();
  }
  if (failed(checkRegion(*node)))
    return failure();

  for (Operation &inner : op.getBody()->getOperations())
    node->cost += costOf(inner);
  for (OpOperand &operand : op->getOpOperands()) {
    bool init = op.isDpsInit(&operand);
    if (!op.payloadUsesValueFromOperand(&operand) && !(init && reduces)) {
      node->arguments.push_back({});
      continue;
    }
    AffineMap read = op.getMatchingIndexingMap(&operand);
    SmallVector<Position> place;
    for (unsigned dim = 0; dim < read.getNumResults(); ++dim)
      place.push_back(loops[read.getDimPosition(dim)]);
    FailureOr<NodeValue> argument = this->node(operand.get(), place, op);
    if (failed(argument))
      return failure();
    node->level = std::max(node->level, argument->node->level);
    if (argument->node->varies)
      node->cost += argument->node->cost;
    node->arguments.push_back(*argument);
  }
  if (reduces)
    ++node->level;
  nodes.push_back(std::move(node));
  return NodeValue{nodes.back().get(), value.getResultNumber()};
}

LogicalResult RowSchedule::checkRegion(Node &node) {
  Block *body = node.op.getBody();
  for (Operation &inner : *body) {
    // A launch may cover any range of the outermost rows and does not pass its begin to the kernel.
    if (auto index = dyn_cast<linalg::IndexOp>(inner); index && node.position[index.getDim()] == 0)
      return index.emitOpError(
          "of the outermost row dimension is not known: a launch may be any range of rows");
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != body && !matchPattern(operand, m_Constant()))
        return node.op.emitOpError("expects its region to use nothing from outside but constants");
    if (!inner.hasTrait<OpTrait::IsTerminator>() && !inner.hasTrait<OpTrait::ConstantLike>() &&
        !isa<linalg::IndexOp>(inner) && !OpTrait::hasElementwiseMappableTraits(&inner))
      noteScalar(inner.getLoc(), "'" + inner.getName().getStringRef() + "' has no vector form");
  }
  return success();
}

void RowSchedule::plan() {
  unsigned numSweeps = 0;
  for (std::unique_ptr<Node> &node : nodes)
    if (node->kind == Node::Kind::Reduce)
      numSweeps = std::max(numSweeps, node->level);
  for (Result &result : results)
    if (result.value.node->varies)
      numSweeps = std::max(numSweeps, result.value.node->level + 1);
  sweeps.resize(numSweeps);

  for (std::unique_ptr<Node> &node : nodes)
    if (node->kind == Node::Kind::Reduce)
      sweeps[node->level - 1].reductions.push_back(node.get());
  for (auto [number, result] : llvm::enumerate(results))
    if (result.value.node->varies)
      sweeps[result.value.node->level].outputs.push_back(number);

  for (auto [number, sweep] : llvm::enumerate(sweeps)) {
    for (Node *reduction : sweep.reductions)
      for (NodeValue argument : reduction->arguments)
        if (argument.node)
          visit(argument, number);
    for (unsigned output : sweep.outputs)
      visit(results[output].value, number);
  }
  if (numColumns == 0)
    noteScalar(scalarLoc, "nothing varies along a column");
}

bool RowSchedule::isHeld(NodeValue value, unsigned sweep) {
  Node *node = value.node;
  auto first = firstSweep.find(node);
  bool operand = node->kind == Node::Kind::Operand;
  if (first == firstSweep.end() || first->second == sweep ||
      (node->kind != Node::Kind::Map && !(operand && keep.inRegisters)))
    return false;
  if (isKept(value))
    return true;
  Type element = getElementTypeOrSelf(operand ? node->value.getType()
                                              : node->op->getResult(value.result).getType());
  uint64_t bytes = numColumns * llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  auto hold = [&] {
    if (element.isInteger(1) || bytes > keep.maxBytes)
      return false;
    keep.maxBytes -= bytes;
    kept.push_back(value);
    return true;
  };
  if (keep.inRegisters && hold())
    return true;
  if (operand)
    return false;
  for (auto [number, result] : llvm::enumerate(results))
    if (result.value == value && node->level < sweep) {
      if (!llvm::is_contained(reread, std::pair<NodeValue, unsigned>(value, number)))
        reread.push_back({value, number});
      return true;
    }
  return !keep.inRegisters && node->cost >= kCheapCost && hold();
}

void RowSchedule::visit(NodeValue value, unsigned sweep) {
  Node *node = value.node;
  if (!node->varies)
    return;
  if (auto seen = lastSweep.find({node, value.result});
      seen != lastSweep.end() && seen->second == sweep)
    return;
  if (isHeld(value, sweep)) {
    lastSweep[{node, value.result}] = sweep;
    sweeps[sweep].steps.push_back({value, Sweep::Action::Reload});
    return;
  }
  firstSweep.try_emplace(node, sweep);
  for (NodeValue argument : node->arguments)
    if (argument.node)
      visit(argument, sweep);
  for (unsigned result = 0, end = node->op ? node->op->getNumResults() : 1; result != end; ++result)
    lastSweep[{node, result}] = sweep;
  bool load = !node->op;
  sweeps[sweep].steps.push_back({value, load ? Sweep::Action::Load : Sweep::Action::Compute});
}
