//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramCompute.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"
#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

namespace braid::interp {

namespace fb = braid::program;

namespace {

/// The form of MLIR's memref descriptors (program.fbs, Kernel).
std::vector<int64_t> descriptorOf(const MemoryView &view, std::byte *data) {
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(data));
  std::vector<int64_t> descriptor{address, address, 0};
  descriptor.insert(descriptor.end(), view.shape.begin(), view.shape.end());
  descriptor.insert(descriptor.end(), view.strides.begin(), view.strides.end());
  return descriptor;
}

/// The call of the codec of an operand, and the rows that it gives or takes, in memory.
struct CodedRows {
  runtime::LibraryCall call;
  int64_t part = 0; ///< the rank's position in the codec's group
  MemoryView rows;
  AlignedBytes memory;

  static CodedRows of(const fb::OperandCodecT &codec, int64_t rows, const MemoryView &payload,
                      const MemoryView *own, int64_t parts, int64_t part) {
    CodedRows coded;
    coded.part = part;
    coded.call = runtime::codecCall(
        codec, rows, {payload.dtype, payload.shape, payload.strides},
        own ? std::optional(runtime::OperandType{own->dtype, own->shape, own->strides})
            : std::nullopt,
        parts);
    const runtime::OperandType &type = coded.call[runtime::codecRows(coded.call)];
    coded.rows.dtype = type.dtype;
    coded.rows.shape = type.shape;
    coded.rows.strides = type.strides;
    coded.memory = allocateAligned(
        static_cast<uint64_t>(numElements(type.shape) * runtime::byteSize(type.dtype)));
    return coded;
  }
  /// What the codec makes of `from`, as a value of the type of `to`. `own` is what the rank adds
  /// itself; null: nothing.
  Result<Tensor> code(const Tensor &from, const MemoryView &to, const Tensor *own) const {
    KernelCall kernel;
    kernel.inputs = {&from, own};
    kernel.part = part;
    kernel.parts = call.parts;
    kernel.outputs = {{to.dtype, to.shape}};
    kernel.integers = call.integers;
    ASSIGN_OR_RETURN(std::vector<Tensor> results, computeLibraryKernel(call.kernel->name, kernel));
    return std::move(results.front());
  }
};

/// Runs a generated kernel. Operands with a codec are decoded and encoded as a whole.
Status launch(const ProgramCommand &command, const fb::LaunchT &op, const fb::KernelT &kernel,
              ProgramMemory &memory, const runtime::Mesh &mesh, int64_t rank,
              runtime::KernelFunction function) {
  static_assert(sizeof(void *) == sizeof(int64_t), "descriptors mix pointers and sizes");
  auto fail = [&](const Status &status, size_t operand) {
    return Status::error("rank " + std::to_string(rank) + ": " + command.describe() + ": operand " +
                         std::to_string(operand) + ": " + status.message());
  };
  const size_t numReads = command.reads.size(), count = numReads + command.writes.size();
  std::vector<CodedRows> coded(count);
  std::vector<std::vector<int64_t>> descriptors;
  for (size_t i = 0; i < count; ++i) {
    const MemoryView &view = (i < numReads ? command.reads[i] : command.writes[i - numReads]).view;
    const fb::OperandCodecT *codec = runtime::codecOf(kernel, i);
    if (!codec) {
      descriptors.push_back(descriptorOf(view, memory.at(view)));
      continue;
    }
    const MemoryView *own =
        codec->own < 0 ? nullptr : &command.reads[static_cast<size_t>(codec->own)].view;
    const std::vector<runtime::AxisRef> axes = runtime::axesOf(codec->codec->axes);
    ASSIGN_OR_RETURN(const int64_t parts, mesh.numShards(axes));
    ASSIGN_OR_RETURN(const int64_t part, mesh.groupPosition(rank, axes));
    coded[i] = CodedRows::of(*codec, op.rows, view, own, parts, part);
    const MemoryView &rows = coded[i].rows;
    descriptors.push_back(descriptorOf(rows, coded[i].memory.get()));
    if (i >= numReads)
      continue;
    std::optional<Tensor> ownRows;
    if (own)
      ownRows = memory.load(*own);
    Result<Tensor> decoded = coded[i].code(memory.load(view), rows, ownRows ? &*ownRows : nullptr);
    if (!decoded.ok())
      return fail(decoded.status(), i);
    storeTo(coded[i].memory.get(), rows, *decoded);
  }
  std::vector<void *> pointers;
  pointers.reserve(descriptors.size());
  for (std::vector<int64_t> &descriptor : descriptors)
    pointers.push_back(descriptor.data());
  function(pointers.data());
  for (size_t i = numReads; i < count; ++i) {
    if (!coded[i].memory)
      continue;
    const MemoryView &view = command.writes[i - numReads].view;
    Result<Tensor> encoded =
        coded[i].code(loadFrom(coded[i].memory.get(), coded[i].rows), view, nullptr);
    if (!encoded.ok())
      return fail(encoded.status(), i);
    memory.store(view, *encoded);
  }
  return {};
}

Status computeLibrary(const ProgramCommand &command, const runtime::LibraryKernel &kernel,
                      const fb::LibraryCallT &library, ProgramMemory &memory,
                      const runtime::Mesh &mesh, int64_t rank) {
  KernelCall call;
  std::vector<Tensor> values;
  for (const Operand &read : command.reads)
    values.push_back(memory.load(read.view));
  call.inputs.resize(kernel.operands.size());
  size_t next = 0;
  for (size_t operand : kernel.given(library.optional))
    if (kernel.reads(operand, library.integers))
      call.inputs[operand] = &values[next++];
  for (const Operand &write : command.writes)
    call.outputs.push_back({write.view.dtype, write.view.shape});
  call.integers = library.integers;
  call.numbers = library.numbers;
  const std::vector<runtime::AxisRef> axes = runtime::axesOf(library.axes);
  ASSIGN_OR_RETURN(call.parts, mesh.numShards(axes));
  ASSIGN_OR_RETURN(call.part, mesh.groupPosition(rank, axes));
  Result<std::vector<Tensor>> results = computeLibraryKernel(kernel.name, call);
  if (!results.ok())
    return Status::error("rank " + std::to_string(rank) + ": " + command.describe() + ": " +
                         results.status().message());
  for (size_t i = 0; i < results->size(); ++i)
    memory.store(command.writes[i].view, results->at(i));
  return {};
}

} // namespace

Status compute(const ProgramCommand &command, ProgramMemory &memory, const fb::ProgramT &program,
               const runtime::Mesh &mesh, int64_t rank,
               const std::vector<runtime::KernelFunction> &kernels) {
  if (const fb::LaunchT *op = command.op->AsLaunch()) {
    const fb::KernelT &kernel = *program.kernels[op->kernel];
    if (const runtime::LibraryKernel *library = runtime::libraryKernelOf(kernel))
      return computeLibrary(command, *library, *kernel.library, memory, mesh, rank);
    return launch(command, *op, kernel, memory, mesh, rank, kernels[op->kernel]);
  } else if (command.op->AsCopy()) {
    memory.store(command.writes[0].view, memory.load(command.reads[0].view));
  }
  return {};
}

std::vector<runtime::AxisRef> groupOf(const ProgramCommand &command) {
  return runtime::axesOf(command.op->AsCollectiveStart()->axes);
}

Collective collectiveOf(const ProgramCommand &command) {
  const fb::CollectiveStartT &op = *command.op->AsCollectiveStart();
  Collective collective;
  collective.kind = static_cast<CollectiveKind>(op.kind);
  collective.reduce = static_cast<ReduceKind>(op.reduce);
  collective.dim = op.dim;
  collective.concatDim = op.concat_dim;
  collective.root = op.root;
  collective.tag = op.tag;
  for (size_t i = 0; i + 1 < op.pairs.size(); i += 2)
    collective.pairs.push_back({op.pairs[i], op.pairs[i + 1]});
  collective.axes = runtime::axesOf(op.axes);
  collective.name = command.name;
  return collective;
}

} // namespace braid::interp
