//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProcedureLowering.h"

#include "KernelBuilder.h"

#include "braid/Base/MatmulForm.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static Type memoryType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return MemRefType::get(tensor.getShape(), tensor.getElementType());
}

/// Operations whose result is the operand's memory in another shape.
static bool isView(Operation *op) {
  return isa_and_nonnull<nn::SplitHeadsOp, nn::MergeHeadsOp>(op);
}

/// The accumulator that the operation adds to in place: nothing else uses it, and its memory is the
/// procedure's own.
static Value accumulatorInPlace(Operation *op) {
  auto call = dyn_cast_or_null<nn::KernelCallOpInterface>(op);
  Value accumulator = call ? call.getKernelCall().accumulator : Value();
  if (!accumulator || !accumulator.hasOneUse())
    return {};
  Operation *producer = accumulator.getDefiningOp();
  return producer && !isa<nn::ParameterOp>(producer) && !isView(producer) ? accumulator : Value();
}

/// The value whose memory this one has: it is under a chain of views and accumulations.
static Value rootOf(Value value) {
  while (Operation *producer = value.getDefiningOp()) {
    Value below = isView(producer) ? producer->getOperand(0) : accumulatorInPlace(producer);
    if (!below)
      break;
    value = below;
  }
  return value;
}

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
  analyze();
  if (failed(buildSignature()))
    return failure();
  for (Operation &op : function.getBody().front())
    if (failed(lower(op)))
      return failure();
  return success();
}

LogicalResult ProcedureLowering::checkFunction() {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("expects a body of one block to become a procedure");
  for (Type type :
       llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes())) {
    if (isa<comm::HandleType>(type))
      return function.emitOpError(
                 "expects every collective to be waited for in the function that starts it, got ")
             << type << " in its signature";
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return function.emitOpError("expects statically shaped tensors in its signature, got ")
             << type;
  }
  return success();
}

void ProcedureLowering::analyze() {
  Block &block = function.getBody().front();
  llvm::DenseSet<Value> received; // results of waits, whose memory the start has chosen
  for (Operation &op : block) {
    if (auto start = dyn_cast<comm::StartOp>(op))
      for (Value input : start.getInputs())
        symmetric.insert(rootOf(input));
    if (auto wait = dyn_cast<comm::WaitOp>(op))
      received.insert(wait.getOutputs().begin(), wait.getOutputs().end());
  }
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    Value root = rootOf(value);
    Operation *producer = root.getDefiningOp();
    if (producer && !isa<nn::ParameterOp>(producer) && !symmetric.contains(root) &&
        !received.contains(root))
      destinations.try_emplace(root, i);
  }
}

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

LogicalResult ProcedureLowering::buildSignature() {
  Block &block = function.getBody().front();
  bool entry = function->hasAttr(nn::NNDialect::kEntryAttrName);
  SmallVector<nn::ParameterOp> parameters(block.getOps<nn::ParameterOp>());
  if (!entry && !parameters.empty())
    return parameters.front().emitOpError("expects to stand in an entry, got @")
           << function.getSymName();

  SmallVector<Value> given(parameters.begin(), parameters.end());
  llvm::append_range(given, block.getArguments());
  auto types = llvm::map_to_vector(ValueRange(given).getTypes(), memoryType);
  llvm::append_range(types, llvm::map_range(function.getResultTypes(), memoryType));
  builder.setInsertionPoint(function);
  procedure = rt::ProcedureOp::create(builder, function.getLoc(), function.getSymName(), types);
  procedure.setEntry(entry);
  Block &body = procedure.getBody().front();
  builder.setInsertionPointToStart(&body);
  for (auto [value, argument] : llvm::zip(given, body.getArguments())) {
    argument.setLoc(value.getLoc());
    buffers[value] = argument;
  }
  resultArguments = llvm::to_vector(body.getArguments().drop_front(given.size()));
  if (entry)
    return describeEntry(parameters);

  for (BlockArgument argument : block.getArguments())
    if (auto loc = argument.getLoc()->findInstanceOf<NameLoc>())
      procedure.setArgAttr(argument.getArgNumber(), rt::RTDialect::kNameAttrName, loc.getName());
  for (BlockArgument argument : resultArguments)
    procedure.setArgAttr(argument.getArgNumber(), rt::RTDialect::kResultAttrName,
                         builder.getUnitAttr());
  return success();
}

LogicalResult ProcedureLowering::describeEntry(ArrayRef<nn::ParameterOp> parameters) {
  for (auto [i, op] : llvm::enumerate(parameters)) {
    nn::ParameterOp parameter = op; // accessors are not const
    auto attr = rt::ParameterAttr::get(builder.getContext(), parameter.getName(),
                                       parameter.getParameterType(), parameter.getShardingAttr(),
                                       parameter.getInitAttr(), parameter.getSlices());
    procedure.setArgAttr(i, rt::RTDialect::kParameterAttrName, attr);
  }
  auto describe = [&](unsigned i, bool isResult) -> LogicalResult {
    StringRef what = isResult ? "result " : "argument ";
    NamedAttrList attrs(isResult ? function.getResultAttrDict(i) : function.getArgAttrDict(i));
    auto get = [&](StringRef name, auto type) {
      return dyn_cast_or_null<decltype(type)>(attrs.get(name));
    };
    auto name = get(nn::NNDialect::kNameAttrName, StringAttr());
    if (!name)
      return function.emitOpError("expects ")
             << what << i << " of an entry to have '" << nn::NNDialect::kNameAttrName << "'";
    auto sharding = get(comm::CommDialect::kShardingAttrName, comm::ShardingAttr());
    if (isResult && sharding && sharding.isPartial())
      return function.emitOpError("expects result ")
             << i << " of an entry to be reduced, got " << sharding;
    auto global = get(comm::CommDialect::kGlobalTypeAttrName, TypeAttr()),
         unpadded = get(nn::NNDialect::kUnpaddedAttrName, TypeAttr());
    Type local = isResult ? function.getResultTypes()[i] : function.getArgumentTypes()[i];
    auto type = cast<RankedTensorType>(global ? global.getValue() : local),
         padded = RankedTensorType();
    if (unpadded && unpadded.getValue() != type)
      padded = std::exchange(type, cast<RankedTensorType>(unpadded.getValue()));
    procedure.setArgAttr(
        isResult ? resultArguments[i].getArgNumber() : parameters.size() + i,
        isResult ? rt::RTDialect::kResultAttrName : rt::RTDialect::kOperandAttrName,
        rt::ValueAttr::get(builder.getContext(), name.getValue(), type, padded, sharding,
                           get(nn::NNDialect::kDefaultAttrName, IntegerAttr()),
                           get(nn::NNDialect::kBelowAttrName, IntegerAttr())));
    return success();
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (failed(describe(i, /*isResult=*/false)))
      return failure();
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (failed(describe(i, /*isResult=*/true)))
      return failure();
  return success();
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
  auto viewed = MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface{},
                                type.getMemorySpace());
  return rt::ViewOp::create(builder, loc, viewed, memory);
}

void ProcedureLowering::copy(Location loc, Value from, Value to) {
  rt::CopyOp::create(builder, loc, from, to,
                     rt::QueueAttr::get(builder.getContext(), rt::QueueKind::Compute));
  ++numCopies;
}

Value ProcedureLowering::define(Value value) {
  if (auto destination = destinations.find(value); destination != destinations.end())
    return buffers[value] =
               view(value.getLoc(), resultArguments[destination->second], typeOf(value).getShape());
  return buffers[value] =
             alloc(value.getLoc(), typeOf(value),
                   symmetric.contains(value) ? rt::Space::Symmetric : rt::Space::Local);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult ProcedureLowering::lower(Operation &op) {
  Location loc = namedLoc(&op);
  auto compute = rt::QueueAttr::get(builder.getContext(), rt::QueueKind::Compute);
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
      .Case<nn::SplitHeadsOp, nn::MergeHeadsOp>([&](Operation *reshape) {
        Value result = reshape->getResult(0);
        buffers[result] = view(loc, memory(reshape->getOperand(0)), typeOf(result).getShape());
        return success();
      })
      .Case([&](rt::LaunchOp launch) { return lowerLaunch(launch); })
      .Case([&](comm::PartOp part) {
        const int64_t dim = part.getDim(), shift = part.getShift();
        return launchLibrary(loc, {"part", {part.getInput()}, {dim, shift}, {}, part.getGroup()},
                             part.getOutput());
      })
      .Case([&](comm::StartOp start) { return lowerStart(start); })
      .Case([&](comm::WaitOp wait) -> LogicalResult {
        Value event = events.lookup(wait.getHandle());
        if (!event)
          return wait.emitOpError("expects a handle that the same function starts");
        rt::WaitOp::create(builder, loc, event, compute);
        auto start = wait.getHandle().getDefiningOp<comm::StartOp>();
        Operation *yield = start.getBody().front().getTerminator();
        for (auto [output, inner] : llvm::zip_equal(wait.getOutputs(), yield->getOperands()))
          buffers[output] = memory(inner);
        return success();
      })
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

LogicalResult ProcedureLowering::lowerStart(comm::StartOp op) {
  comm::CollectiveOpInterface collective = op.getCollective();
  Location loc = namedLoc(collective);
  SmallVector<Value> inputs, outputs;
  for (Value input : op.getInputs()) {
    Value from = memory(input);
    // Arguments are the caller's memory, which may not be symmetric.
    if (isa<BlockArgument>(rt::getRoot(from))) {
      Value to = alloc(loc, typeOf(input), rt::Space::Symmetric);
      copy(loc, from, to);
      from = to;
    }
    inputs.push_back(from);
  }
  for (Value output : collective.getOutputs())
    outputs.push_back(buffers[output] = alloc(loc, typeOf(output), rt::Space::Symmetric));

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

LogicalResult ProcedureLowering::lowerLaunch(rt::LaunchOp op) {
  rt::KernelOp kernel = op.getKernelOp();
  // Collapses the row dimensions of operands that have more of them than the kernel.
  auto asRows = [&](Value memory, Type kernelType) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(kernelType).getShape());
    if (rt::KernelOp::isRowOperand(kernelType))
      shape.front() = op.getRows();
    return view(op.getLoc(), memory, shape);
  };
  SmallVector<Value> inputs, outputs;
  for (auto [input, type] : llvm::zip_equal(op.getInputs(), kernel.getArgumentTypes()))
    inputs.push_back(asRows(memory(input), type));
  for (auto [result, type] : llvm::zip_equal(op.getResults(), kernel.getResultTypes()))
    outputs.push_back(asRows(define(result), type));
  rt::LaunchOp::create(builder, op.getLoc(), op.getKernelAttr(), op.getRows(), inputs, outputs,
                       op.getQueue());
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
  for (Value &input : inputs)
    input = memory(input);
  for (auto [i, result] : llvm::enumerate(results)) {
    Value accumulator = i == 0 ? call.accumulator : Value();
    if (accumulator && accumulatorInPlace(result.getDefiningOp())) {
      outputs.push_back(buffers[result] = memory(accumulator));
      continue;
    }
    outputs.push_back(define(result));
    if (accumulator)
      copy(loc, memory(accumulator), outputs.back());
  }
  FailureOr<runtime::LibraryCall> described = kernel.getLibraryCall(/*parts=*/1);
  if (failed(described))
    return failure();
  rt::LaunchOp::create(builder, loc, FlatSymbolRefAttr::get(kernel.getSymNameAttr()),
                       described->rows(), inputs, outputs);
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
  SmallVector<Value> arguments;
  for (Value operand : op.getOperands())
    arguments.push_back(memory(operand));
  for (Value result : op.getResults())
    arguments.push_back(define(result));
  auto call =
      rt::CallOp::create(builder, op.getLoc(), op.getCalleeAttr(), arguments, rt::FrameAttr());
  if (Attribute name = op->getAttr(comm::CommDialect::kCallAttrName))
    call->setAttr(comm::CommDialect::kCallAttrName, name);
  return success();
}

LogicalResult ProcedureLowering::lowerReturn(func::ReturnOp op) {
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    // An argument, a value in symmetric memory and the second result of one value need a copy.
    auto destination = destinations.find(rootOf(value));
    if (destination == destinations.end() || destination->second != i)
      copy(op.getLoc(), memory(value), resultArguments[i]);
  }
  rt::ReturnOp::create(builder, op.getLoc());
  return success();
}
