//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Mesh.h"
#include "dialects/Comm/IR/Comm.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError("expects as many axis sizes as names");
  runtime::Status status = toRuntime(*this).verify();
  return status.ok() ? success() : LogicalResult(emitOpError(status.message()));
}

/// The group names a mesh and axes of it.
static LogicalResult verifyGroup(Operation *op, GroupAttr group, SymbolTableCollection &symbols) {
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

/// outputs[i] is inputs[i] with dimension `dim` multiplied (factor > 0) or divided by the size of
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
      shape[dim] *= n;
    }
    auto expected = RankedTensorType::get(shape, in.getElementType());
    if (output != expected)
      return op->emitOpError("expects result type ") << expected << ", got " << output;
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
LogicalResult LocalSliceOp::verify() { return success(); }

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
  if (!getHandle().hasOneUse())
    return emitOpError("expects its handle to be waited for exactly once");
  return success();
}

LogicalResult WaitOp::verify() {
  if (!llvm::equal(getHandle().getType().getValueTypes(), getOutputs().getTypes()))
    return emitOpError("expects result types of the handle ") << getHandle().getType();
  if (auto start = getHandle().getDefiningOp<StartOp>(); start && start.getInputs() != getKept())
    return emitOpError("expects to keep the operands of its start");
  return success();
}
