//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Constraints of the operations on memory; the numbers are those of their documentation.
//
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RT.h"

#include "braid/Base/LibraryKernels.h"
#include "braid/Base/Mesh.h"

#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace braid::rt;

static bool isId(Type type) { return type.isInteger(32) || type.isInteger(64); }

//===----------------------------------------------------------------------===//
// Procedures, buffers, calls
//===----------------------------------------------------------------------===//

/// (P4): parameters, then operands, then results.
static LogicalResult verifyEntry(ProcedureOp op) {
  int last = 0;
  for (auto [i, type] : llvm::enumerate(op.getArgumentTypes())) {
    int kinds = 0, kind = 0;
    RankedTensorType global;
    auto take = [&](int which, RankedTensorType type) {
      ++kinds;
      kind = which;
      global = type;
    };
    if (auto attr = op.getArgAttrOfType<ParameterAttr>(i, RTDialect::kParameterAttrName))
      take(0, attr.getGlobalType());
    if (auto attr = op.getArgAttrOfType<ValueAttr>(i, RTDialect::kOperandAttrName))
      take(1, attr.getGlobalType());
    if (auto attr = op.getArgAttrOfType<ValueAttr>(i, RTDialect::kResultAttrName))
      take(2, attr.getGlobalType());
    if (kinds != 1)
      return op.emitOpError("expects argument ")
             << i << " of an entry to have one of rt.parameter, rt.operand and rt.result, got "
             << kinds;
    if (kind < last)
      return op.emitOpError("expects parameters, then operands, then results; argument ")
             << i << " is out of order";
    last = kind;
    if (auto operand = op.getArgAttrOfType<ValueAttr>(i, RTDialect::kOperandAttrName);
        operand && operand.getPaddedType())
      return op.emitOpError("expects no padded type of operand ") << i;
    if (auto result = op.getArgAttrOfType<ValueAttr>(i, RTDialect::kResultAttrName);
        result && (result.getDefaultValue() || result.getBelow()))
      return op.emitOpError("expects neither default nor bound of argument ")
             << i << ", which is a result";
    if (global.getElementType() != cast<MemRefType>(type).getElementType() ||
        global.getRank() != cast<MemRefType>(type).getRank())
      return op.emitOpError("expects argument ")
             << i << " to be a part of " << global << ", got " << type;
  }
  return success();
}

/// (P5): places and numbers are there with a frame, and in it.
static LogicalResult verifyFrame(ProcedureOp op) {
  FrameAttr frame = op.getFrameAttr();
  auto mismatch = [&](Operation *inner, StringRef what) {
    return inner->emitOpError("expects ")
           << (frame ? "" : "no ") << (frame ? what : what.split(' ').second) << " in a procedure "
           << (frame ? "with" : "without") << " a frame";
  };
  auto verifyEvent = [&](Operation *inner, std::optional<uint64_t> event) -> LogicalResult {
    if (event.has_value() != static_cast<bool>(frame))
      return mismatch(inner, "an event number");
    if (frame && *event >= static_cast<uint64_t>(frame.getEvents()))
      return inner->emitOpError("expects an event below ")
             << frame.getEvents() << ", got " << *event;
    return success();
  };
  for (Operation &inner : op.getBody().front()) {
    if (auto alloc = dyn_cast<AllocOp>(inner)) {
      if (alloc.getOffset().has_value() != static_cast<bool>(frame))
        return mismatch(alloc, "an offset");
      if (!frame)
        continue;
      int64_t arena = alloc.getSpace() == Space::Local ? frame.getLocal() : frame.getSymmetric();
      uint64_t end =
          llvm::SaturatingAdd(*alloc.getOffset(), static_cast<uint64_t>(alloc.getSizeInBytes()));
      if (end > static_cast<uint64_t>(arena))
        return alloc.emitOpError("expects to end within the frame's ")
               << arena << " bytes of " << stringifySpace(alloc.getSpace()) << " memory, got "
               << end;
    } else if (auto call = dyn_cast<CallOp>(inner)) {
      if (static_cast<bool>(call.getBaseAttr()) != static_cast<bool>(frame))
        return mismatch(call, "a place for the callee's frame");
    } else if (auto record = dyn_cast<RecordOp>(inner)) {
      if (failed(verifyEvent(record, record.getEvent())))
        return failure();
    } else if (auto start = dyn_cast<StartOp>(inner)) {
      if (failed(verifyEvent(start, start.getEvent())))
        return failure();
    }
  }
  return success();
}

LogicalResult ProcedureOp::verifyRegions() {
  if (!getResultTypes().empty())
    return emitOpError(
        "expects no function results: what a procedure gives is an rt.result argument");
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    auto memory = dyn_cast<MemRefType>(type);
    auto where = [&, i = i] { return emitOpError("argument ") << i << ": "; };
    if (memory && memory.hasStaticShape() && failed(braid::verifyBounded(memory, where)))
      return failure();
    if (!memory || !memory.hasStaticShape() || !isContiguous(memory) || memory.getMemorySpace())
      return emitOpError("expects argument ")
             << i << " to be statically shaped, contiguous memory without a space, got " << type;
  }
  Block &block = getBody().front();
  if (!isa<ReturnOp>(block.back()))
    return emitOpError("expects a body that ends in rt.return");
  for (Operation &op : block) {
    if (op.getDialect() != (*this)->getDialect() || isa<KernelOp, ProcedureOp>(op))
      return op.emitOpError("is not a command: rt.procedure holds rt operations on memory only");
    if (auto launch = dyn_cast<LaunchOp>(op); launch && launch.onValues())
      return launch.emitOpError("expects outputs in memory inside of rt.procedure");
    SmallVector<Value> reads, writes;
    getAccesses(&op, reads, writes);
    for (Value written : writes)
      if (auto argument = dyn_cast<BlockArgument>(getRoot(written));
          argument && !isResult(argument.getArgNumber()))
        return op.emitOpError(
                   "expects to write rt.result arguments and buffers only, got argument ")
               << argument.getArgNumber();
  }
  if (getEntry() && failed(verifyEntry(*this)))
    return failure();
  return verifyFrame(*this);
}

LogicalResult AllocOp::verify() {
  MemRefType type = getBuffer().getType();
  if (!isa_and_nonnull<SpaceAttr>(type.getMemorySpace()) || !isContiguous(type))
    return emitOpError("expects contiguous memory with a #rt.space, got ") << type;
  if (std::optional<uint64_t> offset = getOffset(); offset && *offset % kBufferAlignment != 0)
    return emitOpError("expects an offset that is a multiple of ")
           << kBufferAlignment << ", got " << *offset;
  return success();
}

LogicalResult ViewOp::verify() {
  MemRefType from = getSource().getType(), to = getResult().getType();
  if (!isContiguous(from) || !isContiguous(to) || from.getNumElements() != to.getNumElements() ||
      from.getElementType() != to.getElementType() || from.getMemorySpace() != to.getMemorySpace())
    return emitOpError("expects contiguous memory of one size, element type and space, got ")
           << from << " and " << to;
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<ProcedureOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("references unknown procedure ") << getCalleeAttr();
  if (callee.getEntry())
    return emitOpError("expects a procedure that is not an entry, got ") << getCalleeAttr();
  if (callee.getNumArguments() != getNumOperands())
    return emitOpError("expects ") << callee.getNumArguments() << " arguments for "
                                   << getCalleeAttr() << ", got " << getNumOperands();
  for (auto [i, operand, type] : llvm::enumerate(getArguments(), callee.getArgumentTypes())) {
    auto given = cast<MemRefType>(operand.getType()), taken = cast<MemRefType>(type);
    if (!isContiguous(given) || given.getShape() != taken.getShape() ||
        given.getElementType() != taken.getElementType())
      return emitOpError("expects argument ")
             << i << " to be contiguous memory like " << taken << ", got " << given;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

/// (L3): `given` is the kernel's type with the rows filled in.
static bool fitsKernel(ShapedType given, RankedTensorType taken, int64_t rows) {
  SmallVector<int64_t> shape(taken.getShape());
  if (taken.getElementType() != given.getElementType())
    return false;
  if (KernelOp::isRowOperand(taken))
    shape.front() = rows;
  ArrayRef<int64_t> actual = given.getShape();
  if (actual == ArrayRef(shape))
    return true;
  if (isa<MemRefType>(given) || !KernelOp::isRowOperand(taken) || actual.size() < shape.size())
    return false;
  size_t extra = actual.size() - shape.size() + 1;
  int64_t leading = 1;
  for (int64_t size : actual.take_front(extra))
    leading *= size;
  return leading == rows && actual.drop_front(extra) == ArrayRef(shape).drop_front();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("references unknown kernel ") << getKernelAttr();
  bool values = getOutputs().empty();
  auto consistent = [&](Value value) { return isa<RankedTensorType>(value.getType()) == values; };
  if (!llvm::all_of(getInputs(), consistent) || (!values && getNumResults() != 0))
    return emitOpError("expects inputs and outputs to be all tensors or all memory");
  ValueRange outputs = values ? ValueRange(getResults()) : ValueRange(getOutputs());
  if (getInputs().size() != kernel.getNumArguments() || outputs.size() != kernel.getNumResults())
    return emitOpError("expects ") << kernel.getNumArguments() << " inputs and "
                                   << kernel.getNumResults() << " outputs for " << getKernelAttr()
                                   << ", got " << getInputs().size() << " and " << outputs.size();
  auto check = [&](ValueRange given, ArrayRef<Type> taken, StringRef what) -> LogicalResult {
    for (auto [i, value, type] : llvm::enumerate(given, taken))
      if (!fitsKernel(cast<ShapedType>(value.getType()), cast<RankedTensorType>(type), getRows()))
        return emitOpError("expects ") << what << " " << i << " to be the kernel's " << type
                                       << " with " << getRows() << " rows, got " << value.getType();
    return success();
  };
  if (failed(check(getInputs(), kernel.getArgumentTypes(), "input")) ||
      failed(check(outputs, kernel.getResultTypes(), "output")))
    return failure();
  if (!kernel.getLibrary())
    return success();
  FailureOr<braid::runtime::LibraryCall> call = kernel.getLibraryCall(/*parts=*/1);
  if (failed(call))
    return failure();
  if (static_cast<int64_t>(getRows()) != call->rows())
    return emitOpError("expects ")
           << call->rows() << " rows for " << getKernelAttr() << ", got " << getRows();
  return success();
}

LogicalResult CopyOp::verify() {
  MemRefType source = getSource().getType(), dest = getDest().getType();
  if (source.getShape() != dest.getShape() || source.getElementType() != dest.getElementType())
    return emitOpError("expects one shape and element type, got ") << source << " and " << dest;
  return success();
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

/// The size of a group whose mesh is known and has its axes.
FailureOr<int64_t> braid::rt::groupRanks(Operation *op, braid::comm::GroupAttr group,
                                         SymbolTableCollection &symbols) {
  auto mesh = symbols.lookupNearestSymbolFrom<braid::comm::MeshOp>(op, group.getMesh());
  if (!mesh)
    return op->emitOpError("references unknown mesh ") << group.getMesh();
  braid::runtime::Result<int64_t> ranks = toRuntime(mesh).numShards(toRuntime(group));
  if (!ranks.ok())
    return op->emitOpError(ranks.status().message());
  return *ranks;
}

/// `out` is `in` with dimension `dim` multiplied by `numerator` and divided by `denominator`.
static bool isScaled(MemRefType in, MemRefType out, std::optional<int64_t> dim, int64_t numerator,
                     int64_t denominator) {
  SmallVector<int64_t> shape(in.getShape());
  if (dim) {
    if (*dim < 0 || *dim >= in.getRank())
      return false;
    std::optional<int64_t> scaled = llvm::checkedMul(shape[*dim], numerator);
    if (!scaled || *scaled % denominator != 0)
      return false;
    shape[*dim] = *scaled / denominator;
  }
  return out.getShape() == ArrayRef(shape) && in.getElementType() == out.getElementType();
}

LogicalResult StartOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = groupRanks(*this, getGroup(), symbols);
  if (failed(ranks))
    return failure();
  for (int64_t position : getPairs().value_or(ArrayRef<int64_t>()))
    if (position < 0 || position >= *ranks)
      return emitOpError("expects 'pairs' to hold positions below ")
             << *ranks << ", got " << position;
  if (std::optional<int64_t> root = getRoot(); root && (*root < 0 || *root >= *ranks))
    return emitOpError("expects 'root' to be a position below ") << *ranks << ", got " << *root;
  bool divides =
      getKind() == CollectiveKind::ReduceScatter || getKind() == CollectiveKind::AllToAll;
  int64_t numerator = getKind() == CollectiveKind::AllGather ? *ranks : 1;
  int64_t denominator = divides ? *ranks : 1;
  auto fits = [&](MemRefType in, MemRefType out) {
    if (std::optional<int64_t> concat = getConcat()) {
      if (*concat < 0 || *concat >= in.getRank())
        return false;
      SmallVector<int64_t> joined(in.getShape());
      joined[*concat] = braid::saturatingProduct({joined[*concat], *ranks});
      in = MemRefType::get(joined, in.getElementType());
    }
    return isScaled(in, out, getDim(), numerator, denominator);
  };
  if (getKind() == CollectiveKind::Send || getKind() == CollectiveKind::Recv)
    return success();
  if (getKind() == CollectiveKind::AllToAllV)
    if (int64_t blocks = cast<MemRefType>(getInputs().back().getType()).getDimSize(0);
        blocks % *ranks != 0)
      return emitOpError("expects ") << blocks << " blocks to divide over " << *ranks << " ranks";
  for (auto [in, out] : llvm::zip_equal(getInputs(), getOutputs()))
    if (!fits(cast<MemRefType>(in.getType()), cast<MemRefType>(out.getType())))
      return emitOpError("expects outputs of ")
             << stringifyCollectiveKind(getKind()) << " over " << *ranks
             << " ranks to fit its inputs, got " << in.getType() << " and " << out.getType();
  return success();
}

/// (R8)
static LogicalResult verifyCounted(StartOp op) {
  auto counts = cast<MemRefType>(op.getInputs().back().getType());
  if (counts.getRank() != 1 || !isId(counts.getElementType()))
    return op.emitOpError("expects counts of rank 1 of i32 or i64 as last value, got ") << counts;
  auto first = cast<MemRefType>(op.getInputs().front().getType());
  for (Value value : op.getInputs().drop_back()) {
    auto type = cast<MemRefType>(value.getType());
    if (type.getRank() < 2 || type.getDimSize(0) != counts.getDimSize(0) ||
        type.getDimSize(1) != first.getDimSize(1))
      return op.emitOpError("expects values of ")
             << counts.getDimSize(0) << " blocks by one capacity, got " << type;
  }
  return success();
}

LogicalResult StartOp::verify() {
  bool sends = getKind() == CollectiveKind::Send, receives = getKind() == CollectiveKind::Recv;
  size_t ins = getInputs().size(), outs = getOutputs().size();
  if (sends || receives) {
    if ((sends ? ins : outs) == 0 || (sends ? outs : ins) != 0)
      return emitOpError("expects ") << (sends ? "inputs and no outputs" : "outputs and no inputs")
                                     << ", got " << ins << " and " << outs << " values";
  } else if (ins == 0 || ins != outs) {
    return emitOpError("expects at least one input and as many outputs, got ")
           << ins << " and " << outs;
  } else if (getKind() == CollectiveKind::AllToAllV && ins < 2) {
    return emitOpError("expects at least one value beside the counts");
  }
  for (Value value : llvm::concat<Value>(getInputs(), getOutputs())) {
    auto type = cast<MemRefType>(value.getType());
    auto space = dyn_cast_or_null<SpaceAttr>(type.getMemorySpace());
    if (!space || space.getValue() != Space::Symmetric || !isContiguous(type))
      return emitOpError("expects contiguous symmetric memory, got ") << type;
  }
  if (getKind() == CollectiveKind::AllToAllV && failed(verifyCounted(*this)))
    return failure();
  using Kind = CollectiveKind;
  auto isOneOf = [&](ArrayRef<Kind> kinds) { return llvm::is_contained(kinds, getKind()); };
  struct {
    StringRef what;
    bool given, expected;
  } rules[] = {
      {"'dim'", getDim().has_value(),
       isOneOf({Kind::ReduceScatter, Kind::AllGather, Kind::AllToAll})},
      {"reduction", getReduce().has_value(),
       isOneOf({Kind::AllReduce, Kind::ReduceScatter, Kind::Reduce})},
      {"'concat'", getConcat().has_value(), isOneOf({Kind::AllToAll})},
      {"'root'", getRoot().has_value(), isOneOf({Kind::Reduce, Kind::Broadcast})},
      {"'pairs'", getPairs().has_value(), isOneOf({Kind::Permute, Kind::Send, Kind::Recv})},
      {"'tag'", getTag().has_value(), isOneOf({Kind::Send, Kind::Recv})}};
  for (const auto &rule : rules)
    if (rule.given != rule.expected)
      return emitOpError("expects ") << (!rule.expected             ? "no "
                                         : rule.what == "reduction" ? "a "
                                                                    : "")
                                     << rule.what << " for " << stringifyCollectiveKind(getKind());
  ArrayRef<int64_t> pairs = getPairs().value_or(ArrayRef<int64_t>());
  if (pairs.size() % 2 != 0)
    return emitOpError("expects 'pairs' to hold sources and targets in turn, got ")
           << pairs.size() << " positions";
  for (size_t i = 0; i < pairs.size(); ++i)
    for (size_t j = i % 2; j < i; j += 2)
      if (pairs[i] == pairs[j])
        return emitOpError("expects position ")
               << pairs[i] << " to be the " << (i % 2 ? "target" : "source") << " of one pair";
  for (size_t i = 0; (sends || receives) && i < pairs.size(); i += 2)
    if (pairs[i] == pairs[i + 1])
      return emitOpError("expects no position to send to itself, got ") << pairs[i];
  auto isWait = [](Operation *user) { return isa<WaitOp>(user); };
  if (llvm::count_if(getDone().getUsers(), isWait) != 1)
    return emitOpError("expects its event to be waited for by exactly one rt.wait");
  return success();
}

LogicalResult WaitOp::verify() {
  return getEvent().getDefiningOp<StartOp>()
             ? success()
             : LogicalResult(emitOpError("expects the event of an rt.start"));
}

LogicalResult AwaitOp::verify() {
  auto record = getEvent().getDefiningOp<RecordOp>();
  if (!record || record.getQueue() == getQueue())
    return emitOpError("expects the event of an rt.record on another queue");
  return success();
}
