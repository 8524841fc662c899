//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Mesh.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError("expects as many axis sizes as names");
  runtime::Status status = toRuntime(*this).verify();
  return status.ok() ? success() : LogicalResult(emitOpError(status.message()));
}

LogicalResult braid::comm::verifyGroup(Operation *op, GroupAttr group,
                                       SymbolTableCollection &symbols) {
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(op, group.getMesh());
  if (!mesh)
    return op->emitOpError("references unknown mesh ") << group.getMesh();
  runtime::Mesh grid = toRuntime(mesh);
  for (AxisAttr axis : group.getAxes())
    if (runtime::Result<int64_t> size = grid.axisSize(toRuntime(axis)); !size.ok())
      return op->emitOpError(size.status().message());
  return success();
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyGroup(*this, getGroup(), symbols);
}

/// outputs[i] is inputs[i] with dimension `dim` multiplied, or divided if `divide`, by the size of
/// the group.
static LogicalResult verifyScaledDim(Operation *op, TypeRange inputs, TypeRange outputs,
                                     int64_t dim, GroupAttr group, bool divide,
                                     SymbolTableCollection &symbols) {
  if (failed(verifyGroup(op, group, symbols)))
    return failure();
  int64_t n = groupSize(op, group);
  for (auto [input, output] : llvm::zip_equal(inputs, outputs)) {
    auto in = cast<RankedTensorType>(input);
    if (dim < 0 || dim >= in.getRank())
      return op->emitOpError("expects 'dim' in [0, ") << in.getRank() << "), got " << dim;
    SmallVector<int64_t> shape(in.getShape());
    if (divide) {
      if (shape[dim] % n != 0)
        return op->emitOpError("expects dimension ")
               << dim << " of size " << shape[dim] << " to divide over " << n << " ranks";
      shape[dim] /= n;
    } else {
      shape[dim] = saturatingProduct({shape[dim], n});
    }
    auto expected = RankedTensorType::get(shape, in.getElementType());
    if (output != expected)
      return op->emitOpError("expects a result of type ") << expected << ", got " << output;
  }
  return success();
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScaledDim(*this, getInputs().getTypes(), getOutputs().getTypes(), getDim(),
                         getGroup(), true, symbols);
}
LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScaledDim(*this, getInputs().getTypes(), getOutputs().getTypes(), getDim(),
                         getGroup(), false, symbols);
}
LogicalResult LocalSliceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScaledDim(*this, getInput().getType(), getOutput().getType(), getDim(), getGroup(),
                         true, symbols);
}

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyGroup(*this, getGroup(), symbols)))
    return failure();
  int64_t n = groupSize(*this, getGroup());
  for (auto [input, output] : llvm::zip_equal(getInputs().getTypes(), getOutputs().getTypes())) {
    auto in = cast<RankedTensorType>(input);
    int64_t split = getSplitDim(), concat = getConcatDim();
    for (auto [name, dim] : {std::pair("split", split), std::pair("concat", concat)})
      if (dim < 0 || dim >= in.getRank())
        return emitOpError("expects '") << name << "' in [0, " << in.getRank() << "), got " << dim;
    SmallVector<int64_t> shape(in.getShape());
    if (shape[split] % n != 0)
      return emitOpError("expects dimension ")
             << split << " of size " << shape[split] << " to divide over " << n << " ranks";
    shape[split] /= n;
    shape[concat] = saturatingProduct({shape[concat], n});
    auto expected = RankedTensorType::get(shape, in.getElementType());
    if (output != expected)
      return emitOpError("expects a result of type ") << expected << ", got " << output;
  }
  return success();
}

/// `what` is a position of the group of `op`.
template <typename OpT>
static LogicalResult verifyPosition(OpT op, const Twine &what, int64_t position) {
  int64_t n = groupSize(op, op.getGroup());
  if (position >= 0 && position < n)
    return success();
  return op.emitOpError("expects ") << what << " in [0, " << n << "), got " << position;
}

LogicalResult ReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return failure(failed(verifyGroup(*this, getGroup(), symbols)) ||
                 failed(verifyPosition(*this, "'root' to be a position", getRoot())));
}
LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return failure(failed(verifyGroup(*this, getGroup(), symbols)) ||
                 failed(verifyPosition(*this, "'root' to be a position", getRoot())));
}
template <typename OpT>
static LogicalResult verifyPairPositions(OpT op, SymbolTableCollection &symbols) {
  if (failed(verifyGroup(op, op.getGroup(), symbols)))
    return failure();
  for (int64_t position : op.getPairs())
    if (failed(verifyPosition(op, "every position of 'pairs' to be", position)))
      return failure();
  return success();
}
LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPairPositions(*this, symbols);
}
LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPairPositions(*this, symbols);
}
LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPairPositions(*this, symbols);
}

LogicalResult AllToAllVOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyGroup(*this, getGroup(), symbols)))
    return failure();
  int64_t n = groupSize(*this, getGroup());
  if (int64_t blocks = getCounts().getType().getDimSize(0); blocks % n != 0)
    return emitOpError("expects ") << blocks << " blocks to divide over " << n << " ranks";
  return success();
}

static LogicalResult verifyCount(Operation *op) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("expects at least one value");
  if (op->getNumOperands() != op->getNumResults())
    return op->emitOpError("expects as many results as operands, got ")
           << op->getNumResults() << " and " << op->getNumOperands();
  return success();
}

LogicalResult AllReduceOp::verify() { return verifyCount(*this); }
LogicalResult ReduceScatterOp::verify() { return verifyCount(*this); }
LogicalResult AllGatherOp::verify() { return verifyCount(*this); }
LogicalResult AllToAllOp::verify() { return verifyCount(*this); }
LogicalResult ReduceOp::verify() { return verifyCount(*this); }
LogicalResult BroadcastOp::verify() { return verifyCount(*this); }

/// `pairs` is source and target in turn, and a position at most once either.
static LogicalResult verifyPairs(Operation *op, ArrayRef<int64_t> pairs) {
  if (pairs.size() % 2 != 0)
    return op->emitOpError("expects 'pairs' to hold two positions for each pair, got ")
           << pairs.size() << " positions";
  // Not dense sets, which keep two numbers for themselves.
  llvm::SmallSet<int64_t, 8> sources, targets;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (!sources.insert(pairs[i]).second)
      return op->emitOpError("expects position ") << pairs[i] << " to be the source of one pair";
    if (!targets.insert(pairs[i + 1]).second)
      return op->emitOpError("expects position ")
             << pairs[i + 1] << " to be the target of one pair";
  }
  return success();
}
LogicalResult PermuteOp::verify() {
  return failure(failed(verifyCount(*this)) || failed(verifyPairs(*this, getPairs())));
}

/// What the halves of a permute have in common; `values` are what is sent or received.
static LogicalResult verifyHalf(Operation *op, TypeRange values, ArrayRef<int64_t> pairs) {
  if (values.empty())
    return op->emitOpError("expects at least one value");
  if (failed(verifyPairs(op, pairs)))
    return failure();
  for (size_t i = 0; i < pairs.size(); i += 2)
    if (pairs[i] == pairs[i + 1])
      return op->emitOpError("expects no position to send to itself, got ")
             << pairs[i] << " -> " << pairs[i];
  return success();
}
LogicalResult SendOp::verify() { return verifyHalf(*this, getOperandTypes(), getPairs()); }
LogicalResult RecvOp::verify() { return verifyHalf(*this, getResultTypes(), getPairs()); }

LogicalResult AllToAllVOp::verify() {
  if (getValues().empty())
    return emitOpError("expects at least one value");
  int64_t blocks = getCounts().getType().getDimSize(0);
  std::optional<int64_t> capacity;
  for (Type type : getValues().getTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() < 2 || tensor.getDimSize(0) != blocks)
      return emitOpError("expects values of ")
             << blocks << " blocks by capacity, as many blocks as counts, got " << type;
    if (int64_t got = tensor.getDimSize(1); capacity.value_or(got) != got)
      return emitOpError("expects values of one capacity, got ") << *capacity << " and " << got;
    capacity = tensor.getDimSize(1);
  }
  return success();
}

/// Exactly one operation takes a handle: its wait, or what carries it to another function.
static LogicalResult verifyHandleUse(Operation *op, Value handle) {
  if (!handle.hasOneUse())
    return op->emitOpError("expects its handle to be waited for exactly once, got ")
           << std::distance(handle.use_begin(), handle.use_end()) << " uses";
  Operation *user = *handle.user_begin();
  if (!isa<WaitOp, CallOpInterface>(user) && !user->hasTrait<OpTrait::ReturnLike>()) {
    InFlightDiagnostic diag =
        op->emitOpError("expects its handle to be taken by comm.wait, a call or a return, got '")
        << user->getName() << "'";
    diag.attachNote(user->getLoc()) << "used here";
    return diag;
  }
  return success();
}

LogicalResult StartOp::verify() {
  Block &body = getBody().front();
  if (body.getOperations().size() != 2 || !isa<CollectiveOpInterface>(body.front()))
    return emitOpError("expects a body of one collective and comm.yield");
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("expects body arguments of the operands' types");
  if (!llvm::equal(body.front().getOperands(), body.getArguments()))
    return emitOpError("expects the collective to take the body's arguments in order");
  Operation *yield = body.getTerminator();
  if (!llvm::equal(yield->getOperands(), body.front().getResults()))
    return emitOpError("expects comm.yield to give the collective's results in order");
  if (!llvm::equal(getHandle().getType().getValueTypes(), yield->getOperandTypes()))
    return emitOpError("expects a handle of the collective's result types, got ")
           << getHandle().getType();
  return verifyHandleUse(*this, getHandle());
}

LogicalResult WaitOp::verify() {
  if (!llvm::equal(getHandle().getType().getValueTypes(), getOutputs().getTypes()))
    return emitOpError("expects result types of the handle ") << getHandle().getType();
  if (auto start = getHandle().getDefiningOp<StartOp>(); start && start.getInputs() != getKept()) {
    InFlightDiagnostic diag = emitOpError("expects to keep the operands of its start");
    diag.attachNote(start.getLoc()) << "started here";
    return diag;
  }
  return verifyHandleUse(*this, getHandle());
}
