//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifiers of the operations on memory.
//
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RT.h"

#include "braid/Base/LibraryKernels.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace braid::rt;

//===----------------------------------------------------------------------===//
// Procedures, buffers, calls
//===----------------------------------------------------------------------===//

/// Verifies the arguments of an entry: parameters, then states, operands and results.
static LogicalResult verifyEntry(ProcedureOp op) {
  const StringRef names[] = {RTDialect::kParameterAttrName, RTDialect::kStateAttrName,
                             RTDialect::kOperandAttrName, RTDialect::kResultAttrName};
  size_t last = 0;
  if (!op.getResultTypes().empty() || op.getMemoryTypes().size() != op.getNumArguments())
    return op.emitOpError("expects an entry to take and return no events [rt.procedure_c4]");
  for (auto [i, type] : llvm::enumerate(op.getArgumentTypes())) {
    SmallVector<size_t, 4> kinds;
    for (size_t kind = 0; kind < std::size(names); ++kind)
      if (op.getArgAttr(i, names[kind]))
        kinds.push_back(kind);
    if (kinds.size() != 1)
      return op.emitOpError("expects argument ")
             << i
             << " of an entry to have one of rt.parameter, rt.state, rt.operand and rt.result, got "
             << kinds.size() << " [rt.procedure_c4]";
    if (kinds.front() < last)
      return op.emitOpError(
                 "expects parameters, then states, then operands, then results; argument ")
             << i << " is out of order [rt.procedure_c4]";
    last = kinds.front();
    auto value = op.getArgAttrOfType<ValueAttr>(i, names[last]);
    const bool isResult = names[last] == RTDialect::kResultAttrName,
               isOperand = names[last] == RTDialect::kOperandAttrName;
    if (value && isOperand && value.getPaddedType())
      return op.emitOpError("expects no padded type of operand ") << i << " [rt.value_c4]";
    if (value && !isOperand && (value.getDefaultValue() || value.getBelow()))
      return op.emitOpError("expects neither default nor bound of argument ")
             << i << ", which is a " << (isResult ? "result" : "state") << " [rt.value_c6]";
    auto memory = cast<MemRefType>(type);
    RankedTensorType global =
        value ? value.getGlobalType()
              : op.getArgAttrOfType<ParameterAttr>(i, names[last]).getGlobalType();
    if (global.getElementType() != memory.getElementType() || global.getRank() != memory.getRank())
      return op.emitOpError("expects argument ")
             << i << " to be a shard of " << global << ", got " << type << " [rt.procedure_c4]";
  }
  return success();
}

/// With a frame, offsets, places and event numbers are there and within it.
static LogicalResult verifyFrame(ProcedureOp op) {
  FrameAttr frame = op.getFrameAttr();
  for (Operation &inner : op.getBody().front()) {
    auto alloc = dyn_cast<AllocOp>(inner);
    StringRef name = alloc ? "offset" : isa<CallOp>(inner) ? "base" : "event";
    if (!isa<AllocOp, CallOp, RecordOp, StartOp>(inner))
      continue;
    Attribute given = inner.getAttr(name);
    if (!given != !frame)
      return inner.emitOpError("expects ")
             << (frame ? "'" : "no '") << name << "' in a procedure "
             << (frame ? "with" : "without") << " a frame [rt.procedure_c5]";
    auto number = dyn_cast_or_null<IntegerAttr>(given);
    if (!number)
      continue;
    uint64_t limit = frame.getEvents(), got = number.getValue().getZExtValue();
    if (!alloc && got >= limit)
      return inner.emitOpError("expects an event below ")
             << limit << ", got " << got << " [rt.procedure_c5]";
    if (!alloc)
      continue;
    limit = alloc.getSpace() == Space::Local ? frame.getLocal() : frame.getSymmetric();
    got = llvm::SaturatingAdd(got, static_cast<uint64_t>(alloc.getSizeInBytes()));
    if (got > limit)
      return alloc.emitOpError("expects to end within the frame's ")
             << limit << " bytes of " << stringifySpace(alloc.getSpace()) << " memory, got " << got
             << " [rt.procedure_c5]";
  }
  return success();
}

LogicalResult ProcedureOp::verifyRegions() {
  for (Type type : getResultTypes())
    if (!isa<EventType>(type))
      return emitOpError("expects rt.result arguments instead of function results other than "
                         "events [rt.procedure_c1]");
  const size_t numMemory = getMemoryTypes().size();
  for (auto [i, type] : llvm::enumerate(getArgumentTypes())) {
    if (i >= numMemory && isa<EventType>(type))
      continue;
    auto memory = dyn_cast<MemRefType>(type);
    auto where = [&, i = i] { return emitOpError("argument ") << i << ": "; };
    if (memory && memory.hasStaticShape() &&
        failed(braid::verifyBounded(memory, where, "rt.procedure_c1")))
      return failure();
    auto space = memory ? dyn_cast_or_null<SpaceAttr>(memory.getMemorySpace()) : SpaceAttr();
    bool anySpace = memory && !memory.getMemorySpace();
    if (i >= numMemory || !memory.hasStaticShape() || !isContiguous(memory) ||
        !(anySpace || (space && space.getValue() == Space::Symmetric)))
      return emitOpError("expects argument ")
             << i << " to be statically shaped, contiguous memory without a space or symmetric, or "
             << "an event behind all memory, got " << type << " [rt.procedure_c1]";
    if (getArgAttr(i, RTDialect::kResultAttrName) && getArgAttr(i, RTDialect::kInoutAttrName))
      return emitOpError("expects argument ")
             << i << " not to be both rt.result and rt.inout [rt.procedure_c6]";
  }
  Block &block = getBody().front();
  if (!isa<ReturnOp>(block.back()))
    return emitOpError("expects a body that ends in rt.return [rt.procedure_c2]");
  for (Operation &op : block) {
    if (op.getDialect() != (*this)->getDialect() || isa<KernelOp, ProcedureOp>(op))
      return op.emitOpError("is not a command: rt.procedure holds rt operations on memory only "
                            "[rt.procedure_c2]");
    if (auto launch = dyn_cast<LaunchOp>(op); launch && launch.onTensors())
      return launch.emitOpError("expects outputs in memory inside of rt.procedure "
                                "[rt.procedure_c2]");
    for (Value written : getWrittenRoots(&op))
      if (auto argument = dyn_cast<BlockArgument>(written);
          argument && !isWritten(argument.getArgNumber()))
        return op.emitOpError("expects to write buffers and arguments with rt.result, rt.inout "
                              "or rt.state only, got argument ")
               << argument.getArgNumber() << " [rt.procedure_c3]";
  }
  if (getEntry() && failed(verifyEntry(*this)))
    return failure();
  return verifyFrame(*this);
}

LogicalResult AllocOp::verify() {
  MemRefType type = getBuffer().getType();
  if (!isa_and_nonnull<SpaceAttr>(type.getMemorySpace()) || !isContiguous(type))
    return emitOpError("expects contiguous memory with a #rt.space, got ")
           << type << " [rt.alloc_c1]";
  if (std::optional<uint64_t> offset = getOffset(); offset && *offset % kBufferAlignment != 0)
    return emitOpError("expects an offset that is a multiple of ")
           << kBufferAlignment << ", got " << *offset << " [rt.alloc_c2]";
  return success();
}

LogicalResult ViewOp::verify() {
  MemRefType from = getSource().getType(), to = getResult().getType();
  if (from.getNumElements() != to.getNumElements() ||
      from.getElementType() != to.getElementType() || from.getMemorySpace() != to.getMemorySpace())
    return emitOpError("expects memory of one size, element type and space, got ")
           << from << " and " << to << " [rt.view_c1]";
  MemRefType expected = reshapedType(from, to.getShape());
  if (!expected)
    return emitOpError("expects a shape that strides of the source can walk, got ")
           << from << " and " << to << " [rt.view_c2]";
  if (getStrides(expected) != getStrides(to) && expected != to)
    return emitOpError("expects ") << expected << ", got " << to << " [rt.view_c2]";
  return success();
}

LogicalResult SubviewOp::verify() {
  MemRefType from = getSource().getType(), to = getResult().getType();
  if (from.getRank() != to.getRank() || from.getElementType() != to.getElementType() ||
      from.getMemorySpace() != to.getMemorySpace())
    return emitOpError("expects the source's rank, element type and space, got ")
           << from << " and " << to << " [rt.subview_c2]";
  for (auto [d, theirs, mine] : llvm::enumerate(getStrides(from), getStrides(to)))
    if (to.getDimSize(d) != 1 && theirs != mine)
      return emitOpError("expects the source's strides, got ")
             << from << " and " << to << " [rt.subview_c2]";
  if (getPart().has_value() != getGroup().has_value() || (getShift() && !getPart()))
    return emitOpError("expects 'part' with a group, and a shift only with both [rt.subview_c3]");
  if (getPart() && static_cast<uint64_t>(*getPart()) >= static_cast<uint64_t>(from.getRank()))
    return emitOpError("expects 'part' to be a dimension, got ")
           << *getPart() << " [rt.subview_c3]";
  for (Operation *below = getSource().getDefiningOp();
       getPart() && isa_and_nonnull<ViewOp, SubviewOp>(below);
       below = below->getOperand(0).getDefiningOp())
    if (auto part = dyn_cast<SubviewOp>(below); part && part.getPart())
      return emitOpError("expects its source not to be a part by rank itself [rt.subview_c4]");
  if (getOffsets().size() != static_cast<size_t>(from.getRank()))
    return emitOpError("expects ")
           << from.getRank() << " offsets, got " << getOffsets().size() << " [rt.subview_c1]";
  for (auto [d, offset] : llvm::enumerate(getOffsets()))
    if (offset < 0 || offset > from.getDimSize(d) - to.getDimSize(d))
      return emitOpError("expects to lie inside of the source in dimension ")
             << d << ", got " << to.getDimSize(d) << " elements from " << offset << " of "
             << from.getDimSize(d) << " [rt.subview_c1]";
  return success();
}

LogicalResult SubviewOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getGroup())
    return success();
  if (failed(verifyGroup(*this, *getGroup(), symbols, "rt.subview_c3")))
    return failure();
  const int64_t ranks = groupSize(*this, *getGroup()), part = *getPart();
  const int64_t size = getResult().getType().getDimSize(part),
                room = getSource().getType().getDimSize(part) - getOffsets()[part];
  if (braid::saturatingProduct({size, ranks}) > room)
    return emitOpError("expects ") << ranks << " parts of " << size << " in the " << room
                                   << " elements of dimension " << part << " [rt.subview_c1]";
  return success();
}

LogicalResult ReturnOp::verify() {
  auto procedure = cast<ProcedureOp>((*this)->getParentOp());
  if (getEvents().size() != procedure.getResultTypes().size())
    return emitOpError("expects ") << procedure.getResultTypes().size() << " events, got "
                                   << getEvents().size() << " [rt.return_c1]";
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<ProcedureOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("references unknown procedure ") << getCalleeAttr() << " [rt.call_c1]";
  if (callee.getEntry())
    return emitOpError("expects a procedure that is not an entry, got ")
           << getCalleeAttr() << " [rt.call_c1]";
  if (callee.getNumArguments() != getNumOperands())
    return emitOpError("expects ")
           << callee.getNumArguments() << " arguments for " << getCalleeAttr() << ", got "
           << getNumOperands() << " [rt.call_c1]";
  if (callee.getResultTypes().size() != getNumResults())
    return emitOpError("expects ")
           << callee.getResultTypes().size() << " events from " << getCalleeAttr() << ", got "
           << getNumResults() << " [rt.call_c1]";
  for (auto [i, operand, type] : llvm::enumerate(getArguments(), callee.getArgumentTypes())) {
    auto given = dyn_cast<MemRefType>(operand.getType()), taken = dyn_cast<MemRefType>(type);
    if (!given != !taken)
      return emitOpError("expects argument ")
             << i << " to be of type " << type << ", got " << operand.getType() << " [rt.call_c1]";
    if (!given)
      continue;
    if (given.getShape() != taken.getShape() || given.getElementType() != taken.getElementType())
      return emitOpError("expects argument ") << i << " of the shape and element type of " << taken
                                              << ", got " << given << " [rt.call_c1]";
    if (!isContiguous(given))
      return emitOpError("expects argument ")
             << i << " to be contiguous, got " << given << " [rt.call_c2]";
    if (taken.getMemorySpace() && given.getMemorySpace() != taken.getMemorySpace())
      return emitOpError("expects argument ")
             << i << " to be symmetric memory, got " << given << " [rt.call_c2]";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

/// Whether `given` is the kernel's type `taken` with its dynamic dimension set to `rows`.
static bool fitsKernel(ShapedType given, RankedTensorType taken, int64_t rows) {
  SmallVector<int64_t> shape(taken.getShape());
  if (taken.getElementType() != given.getElementType())
    return false;
  if (KernelOp::isRowOperand(taken))
    shape.front() = rows;
  ArrayRef<int64_t> actual = given.getShape();
  if (actual == ArrayRef(shape))
    return true;
  if (isa<MemRefType>(given) || !KernelOp::isRowOperand(taken) || actual.size() + 1 < shape.size())
    return false;
  size_t extra = actual.size() - shape.size() + 1;
  int64_t leading = 1;
  for (int64_t size : actual.take_front(extra))
    leading *= size;
  return leading == rows && actual.drop_front(extra) == ArrayRef(shape).drop_front();
}

/// Whether a launch's operand is the payload of all rows of the kernel's.
static LogicalResult verifyPayload(LaunchOp op, KernelOp kernel, unsigned operand, Value value,
                                   StringRef what) {
  auto type = cast<ShapedType>(value.getType());
  if (braid::comm::toRuntime(type.getElementType()) != braid::runtime::DType::i8)
    return op.emitOpError("expects ")
           << what << " to be a payload of i8 values for " << op.getKernelAttr() << ", got " << type
           << " [rt.launch_c6]";
  const auto rows = static_cast<int64_t>(op.getRows());
  if (braid::runtime::Status status = kernel.getCodecCall(operand, rows, type).check();
      !status.ok())
    return op.emitOpError("expects ")
           << what << " to be a payload of " << rows << " rows for " << op.getKernelAttr() << ": "
           << status.message() << " [rt.launch_c6]";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("references unknown kernel ") << getKernelAttr() << " [rt.launch_c1]";
  auto consistent = [&](Type type) { return isa<RankedTensorType>(type) == onTensors(); };
  if (!llvm::all_of(getInputs().getTypes(), consistent) || (!onTensors() && getNumResults() != 0))
    return emitOpError("expects inputs and outputs to be all tensors or all memory "
                       "[rt.launch_c2]");
  ValueRange outputs = onTensors() ? ValueRange(getResults()) : ValueRange(getOutputs());
  if (getInputs().size() != kernel.getNumArguments() || outputs.size() != kernel.getNumResults())
    return emitOpError("expects ")
           << kernel.getNumArguments() << " inputs and " << kernel.getNumResults()
           << " outputs for " << getKernelAttr() << ", got " << getInputs().size() << " and "
           << outputs.size() << " [rt.launch_c1]";
  auto check = [&](ValueRange given, ArrayRef<Type> taken, StringRef what) -> LogicalResult {
    const unsigned first = what == "input" ? 0 : kernel.getNumArguments();
    for (auto [i, value, type] : llvm::enumerate(given, taken))
      if (kernel.getPayload(first + i)) {
        if (failed(verifyPayload(*this, kernel, first + i, value, (what + " " + Twine(i)).str())))
          return failure();
      } else if (!fitsKernel(cast<ShapedType>(value.getType()), cast<RankedTensorType>(type),
                             getRows()))
        return emitOpError("expects ")
               << what << " " << i << " to be the kernel's " << type << " with " << getRows()
               << " rows, got " << value.getType() << " [rt.launch_c3]";
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
    return emitOpError("expects ") << call->rows() << " rows for " << getKernelAttr() << ", got "
                                   << getRows() << " [rt.launch_c5]";
  return success();
}

LogicalResult CopyOp::verify() {
  MemRefType source = getSource().getType(), dest = getDest().getType();
  if (source.getShape() != dest.getShape() || source.getElementType() != dest.getElementType())
    return emitOpError("expects one shape and element type, got ")
           << source << " and " << dest << " [rt.copy_c1]";
  return success();
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

/// Multiplies dimension `dim` by `numerator` and divides it by `denominator`; false where that is
/// no dimension or does not divide.
static bool scale(SmallVectorImpl<int64_t> &shape, int64_t dim, int64_t numerator,
                  int64_t denominator) {
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
    return false;
  int64_t scaled = braid::saturatingProduct({shape[dim], numerator});
  shape[dim] = scaled / denominator;
  return scaled % denominator == 0;
}

LogicalResult StartOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyGroup(*this, getGroup(), symbols, "rt.start_c1")))
    return failure();
  for (int64_t position : getPairs().value_or(ArrayRef<int64_t>()))
    if (failed(verifyPosition(*this, getGroup(), "every position of 'pairs' to be", position,
                              "rt.start_c6")))
      return failure();
  if (getRoot() && failed(verifyPosition(*this, getGroup(), "'root' to be a position", *getRoot(),
                                         "rt.start_c6")))
    return failure();
  using Kind = CollectiveKind;
  const Kind kind = getKind();
  if (kind == Kind::Send || kind == Kind::Recv)
    return success();
  int64_t ranks = groupSize(*this, getGroup());
  if (kind == Kind::AllToAllV)
    if (int64_t blocks = cast<MemRefType>(getInputs().back().getType()).getDimSize(0);
        blocks % ranks != 0)
      return emitOpError("expects ")
             << blocks << " blocks to divide over " << ranks << " ranks [rt.start_c8]";
  int64_t numerator = kind == Kind::AllGather ? ranks : 1;
  int64_t denominator = kind == Kind::ReduceScatter || kind == Kind::AllToAll ? ranks : 1;
  for (auto [input, output] : llvm::zip_equal(getInputs(), getOutputs())) {
    auto in = cast<MemRefType>(input.getType()), out = cast<MemRefType>(output.getType());
    SmallVector<int64_t> shape(in.getShape());
    if ((getConcat() && !scale(shape, *getConcat(), ranks, 1)) ||
        (getDim() && !scale(shape, *getDim(), numerator, denominator)) ||
        out.getShape() != ArrayRef(shape) || in.getElementType() != out.getElementType())
      return emitOpError("expects outputs of ")
             << stringifyCollectiveKind(kind) << " over " << ranks
             << " ranks to fit its inputs, got " << in << " and " << out << " [rt.start_c4]";
  }
  return success();
}

/// Verifies an all_to_all_v.
static LogicalResult verifyCounted(StartOp op) {
  auto counts = cast<MemRefType>(op.getInputs().back().getType());
  if (counts.getRank() != 1 ||
      !(counts.getElementType().isInteger(32) || counts.getElementType().isInteger(64)))
    return op.emitOpError("expects counts of rank 1 of i32 or i64 as last value, got ")
           << counts << " [rt.start_c8]";
  auto first = cast<MemRefType>(op.getInputs().front().getType());
  for (Value value : op.getInputs().drop_back()) {
    auto type = cast<MemRefType>(value.getType());
    if (type.getRank() < 2 || type.getDimSize(0) != counts.getDimSize(0) ||
        type.getDimSize(1) != first.getDimSize(1))
      return op.emitOpError("expects values of ")
             << counts.getDimSize(0) << " blocks by one capacity, got " << type << " [rt.start_c8]";
  }
  return success();
}

LogicalResult StartOp::verify() {
  bool sends = getKind() == CollectiveKind::Send, receives = getKind() == CollectiveKind::Recv;
  size_t ins = getInputs().size(), outs = getOutputs().size();
  if (sends || receives) {
    if ((sends ? ins : outs) == 0 || (sends ? outs : ins) != 0)
      return emitOpError("expects ")
             << (sends ? "inputs and no outputs" : "outputs and no inputs") << ", got " << ins
             << " and " << outs << " values [rt.start_c2]";
  } else if (ins == 0 || ins != outs) {
    return emitOpError("expects at least one input and as many outputs, got ")
           << ins << " and " << outs << " [rt.start_c2]";
  } else if (getKind() == CollectiveKind::AllToAllV && ins < 2) {
    return emitOpError("expects at least one value besides the counts [rt.start_c2]");
  }
  for (Value value : llvm::concat<Value>(getInputs(), getOutputs())) {
    auto type = cast<MemRefType>(value.getType());
    auto space = dyn_cast_or_null<SpaceAttr>(type.getMemorySpace());
    if (!space || space.getValue() != Space::Symmetric)
      return emitOpError("expects symmetric memory, got ") << type << " [rt.start_c3]";
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
      return emitOpError("expects ")
             << (!rule.expected             ? "no "
                 : rule.what == "reduction" ? "a "
                                            : "")
             << rule.what << " for " << stringifyCollectiveKind(getKind()) << " [rt.start_c5]";
  if (getPairs() &&
      failed(braid::comm::verifyPairs(*this, *getPairs(), "rt.start_c7", "rt.start_c7",
                                      sends || receives ? "rt.start_c7" : "")))
    return failure();
  if (!getQueue().isCommunication())
    return emitOpError("expects to run on a communication queue, got ")
           << getQueue().str() << " [rt.start_c11]";
  llvm::SmallPtrSet<Attribute, 4> waiting;
  for (Operation *user : getDone().getUsers())
    if (auto wait = dyn_cast<WaitOp>(user); wait && !waiting.insert(wait.getQueue()).second)
      return emitOpError("expects each queue to wait for its event once, got two waits on ")
             << wait.getQueue().str() << " [rt.start_c10]";
  return success();
}

/// Whether a queue may wait for an event of a command `Source`: that of one on another queue, or an
/// event that a caller passes or a callee hands out.
template <typename Source> static bool mayWaitFor(Value event, QueueAttr queue) {
  if (isa<BlockArgument>(event) || isa<CallOp>(event.getDefiningOp()))
    return true;
  auto source = event.getDefiningOp<Source>();
  return source && source.getQueue() != queue;
}

LogicalResult WaitOp::verify() {
  return mayWaitFor<StartOp>(getEvent(), getQueue())
             ? success()
             : LogicalResult(
                   emitOpError("expects the event of an rt.start on another queue [rt.wait_c1]"));
}

LogicalResult AwaitOp::verify() {
  return mayWaitFor<RecordOp>(getEvent(), getQueue())
             ? success()
             : LogicalResult(
                   emitOpError("expects the event of an rt.record on another queue [rt.await_c1]"));
}
