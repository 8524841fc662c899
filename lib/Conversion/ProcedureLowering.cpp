//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProcedureLowering.h"

#include "KernelBuilder.h"
#include "QueueOrder.h"

#include "braid/Analysis/MemoryRegion.h"
#include "braid/Base/LibraryKernels.h"
#include "braid/Base/MatmulForm.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static LogicalResult refuseRowOperation(Operation *op) {
  return op->emitOpError("expects to be part of a kernel: lowering to procedures takes the kernels "
                         "level");
}

/// The location with a name for traces: the source's name, else the operation's role in the model.
static Location namedLoc(Operation *op) {
  auto role = op->getAttrOfType<StringAttr>("role");
  if (!role || op->getLoc()->findInstanceOf<NameLoc>())
    return op->getLoc();
  return NameLoc::get(role, op->getLoc());
}

LogicalResult ProcedureLowering::run() {
  if (failed(checkFunction()))
    return failure();
  plan.emplace(function, signatures);
  if (failed(buildSignature()))
    return failure();
  for (Operation &op : function.getBody().front())
    if (failed(lower(op)))
      return failure();
  return orderQueues(procedure);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value ProcedureLowering::alloc(Location loc, RankedTensorType type, rt::Space space) {
  auto memory = MemRefType::get(type.getShape(), type.getElementType(), MemRefLayoutAttrInterface{},
                                rt::SpaceAttr::get(builder.getContext(), space));
  return rt::AllocOp::create(builder, loc, memory, IntegerAttr());
}

Value ProcedureLowering::view(Location loc, Value memory, ArrayRef<int64_t> shape) {
  auto type = cast<MemRefType>(memory.getType());
  if (type.getShape() == shape)
    return memory;
  MemRefType viewed = rt::reshapedType(type, shape);
  return viewed ? rt::ViewOp::create(builder, loc, viewed, memory) : Value();
}

Value ProcedureLowering::subview(Location loc, Value memory, const PartPlace &place,
                                 ArrayRef<int64_t> shape) {
  auto type = cast<MemRefType>(memory.getType());
  MemRefType part =
      rt::viewType(shape, type.getElementType(), rt::getStrides(type), type.getMemorySpace());
  auto integer = [&](bool given, int64_t value) {
    return given ? builder.getI64IntegerAttr(value) : IntegerAttr();
  };
  return rt::SubviewOp::create(builder, loc, part, memory, place.offsets,
                               integer(place.dim.has_value(), place.dim.value_or(0)),
                               integer(place.shift != 0, place.shift), place.group);
}

void ProcedureLowering::copy(Location loc, Value from, Value to, StringRef why) {
  auto copy = rt::CopyOp::create(builder, loc, from, to,
                                 rt::QueueAttr::get(builder.getContext(), rt::QueueKind::Compute));
  if (place)
    copy->setAttr(comm::CommDialect::kOnAttrName, place);
  ++numCopies;
  remark::missed(loc, remark::RemarkOpts::name("copy").category("buffers"))
      << ("copies " + Twine(rt::sizeInBytes(cast<MemRefType>(from.getType()))) + " bytes: " + why)
             .str();
}

Value ProcedureLowering::contiguous(Location loc, Value memory, StringRef why) {
  auto type = cast<MemRefType>(memory.getType());
  if (rt::isContiguous(type))
    return memory;
  auto space = dyn_cast_or_null<rt::SpaceAttr>(type.getMemorySpace());
  Value packed = alloc(loc, RankedTensorType::get(type.getShape(), type.getElementType()),
                       space ? space.getValue() : rt::Space::Local);
  copy(loc, memory, packed, why);
  return packed;
}

Value ProcedureLowering::symmetric(Location loc, Value memory, StringRef why) {
  auto type = cast<MemRefType>(memory.getType());
  auto space = dyn_cast_or_null<rt::SpaceAttr>(type.getMemorySpace());
  if (space && space.getValue() == rt::Space::Symmetric)
    return memory;
  Value shared = alloc(loc, RankedTensorType::get(type.getShape(), type.getElementType()),
                       rt::Space::Symmetric);
  copy(loc, memory, shared, why);
  return shared;
}

Value ProcedureLowering::defineAt(const MemoryPlan::Destination &destination,
                                  RankedTensorType type) {
  if (!destination.join)
    return view(resultArguments[destination.number].getLoc(), resultArguments[destination.number],
                type.getShape());
  Value joined = destination.join->getResult(0);
  if (!memory(joined))
    define(joined);
  Value operand = destination.join->getOperand(destination.number);
  Location loc = operand.getLoc();
  if (joinedParts(destination.join)[destination.number].group &&
      !regionOf(memory(joined)).byRank.empty())
    return {}; // a view has one place by rank only
  Value part = subview(loc, memory(joined), joinedParts(destination.join)[destination.number],
                       typeOf(operand).getShape());
  return view(loc, part, type.getShape());
}

Value ProcedureLowering::define(Stored value, RankedTensorType type) {
  if (const MemoryPlan::Destination *destination = plan->destination(value))
    if (Value there = defineAt(*destination, type)) {
      inPlace.insert(value);
      return buffers[value] = there;
    }
  return buffers[value] = alloc(value.first.getLoc(), type,
                                plan->isSymmetric(value) ? rt::Space::Symmetric : rt::Space::Local);
}

Value ProcedureLowering::define(Value value) { return define({value, 0}, typeOf(value)); }

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult ProcedureLowering::lower(Operation &op) {
  Location loc = namedLoc(&op);
  if (isReshape(&op))
    return lowerReshape(&op);
  if (std::optional<PartPlace> place = partOf(&op))
    return lowerPart(&op, *place);
  if (SmallVector<PartPlace> places = joinedParts(&op); !places.empty())
    return lowerJoin(&op, places);
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](nn::ParameterOp) { return success(); })
      .Case([&](nn::LinearOp linear) {
        nn::AddOp biased = linear.getBiasAddition();
        Value bias = biased ? biased.getRhs() : Value();
        nn::KernelCall call = linear.getKernelCall();
        call.inputs[runtime::MatmulForm::biasOperand] = bias;
        return launchLibrary(loc, call, biased ? biased.getResult() : linear.getResult());
      })
      .Case([&](nn::AddOp add) -> LogicalResult {
        // The kernel of its matmul adds a bias.
        return add.isRowOperation() ? refuseRowOperation(add) : success();
      })
      .Case([&](nn::KernelCallOpInterface call) {
        return launchLibrary(loc, call.getKernelCall(), call->getResults());
      })
      .Case([&](rt::LaunchOp launch) { return lowerLaunch(launch); })
      .Case([&](comm::StartOp start) { return lowerStart(start); })
      .Case([&](comm::WaitOp wait) { return lowerWait(wait); })
      .Case([&](func::CallOp call) { return lowerCall(call); })
      .Case([&](func::ReturnOp ret) { return lowerReturn(ret); })
      .Default([&](Operation *other) -> LogicalResult {
        if (isa<comm::CollectiveOpInterface>(other))
          return other->emitOpError("expects to be inside of comm.start: lowering to procedures "
                                    "takes the scheduled level");
        if (isRowOperation(other))
          return refuseRowOperation(other);
        return other->emitOpError("has no counterpart in a procedure");
      });
}

LogicalResult ProcedureLowering::lowerReshape(Operation *op) {
  Location loc = namedLoc(op);
  Value result = op->getResult(0), from = memory(op->getOperand(0));
  Value there = view(loc, from, typeOf(result).getShape());
  if (!there)
    there = view(loc, contiguous(loc, from, "no strides walk a part of a value in this shape"),
                 typeOf(result).getShape());
  buffers[{result, 0}] = there;
  return success();
}

LogicalResult ProcedureLowering::lowerPart(Operation *op, const PartPlace &place) {
  Location loc = namedLoc(op);
  Value result = op->getResult(0), from = memory(op->getOperand(0));
  // A view has one place by rank only.
  if (place.group && !regionOf(from).byRank.empty()) {
    Value whole = alloc(loc, typeOf(op->getOperand(0)), rt::Space::Local);
    copy(loc, from, whole, "a part by rank of a part by rank has no view");
    from = whole;
  }
  buffers[{result, 0}] = subview(loc, from, place, typeOf(result).getShape());
  return success();
}

LogicalResult ProcedureLowering::lowerJoin(Operation *op, ArrayRef<PartPlace> places) {
  Location loc = namedLoc(op);
  Value result = op->getResult(0);
  if (!memory(result))
    define(result);
  for (auto [i, place] : llvm::enumerate(places)) {
    Value operand = op->getOperand(i);
    Stored root = plan->rootOf(operand);
    const MemoryPlan::Destination *destination = plan->destination(root);
    if (destination && destination->join == op && destination->number == i &&
        inPlace.contains(root))
      continue;
    Value part = subview(loc, memory(result), place, typeOf(operand).getShape());
    copy(loc, memory(operand), part,
         "the operand of a concatenation is given by a caller, a part of another value, or in "
         "another concatenation already");
  }
  return success();
}

LogicalResult ProcedureLowering::lowerStart(comm::StartOp op) {
  comm::CollectiveOpInterface collective = op.getCollective();
  Location loc = namedLoc(collective);
  SmallVector<Value> inputs, outputs;
  for (Value input : op.getInputs())
    inputs.push_back(symmetric(loc, memory(input), "collectives read symmetric memory"));
  for (auto [i, type] : llvm::enumerate(flattenTypes(op.getHandle().getType())))
    outputs.push_back(define({op.getHandle(), i}, type));

  // The kinds of rt.start have the names of the comm operations, which name their attributes alike.
  std::optional<rt::CollectiveKind> kind;
  if (isa_and_nonnull<comm::CommDialect>(collective->getDialect()))
    kind = rt::symbolizeCollectiveKind(collective->getName().stripDialect());
  if (!kind)
    return collective.emitOpError("has no counterpart in a procedure");
  auto integer = [&](StringRef name) { return collective->getAttrOfType<IntegerAttr>(name); };
  IntegerAttr dim = integer(*kind == rt::CollectiveKind::AllToAll ? "split_dim" : "dim");
  MLIRContext *context = builder.getContext();
  auto queue = rt::QueueAttr::get(context, rt::QueueKind::Communication, op.getQueue());
  Value ready = rt::RecordOp::create(
      builder, loc, rt::QueueAttr::get(context, rt::QueueKind::Compute), IntegerAttr());
  rt::AwaitOp::create(builder, loc, ready, queue);
  events[op.getHandle()] = rt::StartOp::create(
      builder, loc, rt::CollectiveKindAttr::get(context, *kind),
      collective->getAttrOfType<comm::ReduceKindAttr>("kind"), inputs, outputs, dim,
      integer("concat_dim"), integer("root"), collective->getAttrOfType<DenseI64ArrayAttr>("pairs"),
      integer("tag"), collective.getGroup(), collective->getAttrOfType<StringAttr>("role"), queue,
      IntegerAttr());
  return success();
}

LogicalResult ProcedureLowering::lowerWait(comm::WaitOp op) {
  auto queue = rt::QueueAttr::get(builder.getContext(), rt::QueueKind::Compute);
  if (std::optional<uint64_t> index = op.getQueue())
    queue = rt::QueueAttr::get(builder.getContext(), rt::QueueKind::Communication,
                               static_cast<int64_t>(*index));
  Value event = events.lookup(op.getHandle());
  // A queue runs in order.
  if (auto start = event.getDefiningOp<rt::StartOp>(); !start || start.getQueue() != queue)
    rt::WaitOp::create(builder, namedLoc(op), event, queue);
  for (auto [i, output] : llvm::enumerate(op.getOutputs()))
    buffers[{output, 0}] = memory(Stored(op.getHandle(), i));
  return success();
}

LogicalResult ProcedureLowering::lowerLaunch(rt::LaunchOp op) {
  rt::KernelOp kernel = op.getKernelOp();
  Location loc = op.getLoc();
  // Collapses the row dimensions of operands that have more of them than the kernel.
  auto shapeOf = [&](Type kernelType) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(kernelType).getShape());
    if (rt::KernelOp::isRowOperand(kernelType))
      shape.front() = op.getRows();
    return shape;
  };
  constexpr StringLiteral why = "a kernel takes rows at one distance from each other",
                          whyAdjacent = "a kernel takes values of rows side by side";
  constexpr StringLiteral whyPayload = "a codec takes the parts of a payload at one distance",
                          whyOwn = "a codec takes rows at one distance from each other";
  const auto numRows = static_cast<int64_t>(op.getRows());
  SmallVector<Value> inputs, outputs;
  SmallVector<std::tuple<Value, Value, StringRef>> after; // outputs that are computed elsewhere
  auto takesPayload = [&](size_t operand, Value at) {
    return kernel
        .getCodecCall(static_cast<unsigned>(operand), numRows, cast<MemRefType>(at.getType()))
        .check()
        .ok();
  };
  for (auto [i, input, type] : llvm::enumerate(op.getInputs(), kernel.getArgumentTypes())) {
    if (kernel.getPayload(static_cast<unsigned>(i))) {
      Value payload = memory(input);
      inputs.push_back(takesPayload(i, payload) ? payload : contiguous(loc, payload, whyPayload));
      continue;
    }
    MemRefType rows = rt::reshapedType(cast<MemRefType>(memory(input).getType()), shapeOf(type));
    // Of what has one element for each row, the rows themselves are the last dimension.
    const bool adjacent = rows && (rows.getRank() == 0 || rows.getShape().back() == 1 ||
                                   rt::getStrides(rows).back() == 1);
    // What a codec takes beside a payload has all rows in one dimension.
    const bool isOwn = kernel.isOwn(static_cast<unsigned>(i));
    const int64_t columns = isOwn ? cast<RankedTensorType>(type).getShape().back() : 1;
    const bool flat =
        !isOwn || (rows && rt::reshapedType(rows, {rows.getNumElements() / columns, columns}));
    Value from = adjacent && flat ? memory(input)
                                  : contiguous(loc, memory(input),
                                               !rows  ? why
                                               : flat ? whyAdjacent
                                                      : whyOwn);
    inputs.push_back(view(loc, from, shapeOf(type)));
  }
  for (auto [i, result, type] : llvm::enumerate(op.getResults(), kernel.getResultTypes())) {
    const size_t operand = inputs.size() + i;
    const bool encodes = bool(kernel.getPayload(static_cast<unsigned>(operand)));
    Value there = define(result), rows = encodes ? there : view(loc, there, shapeOf(type));
    if (encodes ? !takesPayload(operand, there) : !rows) {
      Value computed = alloc(loc, typeOf(result), rt::Space::Local);
      after.emplace_back(computed, there, encodes ? whyPayload : why);
      rows = encodes ? computed : view(loc, computed, shapeOf(type));
    }
    outputs.push_back(rows);
  }
  rt::LaunchOp::create(builder, loc, op.getKernelAttr(), op.getRows(), inputs, outputs,
                       op.getQueue());
  for (auto [from, to, reason] : after)
    copy(loc, from, to, reason);
  return success();
}

LogicalResult ProcedureLowering::launchLibrary(Location loc, const nn::KernelCall &call,
                                               ValueRange results) {
  const runtime::LibraryKernel &descriptor = *runtime::findLibraryKernel(call.kernel.str());
  SmallVector<Value> inputs, outputs;
  SmallVector<Attribute> optional, scalars;
  for (auto [value, operand] : llvm::zip(call.inputs, descriptor.operands)) {
    if (value && operand.optional)
      optional.push_back(builder.getStringAttr(operand.name));
    if (value)
      inputs.push_back(value);
  }
  // Results that are left out are the last ones.
  for (const auto &[i, operand] :
       llvm::enumerate(llvm::drop_begin(descriptor.operands, descriptor.firstOutput())))
    if (operand.optional && i < results.size())
      optional.push_back(builder.getStringAttr(operand.name));
  for (int64_t integer : call.integers)
    scalars.push_back(builder.getI64IntegerAttr(integer));
  for (double number : call.numbers)
    scalars.push_back(builder.getF64FloatAttr(number));
  auto array = [&](ArrayRef<Attribute> list) {
    return list.empty() ? ArrayAttr() : builder.getArrayAttr(list);
  };
  rt::KernelOp kernel = kernels.get(
      procedure, builder.getFunctionType(ValueRange(inputs).getTypes(), results.getTypes()),
      call.kernel, array(optional), array(scalars), call.group);
  FailureOr<runtime::LibraryCall> described =
      kernel.getLibraryCall(call.group ? comm::groupSize(kernel, call.group) : 1);
  if (failed(described))
    return failure();
  for (Value &input : inputs)
    input = memory(input);
  for (auto [i, result] : llvm::enumerate(results)) {
    Value accumulator = i == 0 ? call.accumulator : Value();
    if (accumulator && plan->accumulatorOf(result)) {
      outputs.push_back(buffers[{result, 0}] = memory(accumulator));
      continue;
    }
    outputs.push_back(define(result));
    if (accumulator)
      copy(loc, memory(accumulator), outputs.back(),
           "the accumulator is given by a caller, a part of another value, or used again");
  }
  // The descriptor says which strides the kernel takes.
  SmallVector<Value *> given;
  for (SmallVector<Value> *list : {&inputs, &outputs})
    for (Value &value : *list)
      given.push_back(&value);
  const std::vector<size_t> operands = descriptor.given(kernel.getOptionalBits());
  for (auto [i, value] : llvm::zip_equal(operands, given)) {
    SmallVector<int64_t> strides = rt::getStrides(cast<MemRefType>(value->getType()));
    described->operands[i]->strides.assign(strides.begin(), strides.end());
  }
  SmallVector<std::pair<Value, Value>> after; // outputs that are computed elsewhere
  if (!described->check().ok()) {
    const std::string why = "the kernel '" + call.kernel.str() + "' does not take these strides";
    for (Value &input : inputs)
      input = contiguous(loc, input, why);
    for (auto [output, result] : llvm::zip_equal(outputs, results)) {
      if (rt::isContiguous(cast<MemRefType>(output.getType())))
        continue;
      Value there = std::exchange(output, alloc(loc, typeOf(result), rt::Space::Local));
      after.emplace_back(output, there);
    }
  }
  rt::LaunchOp::create(builder, loc, FlatSymbolRefAttr::get(kernel.getSymNameAttr()),
                       described->rows(), inputs, outputs);
  for (auto [computed, there] : after)
    copy(loc, computed, there,
         "the kernel '" + call.kernel.str() + "' does not write these strides");
  return success();
}

LibraryKernels::LibraryKernels(ModuleOp module) {
  for (auto symbol : module.getOps<SymbolOpInterface>())
    names.insert(symbol.getName());
}

rt::KernelOp LibraryKernels::get(Operation *before, FunctionType type, StringRef library,
                                 ArrayAttr optional, ArrayAttr scalars, comm::GroupAttr group) {
  OpBuilder builder(before);
  auto orUnit = [&](Attribute attribute) {
    return attribute ? attribute : Attribute(builder.getUnitAttr());
  };
  rt::KernelOp &kernel =
      declared[builder.getArrayAttr({builder.getStringAttr(library), TypeAttr::get(type),
                                     orUnit(optional), orUnit(scalars), orUnit(group)})];
  if (kernel)
    return kernel;
  std::string name = library.str();
  for (unsigned number = 0; !names.insert(name).second; ++number)
    name = (library + "_" + Twine(number)).str();
  kernel = rt::KernelOp::create(builder, before->getLoc(), name, type);
  kernel.getBody().getBlocks().clear();
  kernel.setLibrary(library);
  if (optional)
    kernel.setOptionalAttr(optional);
  if (scalars)
    kernel.setScalarsAttr(scalars);
  if (group)
    kernel.setGroupAttr(group);
  return kernel;
}

LogicalResult ProcedureLowering::lowerCall(func::CallOp op) {
  Location loc = op.getLoc();
  auto callee = signatures.find(op.getCallee());
  if (callee == signatures.end())
    return op.emitOpError("expects @")
           << op.getCallee() << " not to call itself, nor a function that does";
  place = comm::placeOf(op);
  llvm::scope_exit leave([&] { place = {}; });
  constexpr StringLiteral layout = "arguments of a call are contiguous";
  constexpr StringLiteral space = "a collective of the callee uses the argument in place";
  SmallVector<Value> arguments, given;
  SmallVector<std::pair<Value, Value>> after; // results that are computed elsewhere
  auto needsSymmetric = callee->second.arguments.begin();
  for (Value operand : op.getOperands()) {
    for (size_t i = 0, count = flattenTypes(operand.getType()).size(); i < count; ++i) {
      Value from = contiguous(loc, memory(Stored(operand, i)), layout);
      arguments.push_back(*needsSymmetric++ ? symmetric(loc, from, space) : from);
    }
    if (isa<comm::HandleType>(operand.getType()))
      given.push_back(events.lookup(operand));
  }
  auto expected = callee->second.results.begin();
  for (Value result : op.getResults())
    for (auto [i, type] : llvm::enumerate(flattenTypes(result.getType()))) {
      const SignatureResult taken = *expected++;
      if (taken.argument && plan->accumulatorOf(result)) {
        buffers[{result, 0}] = arguments[*taken.argument];
        continue;
      }
      Value there = define({result, i}, type);
      auto memref = cast<MemRefType>(there.getType());
      bool fits = rt::isContiguous(memref) && (!taken.symmetric || memref.getMemorySpace());
      if (!fits && isa<comm::HandleType>(result.getType()))
        return op.emitOpError("expects memory of what is in flight to be contiguous and symmetric, "
                              "got ")
               << memref << " for result " << cast<OpResult>(result).getResultNumber();
      if (!fits) {
        Value computed =
            alloc(loc, type, taken.symmetric ? rt::Space::Symmetric : rt::Space::Local);
        after.emplace_back(computed, there);
        there = computed;
      }
      if (!taken.argument) {
        arguments.push_back(there);
        continue;
      }
      copy(loc, arguments[*taken.argument], there,
           "the callee changes an argument that is given by a caller, a part of another value, or "
           "used again");
      arguments[*taken.argument] = there;
    }
  arguments.append(given);
  SmallVector<Type> handed;
  for (Value result : op.getResults())
    if (isa<comm::HandleType>(result.getType()))
      handed.push_back(rt::EventType::get(builder.getContext()));
  auto call =
      rt::CallOp::create(builder, loc, handed, op.getCalleeAttr(), arguments, rt::FrameAttr());
  if (Attribute name = op->getAttr(comm::CommDialect::kCallAttrName))
    call->setAttr(comm::CommDialect::kCallAttrName, name);
  if (place)
    call->setAttr(comm::CommDialect::kOnAttrName, place);
  size_t event = 0;
  for (Value result : op.getResults())
    if (isa<comm::HandleType>(result.getType()))
      events[result] = call.getEvents()[event++];
  for (auto [from, to] : after)
    copy(loc, from, to, layout);
  return success();
}

LogicalResult ProcedureLowering::lowerReturn(func::ReturnOp op) {
  SmallVector<Value> handed;
  struct State {
    Value from, to; ///< the new value, and the memory of the old one
    comm::PlaceAttr place;
  };
  SmallVector<State> states;
  unsigned number = 0; // of the result in memory
  llvm::scope_exit leave([&] { place = {}; });
  for (auto [result, value] : llvm::enumerate(op.getOperands())) {
    place = function.getResultAttrOfType<comm::PlaceAttr>(result, comm::CommDialect::kOnAttrName);
    bool isHandle = isa<comm::HandleType>(value.getType());
    if (isHandle)
      handed.push_back(events.lookup(value));
    for (size_t i = 0, count = flattenTypes(value.getType()).size(); i < count; ++i, ++number) {
      Stored root = isHandle ? Stored(value, i) : plan->rootOf(value);
      const MemoryPlan::Destination *destination = plan->destination(root);
      if (plan->getSignature().results[number].argument) {
        if (rt::getRoot(memory(value)) != resultArguments[number])
          states.push_back({memory(value), resultArguments[number], place});
        continue;
      }
      if (destination && !destination->join && destination->number == number &&
          inPlace.contains(root))
        continue;
      if (isHandle)
        return op.emitOpError("expects a handle that it returns to be that of a collective that "
                              "the function or a callee starts, and returned once");
      copy(op.getLoc(), memory(value), resultArguments[number],
           "the result is also another result, a part of another value, or an argument");
    }
  }
  // By now nothing reads old values any more, except that a state may become another's new value.
  auto isState = [&](Value memory) {
    return llvm::any_of(states,
                        [&](const State &state) { return state.to == rt::getRoot(memory); });
  };
  for (auto &[from, to, on] : states)
    if (isState(from)) {
      place = on;
      auto type = cast<MemRefType>(from.getType());
      Value kept = alloc(op.getLoc(), RankedTensorType::get(type.getShape(), type.getElementType()),
                         rt::Space::Local);
      copy(op.getLoc(), from, kept, "the old value of a state becomes the new one of another");
      from = kept;
    }
  for (auto [from, to, on] : states) {
    place = on;
    copy(
        op.getLoc(), from, to,
        "the new value of a state is given, used by a collective, or computed while the old one is "
        "still needed");
  }
  rt::ReturnOp::create(builder, op.getLoc(), handed);
  return success();
}
