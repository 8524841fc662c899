//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramMemory.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace braid::interp {

namespace {

/// All bits set: NaN in every floating-point type, -1 in every integer type.
constexpr int kPoison = 0xff;

std::set<uint32_t> buffersOf(const ProgramCommand &command) {
  std::set<uint32_t> buffers;
  for (const auto *operands : {&command.reads, &command.writes})
    for (const Operand &operand : *operands)
      buffers.insert(operand.view.buffer);
  return buffers;
}

/// Calls body(byte offset) for each element in row-major order.
template <typename Fn> void forEachElement(const MemoryView &view, Fn body) {
  const int64_t size = runtime::byteSize(view.dtype), count = numElements(view.shape);
  Shape index(view.shape.size(), 0);
  int64_t offset = 0; // in elements
  for (int64_t i = 0; i < count; ++i) {
    body(offset * size);
    for (size_t d = index.size(); d-- > 0;) {
      offset += view.strides[d];
      if (++index[d] < view.shape[d])
        break;
      offset -= view.strides[d] * view.shape[d];
      index[d] = 0;
    }
  }
}

} // namespace

AlignedBytes allocateAligned(uint64_t bytes) {
  constexpr uint64_t kAlignment = 64;
  const uint64_t rounded =
      (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  AlignedBytes result(static_cast<std::byte *>(std::aligned_alloc(kAlignment, rounded)));
  if (result)
    std::memset(result.get(), kPoison, rounded);
  return result;
}

ProgramMemory::ProgramMemory(const ExpandedProgram &program, std::vector<std::byte *> regions)
    : program(program), regions(std::move(regions)), segments(program.segments.size()),
      readings(program.segments.size() * program.numQueues()), usesLeft(program.buffers.size(), 0) {
  const std::vector<int64_t> inputs = program.inputsOfSegments();
  for (size_t s = 0; s < segments.size(); ++s)
    segments[s].buffer = inputs[s];
  for (const auto &queue : program.queues)
    for (const ProgramCommand &command : queue)
      for (uint32_t buffer : buffersOf(command))
        ++usesLeft[buffer];
}

Status ProgramMemory::begin(const ProgramCommand &command) {
  Status status;
  for (const Operand &read : command.reads)
    read.forEachSegment([&](uint32_t s) {
      if (status.ok())
        status = beginRead(command, read, s);
    });
  for (const Operand &write : command.writes)
    write.forEachSegment([&](uint32_t s) {
      if (status.ok())
        status = beginWrite(command, write, s);
    });
  return status;
}

Status ProgramMemory::beginRead(const ProgramCommand &command, const Operand &read, uint32_t s) {
  SegmentState &state = segments[s];
  if (state.writing)
    return Status::error(command.describe() + " reads " + program.describe(read, s) + " while " +
                         state.writing->describe() + " writes it");
  if (state.buffer < 0)
    return Status::error(
        command.describe() + " reads " + program.describe(read, s) + ", which holds no value" +
        (state.writer ? "; it was written last by " + state.writer->describe() : std::string()));
  if (state.buffer != read.view.buffer)
    return Status::error(command.describe() + " reads " + program.describe(read, s) +
                         ", which holds " +
                         program.buffers[static_cast<size_t>(state.buffer)].name +
                         " there, written by " + state.writer->describe());
  Reading &own = reading(s, command.queue);
  own.command = &command;
  ++own.operands;
  return {};
}

Status ProgramMemory::beginWrite(const ProgramCommand &command, const Operand &write, uint32_t s) {
  SegmentState &state = segments[s];
  if (state.writing)
    return Status::error(command.describe() + " writes " + program.describe(write, s) +
                         (state.writing == &command
                              ? std::string(" twice")
                              : " while " + state.writing->describe() + " writes it, too"));
  for (Queue queue = 0; queue < program.numQueues(); ++queue)
    if (const ProgramCommand *other = reading(s, queue).command; other && queue != command.queue)
      return Status::error(command.describe() + " writes " + program.describe(write, s) +
                           " while " + other->describe() + " reads it");
  // Of its own inputs, only the one that it computes in place may be here.
  const bool inPlace = write.inPlaceOf >= 0;
  if (reading(s, command.queue).operands > (inPlace ? 1U : 0U))
    return Status::error(command.describe() + " writes " + program.describe(write, s) +
                         " over its own input, which it cannot do in place");
  state.writing = &command;
  if (!inPlace)
    poison(s);
  return {};
}

void ProgramMemory::end(const ProgramCommand &command) {
  for (const Operand &read : command.reads)
    read.forEachSegment([&](uint32_t s) { reading(s, command.queue) = {}; });
  for (const Operand &write : command.writes)
    write.forEachSegment([&](uint32_t s) {
      segments[s].writing = nullptr;
      segments[s].writer = &command;
      segments[s].buffer = write.view.buffer;
    });
  for (uint32_t buffer : buffersOf(command)) {
    if (--usesLeft[buffer] != 0 || program.buffers[buffer].isArgument)
      continue;
    for (uint32_t s = 0; s < segments.size(); ++s)
      if (segments[s].buffer == buffer && !segments[s].writing)
        poison(s);
  }
}

void ProgramMemory::poison(uint32_t s) {
  const ExpandedProgram::Segment &segment = program.segments[s];
  std::memset(regions[segment.region] + segment.begin, kPoison, segment.end - segment.begin);
  segments[s].buffer = -1;
}

Tensor loadFrom(const std::byte *data, const MemoryView &view) {
  const auto size = static_cast<size_t>(runtime::byteSize(view.dtype));
  runtime::HostTensor host = runtime::HostTensor::zeros(view.dtype, view.shape);
  std::byte *to = host.data.data();
  forEachElement(view, [&](int64_t offset) {
    std::memcpy(to, data + offset, size);
    to += size;
  });
  return Tensor::fromHost(host);
}

void storeTo(std::byte *data, const MemoryView &view, const Tensor &value) {
  const auto size = static_cast<size_t>(runtime::byteSize(view.dtype));
  runtime::HostTensor host = value.toHost();
  const std::byte *from = host.data.data();
  forEachElement(view, [&](int64_t offset) {
    std::memcpy(data + offset, from, size);
    from += size;
  });
}

} // namespace braid::interp
