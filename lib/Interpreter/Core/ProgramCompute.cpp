//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramCompute.h"
#include "braid/Interpreter/Core/Kernels.h"
#include "braid/Program/program_generated.h"

namespace braid::interp {

namespace fb = braid::program;

namespace {

std::vector<runtime::AxisRef> axesOf(const std::vector<std::unique_ptr<fb::AxisRefT>> &serialized) {
  std::vector<runtime::AxisRef> axes;
  for (const auto &axis : serialized)
    axes.push_back({axis->name, axis->pre, axis->size});
  return axes;
}

/// The form of MLIR's memref descriptors (program.fbs, Kernel).
std::vector<int64_t> descriptorOf(const MemoryView &view, std::byte *data) {
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(data));
  std::vector<int64_t> descriptor{address, address, 0};
  descriptor.insert(descriptor.end(), view.shape.begin(), view.shape.end());
  descriptor.insert(descriptor.end(), view.strides.begin(), view.strides.end());
  return descriptor;
}

void launch(const ProgramCommand &command, const ProgramMemory &memory,
            runtime::KernelFunction kernel) {
  static_assert(sizeof(void *) == sizeof(int64_t), "descriptors mix pointers and sizes");
  std::vector<std::vector<int64_t>> descriptors;
  for (const auto *operands : {&command.reads, &command.writes})
    for (const Operand &operand : *operands)
      descriptors.push_back(descriptorOf(operand.view, memory.at(operand.view)));
  std::vector<void *> pointers;
  pointers.reserve(descriptors.size());
  for (std::vector<int64_t> &descriptor : descriptors)
    pointers.push_back(descriptor.data());
  kernel(pointers.data());
}

Result<Tensor> attend(const ProgramCommand &command, const ProgramMemory &memory) {
  const fb::AttentionT &op = *command.op->AsAttention();
  std::vector<Tensor> values;
  for (const Operand &read : command.reads)
    values.push_back(memory.load(read.view));
  size_t next = 3;
  auto optional = [&](const std::unique_ptr<fb::ViewT> &view) -> const Tensor * {
    return view ? &values[next++] : nullptr;
  };
  AttentionOperands operands;
  operands.query = &values[0];
  operands.key = &values[1];
  operands.value = &values[2];
  operands.mask = optional(op.mask);
  operands.validLength = optional(op.valid_length);
  operands.positionOffset = optional(op.position_offset);
  operands.scale = static_cast<double>(op.scale);
  operands.causal = op.causal;
  return attention(operands);
}

Result<Tensor> slice(const ProgramCommand &command, const ProgramMemory &memory,
                     const runtime::Mesh &mesh, int64_t rank) {
  const fb::LocalSliceT &op = *command.op->AsLocalSlice();
  std::vector<runtime::AxisRef> axes = axesOf(op.axes);
  Result<int64_t> count = mesh.numShards(axes), position = mesh.groupPosition(rank, axes);
  if (!count.ok())
    return count.status();
  if (!position.ok())
    return position.status();
  return slicePart(memory.load(command.reads[0].view), op.dim, *position, *count);
}

Result<Tensor> gather(const ProgramCommand &command, const ProgramMemory &memory,
                      const runtime::Mesh &mesh, int64_t rank) {
  std::vector<runtime::AxisRef> axes = axesOf(command.op->AsGather()->axes);
  Result<int64_t> count = mesh.numShards(axes), position = mesh.groupPosition(rank, axes);
  if (!count.ok())
    return count.status();
  if (!position.ok())
    return position.status();
  return embedding(memory.load(command.reads[1].view), memory.load(command.reads[0].view),
                   {*position, *count, command.op->AsGather()->rows});
}

} // namespace

Status compute(const ProgramCommand &command, ProgramMemory &memory, const runtime::Mesh &mesh,
               int64_t rank, const std::vector<runtime::KernelFunction> &kernels) {
  auto load = [&](size_t i) { return memory.load(command.reads[i].view); };
  Result<Tensor> result = Tensor();
  switch (command.op->type) {
  case fb::Operation::Launch:
    launch(command, memory, kernels[command.op->AsLaunch()->kernel]);
    return {};
  case fb::Operation::Product: {
    Tensor bias = command.reads.size() > 2 ? load(2) : Tensor();
    result = linear(load(0), load(1), command.reads.size() > 2 ? &bias : nullptr);
    break;
  }
  case fb::Operation::Attention:
    result = attend(command, memory);
    break;
  case fb::Operation::Gather:
    result = gather(command, memory, mesh, rank);
    break;
  case fb::Operation::Rotary:
    result = rotary(load(0), load(1), load(2));
    break;
  case fb::Operation::RotaryTable: {
    const fb::RotaryTableT &op = *command.op->AsRotaryTable();
    const MemoryView &cos = command.writes[0].view;
    Tensor offset = op.position_offset ? load(0) : Tensor();
    Result<RotaryTables> tables =
        rotaryTables(cos.dtype, cos.shape[cos.shape.size() - 2], op.frequencies, op.scale,
                     op.position_offset ? &offset : nullptr);
    if (tables.ok())
      memory.store(command.writes[1].view, tables->sin);
    result = tables.ok() ? Result<Tensor>(tables->cos) : tables.status();
    break;
  }
  case fb::Operation::PositionIds:
    result = positionIds(load(0), command.op->AsPositionIds()->padding);
    break;
  case fb::Operation::Copy:
    result = load(0);
    break;
  case fb::Operation::LocalSlice:
    result = slice(command, memory, mesh, rank);
    break;
  case fb::Operation::CollectiveStart:
  case fb::Operation::CollectiveWait:
  case fb::Operation::Record:
  case fb::Operation::Await:
  case fb::Operation::Call:
  case fb::Operation::NONE:
    return {};
  }
  if (!result.ok())
    return Status::error("rank " + std::to_string(rank) + ": " + command.describe() + ": " +
                         result.status().message());
  memory.store(command.writes[0].view, *result);
  return {};
}

std::vector<runtime::AxisRef> groupOf(const ProgramCommand &command) {
  return axesOf(command.op->AsCollectiveStart()->axes);
}

Collective collectiveOf(const ProgramCommand &command) {
  const fb::CollectiveStartT &op = *command.op->AsCollectiveStart();
  Collective collective;
  collective.kind = static_cast<CollectiveKind>(op.kind);
  collective.reduce = static_cast<ReduceKind>(op.reduce);
  collective.dim = op.dim;
  collective.concatDim = op.concat_dim;
  collective.root = op.root;
  collective.channel = op.channel;
  for (size_t i = 0; i + 1 < op.pairs.size(); i += 2)
    collective.pairs.push_back({op.pairs[i], op.pairs[i + 1]});
  collective.axes = axesOf(op.axes);
  collective.name = command.name;
  return collective;
}

} // namespace braid::interp
