//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The memory of one rank of the program interpreter, and the commands that access it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_INTERPRETER_CORE_PROGRAMMEMORY_H
#define BRAID_LIB_INTERPRETER_CORE_PROGRAMMEMORY_H

#include "braid/Interpreter/Core/ExpandedProgram.h"

#include <cstddef>
#include <cstdlib>

namespace braid::interp {

/// Bytes of the alignment of a rank's memory.
struct FreeBytes {
  void operator()(std::byte *bytes) const { std::free(bytes); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeBytes>;
/// Null when there is no memory.
AlignedBytes allocateAligned(uint64_t bytes);

/// The elements of a view whose first one is at `data`; and the reverse, rounding to its type.
Tensor loadFrom(const std::byte *data, const MemoryView &view);
void storeTo(std::byte *data, const MemoryView &view, const Tensor &value);

class ProgramMemory {
public:
  /// `regions` are the rank's, by number; inputs hold their values.
  ProgramMemory(const ExpandedProgram &program, std::vector<std::byte *> regions);

  /// Begins a command. Its inputs must hold values, and no running command may conflict with it.
  /// Its outputs become poison, except for those that it computes in place.
  Status begin(const ProgramCommand &command);
  /// Ends a command, which has written its results. Buffers without further uses become poison.
  void end(const ProgramCommand &command);

  std::byte *at(const MemoryView &view) const { return regions[view.region] + view.offset; }
  Tensor load(const MemoryView &view) const { return loadFrom(at(view), view); }
  void store(const MemoryView &view, const Tensor &value) { storeTo(at(view), view, value); }

private:
  struct SegmentState {
    int64_t buffer = -1;                     ///< whose value it holds; -1: poison
    const ProgramCommand *writer = nullptr;  ///< the last one
    const ProgramCommand *writing = nullptr; ///< the running one
  };
  /// Of a segment and a queue: the running reader, and the number of its operands that are this
  /// segment.
  struct Reading {
    const ProgramCommand *command = nullptr;
    uint32_t operands = 0;
  };
  Reading &reading(uint32_t s, Queue queue) { return readings[s * program.numQueues() + queue]; }

  Status beginRead(const ProgramCommand &command, const Operand &read, uint32_t s);
  Status beginWrite(const ProgramCommand &command, const Operand &write, uint32_t s);
  void poison(uint32_t s);

  const ExpandedProgram &program;
  std::vector<std::byte *> regions;
  std::vector<SegmentState> segments;
  std::vector<Reading> readings;  ///< by segment and queue
  std::vector<uint32_t> usesLeft; ///< by buffer: commands that use it and have not ended
};

} // namespace braid::interp
#endif // BRAID_LIB_INTERPRETER_CORE_PROGRAMMEMORY_H
