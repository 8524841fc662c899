//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// flatc writes a default label into switches over all enumerators.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wcovered-switch-default"
#include "braid/Program/program_generated.h"
#pragma clang diagnostic pop
#include "braid/Analysis/MemoryRegion.h"
#include "braid/Base/LibraryKernels.h"
#include "braid/Base/RankSet.h"
#include "braid/Cost/KernelWork.h"
#include "braid/Program/Program.h"
#include "braid/Target/Bundle/Bundle.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid;

namespace {

namespace fb = braid::program;

/// The name of an operation in traces and messages: that of its location, else of its library
/// kernel or of the operation. The runtime names collectives, waits and calls without one.
std::string commandName(Operation *op) {
  std::string name;
  op->getLoc()->walk([&](Location loc) {
    auto named = dyn_cast<NameLoc>(loc);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  if (auto launch = dyn_cast<rt::LaunchOp>(op); launch && name.empty())
    name = launch.getKernelOp().getLibrary().value_or("").str();
  if (name.empty() && !isa<rt::StartOp, rt::WaitOp, rt::CallOp>(op))
    name = op->getName().stripDialect().str();
  return name;
}

std::vector<std::unique_ptr<fb::AxisRefT>> axesOf(comm::GroupAttr group) {
  std::vector<std::unique_ptr<fb::AxisRefT>> axes;
  for (comm::AxisAttr axis : group.getAxes()) {
    auto ref = std::make_unique<fb::AxisRefT>();
    ref->name = axis.getName().str();
    ref->pre = axis.getPre();
    ref->size = axis.getSize();
    axes.push_back(std::move(ref));
  }
  return axes;
}

std::unique_ptr<fb::LibraryCallT> libraryCallOf(rt::KernelOp kernel) {
  auto result = std::make_unique<fb::LibraryCallT>();
  result->name = kernel.getLibrary()->str();
  result->optional = kernel.getOptionalBits();
  runtime::LibraryCall call = *kernel.getLibraryCall(/*parts=*/1);
  result->integers = std::move(call.integers);
  result->numbers = std::move(call.numbers);
  if (kernel.getGroup())
    result->axes = axesOf(*kernel.getGroup());
  return result;
}

std::vector<std::unique_ptr<fb::OperandCodecT>> codecsOf(rt::KernelOp kernel) {
  std::vector<std::unique_ptr<fb::OperandCodecT>> codecs;
  const auto operands =
      static_cast<unsigned>(kernel.getArgumentTypes().size() + kernel.getResultTypes().size());
  for (unsigned operand = 0; operand < operands; ++operand) {
    if (!kernel.getPayload(operand))
      continue;
    const runtime::LibraryCall call = kernel.getCodecCall(operand, /*rows=*/1, /*payload=*/{});
    const runtime::OperandType &rows = call[runtime::codecRows(call)];
    auto codec = std::make_unique<fb::OperandCodecT>();
    codec->operand = operand;
    codec->codec = std::make_unique<fb::LibraryCallT>();
    codec->codec->name = call.kernel->name;
    codec->codec->integers = call.integers;
    if (rt::PayloadAttr payload = kernel.getPayload(operand); payload.getGroup()) {
      codec->own = static_cast<int32_t>(payload.getOwn()); // -1 of what is encoded
      codec->codec->axes = axesOf(payload.getGroup());
    }
    codec->dtype = static_cast<fb::DType>(rows.dtype);
    codec->row_shape.assign(rows.shape.begin() + 1, rows.shape.end());
    codecs.push_back(std::move(codec));
  }
  return codecs;
}

/// The enumerator of a serialized enumeration by its name, which is that of rt or comm.
template <typename E, size_t N>
E enumerator(const E (&values)[N], const char *(*nameOf)(E), StringRef name) {
  return *llvm::find_if(values, [&](E value) { return name == nameOf(value); });
}

/// Builds the object form of one procedure.
class ProcedureBuilder {
public:
  ProcedureBuilder(rt::ProcedureOp procedure, ArrayRef<rt::QueueAttr> queues,
                   const llvm::StringMap<uint32_t> &kernels,
                   const llvm::StringMap<uint32_t> &procedures)
      : procedure(procedure), queues(queues), kernels(kernels), procedures(procedures) {}

  FailureOr<std::unique_ptr<fb::ProcedureT>> build() {
    rt::FrameAttr frame = procedure.getFrameAttr();
    if (!frame)
      return procedure.emitOpError("expects assigned buffers (run braid-assign-buffers first)");
    result = std::make_unique<fb::ProcedureT>();
    result->name = procedure.getSymName().str();
    result->num_arguments = static_cast<uint32_t>(procedure.getMemoryTypes().size());
    result->num_event_arguments =
        static_cast<uint32_t>(procedure.getNumArguments() - procedure.getMemoryTypes().size());
    for (auto [i, type] : llvm::enumerate(procedure.getMemoryTypes()))
      if (cast<MemRefType>(type).getMemorySpace())
        result->symmetric_arguments.push_back(static_cast<uint32_t>(i));
    result->local_bytes = frame.getLocal();
    result->symmetric_bytes = frame.getSymmetric();
    result->num_events = frame.getEvents();
    for (size_t q = 0; q < queues.size(); ++q)
      result->streams.push_back(std::make_unique<fb::StreamT>());
    for (auto alloc : procedure.getBody().front().getOps<rt::AllocOp>()) {
      auto buffer = std::make_unique<fb::BufferT>();
      buffer->space = spaceOf(alloc);
      buffer->offset_bytes = *alloc.getOffset();
      buffer->size_bytes = alloc.getSizeInBytes();
      buffer->name = commandName(alloc);
      buffers[alloc] = static_cast<int32_t>(result->buffers.size());
      result->buffers.push_back(std::move(buffer));
    }
    for (Operation &op : procedure.getBody().front())
      if (failed(add(&op)))
        return failure();
    return std::move(result);
  }

private:
  LogicalResult add(Operation *op) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case<rt::AllocOp, rt::ViewOp, rt::SubviewOp, rt::ReturnOp>(
            [](Operation *) { return success(); })
        .Case<rt::LaunchOp, rt::CopyOp, rt::StartOp, rt::WaitOp, rt::RecordOp, rt::AwaitOp,
              rt::CallOp>([&](auto typed) { return build(typed); })
        .Default([](Operation *other) { return other->emitOpError("has no serialized form"); });
  }

  static fb::Space spaceOf(rt::AllocOp alloc) {
    return alloc.getSpace() == rt::Space::Symmetric ? fb::Space::symmetric : fb::Space::local;
  }

  std::unique_ptr<fb::ViewT> view(Value memory) {
    auto type = cast<MemRefType>(memory.getType());
    auto result = std::make_unique<fb::ViewT>();
    const MemoryRegion region = regionOf(memory);
    Value root = region.root;
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      result->space = fb::Space::argument;
      result->index = argument.getArgNumber();
    } else {
      auto alloc = root.getDefiningOp<rt::AllocOp>();
      result->space = spaceOf(alloc);
      result->offset_bytes = *alloc.getOffset();
      result->buffer = buffers.lookup(alloc);
    }
    const SmallVector<int64_t> strides = rt::getStrides(type);
    result->offset_bytes += static_cast<uint64_t>(region.begin);
    for (const MemoryRegion::ByRank &place : region.byRank) { // at most one (rt.subview_c4)
      result->position = std::make_unique<fb::PositionT>();
      result->position->axes = axesOf(place.group);
      result->position->shift = place.shift;
      result->position->count = place.ranks;
      result->position->stride_bytes = static_cast<uint64_t>(place.bytes);
    }
    // Every element type of RT_Memory is a DType, and serialized values are the runtime's.
    result->dtype = static_cast<fb::DType>(*comm::toRuntime(type.getElementType()));
    result->shape.assign(type.getShape().begin(), type.getShape().end());
    result->strides.assign(strides.begin(), strides.end());
    return result;
  }
  std::vector<std::unique_ptr<fb::ViewT>> views(ValueRange values) {
    std::vector<std::unique_ptr<fb::ViewT>> result;
    for (Value value : values)
      result.push_back(view(value));
    return result;
  }

  template <typename T> void emit(Operation *op, rt::QueueAttr queue, T body) {
    auto command = std::make_unique<fb::CommandT>();
    command->op.Set(std::move(body));
    command->name = commandName(op);
    for (const runtime::RankSet::Axis &named : comm::toRuntime(comm::placeOf(op)).axes) {
      auto coordinates = std::make_unique<fb::CoordinatesT>();
      coordinates->axis = named.axis;
      coordinates->coordinates.assign(named.coordinates.begin(), named.coordinates.end());
      command->on.push_back(std::move(coordinates));
    }
    const size_t number = llvm::find(queues, queue) - queues.begin();
    result->streams[number]->commands.push_back(std::move(command));
  }

  /// The number of an event in the numbering of the procedure that holds the value.
  static FailureOr<uint32_t> eventOf(Value event) {
    if (auto argument = dyn_cast<BlockArgument>(event)) {
      auto owner = cast<rt::ProcedureOp>(argument.getOwner()->getParentOp());
      return static_cast<uint32_t>(owner.getFrameAttr().getEvents() + argument.getArgNumber() -
                                   owner.getMemoryTypes().size());
    }
    Operation *source = event.getDefiningOp();
    if (auto call = dyn_cast<rt::CallOp>(source)) {
      const unsigned index = cast<OpResult>(event).getResultNumber();
      rt::ProcedureOp callee = call.getProcedure();
      Value inner = callee.getBody().front().getTerminator()->getOperand(index);
      // An event that the callee was given is the one that the call passes.
      if (auto given = dyn_cast<BlockArgument>(inner))
        return eventOf(call.getArguments()[given.getArgNumber()]);
      FailureOr<uint32_t> number = eventOf(inner);
      if (failed(number) || !call.getBaseAttr())
        return failure();
      return static_cast<uint32_t>(call.getBaseAttr().getEvents() + *number);
    }
    auto number = source->getAttrOfType<IntegerAttr>("event");
    if (!number)
      return source->emitOpError("expects a numbered event (run braid-assign-buffers first)");
    return static_cast<uint32_t>(number.getInt());
  }

  LogicalResult build(rt::LaunchOp op) {
    fb::LaunchT launch;
    launch.kernel = kernels.lookup(op.getKernel());
    launch.rows = op.getRows();
    launch.operands = views(op.getInputs());
    for (auto &output : views(op.getOutputs()))
      launch.operands.push_back(std::move(output));
    rt::KernelOp kernel = op.getKernelOp();
    if (!kernel.getLibrary())
      for (auto [i, type] : llvm::enumerate(
               llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())))
        launch.row_operand.push_back(rt::KernelOp::isRowOperand(type) &&
                                     !kernel.getPayload(static_cast<unsigned>(i)));
    emit(op, op.getQueue(), std::move(launch));
    return success();
  }

  LogicalResult build(rt::CopyOp op) {
    fb::CopyT copy;
    copy.source = view(op.getSource());
    copy.dest = view(op.getDest());
    emit(op, op.getQueue(), std::move(copy));
    return success();
  }

  LogicalResult build(rt::StartOp op) {
    FailureOr<uint32_t> event = eventOf(op.getDone());
    if (failed(event))
      return failure();
    fb::CollectiveStartT start;
    start.kind = enumerator(fb::EnumValuesCollectiveKind(), fb::EnumNameCollectiveKind,
                            rt::stringifyCollectiveKind(op.getKind()));
    start.reduce =
        enumerator(fb::EnumValuesReduceKind(), fb::EnumNameReduceKind,
                   comm::stringifyReduceKind(op.getReduce().value_or(comm::ReduceKind::Sum)));
    start.axes = axesOf(op.getGroup());
    start.inputs = views(op.getInputs());
    start.outputs = views(op.getOutputs());
    start.dim = static_cast<uint32_t>(op.getDim().value_or(0));
    start.concat_dim = static_cast<uint32_t>(op.getConcat().value_or(0));
    start.root = static_cast<uint32_t>(op.getRoot().value_or(0));
    for (int64_t position : op.getPairs().value_or(ArrayRef<int64_t>()))
      start.pairs.push_back(static_cast<uint32_t>(position));
    start.tag = op.getTag().value_or(0);
    start.done = *event;
    start.identity = op.getRole().value_or("").str();
    emit(op, op.getQueue(), std::move(start));
    return success();
  }

  template <typename T> LogicalResult buildEvent(Operation *op, Value event, rt::QueueAttr queue) {
    FailureOr<uint32_t> number = eventOf(event);
    if (failed(number))
      return failure();
    T command;
    command.event = *number;
    emit(op, queue, std::move(command));
    return success();
  }
  LogicalResult build(rt::WaitOp op) {
    return buildEvent<fb::CollectiveWaitT>(op, op.getEvent(), op.getQueue());
  }
  LogicalResult build(rt::RecordOp op) {
    return buildEvent<fb::RecordT>(op, op.getRecorded(), op.getQueue());
  }
  LogicalResult build(rt::AwaitOp op) {
    return buildEvent<fb::AwaitT>(op, op.getEvent(), op.getQueue());
  }

  LogicalResult build(rt::CallOp op) {
    rt::FrameAttr base = op.getBaseAttr();
    if (!base)
      return op.emitOpError(
          "expects a place for the callee's frame (run braid-assign-buffers first)");
    SmallVector<Value> memory;
    std::vector<uint32_t> passed;
    for (Value argument : op.getArguments()) {
      if (isa<MemRefType>(argument.getType())) {
        memory.push_back(argument);
        continue;
      }
      FailureOr<uint32_t> event = eventOf(argument);
      if (failed(event))
        return failure();
      passed.push_back(*event);
    }
    // The same call is in all streams.
    for (rt::QueueAttr queue : queues) {
      fb::CallT call;
      call.procedure = procedures.lookup(op.getCallee());
      call.arguments = views(memory);
      call.event_arguments = passed;
      call.local_base_bytes = base.getLocal();
      call.symmetric_base_bytes = base.getSymmetric();
      call.event_base = static_cast<uint32_t>(base.getEvents());
      if (auto name = op->getAttrOfType<StringAttr>(comm::CommDialect::kCallAttrName))
        call.identity = name.str();
      emit(op, queue, std::move(call));
    }
    return success();
  }

  rt::ProcedureOp procedure;
  ArrayRef<rt::QueueAttr> queues; ///< of the program
  const llvm::StringMap<uint32_t> &kernels, &procedures;
  llvm::DenseMap<Operation *, int32_t> buffers; ///< number of each rt.alloc
  std::unique_ptr<fb::ProcedureT> result;
};

std::unique_ptr<fb::MeshT> meshOf(ModuleOp module) {
  auto result = std::make_unique<fb::MeshT>();
  auto meshes = module.getOps<comm::MeshOp>();
  if (meshes.empty()) {
    result->name = "mesh";
    return result;
  }
  comm::MeshOp mesh = *meshes.begin();
  result->name = mesh.getSymName().str();
  for (auto [name, size] :
       llvm::zip_equal(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes())) {
    auto axis = std::make_unique<fb::MeshAxisT>();
    axis->name = name.str();
    axis->size = size;
    result->axes.push_back(std::move(axis));
  }
  if (std::optional<ArrayRef<int64_t>> order = mesh.getOrder())
    result->order.assign(order->begin(), order->end());
  return result;
}

/// The queues that commands of the module stand on: first the compute queue, which every program
/// has, then the communication queues by index, then the copy queue.
SmallVector<rt::QueueAttr> queuesOf(ModuleOp module) {
  llvm::SmallSetVector<rt::QueueAttr, 4> used;
  used.insert(rt::QueueAttr::get(module.getContext(), rt::QueueKind::Compute));
  for (rt::ProcedureOp procedure : module.getOps<rt::ProcedureOp>())
    for (Operation &op : procedure.getBody().front())
      used.insert(rt::queueOf(&op));
  SmallVector<rt::QueueAttr> queues = used.takeVector();
  llvm::sort(queues, [](rt::QueueAttr a, rt::QueueAttr b) {
    return std::pair(a.getKind(), a.getIndex()) < std::pair(b.getKind(), b.getIndex());
  });
  return queues;
}

std::unique_ptr<fb::QueueT> describe(rt::QueueAttr queue) {
  auto result = std::make_unique<fb::QueueT>();
  result->kind = enumerator(fb::EnumValuesQueueKind(), fb::EnumNameQueueKind,
                            rt::stringifyQueueKind(queue.getKind()));
  result->name = rt::stringifyQueueKind(queue.getKind()).str();
  if (queue.getIndex() != 0)
    result->name += " " + std::to_string(queue.getIndex());
  // Kernels of collectives are short: behind those of large matmuls, they would not overlap.
  result->priority = queue.isCommunication() ? 1 : 0;
  return result;
}

} // namespace

FailureOr<runtime::Bytes> braid::buildProgram(ModuleOp module) {
  fb::ProgramT program;
  program.version = runtime::kProgramVersion;
  program.mesh = meshOf(module);
  llvm::StringMap<uint32_t> kernels, procedures;
  for (rt::KernelOp kernel : module.getOps<rt::KernelOp>()) {
    kernels[kernel.getSymName()] = static_cast<uint32_t>(program.kernels.size());
    auto entry = std::make_unique<fb::KernelT>();
    entry->symbol = kernel.getSymName().str();
    entry->num_operands =
        static_cast<uint32_t>(kernel.getArgumentTypes().size() + kernel.getResultTypes().size());
    entry->num_outputs = static_cast<uint32_t>(kernel.getResultTypes().size());
    entry->description = commandName(kernel);
    const auto numInputs = static_cast<uint32_t>(kernel.getArgumentTypes().size());
    for (uint32_t input = 0; input < numInputs; ++input)
      for (uint32_t output = 0; output < entry->num_outputs; ++output)
        if (kernel.canShare(input, output)) {
          entry->in_place.push_back(input);
          entry->in_place.push_back(numInputs + output);
        }
    if (kernel.getLibrary())
      entry->library = libraryCallOf(kernel);
    entry->codecs = codecsOf(kernel);
    for (const auto &[operation, count] : kernelWork(kernel, /*rows=*/1)) {
      auto work = std::make_unique<fb::RowWorkT>();
      work->operation = operation.str();
      work->count = static_cast<uint64_t>(count.getValue());
      entry->row_work.push_back(std::move(work));
    }
    program.kernels.push_back(std::move(entry));
  }
  const SmallVector<rt::QueueAttr> queues = queuesOf(module);
  for (rt::QueueAttr queue : queues)
    program.queues.push_back(describe(queue));
  for (auto [i, procedure] : llvm::enumerate(module.getOps<rt::ProcedureOp>()))
    procedures[procedure.getSymName()] = static_cast<uint32_t>(i);
  for (rt::ProcedureOp procedure : module.getOps<rt::ProcedureOp>()) {
    FailureOr<std::unique_ptr<fb::ProcedureT>> built =
        ProcedureBuilder(procedure, queues, kernels, procedures).build();
    if (failed(built))
      return failure();
    if (procedure.getEntry()) {
      auto entry = std::make_unique<fb::EntryT>();
      entry->name = procedure.getSymName().str();
      entry->procedure = procedures.lookup(procedure.getSymName());
      program.entries.push_back(std::move(entry));
    }
    program.procedures.push_back(std::move(*built));
  }
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishProgramBuffer(builder, fb::Program::Pack(builder, &program));
  const auto *begin = reinterpret_cast<const std::byte *>(builder.GetBufferPointer());
  return runtime::Bytes(begin, begin + builder.GetSize());
}
