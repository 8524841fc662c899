//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Mesh.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError("expects as many axis sizes as names [comm.mesh_c1]");
  runtime::Status status = toRuntime(*this).verify();
  return status.ok() ? success()
                     : LogicalResult(emitOpError(status.message()) << " [comm.mesh_c2]");
}

LogicalResult braid::comm::verifyGroup(Operation *op, GroupAttr group,
                                       SymbolTableCollection &symbols, StringRef id) {
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(op, group.getMesh());
  if (!mesh)
    return op->emitOpError("references unknown mesh ") << group.getMesh() << " [" << id << "]";
  runtime::Mesh grid = toRuntime(mesh);
  for (AxisAttr axis : group.getAxes())
    if (runtime::Result<int64_t> size = grid.axisSize(toRuntime(axis)); !size.ok())
      return op->emitOpError(size.status().message()) << " [" << id << "]";
  return success();
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyGroup(*this, getGroup(), symbols, "comm.all_reduce_c3");
}

namespace {
struct ScaledDimIds {
  StringRef group, dim, result;
};
} // namespace

/// outputs[i] is inputs[i] with dimension `dim` multiplied, or divided if `divide`, by the size of
/// the group.
static LogicalResult verifyScaledDim(Operation *op, TypeRange inputs, TypeRange outputs,
                                     int64_t dim, GroupAttr group, bool divide,
                                     SymbolTableCollection &symbols, const ScaledDimIds &ids) {
  if (failed(verifyGroup(op, group, symbols, ids.group)))
    return failure();
  int64_t n = groupSize(op, group);
  for (auto [input, output] : llvm::zip_equal(inputs, outputs)) {
    auto in = cast<RankedTensorType>(input);
    if (dim < 0 || dim >= in.getRank())
      return op->emitOpError("expects 'dim' in [0, ")
             << in.getRank() << "), got " << dim << " [" << ids.dim << "]";
    SmallVector<int64_t> shape(in.getShape());
    if (divide) {
      if (shape[dim] % n != 0)
        return op->emitOpError("expects dimension ")
               << dim << " of size " << shape[dim] << " to divide over " << n << " ranks ["
               << ids.result << "]";
      shape[dim] /= n;
    } else {
      shape[dim] = saturatingProduct({shape[dim], n});
    }
    auto expected = RankedTensorType::get(shape, in.getElementType());
    if (output != expected)
      return op->emitOpError("expects a result of type ")
             << expected << ", got " << output << " [" << ids.result << "]";
  }
  return success();
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScaledDim(
      *this, getInputs().getTypes(), getOutputs().getTypes(), getDim(), getGroup(), true, symbols,
      {"comm.reduce_scatter_c3", "comm.reduce_scatter_c5", "comm.reduce_scatter_c6"});
}
LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScaledDim(*this, getInputs().getTypes(), getOutputs().getTypes(), getDim(),
                         getGroup(), false, symbols,
                         {"comm.all_gather_c3", "comm.all_gather_c4", "comm.all_gather_c5"});
}
LogicalResult PartOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScaledDim(*this, getInput().getType(), getOutput().getType(), getDim(), getGroup(),
                         true, symbols, {"comm.part_c1", "comm.part_c2", "comm.part_c3"});
}

LogicalResult AssembleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyGroup(*this, getGroup(), symbols, "comm.assemble_c1")))
    return failure();
  const int64_t n = groupSize(*this, getGroup());
  const auto inputs = static_cast<int64_t>(getInputs().size());
  const auto shifts = static_cast<int64_t>(getShifts().size());
  if (inputs != n || shifts != n)
    return emitOpError("expects ") << n << " operands and shifts, got " << inputs << " and "
                                   << shifts << " [comm.assemble_c2]";
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t shift : getShifts())
    if (!seen.insert(runtime::shiftedPosition(0, shift, n)).second)
      return emitOpError("expects shifts that differ modulo ")
             << n << ", got " << shift << " again [comm.assemble_c3]";
  const SmallVector<Type> outputs(getInputs().size(), getOutput().getType());
  return verifyScaledDim(*this, getInputs().getTypes(), outputs, getDim(), getGroup(), false,
                         symbols, {"comm.assemble_c1", "comm.assemble_c4", "comm.assemble_c5"});
}

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyGroup(*this, getGroup(), symbols, "comm.all_to_all_c3")))
    return failure();
  int64_t n = groupSize(*this, getGroup());
  for (auto [input, output] : llvm::zip_equal(getInputs().getTypes(), getOutputs().getTypes())) {
    auto in = cast<RankedTensorType>(input);
    int64_t split = getSplitDim(), concat = getConcatDim();
    for (auto [name, dim] : {std::pair("split", split), std::pair("concat", concat)})
      if (dim < 0 || dim >= in.getRank())
        return emitOpError("expects '") << name << "' in [0, " << in.getRank() << "), got " << dim
                                        << " [comm.all_to_all_c4]";
    SmallVector<int64_t> shape(in.getShape());
    if (shape[split] % n != 0)
      return emitOpError("expects dimension ")
             << split << " of size " << shape[split] << " to divide over " << n
             << " ranks [comm.all_to_all_c5]";
    shape[split] /= n;
    shape[concat] = saturatingProduct({shape[concat], n});
    auto expected = RankedTensorType::get(shape, in.getElementType());
    if (output != expected)
      return emitOpError("expects a result of type ")
             << expected << ", got " << output << " [comm.all_to_all_c5]";
  }
  return success();
}

LogicalResult braid::comm::verifyPosition(Operation *op, GroupAttr group, const Twine &what,
                                          int64_t position, StringRef id) {
  int64_t n = groupSize(op, group);
  if (position >= 0 && position < n)
    return success();
  return op->emitOpError("expects ")
         << what << " in [0, " << n << "), got " << position << " [" << id << "]";
}

LogicalResult ReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return failure(failed(verifyGroup(*this, getGroup(), symbols, "comm.reduce_c3")) ||
                 failed(verifyPosition(*this, getGroup(), "'root' to be a position", getRoot(),
                                       "comm.reduce_c6")));
}
LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return failure(failed(verifyGroup(*this, getGroup(), symbols, "comm.broadcast_c3")) ||
                 failed(verifyPosition(*this, getGroup(), "'root' to be a position", getRoot(),
                                       "comm.broadcast_c5")));
}
template <typename OpT>
static LogicalResult verifyPairPositions(OpT op, SymbolTableCollection &symbols, StringRef groupId,
                                         StringRef positionId) {
  if (failed(verifyGroup(op, op.getGroup(), symbols, groupId)))
    return failure();
  for (int64_t position : op.getPairs())
    if (failed(verifyPosition(op, op.getGroup(), "every position of 'pairs' to be", position,
                              positionId)))
      return failure();
  return success();
}
LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPairPositions(*this, symbols, "comm.permute_c3", "comm.permute_c6");
}
LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPairPositions(*this, symbols, "comm.send_c2", "comm.send_c4");
}
LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPairPositions(*this, symbols, "comm.recv_c2", "comm.recv_c4");
}

LogicalResult AllToAllVOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyGroup(*this, getGroup(), symbols, "comm.all_to_all_v_c3")))
    return failure();
  int64_t n = groupSize(*this, getGroup());
  if (int64_t blocks = getCounts().getType().getDimSize(0); blocks % n != 0)
    return emitOpError("expects ")
           << blocks << " blocks to divide over " << n << " ranks [comm.all_to_all_v_c4]";
  return success();
}

static LogicalResult verifyCount(Operation *op, StringRef valuesId, StringRef resultsId) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("expects at least one value [") << valuesId << "]";
  if (op->getNumOperands() != op->getNumResults())
    return op->emitOpError("expects as many results as operands, got ")
           << op->getNumResults() << " and " << op->getNumOperands() << " [" << resultsId << "]";
  return success();
}

LogicalResult AllReduceOp::verify() {
  return verifyCount(*this, "comm.all_reduce_c1", "comm.all_reduce_c2");
}
LogicalResult ReduceScatterOp::verify() {
  return verifyCount(*this, "comm.reduce_scatter_c1", "comm.reduce_scatter_c2");
}
LogicalResult AllGatherOp::verify() {
  return verifyCount(*this, "comm.all_gather_c1", "comm.all_gather_c2");
}
LogicalResult AllToAllOp::verify() {
  return verifyCount(*this, "comm.all_to_all_c1", "comm.all_to_all_c2");
}
LogicalResult ReduceOp::verify() { return verifyCount(*this, "comm.reduce_c1", "comm.reduce_c2"); }
LogicalResult BroadcastOp::verify() {
  return verifyCount(*this, "comm.broadcast_c1", "comm.broadcast_c2");
}

LogicalResult braid::comm::verifyPairs(Operation *op, ArrayRef<int64_t> pairs, StringRef sizeId,
                                       StringRef onceId, StringRef selfId) {
  if (pairs.size() % 2 != 0)
    return op->emitOpError("expects 'pairs' to hold two positions for each pair, got ")
           << pairs.size() << " positions [" << sizeId << "]";
  // Not DenseSet, which reserves two integers that a program may contain.
  llvm::SmallSet<int64_t, 8> sources, targets;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (!sources.insert(pairs[i]).second)
      return op->emitOpError("expects position ")
             << pairs[i] << " to be the source of one pair [" << onceId << "]";
    if (!targets.insert(pairs[i + 1]).second)
      return op->emitOpError("expects position ")
             << pairs[i + 1] << " to be the target of one pair [" << onceId << "]";
    if (!selfId.empty() && pairs[i] == pairs[i + 1])
      return op->emitOpError("expects no position to send to itself, got ")
             << pairs[i] << " -> " << pairs[i] << " [" << selfId << "]";
  }
  return success();
}
LogicalResult PermuteOp::verify() {
  return failure(failed(verifyCount(*this, "comm.permute_c1", "comm.permute_c2")) ||
                 failed(verifyPairs(*this, getPairs(), "comm.permute_c6", "comm.permute_c7")));
}

namespace {
struct PointToPointIds {
  StringRef values, pairs, once, self;
};
} // namespace

/// The constraints that send and receive share; `values` are sent or received.
static LogicalResult verifyPointToPoint(Operation *op, TypeRange values, ArrayRef<int64_t> pairs,
                                        const PointToPointIds &ids) {
  if (values.empty())
    return op->emitOpError("expects at least one value [") << ids.values << "]";
  return verifyPairs(op, pairs, ids.pairs, ids.once, ids.self);
}
LogicalResult SendOp::verify() {
  return verifyPointToPoint(*this, getOperandTypes(), getPairs(),
                            {"comm.send_c1", "comm.send_c4", "comm.send_c5", "comm.send_c6"});
}
LogicalResult RecvOp::verify() {
  return verifyPointToPoint(*this, getResultTypes(), getPairs(),
                            {"comm.recv_c1", "comm.recv_c4", "comm.recv_c5", "comm.recv_c6"});
}

LogicalResult AllToAllVOp::verify() {
  if (getValues().empty())
    return emitOpError("expects at least one value [comm.all_to_all_v_c1]");
  int64_t blocks = getCounts().getType().getDimSize(0);
  std::optional<int64_t> capacity;
  for (Type type : getValues().getTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() < 2 || tensor.getDimSize(0) != blocks)
      return emitOpError("expects values of ")
             << blocks << " blocks by capacity, as many blocks as counts, got " << type
             << " [comm.all_to_all_v_c2]";
    if (int64_t got = tensor.getDimSize(1); capacity.value_or(got) != got)
      return emitOpError("expects values of one capacity, got ")
             << *capacity << " and " << got << " [comm.all_to_all_v_c2]";
    capacity = tensor.getDimSize(1);
  }
  return success();
}

/// Exactly one operation takes a handle: its wait, or a call or return.
static LogicalResult verifyHandleUse(Operation *op, Value handle, StringRef id) {
  if (!handle.hasOneUse())
    return op->emitOpError("expects its handle to be waited for exactly once, got ")
           << std::distance(handle.use_begin(), handle.use_end()) << " uses [" << id << "]";
  Operation *user = *handle.user_begin();
  if (!isa<WaitOp, CallOpInterface>(user) && !user->hasTrait<OpTrait::ReturnLike>()) {
    InFlightDiagnostic diag =
        op->emitOpError("expects its handle to be taken by comm.wait, a call or a return, got '")
        << user->getName() << "' [" << id << "]";
    diag.attachNote(user->getLoc()) << "used here";
    return diag;
  }
  return success();
}

LogicalResult StartOp::verify() {
  Block &body = getBody().front();
  if (body.getOperations().size() != 2 || !isa<CollectiveOpInterface>(body.front()))
    return emitOpError("expects a body of one collective and comm.yield [comm.start_c1]");
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("expects body arguments of the operands' types [comm.start_c2]");
  if (!llvm::equal(body.front().getOperands(), body.getArguments()))
    return emitOpError("expects the collective to take the body's arguments in order "
                       "[comm.start_c3]");
  Operation *yield = body.getTerminator();
  if (!llvm::equal(yield->getOperands(), body.front().getResults()))
    return emitOpError("expects comm.yield to give the collective's results in order "
                       "[comm.start_c4]");
  if (!llvm::equal(getHandle().getType().getValueTypes(), yield->getOperandTypes()))
    return emitOpError("expects a handle of the collective's result types, got ")
           << getHandle().getType() << " [comm.start_c5]";
  if (auto queue = static_cast<int64_t>(getQueue()); queue < 0 || queue >= kMaxQueues)
    return emitOpError("expects an index of a queue below ")
           << kMaxQueues << ", got " << queue << " [comm.start_c7]";
  return verifyHandleUse(*this, getHandle(), "comm.start_c6");
}

LogicalResult WaitOp::verify() {
  if (std::optional<uint64_t> queue = getQueue();
      queue && *queue >= static_cast<uint64_t>(StartOp::kMaxQueues))
    return emitOpError("expects an index of a queue below ")
           << StartOp::kMaxQueues << ", got " << static_cast<int64_t>(*queue) << " [comm.wait_c4]";
  if (!llvm::equal(getHandle().getType().getValueTypes(), getOutputs().getTypes()))
    return emitOpError("expects result types of the handle ")
           << getHandle().getType() << " [comm.wait_c1]";
  if (auto start = getHandle().getDefiningOp<StartOp>(); start && start.getInputs() != getKept()) {
    InFlightDiagnostic diag =
        emitOpError("expects to keep the operands of its start [comm.wait_c2]");
    diag.attachNote(start.getLoc()) << "started here";
    return diag;
  }
  return verifyHandleUse(*this, getHandle(), "comm.wait_c3");
}
