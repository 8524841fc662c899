//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// flatc writes a default label into switches over all enumerators.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wcovered-switch-default"
#include "braid/Program/program_generated.h"
#pragma clang diagnostic pop
#include "braid/Target/Bundle/Bundle.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid;

namespace {

namespace fb = braid::program;

/// The name of an operation in traces and messages: its place in the model, or else a collective's
/// kind or a call's callee; a wait has the name of what it waits for.
std::string commandName(Operation *op) {
  std::string name;
  op->getLoc()->walk([&](Location loc) {
    auto named = dyn_cast<NameLoc>(loc);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
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

/// Builds the object form of one procedure.
class ProcedureBuilder {
public:
  ProcedureBuilder(rt::ProcedureOp procedure, const llvm::StringMap<uint32_t> &kernels,
                   const llvm::StringMap<uint32_t> &procedures)
      : procedure(procedure), kernels(kernels), procedures(procedures) {}

  FailureOr<std::unique_ptr<fb::ProcedureT>> build() {
    rt::FrameAttr frame = procedure.getFrameAttr();
    if (!frame)
      return procedure.emitOpError("expects assigned buffers (run braid-assign-buffers first)");
    result = std::make_unique<fb::ProcedureT>();
    result->name = procedure.getSymName().str();
    result->num_arguments = procedure.getNumArguments();
    result->local_bytes = frame.getLocal();
    result->symmetric_bytes = frame.getSymmetric();
    result->num_events = frame.getEvents();
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
        .Case<rt::AllocOp, rt::ViewOp, rt::ReturnOp>([](Operation *) { return success(); })
        .Case<rt::LaunchOp, rt::ProductOp, rt::AttentionOp, rt::RotaryTableOp, rt::RotaryOp,
              rt::PositionIdsOp, rt::GatherOp, rt::CopyOp, rt::LocalSliceOp, rt::StartOp,
              rt::WaitOp, rt::RecordOp, rt::AwaitOp, rt::CallOp>(
            [&](auto typed) { return build(typed); })
        .Default([](Operation *other) { return other->emitOpError("has no serialized form"); });
  }

  static fb::Space spaceOf(rt::AllocOp alloc) {
    return alloc.getSpace() == rt::Space::Symmetric ? fb::Space::symmetric : fb::Space::local;
  }

  std::unique_ptr<fb::ViewT> view(Value memory) {
    auto type = cast<MemRefType>(memory.getType());
    auto result = std::make_unique<fb::ViewT>();
    Value root = rt::getRoot(memory);
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      result->space = fb::Space::argument;
      result->index = argument.getArgNumber();
    } else {
      auto alloc = root.getDefiningOp<rt::AllocOp>();
      result->space = spaceOf(alloc);
      result->offset_bytes = *alloc.getOffset();
      result->buffer = buffers.lookup(alloc);
    }
    int64_t offset;
    SmallVector<int64_t> strides;
    [[maybe_unused]] LogicalResult strided = type.getStridesAndOffset(strides, offset);
    result->offset_bytes += static_cast<uint64_t>(offset) * (type.getElementTypeBitWidth() / 8);
    // Memory in a procedure has types that RT_Memory admits, all of which have a serialized name;
    // serialized values are the runtime's.
    result->dtype = static_cast<fb::DType>(*comm::toRuntime(type.getElementType()));
    result->shape.assign(type.getShape().begin(), type.getShape().end());
    result->strides.assign(strides.begin(), strides.end());
    return result;
  }
  std::unique_ptr<fb::ViewT> optionalView(Value memory) { return memory ? view(memory) : nullptr; }
  std::vector<std::unique_ptr<fb::ViewT>> views(ValueRange values) {
    std::vector<std::unique_ptr<fb::ViewT>> result;
    for (Value value : values)
      result.push_back(view(value));
    return result;
  }

  template <typename T> void emit(Operation *op, rt::Queue queue, T body) {
    auto command = std::make_unique<fb::CommandT>();
    command->op.Set(std::move(body));
    command->name = commandName(op);
    auto &stream = queue == rt::Queue::Compute ? result->compute : result->communication;
    stream.push_back(std::move(command));
  }

  static FailureOr<uint32_t> eventOf(Value event) {
    Operation *source = event.getDefiningOp();
    std::optional<int64_t> number = isa<rt::StartOp>(source)
                                        ? cast<rt::StartOp>(source).getEvent()
                                        : cast<rt::RecordOp>(source).getEvent();
    if (!number)
      return source->emitOpError("expects a numbered event (run braid-assign-buffers first)");
    return static_cast<uint32_t>(*number);
  }

  LogicalResult build(rt::LaunchOp op) {
    fb::LaunchT launch;
    launch.kernel = kernels.lookup(op.getKernel());
    launch.rows = op.getRows();
    launch.operands = views(op.getInputs());
    for (auto &output : views(op.getOutputs()))
      launch.operands.push_back(std::move(output));
    rt::KernelOp kernel = op.getKernelOp();
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
      auto tensor = cast<RankedTensorType>(type);
      launch.row_operand.push_back(tensor.getRank() > 0 && tensor.isDynamicDim(0));
    }
    emit(op, op.getQueue(), std::move(launch));
    return success();
  }

  LogicalResult build(rt::ProductOp op) {
    fb::ProductT product;
    product.lhs = view(op.getLhs());
    product.rhs = view(op.getRhs());
    product.bias = optionalView(op.getBias());
    product.out = view(op.getOut());
    emit(op, op.getQueue(), std::move(product));
    return success();
  }

  LogicalResult build(rt::AttentionOp op) {
    fb::AttentionT attention;
    attention.query = view(op.getQuery());
    attention.key = view(op.getKey());
    attention.value = view(op.getValue());
    attention.mask = optionalView(op.getMask());
    attention.valid_length = optionalView(op.getValidLength());
    attention.position_offset = optionalView(op.getPositionOffset());
    attention.out = view(op.getOut());
    attention.scale = static_cast<float>(op.getScale().convertToDouble());
    attention.causal = op.getCausal();
    emit(op, op.getQueue(), std::move(attention));
    return success();
  }

  LogicalResult build(rt::RotaryTableOp op) {
    fb::RotaryTableT table;
    table.frequencies.assign(op.getFrequencies().begin(), op.getFrequencies().end());
    table.scale = op.getScale().convertToDouble();
    table.position_offset = optionalView(op.getPositionOffset());
    table.cos = view(op.getCos());
    table.sin = view(op.getSin());
    emit(op, op.getQueue(), std::move(table));
    return success();
  }

  LogicalResult build(rt::RotaryOp op) {
    fb::RotaryT rotary;
    rotary.input = view(op.getInput());
    rotary.cos = view(op.getCos());
    rotary.sin = view(op.getSin());
    rotary.out = view(op.getOut());
    emit(op, op.getQueue(), std::move(rotary));
    return success();
  }

  LogicalResult build(rt::GatherOp op) {
    fb::GatherT gather;
    gather.source = view(op.getSource());
    gather.ids = view(op.getIds());
    gather.out = view(op.getOut());
    if (op.getGroup())
      gather.axes = axesOf(*op.getGroup());
    gather.rows = static_cast<int64_t>(op.getRows().value_or(0));
    emit(op, op.getQueue(), std::move(gather));
    return success();
  }

  LogicalResult build(rt::PositionIdsOp op) {
    fb::PositionIdsT positions;
    positions.ids = view(op.getIds());
    positions.padding = static_cast<int64_t>(op.getPadding());
    positions.out = view(op.getOut());
    emit(op, op.getQueue(), std::move(positions));
    return success();
  }

  LogicalResult build(rt::CopyOp op) {
    fb::CopyT copy;
    copy.source = view(op.getSource());
    copy.dest = view(op.getDest());
    emit(op, op.getQueue(), std::move(copy));
    return success();
  }

  LogicalResult build(rt::LocalSliceOp op) {
    fb::LocalSliceT slice;
    slice.source = view(op.getSource());
    slice.dest = view(op.getDest());
    slice.dim = static_cast<uint32_t>(op.getDim());
    slice.axes = axesOf(op.getGroup());
    emit(op, op.getQueue(), std::move(slice));
    return success();
  }

  LogicalResult build(rt::StartOp op) {
    FailureOr<uint32_t> event = eventOf(op.getDone());
    if (failed(event))
      return failure();
    fb::CollectiveStartT start;
    switch (op.getKind()) {
    case rt::CollectiveKind::AllReduce:
      start.kind = fb::CollectiveKind::all_reduce;
      break;
    case rt::CollectiveKind::ReduceScatter:
      start.kind = fb::CollectiveKind::reduce_scatter;
      break;
    case rt::CollectiveKind::AllGather:
      start.kind = fb::CollectiveKind::all_gather;
      break;
    case rt::CollectiveKind::AllToAll:
      start.kind = fb::CollectiveKind::all_to_all;
      break;
    case rt::CollectiveKind::Reduce:
      start.kind = fb::CollectiveKind::reduce;
      break;
    case rt::CollectiveKind::Broadcast:
      start.kind = fb::CollectiveKind::broadcast;
      break;
    case rt::CollectiveKind::Permute:
      start.kind = fb::CollectiveKind::permute;
      break;
    case rt::CollectiveKind::AllToAllV:
      start.kind = fb::CollectiveKind::all_to_all_v;
      break;
    case rt::CollectiveKind::Send:
      start.kind = fb::CollectiveKind::send;
      break;
    case rt::CollectiveKind::Recv:
      start.kind = fb::CollectiveKind::recv;
      break;
    }
    switch (op.getReduce().value_or(comm::ReduceKind::Sum)) {
    case comm::ReduceKind::Sum:
      start.reduce = fb::ReduceKind::sum;
      break;
    case comm::ReduceKind::Max:
      start.reduce = fb::ReduceKind::max;
      break;
    case comm::ReduceKind::Min:
      start.reduce = fb::ReduceKind::min;
      break;
    }
    start.axes = axesOf(op.getGroup());
    start.inputs = views(op.getInputs());
    start.outputs = views(op.getOutputs());
    start.dim = static_cast<uint32_t>(op.getDim().value_or(0));
    start.concat_dim = static_cast<uint32_t>(op.getConcat().value_or(0));
    start.root = static_cast<uint32_t>(op.getRoot().value_or(0));
    for (int64_t position : op.getPairs().value_or(ArrayRef<int64_t>()))
      start.pairs.push_back(static_cast<uint32_t>(position));
    start.channel = op.getChannel().value_or(0);
    start.done = *event;
    start.role = op.getRole().value_or("").str();
    emit(op, rt::Queue::Communication, std::move(start));
    return success();
  }

  LogicalResult build(rt::WaitOp op) {
    FailureOr<uint32_t> event = eventOf(op.getEvent());
    if (failed(event))
      return failure();
    fb::CollectiveWaitT wait;
    wait.event = *event;
    emit(op, op.getQueue(), std::move(wait));
    return success();
  }

  LogicalResult build(rt::RecordOp op) {
    FailureOr<uint32_t> event = eventOf(op.getRecorded());
    if (failed(event))
      return failure();
    fb::RecordT record;
    record.event = *event;
    emit(op, op.getQueue(), std::move(record));
    return success();
  }

  LogicalResult build(rt::AwaitOp op) {
    FailureOr<uint32_t> event = eventOf(op.getEvent());
    if (failed(event))
      return failure();
    fb::AwaitT await;
    await.event = *event;
    emit(op, op.getQueue(), std::move(await));
    return success();
  }

  LogicalResult build(rt::CallOp op) {
    rt::FrameAttr base = op.getBaseAttr();
    if (!base)
      return op.emitOpError(
          "expects a place for the callee's frame (run braid-assign-buffers first)");
    // The same call is in both streams.
    for (rt::Queue queue : {rt::Queue::Compute, rt::Queue::Communication}) {
      fb::CallT call;
      call.procedure = procedures.lookup(op.getCallee());
      call.arguments = views(op.getArguments());
      call.local_base_bytes = base.getLocal();
      call.symmetric_base_bytes = base.getSymmetric();
      call.event_base = static_cast<uint32_t>(base.getEvents());
      emit(op, queue, std::move(call));
    }
    return success();
  }

  rt::ProcedureOp procedure;
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

} // namespace

FailureOr<runtime::Bytes> braid::buildProgram(ModuleOp module) {
  fb::ProgramT program;
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
    program.kernels.push_back(std::move(entry));
  }
  for (auto [i, procedure] : llvm::enumerate(module.getOps<rt::ProcedureOp>()))
    procedures[procedure.getSymName()] = static_cast<uint32_t>(i);
  for (rt::ProcedureOp procedure : module.getOps<rt::ProcedureOp>()) {
    FailureOr<std::unique_ptr<fb::ProcedureT>> built =
        ProcedureBuilder(procedure, kernels, procedures).build();
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
